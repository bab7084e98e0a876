"""The source queues' books: an adapter over the boto3 CloudWatch client.

One GetMetricData call of seven metrics a queue, asked only when a verdict can hang on it.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from redrive.aws.metric_data import (
    MOST_PAGES,
    PERIOD,
    POINTS_PER_PAGE,
    CloudWatchClient,
    Points,
    instant_of,
    metric_query,
    minute_of,
    read_points,
)
from redrive.core.books import Books, Minute

__all__ = ["LONGEST", "MOST_PAGES", "POINTS_PER_PAGE", "CloudWatchClient", "SourceBooks"]

#: Field of `Minute` -> metric and statistic.
_COUNTERS = {
    "sent": ("NumberOfMessagesSent", "Sum"),
    "received": ("NumberOfMessagesReceived", "Sum"),
    "deleted": ("NumberOfMessagesDeleted", "Sum"),
}
_GAUGES = {
    "visible": ("ApproximateNumberOfMessagesVisible", "Maximum"),
    "in_flight": ("ApproximateNumberOfMessagesNotVisible", "Maximum"),
    "delayed": ("ApproximateNumberOfMessagesDelayed", "Maximum"),
}
_AGE = {"oldest_age_seconds": ("ApproximateAgeOfOldestMessage", "Maximum")}
_FIGURES = _COUNTERS | _GAUGES | _AGE

#: The longest time whose books are read: as many minutes as fit on one page, ten days.
LONGEST = PERIOD * (POINTS_PER_PAGE // len(_FIGURES))


class SourceBooks:
    """The books of source queues."""

    def __init__(self, cloudwatch: CloudWatchClient) -> None:
        self._cloudwatch = cloudwatch

    def since(self, start: datetime, now: datetime, queue_name: str) -> Books:
        """The queue's books from the minute of `start` (ten days ago at the most) up to `now`; `sqs:orders` is a target's name.

        The minute that is not over yet is not among them, nor are the latest of which not all that was measured is
        known. Raises CallFailed, also where CloudWatch has not told all that it knows: what is left out would read
        as "nothing was deleted".
        """
        first, end = minute_of(max(start, now - LONGEST)), minute_of(now)
        if first >= end:
            return Books()
        points = read_points(self._cloudwatch, _queries(queue_name), first, end)
        measured = [max(points[name]) for name in _GAUGES if points[name]]
        if not measured:
            return Books()
        return Books(tuple(_minutes(first, min(measured), points)))


def _minutes(first: int, last: int, points: Mapping[str, Points]) -> Iterator[Minute]:
    """Every minute from the first to the last one; a counter without a point has counted nothing."""
    sent, received, deleted = (points[name] for name in _COUNTERS)
    visible, in_flight, delayed = (points[name] for name in _GAUGES)
    oldest = points["oldest_age_seconds"]
    for number in range(first, last + 1):
        yield Minute(
            at=instant_of(number),
            sent=int(sent.get(number, 0)),
            received=int(received.get(number, 0)),
            deleted=int(deleted.get(number, 0)),
            visible=_whole(visible.get(number)),
            in_flight=_whole(in_flight.get(number)),
            delayed=_whole(delayed.get(number)),
            oldest_age_seconds=oldest.get(number),
        )


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _queries(queue_name: str) -> list[dict[str, Any]]:
    return [
        metric_query(name, "AWS/SQS", metric, statistic, QueueName=queue_name.rpartition(":")[2])
        for name, (metric, statistic) in _FIGURES.items()
    ]
