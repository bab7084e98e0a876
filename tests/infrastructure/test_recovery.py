"""The rule by which a re-driver hears of recovery, the right to tell of it, and what is refused."""

import json
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sqs as sqs
from aws_cdk.assertions import Template

from smart_redriver.cdk import Settings, SmartRedriver
from smart_redriver.engine.errors import SettingsError
from stacks.settings import parse_context
from tests.infrastructure.adopted import ACCOUNT, REGION, entry, jobs_entry, queue_arn
from tests.infrastructure.app_process import UNBUNDLED
from tests.infrastructure.conftest import synthesize

ALARM = f"arn:aws:cloudwatch:{REGION}:{ACCOUNT}:alarm:orders-errors"
IS_OK = {
    "source": ["aws.cloudwatch"],
    "detail-type": ["CloudWatch Alarm State Change"],
    "resources": [ALARM],
    "detail": {"state": {"value": ["OK"]}},
}


def told(*names: Any) -> dict[str, Any]:
    return {
        "source": ["smart-redriver"],
        "detail-type": ["Recovery"],
        "detail": {"recovered": [*names]},
    }


def rules(template: Template) -> list[dict[str, Any]]:
    return [one["Properties"] for one in template.find_resources("AWS::Events::Rule").values()]


def tells(template: Template) -> list[dict[str, Any]]:
    """The statements that allow to put events."""
    return [
        statement
        for policy in template.find_resources("AWS::IAM::Policy").values()
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if "events:PutEvents" in statement["Action"]
    ]


def test_every_queue_hears_of_its_own_recovery_and_may_tell_nobody(template: Template) -> None:
    [rule] = rules(template)

    source = template.find_resources("AWS::SQS::Queue", {"Properties": {"VisibilityTimeout": 30}})
    name = {"Fn::GetAtt": [next(iter(source)), "QueueName"]}
    assert rule["EventPattern"] == told(name)
    [target] = rule["Targets"]
    assert "Input" not in target, "the function reads the event"
    assert target["RetryPolicy"]["MaximumEventAgeInSeconds"] == 300
    assert tells(template) == []


def test_the_rule_may_invoke_the_function_and_no_other_may(template: Template) -> None:
    [permission] = template.find_resources("AWS::Lambda::Permission").values()

    given = permission["Properties"]
    assert given["Principal"] == "events.amazonaws.com"
    assert given["SourceArn"]["Fn::GetAtt"][1] == "Arn"
    assert given["SourceArn"]["Fn::GetAtt"][0] in template.find_resources("AWS::Events::Rule")


def test_alarms_and_a_downstream_are_heard_by_the_same_rule() -> None:
    orders = entry("orders", recovery_alarms=[ALARM], downstream="payments")
    template = synthesize(queues=[orders, entry("mails", downstream="payments")])

    patterns = [rule["EventPattern"] for rule in rules(template)]
    assert patterns == [
        {"$or": [told("orders", "payments"), IS_OK]},
        told("mails", "payments"),
    ]
    assert len(tells(template)) == 2
    for statement in tells(template):
        assert "event-bus/default" in json.dumps(statement["Resource"])
        assert statement["Condition"] == {
            "StringEquals": {"events:source": "smart-redriver", "events:detail-type": "Recovery"}
        }


def test_a_worker_queue_in_postgres_hears_too() -> None:
    template = synthesize(
        queues=[jobs_entry("reports", region=REGION, account=ACCOUNT, downstream="payments")]
    )

    [rule] = rules(template)
    assert rule["EventPattern"] == told("reports", "payments")
    assert len(tells(template)) == 1


@pytest.mark.parametrize(
    ("value", "accepted"),
    [
        (["orders-errors"], "ARNs of CloudWatch alarms"),
        ([ALARM.replace(REGION, "us-east-1")], f"alarms of {REGION} and account {ACCOUNT}"),
        ([ALARM.replace(ACCOUNT, "999922223333")], f"alarms of {REGION} and account {ACCOUNT}"),
    ],
)
def test_what_no_rule_could_hear_is_refused_with_its_place(value: list[str], accepted: str) -> None:
    with pytest.raises(SettingsError) as refused:
        parse_context({"queues": [entry("orders", recovery_alarms=value)]})

    [fault] = refused.value.faults
    assert fault.setting == "queues[0].recovery_alarms"
    assert accepted in fault.accepted


def redriver(stack: cdk.Stack, **settings: Any) -> SmartRedriver:
    source, dead = (
        sqs.Queue.from_queue_arn(stack, name, queue_arn(name)) for name in ("orders", "dead")
    )
    return SmartRedriver(
        stack,
        "Redriver",
        source_queue=source,
        dead_letter_queue=dead,
        settings=Settings(**settings),
        monitoring=None,
    )


def test_an_app_gives_the_alarm_that_it_makes() -> None:
    stack = cdk.Stack(cdk.App(context=UNBUNDLED), "Shop")
    metric = cloudwatch.Metric(namespace="Shop", metric_name="Errors")
    alarm = metric.create_alarm(stack, "Errors", threshold=1, evaluation_periods=1)

    redriver(stack, recovery_alarms=(alarm.alarm_arn,))

    [rule] = rules(Template.from_stack(stack))
    [_, is_ok] = rule["EventPattern"]["$or"]
    assert is_ok["resources"] == [{"Fn::GetAtt": ["ErrorsFA5270DE", "Arn"]}]


@pytest.mark.parametrize("listed", [True, False])
def test_an_app_in_another_home_is_told_so(listed: bool) -> None:
    abroad = ALARM.replace(REGION, "us-east-1")
    home = cdk.Environment(account=ACCOUNT, region=REGION)
    stack = cdk.Stack(cdk.App(context=UNBUNDLED), "Shop", env=home)

    with pytest.raises(
        SettingsError, match="EventBridge tells of an alarm's state only at its home"
    ):
        redriver(stack, recovery_alarms=(abroad,) if listed else abroad)
