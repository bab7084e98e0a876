"""Counts of a batch of a FIFO queue, for letters whose copies would come back out of sight. Pure.

Of a group SQS hands out ten messages, so that nobody sees what stands behind them. There only numbers tell:
where as many of the batch are done, or were met again, as it has letters, those that nobody met are done. One less, and
one of them has failed, and each of them may be it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from smart_redriver.engine.model.batch import Batch, Judged
from smart_redriver.engine.model.queue_metrics import (
    PERIOD,
    Account,
    Minute,
    QueueMetrics,
    minute_of,
)

#: So many of the last batches are remembered: what of a batch is still out then, time has to tell.
COUNTED_BATCHES_KEPT = 30

#: Metrics that say nothing for so long after they should are not waited for with further letters.
METRICS_PATIENCE = timedelta(minutes=15)

#: Metrics of which nothing was read for so long can't be read.
METRICS_MISSED = timedelta(hours=2)

#: A message is done soon, or it is not: of more spans than these nothing new is to be learned.
SPANS = 30

#: A gauge can read 0 for a minute while messages are in flight. So many minutes in a row are not wrong.
READINGS = 3

#: A batch of which all are done shows that so many times as many may go; and where lately one could not be told.
GROWTH = 4
GROWTH_IN_DOUBT = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCounts:
    """One batch, counted in letters.

    Attributes:
        sent_by, due_at: when the consumer could see the last of them, and when all had time to fail.
        unseen: those whose copies would come back out of sight. `suspects`: those of them that had failed before.
        came_back: those that were met in the DLQ again. `reported`: those whose end the consumer told.
        succeeded: those that were deleted from the source queue, at least.
        known_until: what its metrics say up to then is in here.
        is_gone: all messages in the source queue were sent after the last of them.

    """

    batch: int
    sent_at: datetime
    sent_by: datetime
    due_at: datetime
    size: int
    unseen: int = 0
    suspects: int = 0
    came_back: int = 0
    reported: int = 0
    succeeded: int = 0
    known_until: datetime | None = None
    is_gone: bool = False

    @property
    def is_accounted(self) -> bool:
        """Whether it is known of each letter what became of it: those that nobody met or told of are done."""
        return max(self.succeeded + self.came_back, self.reported) >= self.size

    @property
    def is_unexplained(self) -> bool:
        """Whether all have left their queue, and had time to fail,
        and less of them are done or were met than it has.
        """
        is_late = self.known_until is not None and self.known_until >= self.due_at
        return self.is_gone and is_late and not self.is_accounted

    def is_read(self, now: datetime) -> bool:
        """Whether its queue's metrics could be read lately, so that they will tell what is to be told."""
        return self.known_until is not None and now < self.known_until + METRICS_MISSED

    @property
    def is_over(self) -> bool:
        """Whether its numbers tell all that they will."""
        return self.is_accounted or self.is_unexplained

    def is_open(self, now: datetime) -> bool:
        """Whether it is worth waiting for: more will be known of it soon."""
        return not self.is_over and now < self.due_at + METRICS_PATIENCE


def counted(
    batch_counts: BatchCounts, others: Iterable[Batch | Judged], metrics: QueueMetrics
) -> BatchCounts:
    """The counts with what the source's metrics show by now."""
    if batch_counts.is_over:
        return batch_counts
    if not batch_counts.is_gone and _have_left(batch_counts, metrics.minutes):
        batch_counts = replace(batch_counts, is_gone=True)
    return _with_successes(batch_counts, others, metrics)


def _have_left(batch_counts: BatchCounts, minutes: Iterable[Minute]) -> bool:
    """Whether so many minutes in a row say that the batch's letters have left the source queue."""
    in_a_row = 0
    for one in minutes:
        if one.visible is None:
            continue  # CloudWatch has no point
        in_a_row = in_a_row + 1 if _has_outlived(one, batch_counts) else 0
        if in_a_row == READINGS:
            return True
    return False


def _has_outlived(minute: Minute, batch_counts: BatchCounts) -> bool:
    """Whether nothing that was in the source queue in that minute is as old as the batch.

    Of a FIFO queue the oldest message is told however often it was received.
    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
    """
    if minute.at < batch_counts.sent_by:
        return False
    age = timedelta(seconds=minute.oldest_age_seconds or 0)
    return not minute.held or (
        bool(age) and minute.at + PERIOD - age > batch_counts.sent_by + PERIOD
    )


def _with_successes(
    batch_counts: BatchCounts, others: Iterable[Batch | Judged], metrics: QueueMetrics
) -> BatchCounts:
    """The counts with the letters that were deleted, at least.

    Every span from the batch's first minute on is a lower bound of its own: what was deleted, less all that was not
    ours and may have been. A success stays one, so the best of them counts: that which ended when nothing else was out.
    """
    # Messages that were in the queue before have to be known, or they are taken for ours.
    if not metrics.minutes or metrics.minutes[0].at >= minute_of(batch_counts.sent_at):
        return batch_counts
    known_until = metrics.minutes[-1].at + PERIOD
    if known_until == batch_counts.known_until:
        return batch_counts
    rest = [
        one
        for one in others
        if one.id != batch_counts.batch and one.sent_at >= minute_of(batch_counts.sent_at)
    ]
    shown = (_shown(batch_counts, rest, account) for account in _accounts(batch_counts, metrics))
    succeeded = max([batch_counts.succeeded, *shown])
    return replace(
        batch_counts, succeeded=min(succeeded, batch_counts.size), known_until=known_until
    )


def latest(counted_batches: tuple[BatchCounts, ...]) -> tuple[BatchCounts, ...]:
    """Return as many as are remembered: those that account for all of their letters are forgotten first."""
    while len(counted_batches) > COUNTED_BATCHES_KEPT:
        over = next((one for one in counted_batches if one.is_accounted), counted_batches[0])
        counted_batches = tuple(one for one in counted_batches if one is not over)
    return counted_batches


def allowance(counted_batches: Iterable[BatchCounts]) -> int:
    """Letters that may be out of sight at once: each of them has to go again where one of them can't be found."""
    had_some_unseen = [one for one in counted_batches if one.unseen]
    is_in_doubt = any(one.is_unexplained for one in had_some_unseen)
    growth = GROWTH_IN_DOUBT if is_in_doubt else GROWTH
    allowed = 1
    for one in had_some_unseen:
        if one.is_accounted:
            allowed = max(allowed, growth * one.unseen)
        elif one.is_unexplained:
            allowed = 1
    return allowed


def _accounts(batch_counts: BatchCounts, metrics: QueueMetrics) -> Iterator[Account]:
    """Yield the spans in which all of the batch's letters were sent, and that end soon after or lately."""
    ends = [one.at + PERIOD for one in metrics.minutes if one.at + PERIOD > batch_counts.sent_by]
    for end in dict.fromkeys(ends[:SPANS] + ends[-SPANS:]):
        if (account := metrics.account(batch_counts.sent_at, end)) is not None:
            yield account


def _shown(batch_counts: BatchCounts, others: Iterable[Batch | Judged], account: Account) -> int:
    """Letters of the batch that were deleted in the span, at least."""
    # Letters of batches surely sent in the span that came back were not deleted in it.
    failed = sum(one.seen_again for one in others if one.sent_at + PERIOD < account.until)
    may_be_others = max(0, account.met - batch_counts.size - failed)
    return max(0, account.done - may_be_others)
