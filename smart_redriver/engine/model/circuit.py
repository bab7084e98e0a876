"""The memory of one queue between passes: its circuit, batches, lease and people's orders.

Data and arithmetic only. `verdict.py` weighs a batch, `judging.py` gives verdicts, `breaker.py` moves the circuit, and
the state table keeps it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum

from smart_redriver.engine.model.batch import JUDGED_KEPT, Batch, Judged, Verdict
from smart_redriver.engine.model.causes import CauseCircuit
from smart_redriver.engine.model.fifo_counts import BatchCounts, latest
from smart_redriver.engine.model.rate import Rate
from smart_redriver.engine.triage.decision import Hold

#: Flaps in a row that are counted: more say nothing new.
MOST_FLAPS = 4

#: How many of the last batches are checked for suspects.
SUSPECTS_SHOW_IN = 5

#: Groups of hidden suspects that are remembered, by the minute in which they become visible again.
GROUPS_KEPT = 60


class State(str, Enum):
    """The circuit breaker's state for one queue."""

    CLOSED = "CLOSED"
    OPEN = "OPEN"
    HALF_OPEN = "HALF_OPEN"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to be the only pass on a queue, until it expires or is released."""

    owner: str
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """People's orders to the re-driver for this queue, on top of its settings.

    Kept with the circuit, so that a pass reads them without an extra call.

    Attributes:
        is_paused: no pass does anything until `paused_until` (None: until resumed).
        drain_window, drain_rate: the least window to start from, and the least rate, until `drain_until`.
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
        """Whether the queue is paused now."""
        return self.is_paused and (self.paused_until is None or now < self.paused_until)

    def drains(self, now: datetime) -> bool:
        """Whether the drain is on now."""
        return self.drain_until is not None and now < self.drain_until

    def window(self, now: datetime) -> int:
        """The window that the drain asks for; 0 without one."""
        return (self.drain_window or 0) if self.drains(now) else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldSuspects:
    """Suspects that are hidden until their last chance, or a try before it."""

    until: datetime
    letters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """The letters that wait without a known end, as one pass saw them.

    Attributes:
        letters: how many are left in the DLQ, visible to any receiver.
        since: when the oldest of them arrived there, if the pass saw all of them.

    """

    letters: int
    since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fared:
    """How letters without strikes fared lately while others succeeded; each verdict halves the older counts.

    Attributes:
        failed, succeeded: letters.

    """

    failed: int = 0
    succeeded: int = 0

    def and_then(self, failed: int, succeeded: int) -> Fared:
        """The counts of a further batch, added to half of the known ones."""
        return Fared(failed=self.failed // 2 + failed, succeeded=self.succeeded // 2 + succeeded)

    def and_also(self, failed: int) -> Fared:
        """The counts after letters of a successful batch came back late."""
        return replace(self, failed=self.failed + failed)

    def chance_that_all_fail(self, letters: int) -> float:
        """How likely it is that this many letters all fail at a consumer that has not changed.

        It is the predictive probability when nothing was known at first about the share that fails (Laplace's rule of
        succession).
        """
        failed, seen = self.failed + 1, self.failed + self.succeeded + 2
        return math.prod((failed + n) / (seen + n) for n in range(letters))


@dataclass(frozen=True, slots=True, kw_only=True)
class Circuit:
    """The breaker's memory for one queue.

    Attributes:
        version: raised by every write; the optimistic lock, and the source of batch ids.
        generation: raised by every change of state; a return from an older one no longer moves the circuit.
        failure_count: failed batches in a row while CLOSED.
        success_count: in a row, good canaries while HALF_OPEN, good full batches while CLOSED.
        window: how many letters may be awaiting a verdict at once.
        good_window: the last window that was shown to be good; 0 before the first.
        paced_until: the last second that was given to a letter; the next batch comes after it.
        is_shaken: a batch failed lately, so a probe must succeed before a full batch follows.
        probed_at: when the last verdict fell, if it was a success; None after a failure.
        failed_at: when the last failure was counted.
        flaps: full batches that failed right after a trial had succeeded, up to `MOST_FLAPS`: the consumer is up and
            down. Reset after that many successes in a row plus `failure_threshold`.
        up_since: when the first batch to succeed since the last failure was sent; None after a failure.
        up_seconds: how long the consumer was last up: from that send to the send of the batch that failed.
        cools_until: while OPEN, when the cool-down is over.
        heard_at: when the consumer's last report of a redriven letter was read.
        suspect_succeeded_at: when a verdict last showed that a suspect had succeeded: failures are partly chance.
        mixed_at: when the last batch was judged beside which many messages without strikes failed while others
            succeeded; or, after it, a batch beside which none succeeded.
        fared: how letters fared beside others that succeeded.
        contradicted_at: when a letter that had been reported as succeeded was last found in the DLQ.
        dlq_sweep_at, urgent_sweep_at, lot_sweep_at: when the retention guard looks through a queue next: the DLQ
            while nothing flows, the DLQ while letters flow, the parking lot. None: not yet known.
        waiting_since: since when letters wait in the DLQ without a known end; None without any.
        stuck: letters that should be parked but that the parking lot does not accept as they are.
        blocking: poison that keeps its message group waiting for a person.
        held_suspects: letters that are hidden until their last chance.
        suspects_until: when the backoff of hidden suspects ends if sends can't be delayed: controls wait for them.
        causes: letters that fail for one cause while others succeed.
        counted_batches: counts of a FIFO queue's last batches: their letters are kept until their outcome is known.
        rate: letters a second that the consumer is given; None before the first look at its queue.
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
    good_window: int = 0
    paced_until: datetime | None = None
    suspects_until: datetime | None = None
    is_shaken: bool = False
    probed_at: datetime | None = None
    failed_at: datetime | None = None
    flaps: int = 0
    up_since: datetime | None = None
    up_seconds: int = 0
    cools_until: datetime | None = None
    last_attempt_at: datetime | None = None
    heard_at: datetime | None = None
    suspect_succeeded_at: datetime | None = None
    mixed_at: datetime | None = None
    fared: Fared = Fared()
    contradicted_at: datetime | None = None
    dlq_sweep_at: datetime | None = None
    urgent_sweep_at: datetime | None = None
    lot_sweep_at: datetime | None = None
    waiting_since: datetime | None = None
    stuck: int = 0
    blocking: int = 0
    held_suspects: tuple[HeldSuspects, ...] = ()
    reason: str = "new"
    orders: Orders = Orders()
    causes: tuple[CauseCircuit, ...] = ()
    counted_batches: tuple[BatchCounts, ...] = ()
    rate: Rate | None = None
    pending: tuple[Batch, ...] = ()
    judged: tuple[Judged, ...] = ()

    @property
    def batches(self) -> tuple[Batch | Judged, ...]:
        """All batches that it remembers, those without a verdict first."""
        return (*self.pending, *self.judged)

    @property
    def outstanding(self) -> int:
        """Letters awaiting a verdict."""
        return sum(batch.size for batch in self.pending)

    @property
    def unknown(self) -> int:
        """Letters awaiting a verdict whose outcome is unknown."""
        return sum(batch.unknown for batch in self.pending)

    @property
    def was_up(self) -> bool:
        """Whether the consumer was well when it was last seen: CLOSED, or after a canary that succeeded."""
        return self.state is State.CLOSED or self.success_count > 0

    @property
    def last_tried_at(self) -> datetime:
        """When the last judged batch was sent; no verdict rests on anything later."""
        return max(
            (one.sent_at for one in self.judged[-SUSPECTS_SHOW_IN:]), default=self.changed_at
        )

    @property
    def lately_judged(self) -> int:
        """Letters of the last judged batches."""
        return sum(one.size for one in self.judged[-SUSPECTS_SHOW_IN:])

    @property
    def left_failing(self) -> int:
        """Letters of failed batches that the consumer still has while no other letter that could fail is out."""
        if self.state is not State.CLOSED or not self.failure_count or self.pending:
            return 0
        return sum(
            one.size - one.seen_again
            for one in self.judged[-SUSPECTS_SHOW_IN:]
            if one.generation == self.generation and one.verdict is Verdict.FAILURE
        )

    @property
    def has_suspects(self) -> bool:
        """Whether suspects are out, or came back lately: they had come back while others in their batch succeeded."""
        return any(one.suspects for one in self.pending) or any(
            one.was_alone or (one.returned and one.verdict is Verdict.SUCCESS)
            for one in self.judged[-SUSPECTS_SHOW_IN:]
        )

    def may_hide_suspects(self, since: datetime) -> bool:
        """Whether letters of successes sent since then may come back: their outcome was unknown at the verdict."""
        return any(
            one.unaccounted > one.seen_again and one.sent_at >= since
            for one in self.judged[-SUSPECTS_SHOW_IN:]
        )

    def suspects_waiting(self, now: datetime) -> int:
        """The number of letters that wait for their last chance now."""
        return sum(one.letters for one in self.held_suspects if one.until > now)

    def waiting_seconds(self, now: datetime) -> int:
        """The seconds for which letters have been waiting without a known end; 0 without any."""
        return int((now - self.waiting_since).total_seconds()) if self.waiting_since else 0

    def with_waiting(self, waiting: Waiting, now: datetime) -> Circuit:
        """This circuit with the time since when letters wait; it can't know about the time before it first saw any."""
        if not waiting.letters:
            return replace(self, waiting_since=None)
        remembered = self.waiting_since or now
        return replace(self, waiting_since=max(remembered, waiting.since or remembered))

    def with_held_suspects(self, holds: Iterable[Hold], now: datetime) -> Circuit:
        """This circuit with the suspects that this pass hides added and those that are visible again removed.

        No pass receives hidden letters, so they are counted from memory.
        """
        groups = {one.until: one.letters for one in self.held_suspects if one.until > now}
        for hold in holds:
            until = hold.until.replace(second=0, microsecond=0)
            groups[until] = groups.get(until, 0) + 1
        kept = sorted(groups.items())[-GROUPS_KEPT:]
        return replace(
            self, held_suspects=tuple(HeldSuspects(until=at, letters=n) for at, n in kept)
        )

    def cause(self, name: str | None) -> CauseCircuit | None:
        """The memory of the letters of this cause; None without any."""
        return next((one for one in self.causes if one.cause == name), None)

    def pending_batch(self, batch_id: int | None) -> Batch | None:
        """The batch of this id while it awaits its verdict."""
        return next((batch for batch in self.pending if batch.id == batch_id), None)

    def judged_batch(self, batch_id: int | None) -> Judged | None:
        """The judged batch of this id, if it is still remembered."""
        if batch_id is None:
            return None  # most letters are on their first visit: no need to search two hundred batches for each
        return next((batch for batch in self.judged if batch.id == batch_id), None)

    def batch_counts(self, batch_id: int | None) -> BatchCounts | None:
        """The counts of the batch of this id; None without one."""
        return next((one for one in self.counted_batches if one.batch == batch_id), None)

    def with_counts(self, changed: BatchCounts) -> Circuit:
        """This circuit with these counts in place of the same batch's older ones."""
        if self.batch_counts(changed.batch) is None:
            return replace(self, counted_batches=latest((*self.counted_batches, changed)))
        counted_batches = (
            changed if one.batch == changed.batch else one for one in self.counted_batches
        )
        return replace(self, counted_batches=tuple(counted_batches))

    def with_batch(self, changed: Batch) -> Circuit:
        """This circuit with the pending batch of the same id replaced by `changed`."""
        pending = tuple(changed if b.id == changed.id else b for b in self.pending)
        return replace(self, pending=pending)

    def without_batch(self, batch_id: int) -> Circuit:
        """This circuit with the pending batch of this id dropped, as if it had never been registered."""
        return replace(self, pending=tuple(b for b in self.pending if b.id != batch_id))

    def with_verdict(
        self,
        batch: Batch,
        verdict: Verdict,
        *,
        is_strike: bool,
        was_alone: bool = False,
        overturned_at: int = 0,
        unaccounted: int = 0,
        is_whole: bool = False,
        is_apart: bool = False,
    ) -> Circuit:
        """This circuit with `batch` moved from those awaiting a verdict to those judged."""
        judged = Judged(
            id=batch.id,
            generation=batch.generation,
            verdict=verdict,
            is_strike=is_strike,
            was_alone=was_alone,
            sent_at=batch.sent_at,
            size=batch.size,
            returned=batch.returned,
            overturned_at=overturned_at,
            unaccounted=unaccounted,
            is_whole=is_whole,
            is_apart=is_apart,
        )
        return replace(self.without_batch(batch.id), judged=(*self.judged, judged)[-JUDGED_KEPT:])
