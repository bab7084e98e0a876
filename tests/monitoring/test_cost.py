"""What observability costs while nothing happens: the docs' figures are those of the templates."""

import csv
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bench import prices
from bench.synthesized import CDK_JSON
from emulator.alarm_evaluation import queries_of
from smart_redriver.cdk.queue_clashes import MAX_QUEUES
from smart_redriver.engine.aws import metrics
from smart_redriver.engine.config.settings import Settings
from tests.monitoring import reach

DEPLOY_DOCS = (CDK_JSON.parent / "docs" / "deploy.md").read_text()
IDLE_COST = CDK_JSON.parent / "docs" / "idle-cost.csv"
DOCS = (CDK_JSON.parent / "docs" / "monitoring.md").read_text()

#: Dollars a month, us-east-1, without the free tier. https://aws.amazon.com/cloudwatch/pricing/ and
#: https://aws.amazon.com/kms/pricing/
PRICES = {
    "metrics in alarms": 0.10,
    "composite alarms": 0.50,
    "custom metrics": 0.30,
    "dashboards": 3.00,
    "keys": 1.00,
}


def counts(template: dict[str, Any]) -> dict[str, int]:
    """How many of each the template makes somebody pay for in a month in which nothing happens."""

    def of(kind: str) -> Iterator[dict[str, Any]]:
        for resource in template["Resources"].values():
            if resource["Type"] == kind:
                yield resource["Properties"]

    [function] = of("AWS::Lambda::Function")
    kept = metrics.kept_metrics(function["Environment"]["Variables"])
    return {
        "metrics in alarms": sum(
            sum("MetricStat" in query for query in queries_of(alarm))
            for alarm in of("AWS::CloudWatch::Alarm")
        ),
        "composite alarms": len(list(of("AWS::CloudWatch::CompositeAlarm"))),
        "custom metrics": sum(metric.always and metric.name in kept for metric in metrics.ALL),
        "dashboards": len(list(of("AWS::CloudWatch::Dashboard"))),
        "keys": len(list(of("AWS::KMS::Key"))),
    }


@pytest.mark.parametrize(
    ("column", "context"),
    [
        (0, {}),
        (1, {"alarms": "paging"}),
        (2, {"alarms": "paging", "paging_topic_arn": "T", "warning_topic_arn": "T"}),
    ],
)
def test_the_table_of_costs_is_what_the_templates_make(
    synth: Callable[..., dict[str, Any]], column: int, context: dict[str, str]
) -> None:
    topic = "arn:aws:sns:us-east-1:111122223333:on-call"
    found = counts(synth(**{name: topic if v == "T" else v for name, v in context.items()}))
    documented = _table()

    assert {name: documented[name][column] for name in PRICES} == found
    total = sum(PRICES[name] * number for name, number in found.items())
    assert documented["together, dollars a month"][column] == pytest.approx(total, abs=0.005)


def test_a_queue_of_a_large_fleet_costs_what_the_docs_say() -> None:
    """Composites and key are the stack's, which has as many queues as fit into one."""
    queues = MAX_QUEUES
    listed = [
        {
            "name": f"q{n}",
            "source_arn": f"arn:aws:sqs:{reach.REGION}:{reach.ACCOUNT}:q{n}",
            "dead_letter_arn": f"arn:aws:sqs:{reach.REGION}:{reach.ACCOUNT}:q{n}-dead",
        }
        for n in range(queues)
    ]
    resources = reach.synthesize(queues=listed)
    alarms = reach.alarms(resources).values()
    composites = sum("AlarmRule" in one for one in alarms)
    metrics_in_alarms = sum(
        sum("MetricStat" in query for query in queries_of(one))
        for one in alarms
        if "AlarmRule" not in one
    )
    [kept] = {
        one["Properties"]["Environment"]["Variables"][metrics.KEPT_VARIABLE]
        for one in resources.values()
        if one["Type"] == "AWS::Lambda::Function"
    }
    always = sum(one.always and one.name in kept.split(",") for one in metrics.ALL)

    each = PRICES["custom metrics"] * always
    each += PRICES["metrics in alarms"] * metrics_in_alarms / queues
    each += PRICES["composite alarms"] * composites / queues

    each += PRICES["keys"] / queues

    assert each < 2.50
    assert f"a queue costs ${each:.2f} a month" in DOCS


def _table() -> dict[str, list[float]]:
    rows = re.findall(r"^\| ([a-z, ]+?) \| ?[\d.]* ?\|((?: [\d.]+ \|){3})$", DOCS, re.MULTILINE)
    return {name: [float(n) for n in re.findall(r"[\d.]+", numbers)] for name, numbers in rows}


def test_the_prices_are_those_that_the_docs_name() -> None:
    for name, price in PRICES.items():
        assert f"| {name} | {price:.2f} |" in DOCS


#: Of a month of 730 hours; the function is invoked every minute.
INVOCATIONS = 730 * 60
PASSES = INVOCATIONS // Settings().schedule_minutes
OTHERS = INVOCATIONS - PASSES
#: A pass over an empty DLQ makes one call of DynamoDB and three of SQS, where consumers can report.
SQS_CALLS_A_PASS = 3
KB = 1e-6  # of a GB
PASS_SECONDS, OTHER_SECONDS = 1.0, 0.01
PASS_LOG_KB, OTHER_LOG_KB = 2.5, 0.7
SCHEDULER_INVOCATION = 1.00 / prices.MILLION


def test_what_idling_costs_is_the_sum_of_an_invocation_a_minute_and_a_pass_a_schedule_period() -> (
    None
):
    def seconds(each: float) -> float:
        return each * prices.MEMORY_GB * prices.LAMBDA_GB_SECOND

    dollars = {
        "SQS requests": PASSES * SQS_CALLS_A_PASS * prices.SQS_REQUEST,
        "DynamoDB reads": PASSES * prices.READ_UNIT,
        "Lambda requests": INVOCATIONS * prices.LAMBDA_REQUEST,
        "Lambda time of passes": PASSES * seconds(PASS_SECONDS),
        "Lambda time of the others": OTHERS * seconds(OTHER_SECONDS),
        "EventBridge Scheduler": INVOCATIONS * SCHEDULER_INVOCATION,
        "logs of passes": PASSES * PASS_LOG_KB * KB * prices.LOG_GB,
        "logs of the others": OTHERS * OTHER_LOG_KB * KB * prices.LOG_GB,
    }
    with IDLE_COST.open(newline="") as file:
        documented = list(csv.DictReader(file))

    assert {one["what"]: float(one["dollars"]) for one in documented} == {
        **{name: pytest.approx(sum_, abs=0.0005) for name, sum_ in dollars.items()},
        "together": pytest.approx(sum(dollars.values()), abs=0.0015),
    }
    said = " ".join(one["a month"] for one in documented)
    for number in (INVOCATIONS, PASSES, OTHERS, PASSES * SQS_CALLS_A_PASS):
        assert f"{number:,}" in said
    assert f"costs ${documented[-1]['dollars']}:" in DEPLOY_DOCS
