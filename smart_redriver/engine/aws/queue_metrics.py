"""CloudWatch's measurements of a source queue, minute by minute.

One GetMetricData call with six or seven metrics a queue, made only when a verdict can depend on it: each metric costs
money.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Protocol

from smart_redriver.engine.aws.clients import naming
from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.model.queue_metrics import Minute, QueueMetrics

PERIOD = timedelta(minutes=1)

#: https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetMetricData.html
POINTS_PER_PAGE = 100_800
#: Pages of one answer. The requested points fit on one page, which CloudWatch may still cut short.
MOST_PAGES = 10

_MINUTE_SECONDS = int(PERIOD.total_seconds())

#: Values by the number of their minute since the epoch: whole numbers, because a pass reads hundreds of them.
Points = dict[int, float]


class CloudWatchClient(Protocol):
    """The call of a boto3 CloudWatch client that a pass makes."""

    @property
    def get_metric_data(self) -> Callable[..., Any]: ...


def metric_query(
    name: str, namespace: str, metric: str, statistic: str, **dimensions: str
) -> dict[str, Any]:
    """A query for one figure, with a value for each minute; its Id is `name`."""
    return {
        "Id": name,
        "MetricStat": {
            "Metric": {
                "Namespace": namespace,
                "MetricName": metric,
                "Dimensions": [
                    {"Name": dimension, "Value": value} for dimension, value in dimensions.items()
                ],
            },
            "Period": _MINUTE_SECONDS,
            "Stat": statistic,
        },
        "ReturnData": True,
    }


def read_points(
    cloudwatch: CloudWatchClient, queries: Sequence[dict[str, Any]], first: int, end: int
) -> dict[str, Points]:
    """Read all points of every figure, from one minute to another. Raises CallFailed, even if only some are missing."""
    request: dict[str, Any] = {
        "StartTime": instant_of(first),
        "EndTime": instant_of(end),
        "MetricDataQueries": queries,
    }
    points: dict[str, Points] = {query["Id"]: {} for query in queries}
    statuses: dict[str, str] = {}
    for _ in range(MOST_PAGES):
        with naming("GetMetricData"):
            answer = cloudwatch.get_metric_data(**request)
        instants: Sequence[datetime] = ()
        minutes: Sequence[int] = ()
        for result in answer["MetricDataResults"]:
            # As a rule, all figures have the same minutes.
            if result.get("Timestamps", ()) != instants:
                instants = result.get("Timestamps", ())
                minutes = [minute_of(at) for at in instants]
            points[result["Id"]].update(zip(minutes, result.get("Values", ()), strict=True))
            statuses[result["Id"]] = result.get("StatusCode", "Complete")
        token = answer.get("NextToken")
        if not token:
            _refuse_parts(statuses, queries)
            return points
        request["NextToken"] = token
    raise CallFailed("GetMetricData", "PartialData", f"more than {MOST_PAGES} pages")


def _refuse_parts(statuses: Mapping[str, str], queries: Sequence[dict[str, Any]]) -> None:
    """Raise CallFailed unless every figure's last status was complete."""
    metrics = {query["Id"]: query["MetricStat"]["Metric"]["MetricName"] for query in queries}
    for name, status in statuses.items():
        if status != "Complete":
            raise CallFailed("GetMetricData", status, f"{metrics[name]} is incomplete")


def minute_of(instant: datetime) -> int:
    """The number of its minute, whatever its time zone: boto3 uses the machine's."""
    return int(instant.timestamp() // _MINUTE_SECONDS)


# Passes a minute apart look at the same quarter of an hour.
@lru_cache(maxsize=64)
def instant_of(minute: int) -> datetime:
    """Return the start of a minute, UTC."""
    return datetime.fromtimestamp(minute * _MINUTE_SECONDS, UTC)


__all__ = ["LONGEST", "MOST_PAGES", "POINTS_PER_PAGE", "CloudWatchClient", "SqsMetricsReader"]

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
_UNAGED = _COUNTERS | _GAUGES
_FIGURES = _UNAGED | _AGE

#: The longest time whose metrics are read: the minutes that fit on one page, ten days.
LONGEST = PERIOD * (POINTS_PER_PAGE // len(_FIGURES))


class SqsMetricsReader:
    """The metrics of source queues.

    Args:
        standard: names of standard source queues. Nothing depends on the age of their messages, so it is not read.

    """

    def __init__(self, cloudwatch: CloudWatchClient, *, standard: Collection[str] = ()) -> None:
        self._cloudwatch = cloudwatch
        self._standard = frozenset(standard)

    def since(self, start: datetime, now: datetime, queue_name: str) -> QueueMetrics:
        """The queue's metrics from the minute of `start` (ten days ago at the most) up to `now`;
        `sqs:orders` is a target's name.

        They leave out the current minute and the latest minutes that are not completely measured. Raises CallFailed,
        also if CloudWatch returned only a part: a missing point would read as "nothing was deleted".
        """
        first, end = minute_of(max(start, now - LONGEST)), minute_of(now)
        if first >= end:
            return QueueMetrics()
        queries = _queries(queue_name, _UNAGED if queue_name in self._standard else _FIGURES)
        points = read_points(self._cloudwatch, queries, first, end)
        measured = [max(points[name]) for name in _GAUGES if points[name]]
        if not measured:
            return QueueMetrics()
        return QueueMetrics(tuple(_minutes(first, min(measured), points)))


def _minutes(first: int, last: int, points: Mapping[str, Points]) -> Iterator[Minute]:
    """Every minute from the first to the last; a counter without a point has counted nothing."""
    sent, received, deleted = (points[name] for name in _COUNTERS)
    visible, in_flight, delayed = (points[name] for name in _GAUGES)
    oldest = points.get("oldest_age_seconds", {})
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


def _queries(queue_name: str, figures: Mapping[str, tuple[str, str]]) -> list[dict[str, Any]]:
    return [
        metric_query(name, "AWS/SQS", metric, statistic, QueueName=queue_name.rpartition(":")[2])
        for name, (metric, statistic) in figures.items()
    ]
