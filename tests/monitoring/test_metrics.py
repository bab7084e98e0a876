"""No alarm and no graph asks for a metric that nobody emits, and no metric is paid for that nobody looks at."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from bench.alarm_states import metric_id
from bench.metric_record import FUNCTION, Emitted, MetricId, emitted_by
from bench.synthesized import OUTCOMES, of_cloudwatch
from emulator.alarm_evaluation import queries_of
from fakes.faults import Wire, fail_entries, on
from simulator import scenarios
from simulator.smart_policy import SmartPolicy
from simulator.world import DLQ, PARKING_LOT, SOURCE
from smart_redriver.engine.aws import metrics
from smart_redriver.engine.report import Outcome, Report
from smart_redriver.engine.triage.decision import ParkReason
from tests.monitoring.given import circuit

#: What AWS reports by itself. Sources: SQS Developer Guide, "Available CloudWatch metrics"; Lambda
#: Developer Guide, "Types of metrics".
_SQS = {
    "ApproximateAgeOfOldestMessage",
    "ApproximateNumberOfMessagesDelayed",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesVisible",
    "NumberOfMessagesReceived",
}
_LAMBDA = {"Invocations", "Errors", "Throttles"}


@pytest.fixture(scope="module")
def emitted() -> list[Emitted]:
    """What the log of simulated passes says: some poison, an outage, a call that fails."""
    reports: list[Report] = []
    for scenario in (scenarios.SOME_POISON, scenarios.LONG_OUTAGE):
        world = scenario.world(0)
        policy = SmartPolicy(world)
        scenario.play(world, policy)
        reports += policy.reports
    world = scenarios.SOME_POISON.world(0)
    policy = SmartPolicy(world)
    wire = Wire(on("DeleteMessageBatch", fail_entries([0], "InternalError")))
    policy.run_pass(wire.to(world.sqs), wire.to(world.dynamodb))
    reports += policy.reports
    parked = Counter({reason.value: 1 for reason in ParkReason})
    reports.append(Report(queue=SOURCE, mode="automatic", outcome=Outcome.FAILED, parked=parked))
    waiting: dict[str, Any] = {"oldest_waiting_seconds": 60, "suspects_waiting": 1}
    reports.append(Report(queue=SOURCE, mode="automatic", **waiting))
    return [one for report in reports for one in emitted_by(report)]


def asked_by_alarms(resources: Mapping[str, Any]) -> Iterator[tuple[MetricId, str | None]]:
    """Each metric of an alarm, and the unit that it is limited to."""
    for resource in resources.values():
        if resource["Type"] == "AWS::CloudWatch::Alarm":
            for query in queries_of(resource["Properties"]):
                if "MetricStat" in query:
                    stat = query["MetricStat"]
                    unit = stat.get("Unit") or stat["Metric"].get("Unit")
                    yield metric_id(stat["Metric"]), unit


def asked_by_dashboards(resources: Mapping[str, Any]) -> Iterator[MetricId]:
    """Each metric of a graph."""
    for resource in resources.values():
        if resource["Type"] == "AWS::CloudWatch::Dashboard":
            for widget in json.loads(resource["Properties"]["DashboardBody"])["widgets"]:
                for row in widget["properties"].get("metrics", ()):
                    words = [word for word in row if isinstance(word, str)]
                    if words:
                        namespace, name, *pairs = words
                        dimensions = dict(zip(pairs[::2], pairs[1::2], strict=True))
                        yield MetricId.of(namespace, name, **dimensions)


def test_every_metric_of_ours_that_is_asked_for_is_emitted(resources, emitted) -> None:
    known = {one.metric for one in emitted}
    asked = {one for one, _ in asked_by_alarms(resources)} | set(asked_by_dashboards(resources))

    assert {one for one in asked if one.namespace == metrics.NAMESPACE} <= known


def test_every_alarm_asks_for_the_unit_that_is_emitted(resources, emitted) -> None:
    units = {one.metric: one.unit for one in emitted}
    asked = {
        metric: unit
        for metric, unit in asked_by_alarms(resources)
        if metric.namespace == metrics.NAMESPACE
    }

    assert asked
    assert asked == {metric: units[metric] for metric in asked}


def test_every_other_metric_is_one_of_aws_about_our_queues_and_function(resources) -> None:
    asked = {one for one, _ in asked_by_alarms(resources)} | set(asked_by_dashboards(resources))

    for metric in (one for one in asked if one.namespace != metrics.NAMESPACE):
        if metric.namespace == "AWS/Lambda":
            assert metric.dimensions == {("FunctionName", FUNCTION)}
            assert metric.name in _LAMBDA
        else:
            assert metric.namespace == "AWS/SQS"
            assert metric.name in _SQS
            assert metric.dimensions in [
                {("QueueName", name)} for name in (SOURCE, DLQ, PARKING_LOT, OUTCOMES)
            ]


def test_every_metric_that_is_emitted_is_looked_at(resources, emitted) -> None:
    asked = {one for one, _ in asked_by_alarms(resources)} | set(asked_by_dashboards(resources))

    assert {one.metric.name for one in emitted} == {metric.name for metric in metrics.ALL}
    assert {one.metric for one in emitted} - asked == set()


def test_one_unit_and_one_dimension_but_for_the_reason_of_parking(emitted) -> None:
    for one in emitted:
        dimensions = {name for name, _ in one.metric.dimensions}
        assert dimensions in ({"QueueName"}, {"QueueName", "Reason"})
        assert (one.metric.name == "LettersParked") or dimensions == {"QueueName"}
    assert len({(one.metric, one.unit) for one in emitted}) == len({one.metric for one in emitted})


def test_trimmed_to_paging_the_function_emits_what_the_alarms_ask_for_and_no_more(
    synth: Callable[..., dict[str, Any]],
) -> None:
    template = synth(alarms="paging")
    resources = of_cloudwatch(template)
    [function] = [
        one["Properties"]
        for one in template["Resources"].values()
        if one["Type"] == "AWS::Lambda::Function"
    ]

    kept = metrics.kept_metrics(function["Environment"]["Variables"])

    asked = {
        one.name for one, _ in asked_by_alarms(resources) if one.namespace == metrics.NAMESPACE
    }
    assert {metric.name for metric in metrics.ALL if metric.name in kept} == asked
    assert not any(one["Type"] == "AWS::CloudWatch::Dashboard" for one in resources.values())


def test_a_metric_that_is_not_kept_is_not_in_the_log(capsys) -> None:
    report = Report(queue=SOURCE, mode="automatic", parked=Counter(MAX_ATTEMPTS=1), depth=3)

    metrics.emit(report, metrics.kept_metrics({metrics.KEPT_VARIABLE: "DeadLetters"}))

    [line] = capsys.readouterr().out.splitlines()
    assert json.loads(line)["DeadLetters"] == [3.0]
    assert "LettersParked" not in line


def test_by_default_every_metric_is_kept() -> None:
    assert all(metric.name in metrics.kept_metrics({}) for metric in metrics.ALL)


def test_a_change_of_the_circuit_within_a_pass_is_on_record_twice(capsys) -> None:
    went = circuit("OPEN", "HALF_OPEN", "CLOSED")
    report = Report(queue=SOURCE, mode="automatic", circuits=[went])

    metrics.emit(report, metrics.Everything())

    assert json.loads(capsys.readouterr().out)["CircuitState"] == [1.0, 0.5, 0.0]


def test_each_sources_circuit_and_verdicts_are_under_its_own_name_and_all_else_under_the_first() -> (
    None
):
    report = Report(
        queue=SOURCE,
        mode="automatic",
        circuits=[circuit("CLOSED"), circuit("OPEN", queue="refunds")],
        verdicts=[{"queue": "refunds", "verdict": "FAILURE"}],
        depth=3,
    )

    told = metrics.values(report)

    assert told["refunds"] == {
        metrics.CIRCUIT_STATE: [1.0],
        metrics.WINDOW: [5],
        metrics.VERDICTS_SUCCESS: [0],
        metrics.VERDICTS_FAILURE: [1],
    }
    assert told[SOURCE][metrics.CIRCUIT_STATE] == [0.0]
    assert told[SOURCE][metrics.DEAD_LETTERS] == [3]
    assert metrics.VERDICTS_FAILURE not in told[SOURCE]


def test_a_pass_that_could_not_read_the_circuits_says_nothing_of_them() -> None:
    [told] = metrics.values(Report(queue=SOURCE, mode="automatic", outcome=Outcome.FAILED)).values()

    assert told[metrics.PASSES_FAILED] == [True]
    assert not {metrics.CIRCUIT_STATE, metrics.WINDOW} & set(told)
