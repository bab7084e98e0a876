"""Counts of a FIFO queue's batch, for letters whose copies would come back out of sight. Pure.

SQS hands out only ten messages of a group, so no pass sees the messages behind them. Only numbers can tell: if the
letters that are done and those that were seen again add up to the batch's size, the unseen letters are done. If one is
missing, one unseen letter has failed, and it may be any of them.
"""

from __future__ import annotations

from collections import Counter
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

#: How many of the last batches are remembered. For letters that are still out after that, time decides.
COUNTED_BATCHES_KEPT = 30

#: If metrics are this late, further letters no longer wait for them.
METRICS_PATIENCE = timedelta(minutes=15)

#: If no metrics were read for this long, they can't be read.
METRICS_MISSED = timedelta(hours=2)

#: A message is done soon or not at all: more spans than these show nothing new.
SPANS = 30

#: A gauge can read 0 for a minute while messages are in flight. This many minutes in a row are reliable.
READINGS = 3

#: After a minute whose letters are all done, this many times as many may go; `GROWTH_IN_DOUBT` applies if the outcome
#: of a batch lately stayed unknown.
GROWTH = 4
GROWTH_IN_DOUBT = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCounts:
    """One batch, counted in letters.

    Attributes:
        sent_by, due_at: when the consumer could see the last letter, and when all letters have had time to fail.
        unseen: letters whose copies would come back out of sight. `suspects`: how many of these had failed before.
        came_back: letters that were seen in the DLQ again. `reported`: letters whose end the consumer reported.
        succeeded: letters that were deleted from the source queue, at least.
        known_until: the counts include the metrics up to this time.
        is_gone: all messages in the source queue were sent after the batch's last letter.

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
        """Whether every letter's outcome is known: letters that were neither seen nor reported are done."""
        return max(self.succeeded + self.came_back, self.reported) >= self.size

    @property
    def is_unexplained(self) -> bool:
        """Whether all letters have left their queue and had time to fail, but not all are done or seen again."""
        is_late = self.known_until is not None and self.known_until >= self.due_at
        return self.is_gone and is_late and not self.is_accounted

    def is_read(self, now: datetime) -> bool:
        """Whether the queue's metrics could be read lately, so that they can be expected to tell."""
        return self.known_until is not None and now < self.known_until + METRICS_MISSED

    @property
    def is_over(self) -> bool:
        """Whether no further numbers will change the result."""
        return self.is_accounted or self.is_unexplained

    def is_open(self, now: datetime) -> bool:
        """Whether it is worth waiting for: more will be known soon."""
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
    """Whether `READINGS` minutes in a row say that the batch's letters have left the source queue."""
    in_a_row = 0
    for one in minutes:
        if one.visible is None:
            continue  # CloudWatch has no point
        in_a_row = in_a_row + 1 if _has_outlived(one, batch_counts) else 0
        if in_a_row == READINGS:
            return True
    return False


def _has_outlived(minute: Minute, batch_counts: BatchCounts) -> bool:
    """Whether no message that was in the source queue in that minute is as old as the batch.

    For a FIFO queue, the age of the oldest message is known however often it was received.
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

    Every span from the batch's first minute on gives a lower bound: all deletes, minus other messages that may have
    been deleted. A success stays a success, so the highest bound counts: that of a span that ended when nothing else
    was out.
    """
    # Messages that were in the queue before must be known, or they would be taken for ours.
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
    """Return the batches that are remembered; those that account for all their letters are forgotten first."""
    while len(counted_batches) > COUNTED_BATCHES_KEPT:
        over = next((one for one in counted_batches if one.is_accounted), counted_batches[0])
        counted_batches = tuple(one for one in counted_batches if one is not over)
    return counted_batches


def allowance(counted_batches: Iterable[BatchCounts]) -> int:
    """Letters that may be out of sight at once: if one of them can't be found, all must go again."""
    had_some_unseen = [one for one in counted_batches if one.unseen]
    is_in_doubt = any(one.is_unexplained for one in had_some_unseen)
    growth = GROWTH_IN_DOUBT if is_in_doubt else GROWTH
    allowed, together = 1, Counter[datetime]()
    for one in had_some_unseen:
        if one.is_accounted:
            # A rate may divide into small batches what the counts of one minute account for.
            together[minute_of(one.sent_at)] += one.unseen
            allowed = max(allowed, growth * together[minute_of(one.sent_at)])
        elif one.is_unexplained:
            allowed = 1
            together.clear()
    return allowed


def _accounts(batch_counts: BatchCounts, metrics: QueueMetrics) -> Iterator[Account]:
    """Yield the spans that include all sends of the batch and that end soon after them or lately."""
    ends = [one.at + PERIOD for one in metrics.minutes if one.at + PERIOD > batch_counts.sent_by]
    for end in dict.fromkeys(ends[:SPANS] + ends[-SPANS:]):
        if (account := metrics.account(batch_counts.sent_at, end)) is not None:
            yield account


def _shown(batch_counts: BatchCounts, others: Iterable[Batch | Judged], account: Account) -> int:
    """Letters of the batch that were deleted in the span, at least."""
    # Letters that came back from batches surely sent in the span were not deleted in it.
    failed = sum(one.seen_again for one in others if one.sent_at + PERIOD < account.until)
    may_be_others = max(0, account.met - batch_counts.size - failed)
    return max(0, account.done - may_be_others)
