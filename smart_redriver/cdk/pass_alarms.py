"""Alarms and a dashboard for a queue outside SQS, from figures that each pass writes: nothing else measures it."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from smart_redriver.cdk.alarms import Advice, AlarmMaker, Comparison, Evaluation, Missing
from smart_redriver.cdk.dashboard import COUNT, HEIGHT, SECONDS, WIDTH, bands, graph
from smart_redriver.cdk.queue_metrics import math
from smart_redriver.cdk.topics import Topics
from smart_redriver.engine.aws import metrics as own
from smart_redriver.engine.triage.decision import ParkReason

PERIOD = 300
#: A lock is temporary. If a letter was not moved, the next pass is a minute later, and reports nothing if all is well.
_STAYED = Evaluation(seconds=PERIOD, periods=12, breaching=12)


class PassAlarms:
    """Makes five alarms in ``scope``. ``made`` has them in order.

    Metrics have the queue's ``name``, and people know the alarms by ``known_as``. ``runbook_url`` and ``section`` say
    where a person can read what to do, and ``why_open`` says what keeps letters waiting.
    """

    def __init__(
        self,
        scope: Construct,
        *,
        name: str,
        known_as: str,
        function: lambda_.IFunction,
        topics: Topics,
        runbook_url: str,
        section: str,
        why_open: str,
    ) -> None:
        self._name = name
        self._topics = topics
        self._section = section
        self._why_open = why_open
        self._make = AlarmMaker(scope, queue_name=name, known_as=known_as, runbook_url=runbook_url)
        self.made = self._make.made
        self._make_first()
        self._circuit_open()
        self._passes_fail()
        self._letters_stay()
        self._function_fails(function)
        self._letters_parked()

    def _make_first(self) -> None:
        """Make alarms that only one kind of queue has: none here."""

    def _circuit_open(self) -> None:
        """Make the alarm on a circuit that is never CLOSED while letters wait: OPEN and HALF_OPEN take turns.

        Over an empty DLQ, it stays as it is, and nobody needs to know.
        """
        self._make.alarm(
            "CircuitOpen",
            math(
                "IF(letters > 0, circuit, 0)",
                cdk.Duration.seconds(PERIOD),
                label="Circuit while letters wait: 0 CLOSED, 1 OPEN",
                circuit=self._metric(own.CIRCUIT_STATE.name, "Minimum"),
                letters=self._metric(own.DEAD_LETTERS.name, "Maximum"),
            ),
            Comparison.GREATER_THAN_THRESHOLD,
            own.STATE_VALUES["CLOSED"],
            Evaluation(seconds=PERIOD, periods=6, breaching=6),
            self._advice(
                f"Letters have waited for half an hour: {self._why_open}.",
                "`redrive status` and `redrive causes`: what fails, and since when.",
            ),
            topic=self._topics.expect_warnings(),
        )

    def _passes_fail(self) -> None:
        self._make.alarm(
            "PassesFail",
            self._metric(own.PASSES_FAILED.name, "Minimum"),
            Comparison.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            1,
            Evaluation(seconds=PERIOD, periods=3, breaching=3),
            self._advice(
                "No pass has succeeded for 15 minutes: nothing goes back.",
                "`redrive doctor`; `redrive logs` names the call that failed.",
            ),
            missing=Missing.IGNORE,  # an idle queue is looked at more rarely
            topic=self._topics.paging,
        )

    def _letters_stay(self) -> None:
        self._make.alarm(
            "LettersStay",
            self._metric(own.LETTERS_FAILED.name, "Maximum"),
            Comparison.GREATER_THAN_THRESHOLD,
            0,
            _STAYED,
            self._advice(
                "For an hour, passes have met letters that they could not move and left in place.",
                "`redrive logs`: `faults` says which call and why; `redrive doctor` what keeps letters.",
            ),
            topic=self._topics.expect_warnings(),
        )

    def _function_fails(self, function: lambda_.IFunction) -> None:
        self._make.alarm(
            "FunctionFails",
            function.metric_errors(period=cdk.Duration.seconds(PERIOD)),
            Comparison.GREATER_THAN_THRESHOLD,
            0,
            Evaluation(seconds=PERIOD, periods=3, breaching=3),
            self._advice("The function ends with an error, or can't start.", "`redrive logs`."),
            topic=self._topics.paging,
        )

    def _letters_parked(self) -> None:
        self._make.alarm(
            "LettersParked",
            self._metric(own.LETTERS_PARKED.name, "Sum"),
            Comparison.GREATER_THAN_THRESHOLD,
            0,
            Evaluation(seconds=PERIOD),
            self._advice(
                "Letters were parked and wait for a person.",
                "`redrive parked`, then `redrive show ID`.",
            ),
            topic=self._topics.expect_warnings(),
        )

    def _metric(self, metric_name: str, statistic: str) -> cloudwatch.Metric:
        return cloudwatch.Metric(
            namespace=own.NAMESPACE,
            metric_name=metric_name,
            dimensions_map={own.QUEUE: self._name},
            statistic=statistic,
            period=cdk.Duration.seconds(PERIOD),
        )

    def _advice(self, meaning: str, first: str) -> Advice:
        return Advice(meaning=meaning, first=first, section=self._section)


def pass_metric(
    name: str, metric_name: str, statistic: str, label: str, **more: str
) -> cloudwatch.Metric:
    """A metric that passes write about the queue ``name``."""
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
    """Make a dashboard. It shows in order whether all is healthy, whether it drains, what is stuck, and the re-driver.

    ``circuits`` has the source queues' names in metrics, by their names for people; the first one is also the name for
    the DLQ's metrics. ``further`` are graphs beside the waiting letters.
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
    """One line for each source queue, with its name if there are several."""
    return [
        pass_metric(name, metric.name, "Maximum", called if len(circuits) > 1 else what)
        for called, name in circuits.items()
    ]
