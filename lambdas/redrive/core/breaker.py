"""The circuit breaker: what a pass may redrive, and how verdicts move the circuit. Pure.

                     failure_threshold failures in a row
          ┌────────┐ ───────────────────────────────────► ┌──────┐
          │ CLOSED │                                      │ OPEN │ ◄──────────┐
          └────────┘                                      └──────┘            │
              ▲                             cool-down over,   │               │ one failure;
              │ success_threshold           a letter to send  ▼               │ cool-down doubles
              │ canaries in a row                       ┌───────────┐         │
              └──────────────────────────────────────── │ HALF_OPEN │ ────────┘
                                                        └───────────┘

It is two-step, as a redrive is: `allow` gives a permit now, the outcome comes minutes later, in another
invocation, through `judge`. Every change of state starts a new generation; what returns from an older one
counts for its letter and moves nothing. No evidence is not success: an empty DLQ changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from redrive.core.circuit import Batch, Circuit, Judged, Orders, State, Verdict
from redrive.core.verdict import Evidence, Judgement, weigh
from redrive.settings import Settings

#: What the circuit closes with: the consumer has just recovered, and the window doubles from here.
SMALLEST_WINDOW = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Permit:
    """How many letters a pass may redrive, and why not more."""

    limit: int
    reason: str
    is_canary: bool = False
    is_probe: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """One verdict and the circuit's state before and after it, for the report and the log."""

    batch: Batch
    judgement: Judgement
    before: State
    after: State


def new_circuit(queue: str, settings: Settings, now: datetime) -> Circuit:
    """The circuit of a queue that no pass has written about yet."""
    return Circuit(queue=queue, changed_at=now, window=settings.initial_window)


def cool_down(circuit: Circuit, settings: Settings) -> timedelta:
    """How long the circuit stays OPEN: doubles with every consecutive opening, up to the maximum."""
    doublings = min(max(0, circuit.consecutive_opens - 1), 32)
    seconds = settings.cool_down_seconds * 2**doublings
    return timedelta(seconds=min(seconds, settings.max_cool_down_seconds))


def has_cooled_down(circuit: Circuit, settings: Settings, now: datetime) -> bool:
    """Whether an OPEN circuit may try a canary."""
    return now >= circuit.changed_at + cool_down(circuit, settings)


def allow(circuit: Circuit, settings: Settings, now: datetime) -> Permit:
    """How many letters may be redriven now."""
    match circuit.state:
        case State.CLOSED:
            return _allow_closed(circuit, settings)
        case State.OPEN if not has_cooled_down(circuit, settings, now):
            ends = circuit.changed_at + cool_down(circuit, settings)
            return Permit(limit=0, reason=f"OPEN, cooling down until {ends:%Y-%m-%dT%H:%M:%SZ}")
        case State.HALF_OPEN if circuit.pending:
            return Permit(limit=0, reason="HALF_OPEN, the canary awaits its verdict")
        case _:
            return Permit(limit=settings.canary_size, reason="a canary", is_canary=True)


def _allow_closed(circuit: Circuit, settings: Settings) -> Permit:
    """The window; after a failure one batch at a time, a probe before each full one.

    A consumer that flaps lets a window that just doubled run into its next bad phase: as many letters fail as
    succeed. A probe meets that phase with one letter instead.
    """
    window = min(circuit.window, settings.max_window)
    reason = f"window {window}, {circuit.outstanding} awaiting a verdict"
    if not circuit.is_shaken:
        return Permit(limit=max(0, window - circuit.outstanding), reason=reason)
    if circuit.pending:
        return Permit(limit=0, reason=f"{reason}, one batch at a time after a failure")
    if circuit.has_probed or window <= settings.canary_size:
        return Permit(limit=window, reason=reason)
    return Permit(
        limit=settings.canary_size, reason="a probe, as a batch failed lately", is_probe=True
    )


def register_batch(
    circuit: Circuit, permit: Permit, now: datetime, *, due_at: datetime
) -> tuple[Circuit, Batch]:
    """The circuit with a batch announced, before its first letter is sent.

    An OPEN circuit turns HALF_OPEN here and not earlier: only a letter that is about to be sent is a canary.
    """
    if circuit.state is State.OPEN:
        circuit = _changed(
            replace(circuit, success_count=0), State.HALF_OPEN, "the cool-down is over", now
        )
    batch = Batch(
        id=circuit.version + 1,
        generation=circuit.generation,
        sent_at=now,
        first_try_at=now,
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
        if circuit.depth is not None:
            circuit = replace(circuit, depth=circuit.depth.explained(count))
        if batch := circuit.pending_batch(batch_id):
            if was_suspect:
                batch = replace(batch, suspects_returned=batch.suspects_returned + count)
            else:
                batch = replace(batch, returned=batch.returned + count)
            circuit = circuit.with_batch(batch)
        elif (judged := circuit.judged_batch(batch_id)) and not was_suspect:
            circuit = _with_judged(circuit, replace(judged, returned=judged.returned + count))
    return circuit


def judge(
    circuit: Circuit, evidence: Evidence, settings: Settings, now: datetime
) -> tuple[Circuit, tuple[Ruling, ...]]:
    """Judge every batch that can be judged, oldest first, and move the circuit accordingly."""
    rulings: list[Ruling] = []
    circuit = _overturn(circuit, settings, now)
    for batch in circuit.pending:
        if circuit.pending_batch(batch.id) is None:
            continue  # voided by a change of state that an earlier verdict brought
        is_canary = circuit.state is State.HALF_OPEN
        judgement = weigh(batch, evidence, settings, now, is_canary=is_canary)
        if judgement.verdict is None:
            rulings.append(_ruling(batch, judgement, circuit, circuit))
            continue
        evidence = replace(evidence, unexplained=max(0.0, evidence.unexplained - judgement.charged))
        if circuit.depth is not None:
            circuit = replace(circuit, depth=circuit.depth.explained(judgement.charged))
        after = circuit.settled(
            batch,
            judgement.verdict,
            is_strike=judgement.is_strike,
            overturned_at=judgement.overturned_at,
        )
        after = _record(after, batch, judgement, settings, now)
        rulings.append(_ruling(batch, judgement, circuit, after))
        circuit = after
    return circuit, tuple(rulings)


def refuse(circuit: Circuit, reason: str, settings: Settings, now: datetime) -> Circuit:
    """After the destination refused sends (access, KMS, throttling): a failure at once."""
    return _failed(circuit, reason, settings, now)


def force(circuit: Circuit, state: State, reason: str, now: datetime) -> Circuit:
    """After a person opened or closed the circuit by hand."""
    counted = replace(
        circuit,
        failure_count=0,
        success_count=0,
        is_shaken=False,
        has_probed=False,
        consecutive_opens=1 if state is State.OPEN else 0,
        window=SMALLEST_WINDOW if state is State.CLOSED else circuit.window,
    )
    return _changed(counted, state, reason, now)


def order(circuit: Circuit, orders: Orders, now: datetime) -> Circuit:
    """After a person paused, resumed or began to drain the queue; a drain raises the window at once."""
    window = circuit.window
    if orders.drains(now) and circuit.state is State.CLOSED:
        window = max(window, orders.drain_window or window)
    return replace(circuit, orders=orders, window=window)


def _record(
    circuit: Circuit, batch: Batch, judgement: Judgement, settings: Settings, now: datetime
) -> Circuit:
    if batch.generation != circuit.generation:
        return circuit
    match judgement.verdict:
        case Verdict.SUCCESS:
            return _succeeded(circuit, batch, judgement, settings, now)
        case Verdict.FAILURE:
            return _failed(circuit, judgement.reason, settings, now, is_probe=batch.is_probe)
        case _:
            return circuit


def _succeeded(
    circuit: Circuit, batch: Batch, judgement: Judgement, settings: Settings, now: datetime
) -> Circuit:
    if circuit.state is State.HALF_OPEN:
        successes = circuit.success_count + 1
        circuit = replace(circuit, success_count=successes)
        if successes < settings.success_threshold:
            return circuit
        closed = replace(
            circuit, failure_count=0, success_count=0, window=SMALLEST_WINDOW, is_shaken=True
        )
        return _changed(closed, State.CLOSED, f"{successes} canaries succeeded", now)
    if batch.is_probe:
        return replace(circuit, failure_count=0, has_probed=True)
    successes = circuit.success_count + 1
    window = circuit.window
    # Only a success that the batch earned itself speaks for more, and only of a window that was used: one that
    # was not has not been shown to be safe (RFC 7661 says the same of TCP's).
    if judgement.overturned_at and 2 * batch.size >= window:
        window = min(2 * window, settings.max_window)
    return replace(
        circuit,
        failure_count=0,
        success_count=successes,
        consecutive_opens=0,
        window=window,
        is_shaken=circuit.is_shaken and successes < settings.failure_threshold,
        has_probed=False,
    )


def _failed(
    circuit: Circuit, reason: str, settings: Settings, now: datetime, *, is_probe: bool = False
) -> Circuit:
    circuit = replace(circuit, success_count=0, is_shaken=True, has_probed=False)
    if circuit.state is State.CLOSED:
        failures = circuit.failure_count + 1
        # A probe's failure says that now is not the time, not that the window is too large.
        window = circuit.window if is_probe else max(SMALLEST_WINDOW, circuit.window // 2)
        circuit = replace(circuit, failure_count=failures, window=window)
        if failures < settings.failure_threshold:
            return circuit
        reason = f"{failures} failed batches in a row, the last: {reason}"
    opened = replace(circuit, consecutive_opens=circuit.consecutive_opens + 1)
    return _changed(opened, State.OPEN, reason, now)


def _changed(circuit: Circuit, state: State, reason: str, now: datetime) -> Circuit:
    """A new state and generation; what still awaited a verdict no longer has one to wait for."""
    for batch in circuit.pending:
        circuit = circuit.settled(batch, Verdict.NO_EVIDENCE, is_strike=False)
    return replace(
        circuit, state=state, generation=circuit.generation + 1, changed_at=now, reason=reason
    )


def _overturn(circuit: Circuit, settings: Settings, now: datetime) -> Circuit:
    """Charge a success that late returns have turned into a failure, and take its strikes back."""
    for judged in circuit.judged:
        if judged.verdict is Verdict.SUCCESS and 0 < judged.overturned_at <= judged.returned:
            overturned = replace(judged, verdict=Verdict.FAILURE, is_strike=False)
            circuit = _with_judged(circuit, overturned)
            if judged.generation == circuit.generation:
                reason = f"{judged.returned} letters of batch {judged.id} returned late"
                circuit = _failed(circuit, reason, settings, now)
    return circuit


def _with_judged(circuit: Circuit, changed: Judged) -> Circuit:
    judged = tuple(changed if batch.id == changed.id else batch for batch in circuit.judged)
    return replace(circuit, judged=judged)


def _ruling(batch: Batch, judgement: Judgement, before: Circuit, after: Circuit) -> Ruling:
    return Ruling(batch=batch, judgement=judgement, before=before.state, after=after.state)
