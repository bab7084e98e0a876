"""The dashboard of a queue outside of SQS, by the figures that each pass writes: nobody else measures it."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from smart_redriver.cdk.dashboard import COUNT, HEIGHT, SECONDS, WIDTH, bands, graph
from smart_redriver.cdk.pass_alarms import PERIOD
from smart_redriver.engine.aws import metrics as own
from smart_redriver.engine.triage.decision import ParkReason


def pass_metric(
    name: str, metric_name: str, statistic: str, label: str, **more: str
) -> cloudwatch.Metric:
    """A metric that passes write of the queue ``name``."""
    return cloudwatch.Metric(
        namespace=own.NAMESPACE,
        metric_name=metric_name,
        dimensions_map={own.QUEUE: name, **more},
        statistic=statistic,
        period=cdk.Duration.seconds(PERIOD),
        label=label,
    )


def make_pass_dashboard(
    scope: Construct,
    *,
    title: str,
    circuits: dict[str, str],
    function: lambda_.IFunction,
    alarms: Sequence[cloudwatch.IAlarm],
    runbook_url: str,
    further: Sequence[cloudwatch.GraphWidget] = (),
) -> cloudwatch.Dashboard:
    """Read as a person asks: is it healthy, is it draining, what is stuck, is the re-driver well.

    ``circuits`` has the source queues' names, as metrics have them, by what people call them; the first one's name is
    that of the DLQ's metrics. ``further`` are graphs beside what waits.
    """
    name = next(iter(circuits.values()))
    period = cdk.Duration.seconds(PERIOD)
    waiting = [
        pass_metric(name, own.DEAD_LETTERS.name, "Maximum", "dead letters"),
        pass_metric(name, own.PARKED_LETTERS.name, "Maximum", "parked"),
    ]
    flow = [
        pass_metric(name, own.LETTERS_EXAMINED.name, "Sum", "examined"),
        pass_metric(name, own.LETTERS_REDRIVEN.name, "Sum", "redriven"),
        pass_metric(name, own.LETTERS_RETURNED.name, "Sum", "returned"),
        pass_metric(name, own.LETTERS_FAILED.name, "Sum", "could not be moved"),
    ]
    parked = [
        pass_metric(name, own.LETTERS_PARKED.name, "Sum", one.value, **{own.REASON: one.value})
        for one in ParkReason
    ]
    age = [pass_metric(name, own.OLDEST_WAITING_AGE.name, "Maximum", "waiting for no known moment")]
    passes = [
        function.metric_invocations(period=period),
        function.metric_errors(period=period),
        pass_metric(name, own.PASSES_FAILED.name, "Sum", "failed passes"),
    ]
    dashboard = cloudwatch.Dashboard(scope, "Dashboard", default_interval=cdk.Duration.hours(12))
    dashboard.add_widgets(
        cloudwatch.TextWidget(
            markdown=f"# Re-driver of {title}\nPaged? Every alarm has its section in the "
            f"[runbook]({runbook_url}). `redrive status` tells the same as this page, `redrive causes` why letters "
            "fail.",
            width=WIDTH,
            height=2,
        )
    )
    dashboard.add_widgets(
        cloudwatch.AlarmStatusWidget(title="Alarms", alarms=list(alarms), width=12, height=HEIGHT),
        bands(_of_each(circuits, own.CIRCUIT_STATE, "circuit")),
    )
    dashboard.add_widgets(
        graph("Waiting", waiting, COUNT),
        *further,
        graph("Flow", flow, COUNT),
        graph("Window", _of_each(circuits, own.WINDOW, "window"), COUNT),
    )
    dashboard.add_widgets(
        graph("Parked, by reason", parked, COUNT, stacked=True),
        graph("Age of what waits", age, SECONDS),
        graph("Passes", passes, cloudwatch.YAxisProps(min=0), width=12),
    )
    return dashboard


def _of_each(circuits: dict[str, str], metric: own.Metric, what: str) -> list[cloudwatch.Metric]:
    """One line a source queue, with its name where there are several."""
    return [
        pass_metric(name, metric.name, "Maximum", called if len(circuits) > 1 else what)
        for called, name in circuits.items()
    ]
