"""Reads minutes of metrics from CloudWatch: an adapter over the boto3 CloudWatch client's GetMetricData."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Protocol

from redrive.aws.calls import naming
from redrive.errors import CallFailed

PERIOD = timedelta(minutes=1)

#: https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetMetricData.html
POINTS_PER_PAGE = 100_800
#: Pages of one answer. What is asked for fits on one, which CloudWatch may still cut short.
MOST_PAGES = 10

_MINUTE_SECONDS = int(PERIOD.total_seconds())

#: Values by the number of their minute since the epoch: reckoned in whole numbers, as a pass reads hundreds of them.
Points = dict[int, float]


class CloudWatchClient(Protocol):
    """The call of a boto3 CloudWatch client that a pass makes."""

    @property
    def get_metric_data(self) -> Callable[..., Any]: ...


def metric_query(
    name: str, namespace: str, metric: str, statistic: str, **dimensions: str
) -> dict[str, Any]:
    """A query for one figure, a value for each minute; its Id is `name`."""
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
    """All points of every figure, from one minute up to another. Raises CallFailed, also for a part of them."""
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
            # As a rule all figures are of the same minutes.
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
    """Raise CallFailed where the last word on a figure was not that it is complete."""
    metrics = {query["Id"]: query["MetricStat"]["Metric"]["MetricName"] for query in queries}
    for name, status in statuses.items():
        if status != "Complete":
            raise CallFailed("GetMetricData", status, f"{metrics[name]} is incomplete")


def minute_of(instant: datetime) -> int:
    """The number of its minute, in whatever zone it is told: boto3 gives times in that of the machine."""
    return int(instant.timestamp() // _MINUTE_SECONDS)


# Passes a minute apart look at the same quarter of an hour.
@lru_cache(maxsize=64)
def instant_of(minute: int) -> datetime:
    """When a minute starts, UTC."""
    return datetime.fromtimestamp(minute * _MINUTE_SECONDS, UTC)
