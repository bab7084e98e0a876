"""Metrics and alarms as CloudWatch has them."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from emulator.process import LocalAws

#: A minute, and another in which nobody is told of it.
_UNTIL_TOLD = 120


def _metric(aws: LocalAws, metric: str, stat: str, minutes: int = 5, **of: str) -> list[float]:
    """Its data points of the last minutes, newest first, as a Lambda would ask for them."""
    now = aws.clock.now()
    namespace = "AWS/SQS" if "QueueName" in of else "Test"
    dimensions = [{"Name": name, "Value": value} for name, value in of.items()]
    answer = aws.client("cloudwatch").get_metric_data(
        MetricDataQueries=[
            {
                "Id": "m",
                "MetricStat": {
                    "Metric": {
                        "Namespace": namespace,
                        "MetricName": metric,
                        "Dimensions": dimensions,
                    },
                    "Period": 60,
                    "Stat": stat,
                },
            }
        ],
        StartTime=datetime.fromtimestamp(now - minutes * 60, UTC),
        EndTime=datetime.fromtimestamp(now, UTC),
    )
    return list(answer["MetricDataResults"][0]["Values"])


def _name(url: str) -> str:
    return url.rsplit("/", maxsplit=1)[-1]


def test_sent_received_and_deleted_messages_are_counted(
    aws: LocalAws, sqs: Any, make_queue: Callable[..., str]
) -> None:
    url = make_queue()
    for _ in range(3):
        sqs.send_message(QueueUrl=url, MessageBody="x")
    received = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=2)["Messages"]
    sqs.delete_message(QueueUrl=url, ReceiptHandle=received[0]["ReceiptHandle"])

    aws.pass_time(_UNTIL_TOLD)

    assert sum(_metric(aws, "NumberOfMessagesSent", "Sum", QueueName=_name(url))) == 3
    assert sum(_metric(aws, "NumberOfMessagesReceived", "Sum", QueueName=_name(url))) == 2
    assert sum(_metric(aws, "NumberOfMessagesDeleted", "Sum", QueueName=_name(url))) == 1


def test_a_minute_of_a_queue_is_told_when_another_one_is_over(
    aws: LocalAws, sqs: Any, make_queue: Callable[..., str]
) -> None:
    url = make_queue()
    aws.pass_time(60 - aws.clock.now() % 60 + 5)  # early in a minute
    sqs.send_message(QueueUrl=url, MessageBody="x")

    def sent() -> float:
        return sum(_metric(aws, "NumberOfMessagesSent", "Sum", QueueName=_name(url)))

    aws.pass_time(60)
    when_it_is_over = sent()
    aws.pass_time(60)

    assert (when_it_is_over, sent()) == (0, 1)


def test_get_metric_statistics_sees_the_same_counts(
    aws: LocalAws, sqs: Any, cloudwatch: Any, make_queue: Callable[..., str]
) -> None:
    url = make_queue()
    sqs.send_message(QueueUrl=url, MessageBody="x")

    aws.pass_time(_UNTIL_TOLD)

    points = cloudwatch.get_metric_statistics(
        Namespace="AWS/SQS",
        MetricName="NumberOfMessagesSent",
        Dimensions=[{"Name": "QueueName", "Value": _name(url)}],
        StartTime=datetime.fromtimestamp(aws.clock.now() - 300, UTC),
        EndTime=datetime.fromtimestamp(aws.clock.now(), UTC),
        Period=60,
        Statistics=["Sum"],
    )["Datapoints"]
    assert sum(point["Sum"] for point in points) == 1


def test_visible_hidden_and_delayed_messages_and_their_age_are_sampled(
    aws: LocalAws, sqs: Any, make_queue: Callable[..., str]
) -> None:
    url = make_queue()
    for delay in (0, 0, 0, 900, 900):
        sqs.send_message(QueueUrl=url, MessageBody="x", DelaySeconds=delay)
    sqs.receive_message(QueueUrl=url, VisibilityTimeout=600)

    aws.pass_time(120)

    def newest(metric: str) -> float:
        return _metric(aws, metric, "Maximum", QueueName=_name(url))[0]

    assert newest("ApproximateNumberOfMessagesVisible") == 2
    assert newest("ApproximateNumberOfMessagesNotVisible") == 1
    assert newest("ApproximateNumberOfMessagesDelayed") == 2
    assert newest("ApproximateAgeOfOldestMessage") == pytest.approx(60, abs=65)


def test_a_move_to_the_dead_letter_queue_is_no_deletion_and_restarts_the_age(
    aws: LocalAws, sqs: Any, make_queue: Callable[..., str], arn_of: Callable[[str], str]
) -> None:
    dead_letters = make_queue()
    policy = {"deadLetterTargetArn": arn_of(dead_letters), "maxReceiveCount": "1"}
    source = make_queue(RedrivePolicy=json.dumps(policy))
    sqs.send_message(QueueUrl=source, MessageBody="x")
    aws.pass_time(600)
    sqs.receive_message(QueueUrl=source, VisibilityTimeout=0)
    sqs.receive_message(QueueUrl=source)

    aws.pass_time(_UNTIL_TOLD)

    deleted = _metric(aws, "NumberOfMessagesDeleted", "Sum", minutes=15, QueueName=_name(source))
    age = _metric(aws, "ApproximateAgeOfOldestMessage", "Maximum", QueueName=_name(dead_letters))
    assert sum(deleted) == 0
    assert 30 <= age[0] <= 90


def test_a_log_line_in_embedded_metric_format_becomes_a_metric(
    aws: LocalAws, functions: Any, make_function: Callable[..., str]
) -> None:
    function = make_function(
        """
        import json

        def handler(event, context):
            metrics = [{"Name": "Letters", "Unit": "Count"}]
            directive = {"Namespace": "Test", "Dimensions": [["Queue"]], "Metrics": metrics}
            document = {"_aws": {"CloudWatchMetrics": [directive]}, "Queue": "q", "Letters": 7}
            print(json.dumps(document))
        """
    )
    functions.invoke(FunctionName=function)

    aws.pass_time(60)

    assert _metric(aws, "Letters", "Sum", Queue="q") == [7]


def test_an_alarm_needs_m_of_n_periods_and_looks_only_at_its_own_dimensions(
    aws: LocalAws, cloudwatch: Any, name: str
) -> None:
    def alarm(dimension: str) -> str:
        cloudwatch.put_metric_alarm(
            AlarmName=f"{name}-{dimension}",
            Namespace="Test",
            MetricName=name,
            Dimensions=[{"Name": "Of", "Value": dimension}],
            Statistic="Maximum",
            Period=60,
            EvaluationPeriods=3,
            DatapointsToAlarm=2,
            Threshold=1,
            ComparisonOperator="GreaterThanOrEqualToThreshold",
            TreatMissingData="notBreaching",
        )
        return f"{name}-{dimension}"

    def put() -> None:
        data = {"MetricName": name, "Dimensions": [{"Name": "Of", "Value": "this"}], "Value": 1}
        cloudwatch.put_metric_data(
            Namespace="Test",
            MetricData=[{**data, "Timestamp": datetime.fromtimestamp(aws.clock.now(), UTC)}],
        )

    def states() -> tuple[str, str]:
        names = [alarm_of_this, alarm_of_that]
        alarms = cloudwatch.describe_alarms(AlarmNames=names)["MetricAlarms"]
        by_name = {alarm["AlarmName"]: alarm["StateValue"] for alarm in alarms}
        return by_name[alarm_of_this], by_name[alarm_of_that]

    alarm_of_this, alarm_of_that = alarm("this"), alarm("that")
    put()
    aws.pass_time(60)
    after_one = states()
    put()
    aws.pass_time(60)
    after_two = states()
    aws.pass_time(240)

    assert after_one == ("OK", "OK")
    assert after_two == ("ALARM", "OK")
    assert states() == ("OK", "OK")


def test_a_deployed_alarm_on_silence_warms_up_before_it_says_anything(
    aws: LocalAws, cloudwatch: Any, name: str
) -> None:
    alarm = {
        "AlarmName": name,
        "Namespace": "Test",
        "MetricName": name,
        "Statistic": "Sum",
        "Period": 60,
        "EvaluationPeriods": 3,
        "Threshold": 1,
        "ComparisonOperator": "LessThanThreshold",
        "TreatMissingData": "breaching",
        "WarmUpConfiguration": {"WarmUpPeriodDurationInMinutes": 30},
    }
    resources = {"Alarm": {"Type": "AWS::CloudWatch::Alarm", "Properties": alarm}}

    def state() -> str:
        [found] = cloudwatch.describe_alarms(AlarmNames=[name])["MetricAlarms"]
        return str(found["StateValue"])

    aws.client("cloudformation").create_stack(
        StackName=name, TemplateBody=json.dumps({"Resources": resources})
    )
    aws.pass_time(20 * 60)
    warming_up = state()
    aws.pass_time(15 * 60)

    assert (warming_up, state()) == ("INSUFFICIENT_DATA", "ALARM")
