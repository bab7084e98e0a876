"""What is remembered of one queue between passes: the circuit, its batches, and the depth of its DLQ.

Data and arithmetic only. `verdict.py` weighs a batch, `breaker.py` moves the circuit, the state store keeps it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum

#: Judged batches remembered, so that a letter that returns late still learns what its batch showed. At one
#: batch in five minutes these are the last 16 hours, in about 5 KB.
JUDGED_KEPT = 200

#: `GetQueueAttributes` counts settle about a minute after the last change.
#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_GetQueueAttributes.html
COUNTS_SETTLE = timedelta(seconds=60)


class State(str, Enum):
    """The circuit breaker's state for one queue."""

    CLOSED = "CLOSED"
    OPEN = "OPEN"
    HALF_OPEN = "HALF_OPEN"


class Verdict(str, Enum):
    """What a batch showed."""

    SUCCESS = "SUCCESS"
    FAILURE = "FAILURE"
    NO_EVIDENCE = "NO_EVIDENCE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The letters redriven by one pass, awaiting a verdict.

    It is registered before the first send with the number it may reach (`is_complete` false), so that a pass
    that dies while sending leaves no unknown letters behind, and completed with what was really sent.

    Attributes:
        size: letters sent, suspects included.
        suspects: those of them that had come back before while others succeeded.
        returned, suspects_returned: returns seen so far.
        is_probe: sent small on purpose, to see before a full batch follows.
        first_try_at, due_at: when the consumer could first see one, and when all have had time to fail.

    """

    id: int
    generation: int
    sent_at: datetime
    first_try_at: datetime
    due_at: datetime
    size: int
    suspects: int = 0
    returned: int = 0
    suspects_returned: int = 0
    is_probe: bool = False
    is_complete: bool = True

    @property
    def outstanding(self) -> int:
        """Letters of which nothing was seen again."""
        return max(0, self.size - self.returned - self.suspects_returned)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A batch whose verdict is in.

    `is_strike` says whether a return from it speaks against the letter. It differs from "success" for a batch
    of suspects alone: that shows nothing about the consumer, but their returns still count against them.
    A success earned by the batch itself falls when `overturned_at` letters have returned after all (0: never).
    """

    id: int
    generation: int
    verdict: Verdict
    is_strike: bool
    returned: int = 0
    overturned_at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """The account of the DLQ's depth: letters that came although nobody counted them.

    With a large backlog a returned letter queues up behind it and is not received for hours, but the depth
    shows it at once: what is there, less what should be there, is new.

    Attributes:
        letters, at: the last settled measurement.
        removed, removed_at: what passes have taken out since then, and when last.
        usual_inflow: letters a second that come while nothing of ours is out.
        unexplained: letters that came beyond the usual inflow and that no return seen so far explains.

    """

    letters: int
    at: datetime
    removed: int = 0
    removed_at: datetime | None = None
    usual_inflow: float = 0.0
    unexplained: float = 0.0

    def measured(self, letters: int, now: datetime, *, letters_are_out: bool) -> Depth:
        """The account after `letters` were counted in the DLQ at `now`.

        A count that may still be settling after our own deletes would show them as growth: it is left out,
        and the next one covers the time.
        """
        if self.removed_at is not None and now - self.removed_at < COUNTS_SETTLE:
            return self
        seconds = (now - self.at).total_seconds()
        if seconds <= 0:
            return self
        growth = letters - (self.letters - self.removed)
        inflow, unexplained = self.usual_inflow, self.unexplained
        if letters_are_out:
            unexplained = max(0.0, unexplained + growth - inflow * seconds)
        else:
            # Rounded, so that a queue that stays quiet comes to nought, and not to what DynamoDB can't hold.
            inflow, unexplained = round((inflow + max(0, growth) / seconds) / 2, 6), 0.0
        return Depth(letters=letters, at=now, usual_inflow=inflow, unexplained=unexplained)

    def less(self, removed: int, now: datetime) -> Depth:
        """The account after a pass took `removed` letters out."""
        return replace(self, removed=self.removed + removed, removed_at=now) if removed else self

    def explained(self, letters: int) -> Depth:
        """The account after `letters` of the unexplained ones were seen or charged."""
        return replace(self, unexplained=max(0.0, self.unexplained - letters))


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """What people asked of the re-driver for this queue, on top of its settings.

    Kept with the circuit, so that a pass reads them without a call of their own.

    Attributes:
        is_paused: no pass does anything until `paused_until` (None: until resumed).
        drain_window, drain_rate: until `drain_until`, the window starts from and the rate is this at least.
        by, reason: who gave the last order, and why.

    """

    is_paused: bool = False
    paused_until: datetime | None = None
    drain_until: datetime | None = None
    drain_window: int | None = None
    drain_rate: float | None = None
    by: str = ""
    reason: str = ""

    def pauses(self, now: datetime) -> bool:
        """Whether a pass has to do nothing now."""
        return self.is_paused and (self.paused_until is None or now < self.paused_until)

    def drains(self, now: datetime) -> bool:
        """Whether the drain is on now."""
        return self.drain_until is not None and now < self.drain_until


@dataclass(frozen=True, slots=True, kw_only=True)
class Circuit:
    """The breaker's memory for one queue.

    Attributes:
        version: raised by every write; the optimistic lock, and the source of batch ids.
        generation: raised by every change of state; a return from an older one no longer moves the circuit.
        failure_count: failed batches in a row while CLOSED.
        success_count: in a row, good canaries while HALF_OPEN, good full batches while CLOSED.
        window: how many letters may be awaiting a verdict at once.
        is_shaken: a batch has failed lately, so that each full batch needs a probe that succeeded before it.
        has_probed: the last verdict was such a probe's success.
        dlq_sweep_at, lot_sweep_at: when the retention guard looks through a queue next; None: not yet known.
        reason: why the state is what it is, for people.

    """

    queue: str
    changed_at: datetime
    window: int
    state: State = State.CLOSED
    version: int = 0
    generation: int = 0
    failure_count: int = 0
    success_count: int = 0
    consecutive_opens: int = 0
    is_shaken: bool = False
    has_probed: bool = False
    last_attempt_at: datetime | None = None
    dlq_sweep_at: datetime | None = None
    lot_sweep_at: datetime | None = None
    reason: str = "new"
    orders: Orders = Orders()
    depth: Depth | None = None
    pending: tuple[Batch, ...] = ()
    judged: tuple[Judged, ...] = field(default=(), repr=False)

    @property
    def outstanding(self) -> int:
        """Letters awaiting a verdict."""
        return sum(batch.size for batch in self.pending)

    def pending_batch(self, batch_id: int | None) -> Batch | None:
        """The batch of this id while it awaits its verdict."""
        return next((batch for batch in self.pending if batch.id == batch_id), None)

    def judged_batch(self, batch_id: int | None) -> Judged | None:
        """The batch of this id once its verdict is in, as far back as is remembered."""
        return next((batch for batch in self.judged if batch.id == batch_id), None)

    def with_batch(self, changed: Batch) -> Circuit:
        """This circuit with the pending batch of the same id replaced by `changed`."""
        pending = tuple(changed if b.id == changed.id else b for b in self.pending)
        return replace(self, pending=pending)

    def without_batch(self, batch_id: int) -> Circuit:
        """This circuit with the pending batch of this id dropped, as if it had never been registered."""
        return replace(self, pending=tuple(b for b in self.pending if b.id != batch_id))

    def settled(
        self, batch: Batch, verdict: Verdict, *, is_strike: bool, overturned_at: int = 0
    ) -> Circuit:
        """This circuit with `batch` moved from those awaiting a verdict to those judged."""
        judged = Judged(
            id=batch.id,
            generation=batch.generation,
            verdict=verdict,
            is_strike=is_strike,
            returned=batch.returned,
            overturned_at=overturned_at,
        )
        return replace(self.without_batch(batch.id), judged=(*self.judged, judged)[-JUDGED_KEPT:])
