"""The circuit breaker: how batches, verdicts and people move the circuit. Pure.

                     failure_threshold failures in a row
          ┌────────┐ ───────────────────────────────────► ┌──────┐
          │ CLOSED │                                      │ OPEN │ ◄──────────┐
          └────────┘                                      └──────┘            │
              ▲                       cool-down over, or        │             │ one failure;
              │                       live messages succeed,    │             │ cool-down doubles,
              │ success_threshold     or a hint that they do;   ▼             │ but not by a hint
              │ canaries in a row     a letter to send    ┌───────────┐       │
              └────────────────────────────────────────── │ HALF_OPEN │ ──────┘
                                                          └───────────┘

It has two steps, as a redrive does: `permit.allow` gives a permit now; the outcome comes minutes later, in another
invocation, through `judging`. Every change of state starts a new generation; a return from an older one counts for its
letter but does not move the circuit. No evidence is not success: an empty DLQ changes nothing.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.model.batch import Batch, Verdict
from smart_redriver.engine.model.circuit import MOST_FLAPS, Circuit, Orders, State
from smart_redriver.engine.model.evidence import FAILURES_PER_LIVE_SUCCESS
from smart_redriver.engine.model.permit import (
    LONGEST_WHILE_FLAPPING,
    Permit,
    cool_down,
    failures_beyond,
    is_likely_up,
    is_up_briefly,
    restart_window,
    widened_window,
)
from smart_redriver.engine.model.rate import Rate
from smart_redriver.engine.model.verdict import GROWTH_WHERE_SHOWN, Judgement

#: The smallest window, after failures or a person's close; it grows from here.
SMALLEST_WINDOW = 1

#: Live traffic vouches for as many letters as it sends in this many minutes, the time that a verdict takes.
VOUCHED_MINUTES = 4


def new_circuit(queue: str, settings: Settings, now: datetime) -> Circuit:
    """The circuit of a queue that no pass has written about yet."""
    return Circuit(queue=queue, changed_at=now, window=settings.initial_window)


def register_batch(
    circuit: Circuit, permit: Permit, now: datetime, *, due_at: datetime, begun: Batch | None = None
) -> tuple[Circuit, Batch]:
    """Announce a batch in the circuit before its first letter is sent, or announce a `begun` one again.

    An OPEN circuit becomes HALF_OPEN here and not earlier: only a letter that is about to be sent is a canary.
    """
    if circuit.state is State.OPEN:
        # If a canary that somebody asked for fails, the next cool-down is no longer than the last.
        opens = max(0, circuit.consecutive_opens - permit.is_hinted)
        tried = replace(circuit, success_count=0, consecutive_opens=opens)
        circuit = change_state(tried, State.HALF_OPEN, permit.reason, now)
    if begun is not None:
        batch = replace(begun, size=begun.size + permit.limit, due_at=due_at, is_complete=False)
        return replace(circuit.with_batch(batch), last_attempt_at=now), batch
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


def succeeded(
    circuit: Circuit, batch: Batch, judgement: Judgement, settings: Settings, now: datetime
) -> Circuit:
    """The circuit after a batch of its generation succeeded: HALF_OPEN it may close, CLOSED its window grows."""
    if judgement.is_mixture and circuit.state is State.CLOSED:
        return _after_mixture(circuit, batch, judgement, settings)
    circuit = replace(
        circuit,
        success_count=circuit.success_count + 1,
        up_since=circuit.up_since or batch.sent_at,
    )
    # If the consumer flaps and its next bad phase is near, a probe goes before the next batch.
    is_trial = batch.is_probe or batch.size <= settings.canary_size
    circuit = replace(circuit, probed_at=now if is_trial or is_likely_up(circuit, now) else None)
    vouched = round(judgement.vouched_per_minute * VOUCHED_MINUTES)
    if circuit.state is State.HALF_OPEN:
        return _after_canary(circuit, batch, judgement, vouched, settings, now)
    circuit = replace(circuit, failure_count=0)
    if batch.is_probe:
        return replace(circuit, success_count=circuit.success_count - 1)
    return _after_batch(circuit, batch, judgement, vouched, settings)


def _after_canary(
    circuit: Circuit,
    batch: Batch,
    judgement: Judgement,
    vouched: int,
    settings: Settings,
    now: datetime,
) -> Circuit:
    # The next opening is another outage: its cool-down starts from the beginning.
    circuit = replace(circuit, consecutive_opens=0)
    # If the consumer went down right after a success, live successes say little about the next minutes.
    is_steady = not circuit.flaps
    is_beyond_doubt = is_steady and judgement.is_beyond_doubt
    if batch.size > settings.canary_size:
        circuit = replace(circuit, good_window=max(circuit.good_window, batch.size))
    if circuit.success_count < settings.success_threshold and not is_beyond_doubt:
        return circuit
    window = max(restart_window(circuit, settings), vouched, circuit.orders.window(now))
    if is_steady and vouched and circuit.rate is not None:
        window = settings.max_window
    canaries = "1 canary" if circuit.success_count == 1 else f"{circuit.success_count} canaries"
    reason = f"{canaries} succeeded: {judgement.reason}"
    closed = replace(
        circuit,
        failure_count=0,
        success_count=0,
        window=min(window, settings.max_window),
        is_shaken=True,
    )
    return change_state(closed, State.CLOSED, reason, now)


def _after_batch(
    circuit: Circuit, batch: Batch, judgement: Judgement, vouched: int, settings: Settings
) -> Circuit:
    window, good = circuit.window, circuit.good_window
    if _has_used(circuit, batch):
        window = _grown(circuit, batch, judgement, vouched, settings)
        good = min(circuit.window, batch.size + circuit.outstanding)
    # A success in which nearly half came back calms nothing: the consumer may have gone up and down during the batch.
    calming = circuit.success_count if judgement.is_clear else 0
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


def _after_mixture(
    circuit: Circuit, batch: Batch, judgement: Judgement, settings: Settings
) -> Circuit:
    """A mixture is no failure, but it calms nothing either: a failure after it is no sign of a flapping consumer.

    A batch whose letters without strikes fit the initial window narrows no window: one good letter beside poison is a
    mixture, too. At a rate, small batches are the rule, and their failures may show that the rate is too high.
    """
    shown = max(judgement.shown_window, settings.initial_window)
    is_small = batch.unblemished <= settings.initial_window and circuit.rate is None
    if not _has_used(circuit, batch):
        shown = circuit.window if is_small else min(circuit.window, shown)
    elif is_small:
        shown = max(circuit.window, shown)
    return replace(circuit, failure_count=0, window=min(shown, settings.max_window))


def _has_used(circuit: Circuit, batch: Batch) -> bool:
    """Only a window that this batch and those beside it have used has been shown to be safe.

    RFC 7661 says the same about TCP's window.
    """
    return 2 * (batch.size + circuit.outstanding) >= circuit.window


def _grown(
    circuit: Circuit, batch: Batch, judgement: Judgement, vouched: int, settings: Settings
) -> int:
    """The window after a success, which grows by what has succeeded: it may hold several batches.

    If others vouched for the success, the window is no larger than what they can outweigh in time. At a rate, a look
    stops letters that fail within seconds, whatever the window.
    """
    is_shown = judgement.growth >= GROWTH_WHERE_SHOWN
    if is_shown and circuit.rate is not None:
        return settings.max_window
    grown = circuit.window + (judgement.growth - 1) * batch.unblemished
    if is_shown:
        return grown
    return max(circuit.window, min(grown, vouched * FAILURES_PER_LIVE_SUCCESS))


def at_rate(circuit: Circuit, rate: Rate | None, settings: Settings, now: datetime) -> Circuit:
    """The circuit after a look at the rate. When a rate ends, the window is again what succeeded, and no larger."""
    if rate is None and circuit.rate is not None:
        shown = max(widened_window(circuit, settings), circuit.orders.window(now))
        circuit = replace(circuit, window=min(circuit.window, shown))
    return replace(circuit, rate=rate)


def failed(
    circuit: Circuit,
    reason: str,
    settings: Settings,
    now: datetime,
    roll: float,
    *,
    is_probe: bool = False,
) -> Circuit:
    """The circuit after a batch of its generation, or the sends themselves (access, KMS, throttling), failed."""
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
    if is_up_briefly(circuit, now):
        opens = min(opens, LONGEST_WHILE_FLAPPING + failures_beyond(circuit))
    cools_for = cool_down(opens, settings, roll, may_flap=circuit.flaps > 0)
    return change_state(opened, State.OPEN, reason, now, cools_for)


#: In a circuit's reason, between the queue and its answer.
_REFUSED = " refused letters: "


def refused(queue: str, code: str) -> str:
    """The reason of a circuit whose queue refused letters, whatever their content."""
    return f"{queue}{_REFUSED}{code}"


def refusal_of(circuit: Circuit) -> str:
    """The code with which the queue refused letters, if the circuit is OPEN for that; otherwise empty."""
    return circuit.reason.partition(_REFUSED)[2] if circuit.state is State.OPEN else ""


def force(circuit: Circuit, state: State, reason: str, now: datetime) -> Circuit:
    """After a person opened or closed the circuit."""
    counted = replace(
        circuit,
        failure_count=0,
        success_count=0,
        is_shaken=False,
        probed_at=None,
        up_since=None,
        flaps=0,
        consecutive_opens=1 if state is State.OPEN else 0,
        window=SMALLEST_WINDOW if state is State.CLOSED else circuit.window,
    )
    return change_state(counted, state, reason, now)


def order(circuit: Circuit, orders: Orders, now: datetime) -> Circuit:
    """After a person paused, resumed or began to drain the queue; a drain raises the window at once."""
    circuit = replace(circuit, orders=orders)
    if circuit.state is not State.CLOSED:
        return circuit  # the drain's window is that of the close, see `_after_canary`
    return replace(circuit, window=max(circuit.window, orders.window(now)))


def change_state(
    circuit: Circuit,
    state: State,
    reason: str,
    now: datetime,
    cools_for: timedelta | None = None,
) -> Circuit:
    """The circuit in a new state and generation; batches that awaited a verdict end without evidence."""
    for batch in circuit.pending:
        circuit = circuit.with_verdict(
            batch, Verdict.NO_EVIDENCE, is_strike=False, is_apart=batch.is_apart
        )
    return replace(
        circuit,
        state=state,
        generation=circuit.generation + 1,
        changed_at=now,
        cools_until=now + cools_for if state is State.OPEN and cools_for else None,
        reason=reason,
    )
