"""One dashboard per protected queue. From top to bottom, it answers questions in the order in which people ask.

Is it healthy? Is it draining? What is stuck? Is the re-driver itself well? A widget can also answer in words: a
read-only function shows the same as `redrive status` and `redrive causes`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sqs as sqs
from constructs import Construct

import smart_redriver
from smart_redriver.cdk.acknowledged import accept_widget
from smart_redriver.cdk.key_use import DECRYPT, KeyUse
from smart_redriver.cdk.python_function import python_function
from smart_redriver.cdk.queue_metrics import VISIBLE, QueueMetrics, math
from smart_redriver.cdk.safeguards import Safeguards
from smart_redriver.engine.aws import metrics as own
from smart_redriver.engine.config.deployment import Deployment
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.triage.decision import ParkReason

WIDTH, HEIGHT = 24, 6
COUNT = cloudwatch.YAxisProps(min=0, label="letters", show_units=False)
SECONDS = cloudwatch.YAxisProps(min=0, label="seconds", show_units=False)
_PERCENT = cloudwatch.YAxisProps(min=0, max=100, label="percent", show_units=False)

#: The circuit's states as bands of the graph, from the bottom up.
_BANDS = (
    (0.0, 0.25, "CLOSED", cloudwatch.Color.GREEN),
    (0.25, 0.75, "HALF_OPEN", cloudwatch.Color.ORANGE),
    (0.75, 1.0, "OPEN", cloudwatch.Color.RED),
)


class QueueDashboard(Construct):
    """Alarm states, circuit, depths, flow, stuck letters and the function of one queue.

    ``custom`` is a widget that describes the state in words.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        metrics: Sequence[QueueMetrics],
        alarms: Sequence[cloudwatch.IAlarm],
        period: cdk.Duration,
        runbook_url: str,
        custom: cloudwatch.IWidget | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        self._metrics = metrics[0]
        self._sources = metrics
        self._period = period
        self._dashboard = cloudwatch.Dashboard(
            self, "Dashboard", default_interval=cdk.Duration.hours(12)
        )
        self._text(
            f"# Re-driver of {', '.join(f'`{one.queue_name}`' for one in metrics)}\n"
            f"Paged? Every alarm has its section in the [runbook]({runbook_url}). "
            "`redrive status` tells the same as this page, `redrive letters` tells letter by letter."
        )
        self._text("## Is it healthy?", height=1)
        if custom:
            self._row(custom)
        self._row(
            cloudwatch.AlarmStatusWidget(
                title="Alarms", alarms=list(alarms), width=12, height=HEIGHT
            ),
            self._circuit(),
        )
        self._text("## Is it draining?", height=1)
        window = graph("Window", self._of_each(own.WINDOW, "window"), COUNT)
        self._row(self._depths(), self._flow(), self._success(), window)
        if failing := list(self._of_functions()):
            self._row(graph("Functions", failing, cloudwatch.YAxisProps(min=0), width=WIDTH))
        self._text("## What is stuck?", height=1)
        least = self._own(own.LEAST_LIFE_LEFT, "Minimum", "of what the DLQ keeps")
        self._row(self._age(), graph("Life left", [least], _PERCENT), self._parked(), self._held())
        self._text("## Is the re-driver well?", height=1)
        duration = self._own(own.PASS_DURATION, "Maximum", "longest pass")
        self._row(graph("Pass duration", [duration], SECONDS, width=12), self._failures())

    def _text(self, markdown: str, height: int = 2) -> None:
        self._row(cloudwatch.TextWidget(markdown=markdown, width=WIDTH, height=height))

    def _row(self, *widgets: cloudwatch.IWidget) -> None:
        self._dashboard.add_widgets(*widgets)

    def _own(
        self, metric: own.Metric, statistic: str, label: str, **dimensions: str
    ) -> cloudwatch.Metric:
        return self._metrics.own(metric, statistic, self._period, label=label, **dimensions)

    def _of_each(self, metric: own.Metric, label: str) -> list[cloudwatch.Metric]:
        """A line for each source queue."""
        return [
            one.own(metric, "Maximum", self._period, label=self._named(label, one))
            for one in self._sources
        ]

    def _named(self, label: str, source: QueueMetrics) -> str:
        return label if len(self._sources) == 1 else f"{label} {source.queue_name}"

    def _circuit(self) -> cloudwatch.GraphWidget:
        return bands(self._of_each(own.CIRCUIT_STATE, "circuit"))

    def _depths(self) -> cloudwatch.GraphWidget:
        """Graph both counts: ours includes hidden letters, SQS's goes on when the re-driver does not."""
        return graph(
            "Waiting",
            [
                self._own(own.DEAD_LETTERS, "Maximum", "dead letters"),
                self._metrics.dead_letters(VISIBLE, "Maximum", self._period, "of them visible"),
                *(
                    one.source(VISIBLE, "Maximum", self._period, self._named("source queue", one))
                    for one in self._sources
                    if one.watched.is_queue
                ),
                self._own(own.PARKED_LETTERS, "Maximum", "parking lot"),
            ],
            COUNT,
        )

    def _flow(self) -> cloudwatch.GraphWidget:
        flow = (
            (own.LETTERS_EXAMINED, "examined"),
            (own.LETTERS_REDRIVEN, "redriven"),
            (own.LETTERS_RETURNED, "returned"),
        )
        return graph("Flow", [self._own(m, "Sum", label) for m, label in flow], COUNT)

    def _of_functions(self) -> Iterator[cloudwatch.Metric]:
        """Lambda's metrics of each function whose invocations failed, once."""
        for one in {one.watched.function: one for one in self._sources}.values():
            for name in ("Invocations", "Errors", "Throttles"):
                label = f"{name} {one.watched.function}"
                if metric := one.function(name, "Sum", self._period, label):
                    yield metric

    def _success(self) -> cloudwatch.GraphWidget:
        hour = cdk.Duration.hours(1)
        rate = math(
            "100 * good / (good + bad)",
            hour,
            label="successes of an hour's verdicts",
            good=self._metrics.own(own.VERDICTS_SUCCESS, "Sum", hour),
            bad=self._metrics.own(own.VERDICTS_FAILURE, "Sum", hour),
        )
        none = self._metrics.own(own.VERDICTS_NO_EVIDENCE, "Sum", hour, label="no evidence")
        return cloudwatch.GraphWidget(
            title="Success rate",
            left=[rate],
            left_y_axis=_PERCENT,
            right=[none],
            width=6,
            height=HEIGHT,
        )

    def _age(self) -> cloudwatch.GraphWidget:
        seen = self._own(own.OLDEST_LETTER_AGE, "Maximum", "since its first send")
        waiting = self._own(own.OLDEST_WAITING_AGE, "Maximum", "waiting for no known moment")
        return graph("Age of the oldest letter", [seen, waiting], SECONDS)

    def _parked(self) -> cloudwatch.GraphWidget:
        by_reason = [
            self._own(own.LETTERS_PARKED, "Sum", reason.value, **{own.REASON: reason.value})
            for reason in ParkReason
        ]
        return graph("Parked, by reason", by_reason, COUNT, stacked=True)

    def _held(self) -> cloudwatch.GraphWidget:
        held = self._own(own.LETTERS_HELD, "Sum", "held")
        suspects = self._own(own.SUSPECTS_WAITING, "Maximum", "waiting for their last chance")
        failed = self._own(own.LETTERS_FAILED, "Sum", "failed")
        return graph("Held and failed", [held, suspects, failed], COUNT)

    def _failures(self) -> cloudwatch.GraphWidget:
        function = [
            self._metrics.redriver(name, "Sum", self._period)
            for name in ("Invocations", "Errors", "Throttles")
        ]
        failed = self._own(own.PASSES_FAILED, "Sum", "Failed passes")
        return graph("Passes", [*function, failed], cloudwatch.YAxisProps(min=0), width=12)


def bands(circuits: Sequence[cloudwatch.IMetric]) -> cloudwatch.GraphWidget:
    """The states of circuits over labelled bands."""
    annotations = [
        cloudwatch.HorizontalAnnotation(
            value=low,
            label=state,
            color=color,
            fill=cloudwatch.Shading.ABOVE if low else cloudwatch.Shading.NONE,
        )
        for low, _, state, color in _BANDS
    ]
    return cloudwatch.GraphWidget(
        title="Circuit: 0 CLOSED, 0.5 HALF_OPEN, 1 OPEN",
        left=list(circuits),
        left_y_axis=cloudwatch.YAxisProps(min=0, max=1, show_units=False),
        left_annotations=annotations,
        stacked=len(circuits) == 1,
        width=12,
        height=HEIGHT,
    )


def graph(
    title: str,
    left: Sequence[cloudwatch.IMetric],
    axis: cloudwatch.YAxisProps,
    *,
    stacked: bool = False,
    width: int = 6,
) -> cloudwatch.GraphWidget:
    """A graph of lines over time."""
    return cloudwatch.GraphWidget(
        title=title,
        left=list(left),
        left_y_axis=axis,
        stacked=stacked,
        width=width,
        height=HEIGHT,
    )


_OURS = Path(smart_redriver.__file__).resolve().parent
#: The package's place in the bundle, which is the same as for imports here.
PLACE = "smart_redriver/widget"
WIDGET = _OURS / "widget"
#: Modules shared with the re-driver and the command: they read a queue's state and put it into words.
SHARED = {
    **{
        f"smart_redriver/{place}": _OURS / place
        for place in (
            "__init__.py",
            "engine",
            "oncall/__init__.py",
            "oncall/letters",
            "oncall/audit",
            "oncall/deployment",
            "oncall/status",
            "oncall/terminal",
        )
    },
}

#: One look makes a few calls, and a scan of at most 25 pages.
_LONGEST_LOOK = cdk.Duration.seconds(30)
#: The share of a processor grows with memory, and a person waits.
_MEMORY_MIB = 512
_HEIGHT = 9

_MEASURE = ("sqs:GetQueueAttributes",)
_READ_TABLE = ("dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Scan")


class DashboardWidget(Construct):
    """``function`` looks at one queue's re-driver and changes nothing. ``widget`` shows its answer on a dashboard."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        deployment: Deployment,
        settings: Settings,
        queues: tuple[sqs.IQueue, ...],
        table: dynamodb.ITableV2,
        safeguards: Safeguards,
        removal_policy: cdk.RemovalPolicy,
        key: kms.IKey | None,
    ) -> None:
        super().__init__(scope, construct_id)
        stack_name = {"STACK_NAME": cdk.Stack.of(table).stack_name}
        self.function = python_function(
            self,
            package=WIDGET,
            place=PLACE,
            handler="smart_redriver.widget.handler",
            beside=SHARED,
            description="Shows the status of a dead-letter queue on its dashboard; reads only",
            memory_mib=_MEMORY_MIB,
            timeout=_LONGEST_LOOK,
            environment=deployment.to_env() | settings.to_env() | stack_name,
            removal_policy=removal_policy,
            # Everybody who looks at the dashboard invokes it, so concurrency reserved for passes would not be enough.
            safeguards=replace(safeguards, reserved_concurrency=0),
        )
        accept_widget(self, self.function, safeguards)
        for queue in queues:
            queue.grant(self.function, *_MEASURE)
        table.grant(self.function, *_READ_TABLE)
        if table.encryption_key:
            self._use(table.encryption_key, "dynamodb")
        if key:
            self._use(key, "lambda")
        self.widget = cloudwatch.CustomWidget(
            function_arn=self.function.function_arn,
            title="How it stands",
            width=24,
            height=_HEIGHT,
            update_on_refresh=True,
            update_on_resize=False,
            update_on_time_range_change=False,
        )

    def _use(self, key: kms.IKey, service: str) -> None:
        use = KeyUse(key=key, service=service, actions=DECRYPT)
        self.function.add_to_role_policy(use.statement(self))
