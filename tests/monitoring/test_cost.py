"""What observability costs while nothing happens: the docs' figures are those of the templates."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bench.synthesized import CDK_JSON
from emulator.alarm_evaluation import queries_of
from redrive.aws import metrics

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


def _table() -> dict[str, list[float]]:
    rows = re.findall(r"^\| ([a-z, ]+?) \| ?[\d.]* ?\|((?: [\d.]+ \|){3})$", DOCS, re.MULTILINE)
    return {name: [float(n) for n in re.findall(r"[\d.]+", numbers)] for name, numbers in rows}


def test_the_prices_are_those_that_the_docs_name() -> None:
    for name, price in PRICES.items():
        assert f"| {name} | {price:.2f} |" in DOCS
