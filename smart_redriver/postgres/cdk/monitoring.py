"""Alarms and dashboard of a worker queue: on growth and not on size, by the figures that each pass writes."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from smart_redriver.cdk.alarms import Comparison, Evaluation
from smart_redriver.cdk.backend import runbook_of
from smart_redriver.cdk.dashboard import COUNT, HEIGHT, SECONDS, WIDTH, bands, graph
from smart_redriver.cdk.monitoring_settings import MonitoringSettings
from smart_redriver.cdk.pass_alarms import PERIOD, PassAlarms
from smart_redriver.cdk.topics import Topics
from smart_redriver.engine.aws import metrics as own
from smart_redriver.engine.triage.decision import ParkReason

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


def make_dashboard(
    scope: Construct,
    *,
    name: str,
    function: lambda_.IFunction,
    alarms: Sequence[cloudwatch.IAlarm],
    runbook_url: str,
) -> cloudwatch.Dashboard:
    """Read as a person asks: is it healthy, is it draining, what is stuck, is the re-driver well."""
    period = cdk.Duration.seconds(PERIOD)

    def metric(metric_name: str, statistic: str, label: str, **more: str) -> cloudwatch.Metric:
        return cloudwatch.Metric(
            namespace=own.NAMESPACE,
            metric_name=metric_name,
            dimensions_map={own.QUEUE: name, **more},
            statistic=statistic,
            period=period,
            label=label,
        )

    circuit = metric(own.CIRCUIT_STATE.name, "Maximum", "circuit")
    waiting = [
        metric(own.DEAD_LETTERS.name, "Maximum", "dead letters"),
        metric(own.PARKED_LETTERS.name, "Maximum", "parked"),
    ]
    flow = [
        metric(own.LETTERS_EXAMINED.name, "Sum", "examined"),
        metric(own.LETTERS_REDRIVEN.name, "Sum", "redriven"),
        metric(own.LETTERS_RETURNED.name, "Sum", "returned"),
        metric(own.LETTERS_FAILED.name, "Sum", "could not be moved"),
    ]
    parked = [
        metric(own.LETTERS_PARKED.name, "Sum", one.value, **{own.REASON: one.value})
        for one in ParkReason
    ]
    age = [metric(own.OLDEST_WAITING_AGE.name, "Maximum", "waiting for no known moment")]
    passes = [
        function.metric_invocations(period=period),
        function.metric_errors(period=period),
        metric(own.PASSES_FAILED.name, "Sum", "failed passes"),
    ]
    dashboard = cloudwatch.Dashboard(scope, "Dashboard", default_interval=cdk.Duration.hours(12))
    dashboard.add_widgets(
        cloudwatch.TextWidget(
            markdown=f"# Re-driver of the worker queue `{name}`\nPaged? Every alarm has its section in the "
            f"[runbook]({runbook_url}). `redrive status` tells the same as this page, `redrive causes` why letters "
            "fail.",
            width=WIDTH,
            height=2,
        )
    )
    dashboard.add_widgets(
        cloudwatch.AlarmStatusWidget(title="Alarms", alarms=list(alarms), width=12, height=HEIGHT),
        bands([circuit]),
    )
    dashboard.add_widgets(
        graph("Waiting", waiting, COUNT),
        graph("Died within five minutes", [metric(ADDED, "Maximum", "letters")], COUNT),
        graph("Flow", flow, COUNT),
        graph("Window", [metric(own.WINDOW.name, "Maximum", "window")], COUNT),
    )
    dashboard.add_widgets(
        graph("Parked, by reason", parked, COUNT, stacked=True),
        graph("Age of what waits", age, SECONDS),
        graph("Passes", passes, cloudwatch.YAxisProps(min=0), width=12),
    )
    return dashboard
