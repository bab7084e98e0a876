"""Reads metrics of the queues from CloudWatch. For a queue outside SQS, each pass writes the figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from smart_redriver.engine.config.deployment import Deployment
from smart_redriver.oncall.deployment.aws import Aws

_AGE = "ApproximateAgeOfOldestMessage"


def age_of_oldest(aws: Aws, queue_url: str, now: datetime) -> timedelta | None:
    """How long a queue's oldest message has been there; None while there is no figure. Raises CallFailed."""
    query = _query("oldest", "AWS/SQS", _name(queue_url), _AGE, "Maximum", timedelta(minutes=1))
    answer = aws.client("cloudwatch").get_metric_data(
        StartTime=now - timedelta(minutes=15),
        EndTime=now + timedelta(minutes=1),
        ScanBy="TimestampDescending",
        MetricDataQueries=[query],
    )
    values = [value for one in answer["MetricDataResults"] for value in one["Values"]]
    return timedelta(seconds=values[0]) if values else None


#: Metrics of the messages in a queue, by the names of courses.
_DEPTHS = {
    "dead_letters": ("dlq", "ApproximateNumberOfMessagesVisible", "Maximum"),
    "parked": ("lot", "ApproximateNumberOfMessagesVisible", "Maximum"),
}
#: Metrics of the messages that a source queue delivered, and of deleted ones.
_DELIVERIES = {
    "delivered": ("source", "NumberOfMessagesReceived", "Sum"),
    "deleted": ("source", "NumberOfMessagesDeleted", "Sum"),
}

#: The same as counted by each pass. The namespace is `smart_redriver.engine.aws.metrics`'s, which needs Powertools.
_OWN = "SmartRedriver"
_OWN_DEPTHS = {"dead_letters": "DeadLetters", "parked": "ParkedLetters"}

#: Figures with their times, the oldest first.
Course = list[tuple[datetime, float]]


def courses(
    aws: Aws, deployment: Deployment, start: datetime, end: datetime, each: timedelta
) -> Mapping[str, Course]:
    """Read the course of a queue's depths and deliveries from CloudWatch, by name. Raises CallFailed.

    Targets and queues outside SQS have no delivery figures to ask for.
    """
    queries = _as_passes_count if deployment.location else _of_queues
    answer = aws.client("cloudwatch").get_metric_data(
        StartTime=start,
        EndTime=end,
        ScanBy="TimestampAscending",
        MetricDataQueries=list(queries(deployment, each)),
    )
    return {
        one["Id"]: list(zip(one["Timestamps"], one["Values"], strict=True))
        for one in answer["MetricDataResults"]
    }


def _of_queues(deployment: Deployment, each: timedelta) -> Iterator[dict[str, Any]]:
    urls = {
        "dlq": deployment.dlq_url,
        "lot": deployment.parking_lot_url,
        "source": deployment.source_queue_url,
    }
    wanted = _DEPTHS | (_DELIVERIES if deployment.source_urls else {})
    for name, (place, metric, statistic) in wanted.items():
        yield _query(name, "AWS/SQS", _name(urls[place]), metric, statistic, each)


def _as_passes_count(deployment: Deployment, each: timedelta) -> Iterator[dict[str, Any]]:
    for name, metric in _OWN_DEPTHS.items():
        yield _query(name, _OWN, deployment.called(deployment.queue_name), metric, "Maximum", each)


def _name(queue_url: str) -> str:
    return queue_url.rpartition("/")[2]


def _query(
    query_id: str, namespace: str, queue: str, metric: str, statistic: str, each: timedelta
) -> dict[str, Any]:
    return {
        "Id": query_id,
        "MetricStat": {
            "Metric": {
                "Namespace": namespace,
                "MetricName": metric,
                "Dimensions": [{"Name": "QueueName", "Value": queue}],
            },
            "Period": int(each.total_seconds()),
            "Stat": statistic,
        },
    }
