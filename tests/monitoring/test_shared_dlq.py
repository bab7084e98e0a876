"""Several source queues behind one dead-letter queue: each has its circuit, and each is watched."""

from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_sqs as sqs

from simulator.world import DLQ, SOURCE
from smart_redriver.cdk.monitoring_settings import Alarms, MonitoringSettings
from smart_redriver.cdk.redriver import SmartRedriver
from smart_redriver.engine.config.settings import Settings
from tests.monitoring import reach
from tests.monitoring.given import Given, circuit

REFUNDS = "refunds"


@pytest.fixture(scope="module")
def resources() -> dict[str, Any]:
    """Of a stack that uses the construct for two sources."""
    app = cdk.App(context={"aws:cdk:bundling-stacks": []})
    stack = cdk.Stack(app, "Shared")

    def queue(name: str) -> sqs.IQueue:
        arn = f"arn:aws:sqs:{reach.REGION}:{reach.ACCOUNT}:{name}"
        return sqs.Queue.from_queue_arn(stack, name, arn)

    SmartRedriver(
        stack,
        "Redriver",
        source_queue=queue(SOURCE),
        further_sources=[queue(REFUNDS)],
        dead_letter_queue=queue(DLQ),
        settings=Settings(),
        monitoring=MonitoringSettings(alarms=Alarms.ALL),
    )
    return reach.all_resources(stack)


def test_an_alarm_about_a_queue_has_its_name(resources) -> None:
    names = {one["AlarmName"].rpartition(" ")[0] for one in reach.alarms(resources).values()}

    assert {f"{SOURCE} CircuitOpen", f"{REFUNDS} CircuitOpen", f"{SOURCE} PoisonParked"} <= names
    assert not [name for name in names if name[-1].isdigit()]


def circuits(given: Given, *, of_first: str, of_second: str) -> None:
    """Half an hour of passes, each with the report of both circuits, while letters wait."""
    for minute in range(40):
        both = [circuit(of_first), circuit(of_second, queue=REFUNDS)]
        given.one_pass(minute, circuits=both, depth=9)


@pytest.mark.parametrize(
    ("of_first", "of_second", "fires"),
    [("CLOSED", "OPEN", {"CircuitOpen2"}), ("OPEN", "CLOSED", {"CircuitOpen"})],
)
def test_each_sources_open_circuit_pages(
    resources: dict[str, Any], of_first: str, of_second: str, fires: set[str]
) -> None:
    given = Given(resources)
    circuits(given, of_first=of_first, of_second=of_second)

    alarms = given.alarms()

    assert alarms.all_that_fired() & {"CircuitOpen", "CircuitOpen2"} == fires
    assert alarms.pages == [("LettersPileUp", "ALARM")]


def test_an_alarm_about_one_source_names_it(resources: dict[str, Any]) -> None:
    descriptions = {
        name.partition("Monitoring")[2][:-8]: one["AlarmDescription"]
        for name, one in reach.alarms(resources).items()
    }

    for alarm in ("CircuitOpen", "RedriveNotWorking", "SourceQueueOld"):
        assert f"Queue: {SOURCE}." in descriptions[alarm]
        assert f"Queue: {REFUNDS}." in descriptions[f"{alarm}2"]


def test_failures_of_a_shared_dlq_are_a_share_of_what_all_its_consumers_received(
    resources: dict[str, Any],
) -> None:
    few, many = Given(resources), Given(resources)
    for given, received in ((few, 10), (many, 100)):
        given.dead_letters(visible=[0] * 20 + [60] * 40, hidden=[0] * 60)
        given.source(received=[1] * 60)
        given.queue(REFUNDS, received=[received] * 60)

    assert few.alarms().fired("TooManyFailures")
    assert not many.alarms().fired("TooManyFailures")


def test_the_second_sources_age_is_watched(resources: dict[str, Any]) -> None:
    given = Given(resources)
    given.queue(REFUNDS, visible=[9] * 10, delayed=[0] * 10, age=[400] * 10)

    assert given.alarms().fired("SourceQueueOld2")
    assert not given.alarms().fired("SourceQueueOld")


def test_the_dashboard_shows_both_sources(resources: dict[str, Any]) -> None:
    [body] = [
        one["Properties"]["DashboardBody"]
        for one in resources.values()
        if one["Type"] == "AWS::CloudWatch::Dashboard"
    ]

    for line in ("circuit", "window", "source queue"):
        assert all(f'"{line} {name}"' in body for name in (SOURCE, REFUNDS))
