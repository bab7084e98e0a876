"""What CloudWatch alone knows of the queues."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from smart_redriver.oncall.stack.session import Session

_AGE = "ApproximateAgeOfOldestMessage"


def age_of_oldest(session: Session, now: datetime) -> timedelta | None:
    """The age of the DLQ's oldest letter, since it came there; None while there is no figure. Raises CallFailed."""
    return age_of_oldest_in(session, session.place.deployment.dlq_url, now)


def age_of_oldest_in(session: Session, queue_url: str, now: datetime) -> timedelta | None:
    """The age of a queue's oldest message; None while there is no figure. Raises CallFailed."""
    query = _query("oldest", queue_url, _AGE, "Maximum", timedelta(minutes=1))
    answer = session.aws.client("cloudwatch").get_metric_data(
        StartTime=now - timedelta(minutes=15),
        EndTime=now + timedelta(minutes=1),
        ScanBy="TimestampDescending",
        MetricDataQueries=[query],
    )
    values = [value for one in answer["MetricDataResults"] for value in one["Values"]]
    return timedelta(seconds=values[0]) if values else None


#: What was in a queue, by the names that a course has.
_DEPTHS = {
    "dead_letters": ("dlq", "ApproximateNumberOfMessagesVisible", "Maximum"),
    "parked": ("lot", "ApproximateNumberOfMessagesVisible", "Maximum"),
}
#: What a source queue delivered, and what of it was deleted.
_DELIVERIES = {
    "delivered": ("source", "NumberOfMessagesReceived", "Sum"),
    "deleted": ("source", "NumberOfMessagesDeleted", "Sum"),
}

#: Figures by the moments from which they are, the oldest first.
Course = list[tuple[datetime, float]]


def courses(
    session: Session, start: datetime, end: datetime, each: timedelta
) -> Mapping[str, Course]:
    """How depths and deliveries of a queue went, as CloudWatch has it, by name. Raises CallFailed.

    A target has no deliveries that could be asked for.
    """
    deployment = session.place.deployment
    urls = {
        "dlq": deployment.dlq_url,
        "lot": deployment.parking_lot_url,
        "source": deployment.source_queue_url,
    }
    wanted = _DEPTHS | (_DELIVERIES if deployment.source_urls else {})
    answer = session.aws.client("cloudwatch").get_metric_data(
        StartTime=start,
        EndTime=end,
        ScanBy="TimestampAscending",
        MetricDataQueries=[
            _query(name, urls[place], metric, statistic, each)
            for name, (place, metric, statistic) in wanted.items()
        ],
    )
    return {
        one["Id"]: list(zip(one["Timestamps"], one["Values"], strict=True))
        for one in answer["MetricDataResults"]
    }


def _query(
    name: str, queue_url: str, metric: str, statistic: str, each: timedelta
) -> dict[str, Any]:
    return {
        "Id": name,
        "MetricStat": {
            "Metric": {
                "Namespace": "AWS/SQS",
                "MetricName": metric,
                "Dimensions": [{"Name": "QueueName", "Value": queue_url.rpartition("/")[2]}],
            },
            "Period": int(each.total_seconds()),
            "Stat": statistic,
        },
    }
