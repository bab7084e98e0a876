"""One source queue in a pass: its circuit, what it lets through, and the batch that results.

Several queues can share a DLQ. Each has its own context, so that a healthy neighbour can't testify for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from operator import is_not
from typing import Generic, TypeVar

from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.messages.outgoing import MAX_SQS_DELAY
from smart_redriver.engine.messages.queue_facts import QueueFacts
from smart_redriver.engine.model import breaker, judging
from smart_redriver.engine.model.batch import Batch, Verdict
from smart_redriver.engine.model.causes import with_successes
from smart_redriver.engine.model.circuit import Circuit, State
from smart_redriver.engine.model.evidence import (
    FEWEST_LIVE_SUCCESSES,
    VOUCHED_BEFORE_CANARY,
    gather_evidence,
    live_outcome,
)
from smart_redriver.engine.model.judging import Ruling
from smart_redriver.engine.model.permit import (
    Hint,
    Permit,
    allow,
    believes_successes,
    expects_reports,
    fails_together,
    is_flapping,
)
from smart_redriver.engine.model.queue_metrics import PERIOD, Account, QueueMetrics, minute_of
from smart_redriver.engine.model.rate import (
    AHEAD,
    AHEAD_AT_ONCE,
    AHEAD_OF_SCHEDULE,
    CLEARED,
    HARDLY_LIVE,
    LIVE_MINUTES,
    LOOKS_EVERY,
    Look,
    Rate,
    ahead_at_once,
    ahead_of_schedule,
    felt,
    owed_since,
    used_up_until,
)
from smart_redriver.engine.passes.circuit_keeper import CircuitKeeper, LostRace
from smart_redriver.engine.passes.executor import Destination, Sending, batch_counts_of, completed
from smart_redriver.engine.passes.ports import CountsSent, Source
from smart_redriver.engine.reports.processing import ProcessedReports
from smart_redriver.engine.triage.admission import Admission
from smart_redriver.engine.triage.case import Case
from smart_redriver.engine.triage.cause_gate import CauseGate
from smart_redriver.engine.triage.decision import Decision
from smart_redriver.engine.triage.triage import Terms

#: How many of the last minutes of metrics show whether live messages still come.
LATELY = 5

#: Returns seen, by the batch that they come from and whether the letter was a suspect.
Returns = Counter[tuple[int, bool]]


T = TypeVar("T")


class Memo(Generic[T]):
    """The last answer to a question that a pass asks several times. It holds while all that it rests on is the same."""

    def __init__(self) -> None:
        self._known: tuple[tuple[object, ...], T] | None = None

    def answer(self, rests_on: tuple[object, ...], find: Callable[[], T]) -> T:
        """Return the answer, found anew only if one of these objects is another one."""
        if self._known is None or any(map(is_not, self._known[0], rests_on)):
            self._known = rests_on, find()
        return self._known[1]


@dataclass(kw_only=True)
class SourceContext:
    """A source, its circuit, and what the pass knows about it and does with it.

    `roll` jitters the cool-down. `unread`: the failed call, if the source's facts can't be read.
    """

    source: Source
    keeper: CircuitKeeper
    settings: Settings
    roll: float
    is_paused: bool = False
    facts: QueueFacts | None = None
    unread: str = ""
    metrics: QueueMetrics | None = None
    hint: Hint | None = None
    admission: Admission | None = None
    permit: Permit = field(default_factory=lambda: Permit(limit=0, reason=""))
    rulings: tuple[Ruling, ...] = ()
    returned: int = 0
    refusal: str | None = None
    ahead: timedelta | None = None
    _gate: CauseGate | None = None
    _batch: Batch | None = None
    _begun: Batch | None = None
    _sendings: list[Sending] = field(default_factory=list)
    _late: Returns = field(default_factory=Counter)
    _permits: Memo[Permit] = field(default_factory=Memo)
    _rates: Memo[Rate | None] = field(default_factory=Memo)

    @property
    def circuit(self) -> Circuit:
        """The circuit as the pass thinks of it."""
        return self.keeper.circuit

    @property
    def is_flowing(self) -> bool:
        """Whether letters go through as a matter of course."""
        return self.circuit.state is State.CLOSED and not self.is_paused

    @property
    def room(self) -> int:
        """Letters that may still be redriven in this pass."""
        return self.admission.room if self.admission else 0

    def learn_facts(self) -> None:
        """Ask for the source queue's facts. Raises CallFailed."""
        try:
            self.facts = self.source.facts()
        except CallFailed as failed:
            self.unread = failed.in_short
            raise

    @property
    def known_facts(self) -> QueueFacts:
        """The source queue's facts. The pass asks for them before anything needs them."""
        assert self.facts is not None  # noqa: S101
        return self.facts

    def max_receives(self) -> int:
        """Receives of one message, before SQS moves it to the DLQ."""
        known = self.facts.max_receive_count if self.facts is not None else None
        return known or self.settings.max_receive_count

    def time_to_fail(self) -> timedelta:
        """Return the time from a letter's first try to its move to the DLQ, for a consumer that just fails."""
        return self.source.time_to_fail(self.known_facts, self.settings.max_receive_count)

    def counted_since(self) -> datetime | None:
        """Return from when on the metrics may show more about batches whose letters are kept."""
        return min(
            (one.sent_at for one in self.circuit.counted_batches if not one.is_over), default=None
        )

    def sent_lately(self) -> list[tuple[datetime, datetime, int]]:
        """Complete batches without a verdict: when each was sent, by when it was tried, and how many letters it has."""
        return [
            (one.sent_at, one.tried_by, one.size) for one in self.circuit.pending if one.is_complete
        ]

    def wants_metrics(self, *, letters: int, visible: int) -> bool:
        """Whether the source's metrics can change anything, with so many letters in the DLQ, some of them visible."""
        if self.is_paused or self.source.settles_at_once:
            return False
        if self.circuit.pending or self.circuit.left_failing:
            return True
        if visible and self.circuit.has_suspects:
            return True  # they say whether suspects can be compared with live messages
        is_open = self.circuit.state is State.OPEN
        return letters > 0 and (is_open or self.counted_since() is not None)

    def may_have_returns(self, now: datetime) -> bool:
        """Whether letters that were sent can be in the DLQ again, and not all of them are known yet."""
        return any(
            one.seen_again < one.size and now >= one.first_try_at + self.time_to_fail()
            for one in self.circuit.pending
        )

    def has_looked_back(self, now: datetime) -> bool:
        """Whether a pass within this minute has looked for returns: the metrics show no more than they did then."""
        return self._batch_of_this_minute(now) is not None

    def has_returns(self) -> bool:
        """Whether the metrics show that the source queue lost more messages to the DLQ than were seen there."""
        return any(
            account.moved > one.seen_again
            for one in self.circuit.pending
            if self.metrics and (account := self.metrics.account(one.sent_at))
        )

    @property
    def is_quiet(self) -> bool:
        """Whether hardly any live messages came lately to compare letters with."""
        live = sum(self._live_minutes()[-LATELY:])
        return self.metrics is not None and live < FEWEST_LIVE_SUCCESSES

    def compares(self, letters: int, now: datetime) -> bool:
        """Whether most letters of a quiet DLQ may go, suspects included: one decision then says which go together.

        If there are live messages, letters are compared with those.
        """
        was_quiet = sum(self._live_minutes()) < FEWEST_LIVE_SUCCESSES
        return was_quiet and self.circuit.has_suspects and 2 * self.allow(now).limit >= letters

    def allow(self, now: datetime) -> Permit:
        """Return what the circuit lets through now: nothing while the consumer has more than it can handle."""
        if self.is_paused:
            return Permit(limit=0, reason="paused")
        permit = self._permit_of_circuit(now)
        if self.facts is None or permit.is_trial:
            return permit
        rate = self.felt(now)
        if rate is None or not rate.is_congested:
            return permit
        reason = f"the consumer of {self.source.name} is at capacity"
        return replace(permit, limit=0, reason=reason)

    def _permit_of_circuit(self, now: datetime) -> Permit:
        """The permit by circuit, metrics and hint."""
        circuit, metrics, hint = self.circuit, self.metrics, self.hint

        def find() -> Permit:
            our_tries = self.max_receives() * circuit.lately_judged
            live = live_outcome(metrics, circuit.last_tried_at, our_tries)
            return allow(circuit, self.settings, now, live, hint)

        return self._permits.answer((circuit, metrics, hint, now), find)

    def felt(self, now: datetime) -> Rate | None:
        """Return the rate that the consumer can handle, after a look at its queue.

        None if there are hardly any producers' messages that could suffer, or if there is no queue to look at.
        """
        rests_on = (self.circuit, self.facts, self.metrics, self.rulings, now)
        return self._rates.answer(rests_on, lambda: self._felt(now))

    def _felt(self, now: datetime) -> Rate | None:
        facts, circuit = self.facts, self.circuit
        if facts is None or self.source.settles_at_once:
            return circuit.rate
        used = timedelta()
        # Letters that go one by one don't show what the rate does.
        if circuit.rate and circuit.paced_until and not fails_together(circuit):
            used = min(now, circuit.paced_until) - circuit.rate.looked_at
        look = Look(
            at=now,
            facts=facts,
            live=self._feared_minutes(now),
            used=used,
            is_closed=circuit.state is State.CLOSED,
            are_out=bool(circuit.pending) or now < circuit.last_tried_at + CLEARED,
            may_be_too_many=any(self._may_be_too_many(one) for one in self.rulings),
            flaps=is_flapping(circuit),
            unheard=self._unheard(now),
            outcomes=self._outcomes(),
        )
        return felt(circuit.rate, look)

    def _may_be_too_many(self, ruling: Ruling) -> bool:
        """Whether a batch was too many letters at once, or it was large and nobody knows what became of it."""
        is_unknown = ruling.judgement.verdict is Verdict.NO_EVIDENCE
        is_large = ruling.batch.size > self.settings.initial_window
        return ruling.judgement.is_overload or (is_unknown and is_large)

    def _outcomes(self) -> list[tuple[datetime, int, int]]:
        """The outcomes of letters whose batches got a verdict in this pass."""
        judged = [one for one in self.rulings if one.judgement.verdict is not None]
        told = [(one.batch.sent_at, one.evidence) for one in judged]
        return [(at, known.failed, known.failed + known.succeeded) for at, known in told]

    def _unheard(self, now: datetime) -> float | None:
        """Letters that reached the consumer and that it has not reported on; None if it does not report."""
        circuit = self.circuit
        if not expects_reports(circuit, now):
            return None
        on_their_way = 0.0
        if circuit.rate is not None and circuit.paced_until is not None:
            on_their_way = circuit.rate.per_second * (circuit.paced_until - now).total_seconds()
        return circuit.unknown - max(0.0, on_their_way)

    @property
    def waits_for_rate(self) -> bool:
        """Whether a rate holds back letters that can't be delayed: they stay where they are until the next look."""
        return self.circuit.rate is not None and not self.source.longest_delay

    def looks_again_after(self) -> timedelta | None:
        """Return how soon a look may release letters that wait only for the rate; None if there are none."""
        rate, admission = self.circuit.rate, self.admission
        if rate is None or not self.is_flowing:
            return None
        if not rate.is_congested and not (admission and admission.waits_for_rate):
            return None
        if not self.source.longest_delay:
            return AHEAD_AT_ONCE
        return LOOKS_EVERY

    def feels_anew(self, now: datetime) -> bool:
        """Whether the consumer has just begun to have more than it can handle."""
        known, felt_now = self.circuit.rate, self.felt(now)
        return bool(known and felt_now and felt_now.is_congested and not known.is_congested)

    def _live_minutes(self) -> tuple[int, ...]:
        """Producers' messages in each of the last minutes that are known."""
        if self.metrics is None:
            return ()
        told = [*self.metrics.sent_before, *((one.at, one.sent) for one in self.metrics.minutes)]
        counted = told[-LIVE_MINUTES:]
        ours: Counter[datetime] = Counter()
        for one in self.circuit.batches:
            if counted and counted[0][0] <= one.sent_at:
                ours[minute_of(one.sent_at)] += one.size
        return tuple(max(0, sent - ours[at]) for at, sent in counted)

    def _feared_minutes(self, now: datetime) -> tuple[int, ...]:
        """Producers' messages in each minute; as many as matter while reports are ahead of the metrics.

        Windows then follow each other before the metrics show live messages. Producers seen before are known.
        """
        known, metrics = self._live_minutes(), self.metrics
        if metrics is None or not metrics.minutes or not expects_reports(self.circuit, now):
            return known
        first = min((one.sent_at for one in self.circuit.batches), default=now)
        were_seen = sum(map(bool, known)) > 1
        if were_seen or metrics.minutes[-1].at > minute_of(first):
            return known
        return tuple(max(int(60 * HARDLY_LIVE) + 1, one) for one in known)

    def judged(self, now: datetime) -> tuple[Circuit, tuple[Ruling, ...]]:
        """The circuit after every verdict that can be reached now, and the rulings."""
        circuit = judging.judge_left_failing(
            self.circuit, self._since_failure(), self.settings, now, self.roll
        )
        circuit = judging.count_unseen(circuit, self.metrics)
        is_canary = circuit.state is State.HALF_OPEN
        evidence = {
            one.id: gather_evidence(
                one,
                circuit.batches,
                self.metrics,
                max_receives=self.max_receives(),
                believes_successes=believes_successes(circuit, now),
                vouched_before=VOUCHED_BEFORE_CANARY if is_canary else timedelta(),
            )
            for one in circuit.pending
        }
        return judging.judge(
            circuit,
            evidence,
            self.settings,
            now,
            roll=self.roll,
            is_undelayed=not self.source.longest_delay,
        )

    def _since_failure(self) -> Account | None:
        """The metrics from the minute after the one in which the last failure was counted."""
        failed_at = self.circuit.failed_at
        if self.metrics is None or failed_at is None:
            return None
        return self.metrics.account(failed_at + PERIOD)

    def count_returns(self, cases: Sequence[Case], now: datetime) -> Returns:
        """The returns among this queue's letters that no pass has charged to the circuit yet."""
        returns: Returns = Counter()
        for case in cases:
            if case.batch is not None and case.is_unseen_return(self.keeper.version):
                returns[case.batch, case.was_suspect(self.circuit)] += 1
        self.returned += returns.total()
        if any(case.contradicts_a_report for case in cases):
            self.keeper.change(replace(self.circuit, contradicted_at=now))
        return returns

    def heard(self, processed: ProcessedReports, now: datetime) -> None:
        """Note what the consumer has reported on the batches that are out, on the letters of a cause, and on others.

        A live message that succeeds after a failure is a hint that the consumer is well again.
        """
        name = self.source.name
        told = {batch: one for (queue, batch), one in processed.heard.items() if queue == name}
        recovered = {c: at for (queue, c), at in processed.recovered.items() if queue == name}
        circuit = self.circuit
        if told:
            circuit = judging.note_reports(circuit, told, self.settings, now, self.roll)
        if recovered:
            circuit = replace(circuit, causes=with_successes(circuit.causes, recovered, now))
        self.keeper.change(circuit)
        if (at := processed.live.get(name)) is not None:
            self.hint = Hint(at=at, by="a report")

    @property
    def has_left_behind(self) -> bool:
        """Whether a pass died before it could write what it sent, and the source can count that."""
        return isinstance(self.source, CountsSent) and not all(
            one.is_complete for one in self.circuit.pending
        )

    def complete_left_behind(self) -> None:
        """Complete the batches of passes that died. This pass has the lease, so no other pass is filling them.

        Raises CallFailed.
        """
        circuit = self.circuit
        for one in circuit.pending:
            if isinstance(self.source, CountsSent) and not one.is_complete:
                size = self.source.count_sent(one.id, one.sent_at)
                complete = replace(one, size=size, is_complete=True)
                circuit = circuit.with_batch(complete) if size else circuit.without_batch(one.id)
        self.keeper.change(circuit)

    def charge_later(self, returns: Returns) -> None:
        """Keep returns that were found while letters went out, to be charged with what was sent."""
        self._late += returns

    def open_gate(self, now: datetime, *, goes_on: bool = True) -> None:
        """Let through what the circuit allows from now on. `goes_on`: there is time for another look soon."""
        before, rate = self.circuit.rate, self.felt(now)
        paced_until = self.circuit.paced_until
        if self.waits_for_rate:
            paced_until = used_up_until(paced_until, before, rate, now)
        felt_now = breaker.at_rate(self.circuit, rate, self.settings, now)
        self.keeper.change(replace(felt_now, paced_until=paced_until))
        self.permit = self.allow(now)
        owed = owed_since(before, now) if self.waits_for_rate else None
        self.ahead = self._how_far_ahead(rate, owed or now, goes_on=goes_on)
        looks_soon = self.is_flowing and (goes_on or self.waits_for_rate)
        # With one look a minute, a pass meets more letters than it lets go: returns among them are strikes, and have
        # last chances.
        bound = self.ahead if looks_soon else None
        self._gate = CauseGate(self.circuit, self.settings, self.roll)
        self.admission = Admission(
            self.circuit,
            self.permit,
            self.settings,
            now,
            self._gate,
            awaits_suspects=self._awaits_suspects(now),
            is_quiet=self.is_quiet,
            can_delay=bool(self.source.longest_delay),
            ahead=bound,
            owed_since=owed,
        )
        # Announce no more than can go. If the pass dies, all that was announced counts as out until it is due.
        self.permit = replace(self.permit, limit=min(self.permit.limit, self.admission.room))

    def _how_far_ahead(
        self, rate: Rate | None, since: datetime, *, goes_on: bool
    ) -> timedelta | None:
        """How far ahead letters are dealt out, which are owed their seconds since `since`; None without a rate."""
        if self.permit.is_apart and self.source.longest_delay:
            return self.source.longest_delay
        if rate is None:
            return None
        if not self.is_flowing:
            # No look follows within seconds, see `looks_again_after`.
            return ahead_of_schedule(timedelta(seconds=self.circuit.up_seconds))
        if self.waits_for_rate:
            return ahead_at_once(
                rate,
                since,
                paced_until=self.circuit.paced_until,
                # If letters failed together right after a success, their number may be the reason.
                handful=0 if self.circuit.flaps else self.settings.initial_window,
            )
        # Sent letters can't be called back, so they are dealt out only until the next look.
        return AHEAD if goes_on else AHEAD_OF_SCHEDULE

    def _awaits_suspects(self, now: datetime) -> bool:
        """Whether suspects may come, which need letters without strikes to be compared with.

        They may be hidden, or the source queue holds letters whose batches got a verdict without them.
        """
        hidden_until = self.circuit.suspects_until
        if hidden_until is not None and now < hidden_until:
            return True
        since = now - MAX_SQS_DELAY - self._time_to_count()
        return self.known_facts.depth > 0 and self.circuit.may_hide_suspects(since)

    def decide(
        self,
        cases: Sequence[Case],
        rolls: Sequence[float],
        terms: Terms,
        now: datetime,
        *,
        beyond: float,
    ) -> list[tuple[Case, Decision]]:
        """Decide about letters of this queue; `beyond`: see `Admission.decide`."""
        assert self.admission is not None  # noqa: S101
        return self.admission.decide(cases, rolls, self.circuit, terms, now, beyond=beyond)

    def destination(
        self, now: datetime, latest: datetime, save: Callable[[Circuit], None]
    ) -> Destination:
        """Return where letters go: the batch of this pass, announced in the circuit before its first letter is sent.

        Args:
            latest: when the pass will have stopped by itself.
            save: writes the circuit, or in a dry run only goes on with it.

        """
        beside_controls = self.admission.beside_controls if self.admission is not None else 0
        most = self.permit.limit + beside_controls
        if self._batch is None:
            due_at = latest + self.source.longest_delay + self._time_to_count()
            self._begun = self._batch_of_this_minute(now)
            circuit, self._batch = breaker.register_batch(
                self.circuit,
                replace(self.permit, limit=most),
                now,
                due_at=due_at,
                begun=self._begun,
            )
            try:
                save(circuit)
            except LostRace:
                # The winner's batch may have the same id and moment.
                self._batch = self._begun = None
                raise
        elif (size := most + (self._begun.size if self._begun else 0)) > self._batch.size:
            self._batch = replace(self._batch, size=size)
            save(self.circuit.with_batch(self._batch))
        return Destination(
            source=self.source,
            facts=self.known_facts,
            batch=self._batch,
            version=self.keeper.version,
        )

    def _batch_of_this_minute(self, now: datetime) -> Batch | None:
        """Return the batch that a look within this minute began.

        The metrics can't tell the letters of one minute apart.
        """
        is_paced = self.circuit.rate is not None and bool(self.source.longest_delay)
        if not is_paced or self.permit.is_trial or expects_reports(self.circuit, now):
            return None
        last = self.circuit.pending[-1] if self.circuit.pending else None
        if last is None or not last.can_go_on or last.generation != self.circuit.generation:
            return None
        return last if minute_of(last.sent_at) == minute_of(now) else None

    def sent(self, sendings: Sequence[Sending]) -> None:
        """Note letters that went out."""
        self._sendings += sendings

    def after_sending(self, circuit: Circuit, now: datetime) -> Circuit:
        """The circuit with the batch completed, late returns charged, and a refusal counted."""
        if self._batch is not None and self._is_ours(circuit.pending_batch(self._batch.id)):
            circuit = self._completed(circuit, self._batch, now)
        circuit = judging.charge(circuit, self._late)
        if self.admission is not None:
            circuit = replace(circuit, suspects_until=self.admission.suspects_until)
        if self._gate is not None:
            batch = self._batch.id if self._batch else None
            circuit = replace(circuit, causes=self._gate.circuits(batch, now))
        has_taken_some = any(one.has_succeeded for one in self._sendings)
        if self.refusal is not None and not has_taken_some:
            reason = breaker.refused(self.source.name, self.refusal)
            circuit = breaker.failed(circuit, reason, self.settings, now, self.roll)
        return circuit

    def _is_ours(self, batch: Batch | None) -> bool:
        """Whether this is the batch of this pass. The winner of a race announces another one under the same id."""
        return (
            batch is not None and self._batch is not None and batch.sent_at == self._batch.sent_at
        )

    def _completed(self, circuit: Circuit, batch: Batch, now: datetime) -> Circuit:
        if not self._sendings:
            return (
                circuit.with_batch(self._begun) if self._begun else circuit.without_batch(batch.id)
            )
        if self.source.settles_at_once:
            circuit = replace(circuit, heard_at=now)
        complete = completed(batch, self._sendings, now, self._time_to_count())
        if self._begun is not None:
            complete = self._begun.and_then(complete)
        if self.known_facts.is_fifo:
            circuit = circuit.with_counts(batch_counts_of(complete, self._sendings))
        paced_until = self.admission.paced_until if self.admission else None
        return replace(circuit.with_batch(complete), paced_until=paced_until)

    def _time_to_count(self) -> timedelta:
        """Return the time from a letter's first try until it has failed, returned and can be counted."""
        return self.time_to_fail() + timedelta(seconds=self.settings.verdict_grace_seconds)
