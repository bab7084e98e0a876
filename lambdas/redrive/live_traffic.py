"""What CloudWatch counted on the source queue: an adapter over the boto3 CloudWatch client.

One GetMetricData call of three metrics, asked only when a verdict can hang on it.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Protocol

from redrive.faults import naming
from redrive.verdict import Traffic

PERIOD = timedelta(minutes=1)


class CloudWatchClient(Protocol):
    """The call of a boto3 CloudWatch client that a pass makes."""

    @property
    def get_metric_data(self) -> Callable[..., Any]: ...


class LiveTraffic:
    """The source queue's figures."""

    def __init__(self, cloudwatch: CloudWatchClient) -> None:
        self._cloudwatch = cloudwatch

    def since(self, start: datetime, now: datetime, queue_arn: str) -> Traffic:
        """What the queue saw from the minute of `start` to `now`. Raises CallFailed."""
        queue_name = queue_arn.rpartition(":")[2]
        with naming("GetMetricData"):
            answer = self._cloudwatch.get_metric_data(
                StartTime=start.replace(second=0, microsecond=0),
                EndTime=now + PERIOD,
                ScanBy="TimestampDescending",
                MetricDataQueries=[
                    _query("received", "NumberOfMessagesReceived", "Sum", queue_name),
                    _query("deleted", "NumberOfMessagesDeleted", "Sum", queue_name),
                    _query("oldest", "ApproximateAgeOfOldestMessage", "Maximum", queue_name),
                ],
            )
        values: Mapping[str, list[float]] = {
            result["Id"]: result["Values"] for result in answer["MetricDataResults"]
        }
        return Traffic(
            received=int(sum(values.get("received", []))),
            deleted=int(sum(values.get("deleted", []))),
            oldest_age_seconds=next(iter(values.get("oldest", [])), None),
        )


def _query(name: str, metric: str, statistic: str, queue_name: str) -> dict[str, Any]:
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
