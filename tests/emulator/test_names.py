"""CloudFormation on the emulator refuses a name that is taken, and replaces what it can't rename."""

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from botocore.exceptions import WaiterError

from emulator.process import LocalAws

_CODE = {"ZipFile": "def handler(event, context): pass"}
_stacks = (f"names-{number}" for number in itertools.count())


def alarm(name: str) -> dict[str, Any]:
    return {
        "Type": "AWS::CloudWatch::Alarm",
        "Properties": {
            "AlarmName": name,
            "Namespace": "AWS/SQS",
            "MetricName": "NumberOfMessagesSent",
            "Statistic": "Sum",
            "Period": 60,
            "EvaluationPeriods": 1,
            "ComparisonOperator": "GreaterThanThreshold",
            "Threshold": 1,
        },
    }


def composite(name: str) -> dict[str, Any]:
    rule = {"Fn::Sub": 'ALARM("${Child.Arn}")'}
    return {
        "Type": "AWS::CloudWatch::CompositeAlarm",
        "Properties": {"AlarmName": name, "AlarmRule": rule},
    }


def queue(name: str) -> dict[str, Any]:
    return {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": name}}


def function(name: str) -> dict[str, Any]:
    properties = {
        "FunctionName": name,
        "Code": _CODE,
        "Role": "arn:aws:iam::000000000000:role/emulator-test",
        "Handler": "index.handler",
        "Runtime": "python3.13",
    }
    return {"Type": "AWS::Lambda::Function", "Properties": properties}


def rule(name: str) -> dict[str, Any]:
    properties = {"Name": name, "ScheduleExpression": "rate(1 day)", "State": "DISABLED"}
    return {"Type": "AWS::Events::Rule", "Properties": properties}


KINDS = [alarm, composite, queue, function, rule]


class Stacks:
    """Stacks of plain templates, each with one named resource."""

    def __init__(self, aws: LocalAws) -> None:
        self._cloudformation = aws.client("cloudformation")
        self.made: list[str] = []

    def put(self, stack: str, one: dict[str, Any]) -> str:
        """Create or update a stack; its status at the end."""
        template = {"Resources": {"Child": alarm(f"child-of-{stack}"), "Named": one}}
        is_new = stack not in self.made
        self.made.append(stack)
        put = self._cloudformation.create_stack if is_new else self._cloudformation.update_stack
        put(StackName=stack, TemplateBody=json.dumps(template))
        waiter = "stack_create_complete" if is_new else "stack_update_complete"
        with suppress(WaiterError):  # of a stack that was rolled back, which the status says
            self._cloudformation.get_waiter(waiter).wait(
                StackName=stack, WaiterConfig={"Delay": 1, "MaxAttempts": 60}
            )
        [described] = self._cloudformation.describe_stacks(StackName=stack)["Stacks"]
        return str(described["StackStatus"])

    def named(self, stack: str) -> str:
        described = self._cloudformation.describe_stack_resource(
            StackName=stack, LogicalResourceId="Named"
        )
        return str(described["StackResourceDetail"]["PhysicalResourceId"])


@pytest.fixture
def stacks(aws: LocalAws) -> Iterator[Stacks]:
    made = Stacks(aws)
    yield made
    for stack in dict.fromkeys(made.made):
        aws.client("cloudformation").delete_stack(StackName=stack)


@pytest.mark.parametrize("kind", KINDS)
def test_a_name_that_is_taken_is_refused_and_rolled_back(
    stacks: Stacks, name: str, kind: Callable[[str], dict[str, Any]]
) -> None:
    first, second = next(_stacks), next(_stacks)

    assert stacks.put(first, kind(name)) == "CREATE_COMPLETE"
    assert stacks.put(second, kind(name)) == "ROLLBACK_COMPLETE"
    assert stacks.named(first).endswith(name)


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_name_replaces_and_one_that_is_taken_leaves_all_as_it_was(
    stacks: Stacks, name: str, kind: Callable[[str], dict[str, Any]]
) -> None:
    mine, other = next(_stacks), next(_stacks)
    stacks.put(mine, kind(name))
    stacks.put(other, kind(f"{name}-taken"))

    assert stacks.put(mine, kind(f"{name}-taken")) == "UPDATE_ROLLBACK_COMPLETE"
    assert stacks.named(mine).endswith(name)
    assert stacks.put(mine, kind(f"{name}-new")) == "UPDATE_COMPLETE"
    assert stacks.named(mine).endswith(f"{name}-new")
    assert stacks.put(other, kind(name)) == "UPDATE_COMPLETE"  # the old name is free again
