"""The AWS/SQS metrics of the fake. moto publishes none, so only the empty answer is compared.

Source: SQS Developer Guide, "Available CloudWatch metrics"; botocore GetMetricData.
"""

import json
from datetime import datetime, timedelta
from random import Random
from typing import Any

import boto3
import pytest

from fakes.clock import START, VirtualClock
from fakes.cloudwatch import FakeCloudWatch, Lateness
from fakes.sqs import FakeSqs
from tests.contract.conftest import Aws


class Monitored:
    """A queue under watch."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        sqs = FakeSqs(self.clock, Random(7), count_lag_seconds=0)
        self.aws = Aws(sqs, None, self.clock.advance)
        self.cloudwatch = FakeCloudWatch(self.clock, sqs)
        self.url = self.aws.queue("orders")

    def ask(self, metric_name: str, stat: str, **options: Any) -> dict[str, Any]:
        answer = self.cloudwatch.get_metric_data(
            MetricDataQueries=[query(metric_name, stat, options.pop("Period", 60))],
            StartTime=START,
            EndTime=self.clock.now() + timedelta(seconds=1),
            **options,
        )
        (result,) = answer["MetricDataResults"]
        return dict(result)


def query(metric_name: str, stat: str, period: int = 60) -> dict[str, Any]:
    metric = {
        "Namespace": "AWS/SQS",
        "MetricName": metric_name,
        "Dimensions": [{"Name": "QueueName", "Value": "orders"}],
    }
    return {"Id": "m1", "MetricStat": {"Metric": metric, "Period": period, "Stat": stat}}


@pytest.fixture
def monitored() -> Monitored:
    return Monitored()


def minute(number: int) -> datetime:
    return START + timedelta(minutes=number)


def test_a_queue_that_is_not_there_has_an_empty_metric(
    aws: Aws, boto3_session: boto3.Session
) -> None:
    cloudwatch: Any = (
        FakeCloudWatch(VirtualClock(), aws.sqs)
        if isinstance(aws.sqs, FakeSqs)
        else boto3_session.client("cloudwatch")
    )
    answer = cloudwatch.get_metric_data(
        MetricDataQueries=[query("NumberOfMessagesDeleted", "Sum")],
        StartTime=START - timedelta(hours=1),
        EndTime=START,
    )
    (result,) = answer["MetricDataResults"]
    assert (result["Id"], result["StatusCode"]) == ("m1", "Complete")
    assert (result["Timestamps"], result["Values"]) == ([], [])


def test_messages_are_counted_by_the_minute(monitored: Monitored) -> None:
    aws, url = monitored.aws, monitored.url
    for _ in range(3):
        aws.send(url)
    aws.advance(60)
    for message in aws.receive(url)[:2]:
        aws.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    aws.advance(240)

    sent = monitored.ask("NumberOfMessagesSent", "Sum", ScanBy="TimestampAscending")
    assert sent["Timestamps"] == [minute(0), minute(1), minute(2)]
    assert sent["Values"] == [3, 0, 0]
    assert monitored.ask("NumberOfMessagesReceived", "Sum")["Values"] == [0, 3, 0]
    assert monitored.ask("NumberOfMessagesDeleted", "Sum")["Values"] == [0, 2, 0]


def test_every_delete_with_a_valid_handle_counts(monitored: Monitored) -> None:
    """One message: deleted with a stale handle, with the good one, and once more. [SQS Developer Guide]"""
    aws, url = monitored.aws, monitored.url
    aws.send(url)
    (first,) = aws.receive(url, VisibilityTimeout=1)
    aws.advance(2)
    (second,) = aws.receive(url)
    for message in (first, second, second):
        aws.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    aws.advance(240)

    assert sum(monitored.ask("NumberOfMessagesDeleted", "Sum")["Values"]) == 3


def test_extended_messages_are_in_flight_to_the_gauges_too(monitored: Monitored) -> None:
    aws, url = monitored.aws, monitored.url
    aws.send(url)
    (message,) = aws.receive(url)
    aws.sqs.change_message_visibility(
        QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=290
    )
    aws.advance(480)

    gauge = monitored.ask(
        "ApproximateNumberOfMessagesNotVisible", "Maximum", ScanBy="TimestampAscending"
    )
    assert gauge["Values"] == [1, 1, 1, 1, 0, 0]


def test_messages_that_expire_are_not_deleted_to_the_metrics(monitored: Monitored) -> None:
    """Not documented: no request deletes them."""
    aws = monitored.aws
    aws.sqs.set_queue_attributes(
        QueueUrl=monitored.url, Attributes={"MessageRetentionPeriod": "60"}
    )
    aws.send(monitored.url)
    aws.advance(480)

    assert set(monitored.ask("NumberOfMessagesDeleted", "Sum")["Values"]) == {0}
    assert aws.counts(monitored.url) == (0, 0, 0)


def test_how_late_cloudwatch_is_can_be_chosen(monitored: Monitored) -> None:
    late = FakeCloudWatch(monitored.clock, monitored.aws.sqs, lag_seconds=300)
    monitored.aws.send(monitored.url)

    def known() -> int:
        answer = late.get_metric_data(
            MetricDataQueries=[query("NumberOfMessagesSent", "Sum")],
            StartTime=START,
            EndTime=START + timedelta(minutes=10),
        )
        return len(answer["MetricDataResults"][0]["Values"])

    monitored.aws.advance(359)
    assert known() == 0
    monitored.aws.advance(1)
    assert known() == 1


def test_the_newest_value_comes_first(monitored: Monitored) -> None:
    monitored.aws.send(monitored.url)
    monitored.aws.advance(300)
    assert monitored.ask("NumberOfMessagesSent", "Sum")["Timestamps"][0] == minute(2)


def test_a_value_is_known_two_minutes_after_its_minute(monitored: Monitored) -> None:
    monitored.aws.send(monitored.url)
    monitored.aws.advance(179)
    assert monitored.ask("NumberOfMessagesSent", "Sum")["Values"] == []
    monitored.aws.advance(1)
    assert monitored.ask("NumberOfMessagesSent", "Sum")["Values"] == [1]


def test_longer_periods_are_summed_up(monitored: Monitored) -> None:
    for _ in range(6):
        monitored.aws.send(monitored.url)
        monitored.aws.advance(60)
    monitored.aws.advance(120)
    assert monitored.ask("NumberOfMessagesSent", "Sum", Period=300)["Values"] == [1, 5]


def test_depth_is_carried_through_minutes_in_which_nothing_happens(monitored: Monitored) -> None:
    monitored.aws.send(monitored.url, DelaySeconds=90)
    monitored.aws.advance(360)
    visible = monitored.ask("ApproximateNumberOfMessagesVisible", "Maximum")
    assert visible["Values"] == [1, 1, 1, 0]


def test_the_age_is_that_of_the_oldest_message_not_yet_deleted(monitored: Monitored) -> None:
    aws, url = monitored.aws, monitored.url
    aws.send(url)
    aws.advance(240)
    (message,) = aws.receive(url)
    aws.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    aws.advance(180)
    age = monitored.ask("ApproximateAgeOfOldestMessage", "Maximum")
    assert age["Values"] == [0, 240, 180, 120, 60]


def test_a_message_received_three_times_leaves_the_age(monitored: Monitored) -> None:
    aws, url = monitored.aws, monitored.url
    aws.send(url)
    for _ in range(3):
        aws.receive(url, VisibilityTimeout=1)
        aws.advance(2)
    aws.advance(300)
    assert monitored.ask("ApproximateAgeOfOldestMessage", "Maximum")["Values"][0] == 0


def test_on_a_dlq_the_age_counts_from_the_move_and_the_move_is_not_sent() -> None:
    monitored = Monitored()
    aws = monitored.aws
    policy = {"deadLetterTargetArn": aws.arn(monitored.url), "maxReceiveCount": 3}
    source = aws.queue("payments", RedrivePolicy=json.dumps(policy))
    aws.send(source)
    aws.fail_until_dead(source, 3)
    aws.advance(600)
    age = monitored.ask("ApproximateAgeOfOldestMessage", "Maximum")
    assert age["Values"][0] == age["Timestamps"][0].timestamp() + 60 - (START.timestamp() + 93)
    assert set(monitored.ask("NumberOfMessagesSent", "Sum")["Values"]) == {0}


def test_an_idle_empty_queue_falls_silent_after_six_hours(monitored: Monitored) -> None:
    monitored.aws.advance(10 * 3600)
    silent_after = monitored.ask("NumberOfMessagesSent", "Sum")["Timestamps"][0]
    assert silent_after == START + timedelta(hours=6)


def told(monitored: Monitored, lateness: Lateness, metric_name: str) -> list[float]:
    """What CloudWatch says of the one minute in which three messages were sent."""
    late = FakeCloudWatch(monitored.clock, monitored.aws.sqs, lateness=lateness)
    answer = late.get_metric_data(
        MetricDataQueries=[query(metric_name, "Sum")],
        StartTime=START,
        EndTime=START + timedelta(minutes=1),
    )
    return list(answer["MetricDataResults"][0]["Values"])


def test_counters_can_be_later_than_gauges_and_be_revised_upward(monitored: Monitored) -> None:
    lateness = Lateness(counters_seconds=60, revised=0.5, revised_seconds=60)
    for _ in range(3):
        monitored.aws.send(monitored.url)

    monitored.aws.advance(180)
    assert told(monitored, lateness, "ApproximateNumberOfMessagesVisible") == [3]
    assert told(monitored, lateness, "NumberOfMessagesSent") == []
    monitored.aws.advance(60)
    assert told(monitored, lateness, "NumberOfMessagesSent") == [1]
    monitored.aws.advance(60)
    assert told(monitored, lateness, "NumberOfMessagesSent") == [3]


def test_gauges_can_be_missing_and_can_read_nothing_for_a_minute(monitored: Monitored) -> None:
    monitored.aws.send(monitored.url)
    monitored.aws.advance(600)
    gauge = "ApproximateNumberOfMessagesVisible"

    assert told(monitored, Lateness(missing=1.0), gauge) == []
    assert told(monitored, Lateness(missing=1.0), "NumberOfMessagesSent") == [1]
    assert told(monitored, Lateness(blank_share=1.0), gauge) == [0]
    assert told(monitored, Lateness(blank_share=1.0), "NumberOfMessagesSent") == [1]
