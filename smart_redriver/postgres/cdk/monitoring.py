"""Alarms and dashboard of a worker queue: on growth and not on size, by the figures that each pass writes."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from smart_redriver.cdk.alarms import Advice, AlarmMaker, Comparison, Evaluation, Missing
from smart_redriver.cdk.dashboard import COUNT, HEIGHT, SECONDS, WIDTH, bands, graph
from smart_redriver.cdk.monitoring_settings import MonitoringSettings
from smart_redriver.cdk.queue_metrics import math
from smart_redriver.cdk.topics import Topics
from smart_redriver.engine.aws import metrics as own
from smart_redriver.engine.triage.decision import ParkReason

#: New letters within five minutes, as each pass counts them. Also named in `smart_redriver.postgres.engine.connection`,
#: which needs psycopg.
ADDED = "DeadLettersAdded"
TOO_MANY = 200

_SECTION = "when-an-alarm-rings"
#: Beside the runbook for queues, wherever that is.
_RUNBOOK, _OURS = "runbook.md", "postgres.md"
_PERIOD = 300
#: A lock passes; after a letter that was not moved the next pass is a minute later, and says nothing where all went
#: well.
_STAYED = Evaluation(seconds=_PERIOD, periods=12, breaching=12)


def runbook_of(monitoring: MonitoringSettings) -> str:
    """Where a person reads what to do."""
    return monitoring.runbook_url.replace(_RUNBOOK, _OURS)


class JobsAlarms:
    """Six of them, in ``scope``; ``made`` has them in this order."""

    def __init__(
        self,
        scope: Construct,
        *,
        name: str,
        function: lambda_.IFunction,
        monitoring: MonitoringSettings,
        topics: Topics,
    ) -> None:
        self._name = name
        self._topics = topics
        self._make = AlarmMaker(
            scope, queue_name=name, known_as=name, runbook_url=runbook_of(monitoring)
        )
        self.made = self._make.made
        self._grow()
        self._circuit_open()
        self._passes_fail()
        self._letters_stay()
        self._function_fails(function)
        self._letters_parked()

    def _grow(self) -> None:
        self._make.alarm(
            "DeadLettersGrow",
            self._metric(ADDED, "Maximum"),
            Comparison.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            TOO_MANY,
            Evaluation(seconds=_PERIOD),
            _advice(f"{TOO_MANY} jobs or more have died within five minutes.", "`redrive causes`."),
            topic=self._topics.paging,
        )

    def _circuit_open(self) -> None:
        """Never CLOSED while letters wait: OPEN and HALF_OPEN take turns. Over an empty table it stays as it is,
        and that is nobody's concern.
        """
        self._make.alarm(
            "CircuitOpen",
            math(
                "IF(letters > 0, circuit, 0)",
                cdk.Duration.seconds(_PERIOD),
                label="Circuit while letters wait: 0 CLOSED, 1 OPEN",
                circuit=self._metric(own.CIRCUIT_STATE.name, "Minimum"),
                letters=self._metric(own.DEAD_LETTERS.name, "Maximum"),
            ),
            Comparison.GREATER_THAN_THRESHOLD,
            own.STATE_VALUES["CLOSED"],
            Evaluation(seconds=_PERIOD, periods=6, breaching=6),
            _advice(
                "Letters have waited for half an hour: workers failed the redriven jobs, or the table refused them.",
                "`redrive status` and `redrive causes`: what fails, and since when.",
            ),
            topic=self._topics.warning,
        )

    def _passes_fail(self) -> None:
        self._make.alarm(
            "PassesFail",
            self._metric(own.PASSES_FAILED.name, "Minimum"),
            Comparison.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            1,
            Evaluation(seconds=_PERIOD, periods=3, breaching=3),
            _advice(
                "No pass has succeeded for 15 minutes: nothing goes back.",
                "`redrive doctor`; `redrive logs` names the call that failed.",
            ),
            missing=Missing.IGNORE,  # an idle table is looked at more rarely
            topic=self._topics.paging,
        )

    def _letters_stay(self) -> None:
        self._make.alarm(
            "LettersStay",
            self._metric(own.LETTERS_FAILED.name, "Maximum"),
            Comparison.GREATER_THAN_THRESHOLD,
            0,
            _STAYED,
            _advice(
                "For an hour, passes have met letters that they could not move and left in place.",
                "`redrive logs`: `faults` says which call and why; `redrive doctor` what keeps rows.",
            ),
            topic=self._topics.warning,
        )

    def _function_fails(self, function: lambda_.IFunction) -> None:
        self._make.alarm(
            "FunctionFails",
            function.metric_errors(period=cdk.Duration.seconds(_PERIOD)),
            Comparison.GREATER_THAN_THRESHOLD,
            0,
            Evaluation(seconds=_PERIOD, periods=3, breaching=3),
            _advice("The function ends with an error, or can't start.", "`redrive logs`."),
            topic=self._topics.paging,
        )

    def _letters_parked(self) -> None:
        self._make.alarm(
            "LettersParked",
            self._metric(own.LETTERS_PARKED.name, "Sum"),
            Comparison.GREATER_THAN_THRESHOLD,
            0,
            Evaluation(seconds=_PERIOD),
            _advice(
                "Letters were parked and wait for a person.",
                "`redrive parked`, then `redrive show ID`.",
            ),
            topic=self._topics.warning,
        )

    def _metric(self, metric_name: str, statistic: str) -> cloudwatch.Metric:
        return cloudwatch.Metric(
            namespace=own.NAMESPACE,
            metric_name=metric_name,
            dimensions_map={own.QUEUE: self._name},
            statistic=statistic,
            period=cdk.Duration.seconds(_PERIOD),
        )


def _advice(meaning: str, first: str) -> Advice:
    return Advice(meaning=meaning, first=first, section=_SECTION)


def make_dashboard(
    scope: Construct,
    *,
    name: str,
    function: lambda_.IFunction,
    alarms: Sequence[cloudwatch.IAlarm],
    runbook_url: str,
) -> cloudwatch.Dashboard:
    """Read as a person asks: is it healthy, is it draining, what is stuck, is the re-driver well."""
    period = cdk.Duration.seconds(_PERIOD)

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
