"""What CloudWatch alone knows of the queues."""

from __future__ import annotations

from datetime import datetime, timedelta

from smart_redriver.oncall.stack.session import Session

_AGE = "ApproximateAgeOfOldestMessage"


def age_of_oldest(session: Session, now: datetime) -> timedelta | None:
    """The age of the DLQ's oldest letter, since it came there; None while there is no figure. Raises CallFailed."""
    return age_of_oldest_in(session, session.place.deployment.dlq_url, now)


def age_of_oldest_in(session: Session, queue_url: str, now: datetime) -> timedelta | None:
    """The age of a queue's oldest message; None while there is no figure. Raises CallFailed."""
    name = queue_url.rpartition("/")[2]
    query = {
        "Id": "oldest",
        "MetricStat": {
            "Metric": {
                "Namespace": "AWS/SQS",
                "MetricName": _AGE,
                "Dimensions": [{"Name": "QueueName", "Value": name}],
            },
            "Period": 60,
            "Stat": "Maximum",
        },
    }
    answer = session.aws.client("cloudwatch").get_metric_data(
        StartTime=now - timedelta(minutes=15),
        EndTime=now + timedelta(minutes=1),
        ScanBy="TimestampDescending",
        MetricDataQueries=[query],
    )
    values = [value for one in answer["MetricDataResults"] for value in one["Values"]]
    return timedelta(seconds=values[0]) if values else None
