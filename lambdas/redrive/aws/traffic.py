"""What CloudWatch counted on the source queues: an adapter over the boto3 CloudWatch client.

One GetMetricData call of three metrics a queue, asked only when a verdict can hang on it.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from redrive.aws.books import PERIOD, CloudWatchClient
from redrive.aws.calls import naming
from redrive.core.queue_facts import queue_name
from redrive.core.verdict import Traffic


class LiveTraffic:
    """The source queues' figures."""

    def __init__(self, cloudwatch: CloudWatchClient) -> None:
        self._cloudwatch = cloudwatch

    def since(self, start: datetime, now: datetime, queue_arns: Sequence[str]) -> Traffic:
        """What the queues saw from the minute of `start` to `now`, see `_together`. Raises CallFailed."""
        with naming("GetMetricData"):
            answer = self._cloudwatch.get_metric_data(
                StartTime=start.replace(second=0, microsecond=0),
                EndTime=now + PERIOD,
                ScanBy="TimestampDescending",
                MetricDataQueries=[
                    _query(f"{figure}{index}", metric, statistic, queue_name(arn))
                    for index, arn in enumerate(queue_arns)
                    for figure, (metric, statistic) in _FIGURES.items()
                ],
            )
        values: Mapping[str, list[float]] = {
            result["Id"]: result["Values"] for result in answer["MetricDataResults"]
        }
        return _together(
            [
                Traffic(
                    received=int(sum(values.get(f"received{index}", []))),
                    deleted=int(sum(values.get(f"deleted{index}", []))),
                    oldest_age_seconds=next(iter(values.get(f"oldest{index}", [])), None),
                )
                for index in range(len(queue_arns))
            ]
        )


_FIGURES = {
    "received": ("NumberOfMessagesReceived", "Sum"),
    "deleted": ("NumberOfMessagesDeleted", "Sum"),
    "oldest": ("ApproximateAgeOfOldestMessage", "Maximum"),
}


def _together(each: Sequence[Traffic]) -> Traffic:
    """The testimony of all sources: of the one in use whose consumer does worst, and the oldest message of any.

    Were they added up, a healthy consumer would testify that the letters of a broken one are poison.
    """
    in_use = [one for one in each if one.received] or each
    worst = min(in_use, key=lambda one: one.deleted / max(1, one.received))
    ages = [one.oldest_age_seconds for one in each if one.oldest_age_seconds is not None]
    return replace(worst, oldest_age_seconds=max(ages, default=None))


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
