"""Alarms of a worker queue, on growth and not on size, and a graph of it, by the figures that each pass writes."""

from __future__ import annotations

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from smart_redriver.cdk.alarms import Comparison, Evaluation
from smart_redriver.cdk.backend import runbook_of
from smart_redriver.cdk.dashboard import COUNT, graph
from smart_redriver.cdk.monitoring_settings import MonitoringSettings
from smart_redriver.cdk.pass_alarms import PERIOD, PassAlarms
from smart_redriver.cdk.pass_dashboard import pass_metric
from smart_redriver.cdk.topics import Topics

#: New letters within five minutes, as each pass counts them. Also named in `smart_redriver.postgres.engine.connection`,
#: which needs psycopg.
ADDED = "DeadLettersAdded"
TOO_MANY = 200

_SECTION = "when-an-alarm-rings"
RUNBOOK = "postgres.md"


class JobsAlarms(PassAlarms):
    """Those of every queue outside of SQS, and before them one on growth."""

    def __init__(
        self,
        scope: Construct,
        *,
        name: str,
        function: lambda_.IFunction,
        monitoring: MonitoringSettings,
        topics: Topics,
    ) -> None:
        super().__init__(
            scope,
            name=name,
            known_as=name,
            function=function,
            topics=topics,
            runbook_url=runbook_of(monitoring, RUNBOOK),
            section=_SECTION,
            why_open="workers failed the redriven jobs, or the table refused them",
        )

    def _make_first(self) -> None:
        self._make.alarm(
            "DeadLettersGrow",
            self._metric(ADDED, "Maximum"),
            Comparison.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            TOO_MANY,
            Evaluation(seconds=PERIOD),
            self._advice(
                f"{TOO_MANY} jobs or more have died within five minutes.", "`redrive causes`."
            ),
            topic=self._topics.paging,
        )


def died_lately(name: str) -> cloudwatch.GraphWidget:
    """The graph of what is counted where letters are jobs alone."""
    return graph(
        "Died within five minutes", [pass_metric(name, ADDED, "Maximum", "letters")], COUNT
    )
