"""The dashboard of a worker queue in Postgres, by the figures that each pass writes: nobody else counts rows."""

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from redrive.aws import metrics as own
from redrive.core.decision import ParkReason
from smart_redriver.cdk.dashboard import COUNT, HEIGHT, SECONDS, WIDTH, bands, graph
from smart_redriver.cdk.postgres_alarms import ADDED

_PERIOD = cdk.Duration.minutes(5)


def make_postgres_dashboard(
    scope: Construct,
    *,
    name: str,
    function: lambda_.IFunction,
    alarms: Sequence[cloudwatch.IAlarm],
    runbook_url: str,
) -> cloudwatch.Dashboard:
    """Read as a person asks: is it healthy, is it draining, what is stuck, is the re-driver well."""

    def metric(metric_name: str, statistic: str, label: str, **more: str) -> cloudwatch.Metric:
        return cloudwatch.Metric(
            namespace=own.NAMESPACE,
            metric_name=metric_name,
            dimensions_map={own.QUEUE: name, **more},
            statistic=statistic,
            period=_PERIOD,
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
        function.metric_invocations(period=_PERIOD),
        function.metric_errors(period=_PERIOD),
        metric(own.PASSES_FAILED.name, "Sum", "failed passes"),
    ]
    dashboard = cloudwatch.Dashboard(scope, "Dashboard", default_interval=cdk.Duration.hours(12))
    dashboard.add_widgets(
        cloudwatch.TextWidget(
            markdown=f"# Re-driver of the worker queue `{name}`\nPaged? Every alarm has its section in the "
            f"[runbook]({runbook_url}). `redrive status` tells the same as this page, `redrive causes` why letters fail.",
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
