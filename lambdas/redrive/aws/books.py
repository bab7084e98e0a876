"""The source queues' books: an adapter over the boto3 CloudWatch client.

One GetMetricData call of seven metrics a queue, asked only when a verdict can hang on it.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Protocol

from redrive.aws.calls import naming
from redrive.core.books import Books, Minute
from redrive.errors import CallFailed

PERIOD = timedelta(minutes=1)

#: https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetMetricData.html
POINTS_PER_PAGE = 100_800
#: Pages of one answer. What is asked for fits on one, which CloudWatch may still cut short.
MOST_PAGES = 10

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

_MINUTE_SECONDS = int(PERIOD.total_seconds())

#: Values by the number of their minute since the epoch: reckoned in whole numbers, as a pass reads hundreds of them.
Points = dict[int, float]


class CloudWatchClient(Protocol):
    """The call of a boto3 CloudWatch client that a pass makes."""

    @property
    def get_metric_data(self) -> Callable[..., Any]: ...


class SourceBooks:
    """The books of source queues."""

    def __init__(self, cloudwatch: CloudWatchClient) -> None:
        self._cloudwatch = cloudwatch

    def since(self, start: datetime, now: datetime, queue_name: str) -> Books:
        """The queue's books from the minute of `start` (ten days ago at the most) up to `now`.

        The minute that is not over yet is not among them, nor are the latest of which not all that was measured is
        known. Raises CallFailed, also where CloudWatch has not told all that it knows: what is left out would read
        as "nothing was deleted".
        """
        first, end = _minute(max(start, now - LONGEST)), _minute(now)
        if first >= end:
            return Books()
        points = self._points(first, end, queue_name)
        measured = [max(points[name]) for name in _GAUGES if points[name]]
        if not measured:
            return Books()
        return Books(tuple(_minutes(first, min(measured), points)))

    def _points(self, first: int, end: int, queue_name: str) -> dict[str, Points]:
        """All points of every figure. Raises CallFailed."""
        request: dict[str, Any] = {
            "StartTime": _instant(first),
            "EndTime": _instant(end),
            "MetricDataQueries": [_query(name, queue_name) for name in _FIGURES],
        }
        points: dict[str, Points] = {name: {} for name in _FIGURES}
        statuses: dict[str, str] = {}
        for _ in range(MOST_PAGES):
            with naming("GetMetricData"):
                answer = self._cloudwatch.get_metric_data(**request)
            instants: Sequence[datetime] = ()
            minutes: Sequence[int] = ()
            for result in answer["MetricDataResults"]:
                # As a rule all figures are of the same minutes.
                if result.get("Timestamps", ()) != instants:
                    instants = result.get("Timestamps", ())
                    minutes = [_minute(at) for at in instants]
                points[result["Id"]].update(zip(minutes, result.get("Values", ()), strict=True))
                statuses[result["Id"]] = result.get("StatusCode", "Complete")
            token = answer.get("NextToken")
            if not token:
                _refuse_parts(statuses)
                return points
            request["NextToken"] = token
        raise CallFailed("GetMetricData", "PartialData", f"more than {MOST_PAGES} pages")


def _refuse_parts(statuses: Mapping[str, str]) -> None:
    """Raise CallFailed where the last word on a figure was not that it is complete."""
    for name, status in statuses.items():
        if status != "Complete":
            raise CallFailed("GetMetricData", status, f"{_FIGURES[name][0]} is incomplete")


def _minutes(first: int, last: int, points: Mapping[str, Points]) -> Iterator[Minute]:
    """Every minute from the first to the last one; a counter without a point has counted nothing."""
    sent, received, deleted = (points[name] for name in _COUNTERS)
    visible, in_flight, delayed = (points[name] for name in _GAUGES)
    oldest = points["oldest_age_seconds"]
    for number in range(first, last + 1):
        yield Minute(
            at=_instant(number),
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


def _minute(instant: datetime) -> int:
    """The number of its minute, in whatever zone it is told: boto3 gives times in that of the machine."""
    return int(instant.timestamp() // _MINUTE_SECONDS)


# Passes a minute apart look at the same quarter of an hour.
@lru_cache(maxsize=64)
def _instant(minute: int) -> datetime:
    """When a minute starts, UTC."""
    return datetime.fromtimestamp(minute * _MINUTE_SECONDS, UTC)


def _query(name: str, queue_name: str) -> dict[str, Any]:
    metric, statistic = _FIGURES[name]
    return {
        "Id": name,
        "MetricStat": {
            "Metric": {
                "Namespace": "AWS/SQS",
                "MetricName": metric,
                "Dimensions": [{"Name": "QueueName", "Value": queue_name}],
            },
            "Period": _MINUTE_SECONDS,
            "Stat": statistic,
        },
        "ReturnData": True,
    }
