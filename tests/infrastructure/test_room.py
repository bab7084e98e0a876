"""How many re-drivers of an app's own fit into a stack, as docs/deploy.md says it."""

from collections.abc import Callable
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_sqs as sqs
from aws_cdk.assertions import Template

from smart_redriver.cdk import Alarms, MonitoringSettings, Naming, SmartRedriver
from tests.infrastructure.adopted import queue_arn
from tests.infrastructure.app_process import ROOT, UNBUNDLED

#: https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html
MOST = 500


def of_all(_: cdk.Stack, __: str) -> dict[str, Any]:
    return {"monitoring": MonitoringSettings(alarms=Alarms.ALL)}


def paging(_: cdk.Stack, __: str) -> dict[str, Any]:
    return {"monitoring": MonitoringSettings(alarms=Alarms.PAGING)}


def unwatched(_: cdk.Stack, __: str) -> dict[str, Any]:
    return {"monitoring": None}


def nested(stack: cdk.Stack, name: str) -> dict[str, Any]:
    return {"naming": Naming(monitoring_scope=cdk.NestedStack(stack, f"{name}Alarms"))}


def resources(count: int, given: Callable[[cdk.Stack, str], dict[str, Any]]) -> int:
    stack = cdk.Stack(cdk.App(context=UNBUNDLED), "Shop")
    for name in (f"Queue{index}" for index in range(count)):
        source, dead = (
            sqs.Queue.from_queue_arn(stack, f"{name}{one}", queue_arn(f"{name}{one}"))
            for one in ("Source", "Dead")
        )
        SmartRedriver(
            stack,
            f"{name}Redriver",
            source_queue=source,
            dead_letter_queue=dead,
            **given(stack, name),
        )
    return len(Template.from_stack(stack).to_json()["Resources"])


@pytest.mark.parametrize(
    ("given", "row"),
    [
        (of_all, "`alarms=Alarms.ALL`"),
        (paging, "`alarms=Alarms.PAGING`"),
        (unwatched, "`monitoring=None`"),
        (nested, "`naming=Naming("),
    ],
)
def test_the_docs_say_how_many_fit(given, row):
    first, second = resources(1, given), resources(2, given)
    each = second - first
    room = (MOST - (first - each)) // each

    said = (ROOT / "docs" / "deploy.md").read_text()
    [line] = [one for one in said.splitlines() if one.startswith(f"| {row}")]
    assert line.endswith(f"| {each} | {room} |")
