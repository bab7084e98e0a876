"""The metrics of a source queue: CloudWatch's counts, minute by minute. Pure.

A message that was sent is deleted, still there, or moved to the DLQ. So the counters and gauges of any span of time
show how many messages succeeded and how many failed, whatever the visibility timeout is. Counters are exact, but known
one to three minutes late; `NumberOfMessagesSent` leaves out messages that SQS itself moves.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from operator import attrgetter

PERIOD = timedelta(minutes=1)

_at = attrgetter("at")


@lru_cache(maxsize=4096)  # a pass asks for the minutes of the same batches thousands of times
def minute_of(at: datetime) -> datetime:
    """The start of the CloudWatch minute that contains a moment."""
    return at.replace(second=0, microsecond=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Minute:
    """One minute of one queue. `at` is its start; gauges are None if CloudWatch has no point."""

    at: datetime
    sent: int = 0
    received: int = 0
    deleted: int = 0
    visible: int | None = None
    in_flight: int | None = None
    delayed: int | None = None
    oldest_age_seconds: float | None = None

    @property
    def held(self) -> int:
        """Messages in the queue, whatever their state."""
        return (self.visible or 0) + (self.in_flight or 0) + (self.delayed or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Outcomes of the messages of one span, in messages.

    Attributes:
        present: messages in the queue when the span began. `sent`: sent by anyone during it.
        received, deleted: receives and deletes during it. A message can be deleted twice.
        left: messages still there at its end, at most; `left_at_least`: at least. `waiting`, `in_flight`: how many of
            these no consumer has in hand, or one has.
        in_flight_before: how many were in flight when it began.
        since, until: its start and end; nothing is known yet about later times.
        deleted_lately: deletes in its last minute.

    """

    present: int
    sent: int
    received: int
    deleted: int
    left: int
    left_at_least: int
    waiting: int
    in_flight: int
    since: datetime
    until: datetime
    deleted_lately: int
    in_flight_before: int = 0

    @classmethod
    def of(cls, before: Minute, span: Sequence[Minute]) -> Account:
        """Add up the minutes of a span, and compare the queue with the minute before it.

        Gauges are taken at some moment of their minute: `left` is the larger of the last two, so that messages that
        were just sent don't count as moved.
        """
        last_two = span[-2:]
        return cls(
            present=before.held,
            sent=sum(one.sent for one in span),
            received=sum(one.received for one in span),
            deleted=sum(one.deleted for one in span),
            left=max(one.held for one in last_two),
            left_at_least=min(one.held for one in last_two),
            waiting=max(one.visible or 0 for one in last_two),
            in_flight=max(one.in_flight or 0 for one in last_two),
            since=span[0].at,
            until=span[-1].at + PERIOD,
            deleted_lately=span[-1].deleted,
            in_flight_before=before.in_flight or 0,
        )

    @property
    def met(self) -> int:
        """Messages that the consumer could receive."""
        return self.present + self.sent

    @property
    def done(self) -> int:
        """Messages that were deleted, at most: a Lambda may delete what its event source mapping deletes again."""
        return min(self.deleted, max(0, self.met - self.left_at_least))

    @property
    def moved(self) -> int:
        """Messages that are neither deleted nor there: SQS has moved them to the DLQ."""
        return max(0, self.met - self.deleted - self.left)

    @property
    def failed_tries(self) -> int:
        """Receives that began in the span and ended without a delete."""
        return max(0, self.received - self.deleted - self.in_flight)

    @property
    def failed_tries_of_all(self) -> int:
        """Receives that ended in the span without a delete; negative if the figures lag."""
        return self.in_flight_before + self.received - self.deleted - self.in_flight


@dataclass(frozen=True, slots=True)
class QueueMetrics:
    """The minutes that are known, in order of time.

    `has_gauges`: the queue is measured each minute, so the minutes end where CloudWatch's data ends. A mere counter has
    no point for a minute without events, nor for one that CloudWatch has not published: see `up_to_untold`.
    `sent_before`: messages sent in earlier minutes, about which nothing else is known.
    """

    minutes: tuple[Minute, ...] = ()
    has_gauges: bool = True
    sent_before: tuple[tuple[datetime, int], ...] = ()

    def up_to_untold(self, sent: Iterable[tuple[datetime, datetime, int]]) -> QueueMetrics:
        """The metrics up to the first minute that is surely incomplete: it counts less than was sent.

        `sent` are our sends: from when to when, and how many. A call may count in the minute after it.
        """
        end = len(self.minutes)
        for start, last, size in sent:
            first = bisect_left(self.minutes, minute_of(start), key=_at)
            after = bisect_left(self.minutes, last + 2 * PERIOD, key=_at)
            if first < end and sum(one.sent for one in self.minutes[first:after]) < size:
                end = first
        return replace(self, minutes=self.minutes[:end])

    def account(self, start: datetime, end: datetime | None = None) -> Account | None:
        """Return the outcomes of messages from the minute of `start` to that of `end`; None while nothing is known.

        The queue counts as empty before the first known minute.
        """
        minutes = self.minutes
        first = bisect_left(minutes, minute_of(start), key=_at)
        span = minutes[first : None if end is None else bisect_left(minutes, end, key=_at)]
        if not span:
            return None
        return Account.of(minutes[first - 1] if first else Minute(at=start), span)
