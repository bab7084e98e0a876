"""The source queues' books: an adapter over the boto3 CloudWatch client.

One GetMetricData call of seven metrics a queue, asked only when a verdict can hang on it.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
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

Points = Mapping[datetime, float]


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
        count = (min(measured) - first) // PERIOD + 1
        return Books(tuple(_minute_of(first + PERIOD * n, points) for n in range(count)))

    def _points(self, first: datetime, end: datetime, queue_name: str) -> dict[str, Points]:
        """All points of every figure, by the start of their minute. Raises CallFailed."""
        request: dict[str, Any] = {
            "StartTime": first,
            "EndTime": end,
            "MetricDataQueries": [_query(name, queue_name) for name in _FIGURES],
        }
        points: dict[str, dict[datetime, float]] = {name: {} for name in _FIGURES}
        statuses: dict[str, str] = {}
        for _ in range(MOST_PAGES):
            with naming("GetMetricData"):
                answer = self._cloudwatch.get_metric_data(**request)
            for result in answer["MetricDataResults"]:
                instants = (_minute(at) for at in result.get("Timestamps", ()))
                points[result["Id"]].update(zip(instants, result.get("Values", ()), strict=True))
                statuses[result["Id"]] = result.get("StatusCode", "Complete")
            token = answer.get("NextToken")
            if not token:
                _refuse_parts(statuses)
                return dict(points)
            request["NextToken"] = token
        raise CallFailed("GetMetricData", "PartialData", f"more than {MOST_PAGES} pages")


def _refuse_parts(statuses: Mapping[str, str]) -> None:
    """Raise CallFailed where the last word on a figure was not that it is complete."""
    for name, status in statuses.items():
        if status != "Complete":
            raise CallFailed("GetMetricData", status, f"{_FIGURES[name][0]} is incomplete")


def _minute_of(at: datetime, points: Mapping[str, Points]) -> Minute:
    counted = {name: int(points[name].get(at, 0)) for name in _COUNTERS}
    measured = {name: int(points[name][at]) for name in _GAUGES if at in points[name]}
    return Minute(
        at=at, oldest_age_seconds=points["oldest_age_seconds"].get(at), **counted, **measured
    )


def _minute(instant: datetime) -> datetime:
    """The start of the minute, UTC: boto3 gives times in the zone of the machine."""
    return instant.astimezone(UTC).replace(second=0, microsecond=0)


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
            "Period": int(PERIOD.total_seconds()),
            "Stat": statistic,
        },
        "ReturnData": True,
    }
