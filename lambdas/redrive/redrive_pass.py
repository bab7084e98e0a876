"""One pass over one queue: gather, decide, apply, report.

    peek ─► lease ─► measure ─► look ─► judge ─► permit ─► rounds ─► settle ─► report

Every pass re-reads the world, so a schedule, a person and a repeated event may all start one. It writes the
circuit twice at most: before its first send, with the verdicts and the batch it is about to fill, and at the
end. Between the two a crash leaves a batch that is known, if not how full it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from random import Random

from redrive import breaker
from redrive.backoff import MAX_SQS_DELAY, Pacer
from redrive.circuit import Batch, Circuit, Depth
from redrive.engine import Engine, Round
from redrive.errors import RedriverError
from redrive.faults import CallFailed
from redrive.journal import Journal
from redrive.live_traffic import LiveTraffic
from redrive.queue_facts import QueueFacts
from redrive.queues import Queues
from redrive.report import Outcome, Report
from redrive.retention import (
    is_dlq_sweep_due,
    is_lot_sweep_due,
    next_dlq_sweep,
    next_lot_sweep,
)
from redrive.rounds import ROUND_SIZE, Examined, Rounds, Tally
from redrive.settings import Mode, Settings
from redrive.state_store import Lease, StateStore
from redrive.sweep import Sweep
from redrive.triage import (
    Decision,
    Hold,
    Redrive,
    batch_of,
    hold_for_permit,
    is_unseen_return,
    triage,
)
from redrive.triage import Queues as QueueTerms
from redrive.verdict import Evidence

#: A DLQ of at most this many letters is received as a whole when a verdict is due: then no return can hide.
#: A deeper one is not: receiving and releasing buries letters, and returns queue up at its far end.
LOOK_LIMIT = 100

#: What a pass may need to stop after its deadline; the lease covers it.
STOPPING_TIME = timedelta(seconds=15)

#: Letters stay hidden this much longer than the pass can last.
HIDDEN_MARGIN = timedelta(seconds=30)

#: Letters that a dry run looks at.
DRY_RUN_LIMIT = 10


@dataclass(frozen=True, kw_only=True)
class Tools:
    """What a pass works with. `clock` is read once a step; `rng` rolls the jitter; `owner` names this pass.

    `workers` is how many rounds may be under way at once; with one, a pass is the same whenever it is repeated.
    """

    queues: Queues
    store: StateStore
    live_traffic: LiveTraffic
    journal: Journal
    clock: Callable[[], datetime]
    rng: Random
    owner: str
    workers: int = 1


class LostRace(RedriverError):  # noqa: N818 - it is what happened, and nobody's error
    """Raised when the circuit was changed by somebody else since this pass read it."""


def run_pass(tools: Tools, queue: str, settings: Settings, *, deadline: datetime) -> Report:
    """Run one pass and report it; `deadline` is when it has to have stopped by itself.

    AWS's refusals never escape: they are in the report and the log, and the letters are in the DLQ.
    """
    report = Report(queue=queue, mode=settings.mode.value)
    started = tools.clock()
    try:
        _Pass(tools, settings, report, deadline).run()
    except CallFailed as failed:
        report.outcome = Outcome.FAILED
        report.reason = str(failed)
        report.saw_fault(failed)
        tools.journal("call.failed", call=failed.call, code=failed.code, detail=failed.detail)
    except LostRace as lost:
        report.outcome = Outcome.LOST_RACE
        report.reason = str(lost)
    report.duration_seconds = (tools.clock() - started).total_seconds()
    tools.journal("pass.finished", **report.to_json())
    return report


class _Pass:
    """The steps of one pass and what they hand on to each other."""

    def __init__(
        self, tools: Tools, settings: Settings, report: Report, deadline: datetime
    ) -> None:
        self._tools = tools
        self._settings = settings
        self._report = report
        self._deadline = deadline
        self._lease = Lease(owner=tools.owner, expires_at=deadline + STOPPING_TIME)
        self._tally = Tally()
        self._batch: Batch | None = None
        self._late_returns: Counter[tuple[int, bool]] = Counter()
        self._released: list[Examined] = []

    def run(self) -> None:
        """The pass. Raises CallFailed and LostRace."""
        now = self._tools.clock()
        circuit = self._load_circuit(now)
        self._report.saw_circuit(circuit)
        self._is_paused = self._settings.mode is Mode.PAUSED or circuit.orders.pauses(now)
        self._dlq = self._tools.queues.dead_letter_queue()
        self._report.depth = self._dlq.depth
        self._parking_lot = self._tools.queues.parking_lot()
        self._report.parked_depth = self._parking_lot.depth
        if self._settings.mode is Mode.DRY_RUN:
            self._dry_run(circuit)
        elif not self._has_nothing_to_do(circuit, now):
            with self._lease_held(now) as is_held:
                if is_held:
                    self._work()

    def _has_nothing_to_do(self, circuit: Circuit, now: datetime) -> bool:
        """Peek before anything costs: an empty DLQ, or a circuit that waits for its time."""
        if self._dlq.depth and is_dlq_sweep_due(circuit, now, is_paused=self._is_paused):
            return False
        if self._parking_lot.depth and is_lot_sweep_due(circuit, now):
            return False
        if self._is_paused:
            self._note_pause(circuit)
            return True
        if any(batch.due_at <= now for batch in circuit.pending):
            return False
        permit = breaker.allow(circuit, self._settings, now)
        if self._dlq.depth and permit.limit:
            return False
        is_idle = not self._dlq.depth and not circuit.pending
        self._report.outcome = Outcome.IDLE if is_idle else Outcome.WAITING
        self._report.reason = "the DLQ is empty" if not self._dlq.depth else permit.reason
        return True

    def _note_pause(self, circuit: Circuit) -> None:
        orders = circuit.orders
        self._report.outcome = Outcome.PAUSED
        self._report.reason = "paused by the setting `mode`"
        if orders.is_paused:
            until = (
                f" until {orders.paused_until:%Y-%m-%dT%H:%M:%SZ}" if orders.paused_until else ""
            )
            self._report.reason = f"paused by {orders.by}{until}: {orders.reason}"

    def _work(self) -> None:
        now = self._tools.clock()
        self._circuit = self._saved = self._load_circuit(now)
        self._prepare()
        if self._tools.queues.is_move_running(self._dlq.arn):
            self._report.outcome = Outcome.MOVE_TASK_RUNNING
            self._report.reason = "a native move task is emptying the DLQ"
            self._tools.journal("pass.stood_aside", dlq=self._dlq.arn)
            return
        try:
            if self._is_paused:
                self._note_pause(self._circuit)
            else:
                self._measure(now)
                looked = self._look(now)
                self._judge(saw_every_letter=len(looked) >= self._dlq.depth)
                self._redrive(looked)
            self._guard_retention()
        finally:
            self._settle()

    def _dry_run(self, circuit: Circuit) -> None:
        """Decide about a few letters, apply nothing, release them: looking is not free on SQS."""
        self._report.outcome = Outcome.DRY_RUN
        permit = breaker.allow(circuit, self._settings, self._tools.clock())
        self._report.reason = permit.reason
        if not self._dlq.depth:
            return
        self._circuit = self._saved = circuit
        self._prepare()
        self._room = permit.limit
        self._pacer = Pacer(self._settings.max_rate)
        examined = self._rounds.gather(DRY_RUN_LIMIT, hidden_for=HIDDEN_MARGIN)
        for one, decision in self._decide(examined, self._tools.clock()):
            self._report.decisions.append(
                {
                    "message_id": one.letter.message_id,
                    "original_id": one.letter.original_id,
                    "decision": type(decision).__name__.lower(),
                    "reason": getattr(decision.reason, "value", decision.reason),
                }
            )
        self._rounds.release(examined)

    def _prepare(self) -> None:
        self._sources = self._tools.queues.source_queues()
        self._rounds = self._rounds_of(self._tools.queues)

    def _rounds_of(self, queues: Queues) -> Rounds:
        return Rounds(
            queues,
            self._tools.store,
            self._report,
            self._tools.journal,
            source_limits=self._sources.size_limits,
            parking_lot_limit=self._parking_lot.max_message_size,
            waits_for_full_writes=self._tools.workers > 1,
        )

    def _guard_retention(self) -> None:
        """Give letters near expiry a new clock, whatever the circuit says."""
        now = self._tools.clock()
        if self._dlq.depth and is_dlq_sweep_due(self._circuit, now, is_paused=self._is_paused):
            sweep = self._sweep_by(self._rounds, self._dlq)
            oldest = sweep.park_expiring(self._circuit, hidden_for=self._hidden_for())
            due = next_dlq_sweep(oldest, self._dlq.retention, self._sources.retention, now)
            self._circuit = replace(self._circuit, dlq_sweep_at=due)
        if self._parking_lot.depth and is_lot_sweep_due(self._circuit, now):
            rounds = self._rounds_of(self._tools.queues.out_of_parking_lot())
            sweep = self._sweep_by(rounds, self._parking_lot)
            oldest = sweep.renew_parked(hidden_for=self._hidden_for())
            due_lot = next_lot_sweep(oldest, self._parking_lot.retention) if oldest else None
            self._circuit = replace(self._circuit, lot_sweep_at=due_lot)

    def _sweep_by(self, rounds: Rounds, queue: QueueFacts) -> Sweep:
        return Sweep(
            rounds,
            self._report,
            retention=queue.retention,
            clock=self._tools.clock,
            deadline=self._deadline,
        )

    def _measure(self, now: datetime) -> None:
        depth = self._circuit.depth
        depth = (
            depth.measured(self._dlq.depth, now, letters_are_out=bool(self._circuit.pending))
            if depth
            else Depth(letters=self._dlq.depth, at=now)
        )
        self._circuit = replace(self._circuit, depth=depth)

    def _look(self, now: datetime) -> list[Examined]:
        """Receive a shallow DLQ as a whole where that can decide a verdict or choose the canary."""
        is_due = any(batch.due_at <= now for batch in self._circuit.pending)
        permit = breaker.allow(self._circuit, self._settings, now)
        if not 0 < self._dlq.depth <= LOOK_LIMIT or not (is_due or permit.is_canary):
            return []
        looked = self._rounds.gather(LOOK_LIMIT, hidden_for=self._hidden_for())
        returns = self._count_returns(looked)
        looked = self._rounds.mark_returns(looked, self._saved.version, now)
        self._circuit = breaker.charge(self._circuit, returns)
        return looked

    def _judge(self, *, saw_every_letter: bool) -> None:
        now = self._tools.clock()
        depth = self._circuit.depth
        evidence = Evidence(
            unexplained=depth.unexplained if depth else 0.0,
            saw_every_letter=saw_every_letter,
            source_backlog=self._sources.backlog,
            max_receive_count=self._sources.max_receive_count(self._settings.max_receive_count),
        )
        circuit, rulings = breaker.judge(self._circuit, evidence, self._settings, now)
        doubted = [one.batch for one in rulings if one.judgement.wants_traffic]
        if doubted:
            evidence = self._with_traffic(evidence, min(one.first_try_at for one in doubted), now)
            circuit, rulings = breaker.judge(self._circuit, evidence, self._settings, now)
        for ruling in rulings:
            self._report.saw_ruling(ruling)
        for verdict in self._report.verdicts:
            self._tools.journal("batch.judged", **verdict)
        self._became(circuit)

    def _with_traffic(self, evidence: Evidence, since: datetime, now: datetime) -> Evidence:
        try:
            traffic = self._tools.live_traffic.since(since, now, self._sources.arns)
        except CallFailed as failed:
            # Live traffic only ever speaks in doubt: without it the verdict stands as our own letters tell it.
            self._report.saw_fault(failed)
            self._tools.journal("call.failed", call=failed.call, code=failed.code)
            return evidence
        return replace(evidence, traffic=traffic)

    def _rate(self, now: datetime) -> float:
        orders, rate = self._circuit.orders, self._settings.max_rate
        if rate and orders.drains(now):
            return max(rate, orders.drain_rate or rate)
        return rate

    def _redrive(self, looked: list[Examined]) -> None:
        """Let letters through as the permit allows: first those in hand, then round by round."""
        self._permit = breaker.allow(self._circuit, self._settings, self._tools.clock())
        self._room = self._permit.limit
        self._pacer = Pacer(self._rate(self._tools.clock()))
        self._asked = 0
        self._is_dlq_empty = False
        self._in_hand: set[str] = set()
        self._engine = Engine(self._width())
        first = [self._carried_out(looked, are_returns_marked=True)] if looked else []
        self._engine.run(lambda: first.pop() if first else self._next_round())

    def _width(self) -> int:
        """Rounds at once: no more than what is waiting fills, since each that finds nothing costs a call."""
        waiting = min(self._room, self._dlq.visible)
        return max(1, min(self._tools.workers, -(-waiting // ROUND_SIZE)))

    def _next_round(self) -> Round | None:
        """One more round, while the permit has room that no round under way has asked for."""
        limit = min(self._room - self._asked, ROUND_SIZE)
        if limit <= 0 or self._is_dlq_empty or self._tally.refused is not None:
            return None
        return self._round(limit)

    def _round(self, limit: int) -> Round:
        """Receive at most `limit` letters, and carry out what is decided about them."""
        part = self._rounds.apart()
        self._asked += limit
        try:
            examined = yield partial(part.gather, limit, hidden_for=self._hidden_for())
        finally:
            self._asked -= limit
            self._rounds.absorb(part)
        if len(examined) < limit:
            self._engine.width = 1  # the end of the DLQ is near: several would all look for it
            self._is_dlq_empty |= not examined
        if self._engine.failure is not None:
            return
        # What SQS hands out twice may be in another round's hands.
        examined = [one for one in examined if one.letter.message_id not in self._in_hand]
        self._late_returns += self._count_returns(examined)
        yield from self._carried_out(examined, are_returns_marked=False)

    def _carried_out(self, examined: list[Examined], *, are_returns_marked: bool) -> Round:
        """Decide about letters, and carry it out."""
        now = self._tools.clock()
        if now >= self._deadline:
            self._report.outcome = Outcome.OUT_OF_TIME
            self._room = 0
            return  # the lease may be another's by now, and the letters are visible again soon
        decided = self._decide(examined, now)
        is_any_redriven = any(isinstance(what, Redrive) for _, what in decided)
        batch = self._registered_batch(now) if is_any_redriven else None
        self._released += [
            one for one, what in decided if isinstance(what, Hold) and what.until <= now
        ]
        part, tally = self._rounds.apart(), Tally()
        ids = {one.letter.message_id for one in examined}
        self._in_hand |= ids
        marking = None if are_returns_marked else self._saved.version
        try:
            yield partial(part.carry_out, decided, batch, tally, now, version_to_mark=marking)
        finally:
            self._in_hand -= ids
            self._rounds.absorb(part)
            self._tally.absorb(tally)

    def _decide(self, examined: list[Examined], now: datetime) -> list[tuple[Examined, Decision]]:
        """Triage each letter; those that are due then share the room that the permit leaves.

        Letters without strikes go first, and among them the least redriven: a suspect proves little as a canary,
        and a long outage must not use up one letter's redrives.
        """
        terms = QueueTerms(
            destinations=self._sources.size_limits,
            default_destination=self._sources.default_arn,
            retention=self._dlq.retention,
        )
        decided: list[tuple[Examined, Decision]] = []
        due: list[tuple[Examined, Redrive]] = []
        for one in examined:
            self._report.saw_letter(one.letter.sent_at, terms.retention, now)
            roll = self._tools.rng.random()
            decision = triage(
                one.letter, one.entry, self._circuit, terms, self._settings, now, roll
            )
            if isinstance(decision, Redrive):
                due.append((one, decision))
            else:
                decided.append((one, decision))
        due.sort(key=lambda pair: (pair[1].strikes > 0, _redrives(pair[0]), pair[0].letter.sent_at))
        for one, decision in due:
            slot = self._pacer.slot(decision.delay, now) if self._room > 0 else None
            if slot is None:
                self._room = 0
                decided.append((one, hold_for_permit(decision, one.letter, terms, now)))
            else:
                self._room -= 1
                decided.append((one, replace(decision, delay=slot)))
        return decided

    def _count_returns(self, examined: list[Examined]) -> Counter[tuple[int, bool]]:
        returns: Counter[tuple[int, bool]] = Counter()
        for one in examined:
            batch = batch_of(one.letter, one.entry)
            if batch is not None and is_unseen_return(one.letter, one.entry, self._saved.version):
                returns[batch, one.entry is not None and one.entry.is_suspect] += 1
        self._report.returned += returns.total()
        return returns

    def _registered_batch(self, now: datetime) -> Batch:
        """The batch of this pass, announced in the circuit before its first letter is sent."""
        if self._batch is None:
            latest = self._deadline + MAX_SQS_DELAY + self._time_to_fail()
            circuit, batch = breaker.register_batch(self._circuit, self._permit, now, due_at=latest)
            self._save(circuit)
            self._batch = batch
        return self._batch

    def _settle(self) -> None:
        """After the last round, however it ended: write what became of the batch, release what was not due."""
        now = self._tools.clock()
        circuit = self._settled(self._circuit, now)
        if circuit != self._saved:
            written = self._tools.store.save_circuit(circuit)
            if written is None:
                # A person forced the circuit meanwhile. Theirs stands; what was sent is noted in it.
                self._saved = self._load_circuit(now)
                self._save(self._settled(self._saved, now))
            else:
                self._saved = written
                self._became(written)
        self._rounds.release(self._released)

    def _settled(self, circuit: Circuit, now: datetime) -> Circuit:
        """The circuit with the batch completed, late returns charged and refusals counted."""
        if self._batch is not None and circuit.pending_batch(self._batch.id):
            circuit = self._completed(circuit, self._batch, now)
        circuit = breaker.charge(circuit, self._late_returns)
        if circuit.depth is not None:
            circuit = replace(circuit, depth=circuit.depth.less(self._rounds.removed, now))
        if self._report.parked and circuit.lot_sweep_at is None:
            first = next_lot_sweep(now, self._parking_lot.retention)
            circuit = replace(circuit, lot_sweep_at=first)
        if self._tally.refused is not None:
            self._report.outcome = Outcome.REFUSED
            self._report.reason = f"the source queue refused letters: {self._tally.refused}"
            circuit = breaker.refuse(circuit, self._report.reason, self._settings, now)
        return circuit

    def _completed(self, circuit: Circuit, batch: Batch, now: datetime) -> Circuit:
        tally = self._tally
        if not tally.size:
            return circuit.without_batch(batch.id)
        return circuit.with_batch(
            replace(
                batch,
                size=tally.size,
                suspects=tally.suspects,
                first_try_at=batch.sent_at + (tally.shortest_delay or timedelta()),
                due_at=now + tally.longest_delay + self._time_to_fail(),
                is_complete=True,
            )
        )

    def _time_to_fail(self) -> timedelta:
        """From the first try to the moment when a letter that fails has returned and can be counted."""
        grace = timedelta(seconds=self._settings.verdict_grace_seconds)
        return self._sources.time_to_fail(self._settings.max_receive_count) + grace

    def _became(self, circuit: Circuit) -> None:
        if circuit.state is not self._circuit.state:
            self._tools.journal(
                f"circuit.{circuit.state.value.lower()}",
                before=self._circuit.state.value,
                reason=circuit.reason,
            )
        self._circuit = circuit
        self._report.saw_circuit(circuit)

    def _save(self, circuit: Circuit) -> None:
        written = self._tools.store.save_circuit(circuit)
        if written is None:
            raise LostRace("the circuit was changed by another pass or a person")
        self._became(written)
        self._saved = written

    def _load_circuit(self, now: datetime) -> Circuit:
        loaded = self._tools.store.load_circuit()
        return loaded or breaker.new_circuit(self._report.queue, self._settings, now)

    def _hidden_for(self) -> timedelta:
        return max(self._deadline - self._tools.clock(), timedelta()) + HIDDEN_MARGIN

    @contextmanager
    def _lease_held(self, now: datetime) -> Iterator[bool]:
        is_held = self._tools.store.acquire_lease(self._lease, now)
        if not is_held:
            self._report.outcome = Outcome.LEASE_HELD
            self._report.reason = "another pass is at work on this queue"
            self._tools.journal("lease.refused")
        try:
            yield is_held
        finally:
            if is_held:
                self._release_lease()

    def _release_lease(self) -> None:
        try:
            self._tools.store.release_lease(self._lease)
        except CallFailed as failed:
            # It expires by itself; what the pass did stands.
            self._report.saw_fault(failed)
            self._tools.journal("call.failed", call=failed.call, code=failed.code)


def _redrives(one: Examined) -> int:
    return one.entry.redrive_count if one.entry else 0
