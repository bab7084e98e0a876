"""The circuit breaker: how batches and verdicts move the circuit. What people do to it is in `by_hand`. Pure.

                     failure_threshold failures in a row
          ┌────────┐ ───────────────────────────────────► ┌──────┐
          │ CLOSED │                                      │ OPEN │ ◄──────────┐
          └────────┘                                      └──────┘            │
              ▲                       cool-down over, or        │             │ one failure;
              │ success_threshold     live messages succeed;    ▼             │ cool-down doubles
              │ canaries in a row     a letter to send    ┌───────────┐       │
              └────────────────────────────────────────── │ HALF_OPEN │ ──────┘
                                                          └───────────┘

It is two-step, as a redrive is: `permit.allow` gives a permit now, the outcome comes minutes later, in another
invocation, through `judge`. Every change of state starts a new generation; what returns from an older one
counts for its letter and moves nothing. No evidence is not success: an empty DLQ changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from redrive.core.batch import Batch, Heard, Judged, Verdict
from redrive.core.books import Account
from redrive.core.causes import with_failures, with_successes
from redrive.core.circuit import MOST_FLAPS, Circuit, State
from redrive.core.evidence import FAILURES_PER_LIVE_SUCCESS, Evidence
from redrive.core.permit import Permit, cause_cool_down, cool_down, is_likely_up, restart_window
from redrive.core.verdict import GROWTH_WHERE_SHOWN, Judgement, weigh
from redrive.settings import Settings

#: What failures and a person's close leave at the least; the window grows from here.
SMALLEST_WINDOW = 1

#: Letters that live traffic vouches for: those of so many minutes at its rate, the time that a verdict takes.
VOUCHED_MINUTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """One verdict and the circuit's state before and after it, for the report and the log."""

    queue: str
    batch: Batch
    judgement: Judgement
    before: State
    after: State


def new_circuit(queue: str, settings: Settings, now: datetime) -> Circuit:
    """The circuit of a queue that no pass has written about yet."""
    return Circuit(queue=queue, changed_at=now, window=settings.initial_window)


def register_batch(
    circuit: Circuit, permit: Permit, now: datetime, *, due_at: datetime
) -> tuple[Circuit, Batch]:
    """The circuit with a batch announced, before its first letter is sent.

    An OPEN circuit turns HALF_OPEN here and not earlier: only a letter that is about to be sent is a canary.
    """
    if circuit.state is State.OPEN:
        circuit = change_state(
            replace(circuit, success_count=0), State.HALF_OPEN, permit.reason, now
        )
    batch = Batch(
        id=circuit.version + 1,
        generation=circuit.generation,
        sent_at=now,
        first_try_at=now,
        last_try_at=due_at,
        due_at=due_at,
        size=permit.limit,
        is_probe=permit.is_probe,
        is_complete=False,
    )
    return replace(circuit, pending=(*circuit.pending, batch), last_attempt_at=now), batch


def charge(circuit: Circuit, returns: Mapping[tuple[int, bool], int]) -> Circuit:
    """The circuit with returns charged to the batches that they come from.

    Args:
        returns: how many letters returned, by (batch id, whether the letter was a suspect).

    A return from a judged batch may overturn a success of this generation (`judge` looks at that).

    """
    for (batch_id, was_suspect), count in returns.items():
        if batch := circuit.pending_batch(batch_id):
            if was_suspect:
                batch = replace(batch, suspects_returned=batch.suspects_returned + count)
            else:
                batch = replace(batch, returned=batch.returned + count)
            circuit = circuit.with_batch(batch)
        elif (judged := circuit.judged_batch(batch_id)) and not was_suspect:
            circuit = _with_judged(circuit, replace(judged, returned=judged.returned + count))
    return circuit


def note_reports(
    circuit: Circuit, heard: Mapping[int, Heard], settings: Settings, now: datetime, roll: float
) -> Circuit:
    """The circuit with what consumers have reported of batches, by their ids.

    What a judged batch's letters fail of afterwards counts for the circuits by cause alone.
    """
    for batch_id, told in heard.items():
        if batch := circuit.pending_batch(batch_id):
            circuit = circuit.with_batch(replace(batch, heard=batch.heard + told))
        elif (judged := circuit.judged_batch(batch_id)) and judged.is_strike:
            circuit = _hold_causes(circuit, told, settings, now, roll)
    return replace(circuit, heard_at=now)


def judge(
    circuit: Circuit,
    evidence: Mapping[int, Evidence],
    settings: Settings,
    now: datetime,
    *,
    visibility_timeout: timedelta,
    roll: float,
) -> tuple[Circuit, tuple[Ruling, ...]]:
    """Judge every batch that can be judged, oldest first, and move the circuit accordingly.

    Args:
        evidence: what is known of each batch that awaits its verdict, by its id.
        visibility_timeout: the source queue's.
        roll: uniform in [0, 1), for the jitter of a cool-down.

    """
    rulings: list[Ruling] = []
    circuit = _overturn(circuit, settings, now, roll)
    for batch in circuit.pending:
        if circuit.pending_batch(batch.id) is None:
            continue  # voided by a change of state that an earlier verdict brought
        known = evidence.get(batch.id, Evidence())
        judgement = weigh(
            batch,
            known,
            settings,
            now,
            visibility_timeout=visibility_timeout,
            is_canary=circuit.state is State.HALF_OPEN,
        )
        after = circuit
        if judgement.verdict is not None:
            after = circuit.with_verdict(
                batch,
                judgement.verdict,
                is_strike=judgement.is_strike,
                was_alone=judgement.was_alone,
                overturned_at=judgement.overturned_at,
                unaccounted=_unaccounted(batch, judgement, known),
            )
            after = _record(after, batch, judgement, settings, now, roll)
            if judgement.verdict is Verdict.SUCCESS and known.succeeded >= batch.size:
                after = _free_causes(after, batch, now)
            if judgement.is_strike:
                after = _hold_causes(after, batch.heard, settings, now, roll)
        rulings.append(_ruling(batch, judgement, circuit, after))
        circuit = after
    return circuit, tuple(rulings)


def _unaccounted(batch: Batch, judgement: Judgement, evidence: Evidence) -> int:
    """Letters of a success of which nothing is known yet, where nobody else's messages could be compared with them."""
    if judgement.verdict is not Verdict.SUCCESS or evidence.live.is_expected:
        return 0
    return max(0, batch.size - evidence.succeeded - batch.seen_again)


def judge_left_failing(
    circuit: Circuit, account: Account | None, settings: Settings, now: datetime, roll: float
) -> Circuit:
    """Count a further round of failed tries of letters that no batch awaits any more as one more failure.

    Where all letters are out, no further batch can fail: a consumer that keeps them for hours would hide its outage.

    Args:
        account: of the source's books since the last failure was counted.

    """
    letters = circuit.left_failing
    if account is None or not letters or account.deleted:
        return circuit
    if account.failed_tries_of_all < letters:
        return circuit
    reason = f"{account.failed_tries_of_all} further tries failed, none succeeded"
    return _failed(circuit, reason, settings, now, roll, is_probe=True)


def refuse(
    circuit: Circuit, reason: str, settings: Settings, now: datetime, roll: float
) -> Circuit:
    """After the destination refused sends (access, KMS, throttling): a failure at once."""
    return _failed(circuit, reason, settings, now, roll)


def _record(
    circuit: Circuit,
    batch: Batch,
    judgement: Judgement,
    settings: Settings,
    now: datetime,
    roll: float,
) -> Circuit:
    if batch.generation != circuit.generation:
        return circuit
    match judgement.verdict:
        case Verdict.SUCCESS:
            return _succeeded(circuit, batch, judgement, settings, now)
        case Verdict.FAILURE:
            if circuit.state is State.HALF_OPEN and batch.size > settings.canary_size:
                circuit = replace(circuit, good_window=batch.size // 4)
            return _failed(
                _up_until(circuit, batch.sent_at),
                judgement.reason,
                settings,
                now,
                roll,
                is_probe=batch.is_probe,
            )
        case _:
            return circuit


def _succeeded(
    circuit: Circuit, batch: Batch, judgement: Judgement, settings: Settings, now: datetime
) -> Circuit:
    vouched = round(judgement.vouched_per_minute * VOUCHED_MINUTES)
    circuit = replace(
        circuit,
        success_count=circuit.success_count + 1,
        up_since=circuit.up_since or batch.sent_at,
    )
    # Where the consumer flaps and its next bad phase is near, a probe goes before the next batch.
    is_trial = batch.is_probe or batch.size <= settings.canary_size
    circuit = replace(circuit, probed_at=now if is_trial or is_likely_up(circuit, now) else None)
    if circuit.state is State.HALF_OPEN:
        # Whatever opens the circuit next is another outage: its cool-down begins anew.
        circuit = replace(circuit, consecutive_opens=0)
        if circuit.success_count < settings.success_threshold and not judgement.is_beyond_doubt:
            return circuit
        if batch.size > settings.canary_size:
            circuit = replace(circuit, good_window=batch.size)
        window = max(restart_window(circuit, settings), vouched, circuit.orders.window(now))
        reason = f"{circuit.success_count} canaries succeeded: {judgement.reason}"
        closed = replace(
            circuit,
            failure_count=0,
            success_count=0,
            window=min(window, settings.max_window),
            is_shaken=True,
        )
        return change_state(closed, State.CLOSED, reason, now)
    circuit = replace(circuit, failure_count=0)
    if batch.is_probe:
        return replace(circuit, success_count=circuit.success_count - 1)
    window, good = circuit.window, circuit.good_window
    # Only a window that was used has been shown to be safe (RFC 7661 says the same of TCP's).
    if 2 * batch.size >= window:
        window, good = _grown(window, judgement, vouched), batch.size
    # A success in which nearly half came back calms nobody: the consumer may be up and down within one batch.
    calming = circuit.success_count if judgement.is_strike else 0
    is_shaken = circuit.is_shaken and calming < settings.failure_threshold + circuit.flaps
    return replace(
        circuit,
        success_count=calming,
        consecutive_opens=0,
        window=min(max(window, vouched), settings.max_window),
        good_window=good,
        is_shaken=is_shaken,
        flaps=circuit.flaps if is_shaken else 0,
    )


def _grown(window: int, judgement: Judgement, vouched: int) -> int:
    """The window after a success; vouched for by others, no larger than what they can outweigh in time."""
    grown = window * judgement.growth
    if judgement.growth >= GROWTH_WHERE_SHOWN:
        return grown
    return max(window, min(grown, vouched * FAILURES_PER_LIVE_SUCCESS))


def _free_causes(circuit: Circuit, batch: Batch, now: datetime) -> Circuit:
    """Let go what was held for a cause whose canary was in a batch that succeeded as a whole, reported or not."""
    freed = {one.cause: [batch.sent_at] for one in circuit.causes if one.canary_batch == batch.id}
    return replace(circuit, causes=with_successes(circuit.causes, freed, now)) if freed else circuit


def _hold_causes(
    circuit: Circuit, heard: Heard, settings: Settings, now: datetime, roll: float
) -> Circuit:
    """Hold letters of a cause together of which enough failed while others succeeded."""
    failed = {one.cause: one.letters for one in heard.causes}
    cools_for = cause_cool_down(1, settings, roll)
    return replace(circuit, causes=with_failures(circuit.causes, failed, cools_for, now))


def _up_until(circuit: Circuit, sent_at: datetime) -> Circuit:
    """The circuit that knows for how long the consumer was up, after the failure of a batch sent then."""
    if circuit.up_since is None or sent_at <= circuit.up_since:
        return circuit
    return replace(circuit, up_seconds=int((sent_at - circuit.up_since).total_seconds()))


def _failed(
    circuit: Circuit,
    reason: str,
    settings: Settings,
    now: datetime,
    roll: float,
    *,
    is_probe: bool = False,
) -> Circuit:
    is_flap = circuit.probed_at is not None and not is_probe
    circuit = replace(
        circuit,
        success_count=0,
        is_shaken=True,
        probed_at=None,
        up_since=None,
        failed_at=now,
        flaps=min(circuit.flaps + is_flap, MOST_FLAPS),
    )
    if circuit.state is State.CLOSED:
        failures = circuit.failure_count + 1
        # A probe's failure says that now is not the time, not that the window is too large.
        window = circuit.window if is_probe else max(SMALLEST_WINDOW, circuit.window // 2)
        circuit = replace(circuit, failure_count=failures, window=window)
        if failures < settings.failure_threshold:
            return circuit
        reason = f"{failures} failed batches in a row, the last: {reason}"
    opens = circuit.consecutive_opens + 1
    opened = replace(circuit, consecutive_opens=opens)
    return change_state(opened, State.OPEN, reason, now, cool_down(opens, settings, roll))


def change_state(
    circuit: Circuit,
    state: State,
    reason: str,
    now: datetime,
    cools_for: timedelta | None = None,
) -> Circuit:
    """The circuit in a new state and generation; what still awaited a verdict no longer has one to wait for."""
    for batch in circuit.pending:
        circuit = circuit.with_verdict(batch, Verdict.NO_EVIDENCE, is_strike=False)
    return replace(
        circuit,
        state=state,
        generation=circuit.generation + 1,
        changed_at=now,
        cools_until=now + cools_for if state is State.OPEN and cools_for else None,
        reason=reason,
    )


def _overturn(circuit: Circuit, settings: Settings, now: datetime, roll: float) -> Circuit:
    """Charge a success that late returns have turned into a failure, and take its strikes back."""
    for judged in circuit.judged:
        if judged.verdict is Verdict.SUCCESS and 0 < judged.overturned_at <= judged.returned:
            overturned = replace(judged, verdict=Verdict.FAILURE, is_strike=False)
            circuit = _with_judged(circuit, overturned)
            if judged.generation == circuit.generation:
                reason = f"{judged.returned} letters of batch {judged.id} returned late"
                circuit = _failed(circuit, reason, settings, now, roll)
    return circuit


def _with_judged(circuit: Circuit, changed: Judged) -> Circuit:
    judged = tuple(changed if batch.id == changed.id else batch for batch in circuit.judged)
    return replace(circuit, judged=judged)


def _ruling(batch: Batch, judgement: Judgement, before: Circuit, after: Circuit) -> Ruling:
    return Ruling(
        queue=after.queue, batch=batch, judgement=judgement, before=before.state, after=after.state
    )
