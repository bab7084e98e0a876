"""The metrics of one protected queue, for alarms and dashboard, and of the queue that letters go back to.

Our own metrics come from the module that emits them, so that name, unit and dimension agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from aws_lambda_powertools.metrics import MetricUnit

from smart_redriver.cdk.arguments import known
from smart_redriver.cdk.origin_config import OriginConfig
from smart_redriver.engine.aws import metrics
from smart_redriver.engine.config.targets import Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A source queue or target. Our own metrics use its `name`.

    Attributes:
        is_queue: SQS measures a queue with this name, and its failed messages fill the DLQ.
        function: Lambda measures the function with this name, and its failed invocations fill the DLQ.
        time_to_fail: seconds of all tries of a message, if the app makes the queue.

    """

    name: str
    is_queue: bool = False
    function: str | None = None
    time_to_fail: int | None = None


def watched_sources(queues: Iterable[sqs.IQueue]) -> list[Watched]:
    """What to watch for source queues."""
    return [
        Watched(
            name=queue.queue_name,
            is_queue=True,
            time_to_fail=facts.time_to_fail if (facts := known(queue)) else None,
        )
        for queue in queues
    ]


def watched_targets(origin_config: OriginConfig) -> list[Watched]:
    """What to watch for targets. No target's metric shows what SNS, EventBridge and Scheduler failed to deliver."""
    is_of_lambda = origin_config.origin is Origin.LAMBDA
    return [
        Watched(name=one.name, function=one.place.split(":")[6] if is_of_lambda else None)
        for one in origin_config.targets
    ]


VISIBLE = "ApproximateNumberOfMessagesVisible"
IN_FLIGHT = "ApproximateNumberOfMessagesNotVisible"
DELAYED = "ApproximateNumberOfMessagesDelayed"
AGE = "ApproximateAgeOfOldestMessage"

_UNITS = {
    MetricUnit.Count: cloudwatch.Unit.COUNT,
    MetricUnit.Seconds: cloudwatch.Unit.SECONDS,
    MetricUnit.Percent: cloudwatch.Unit.PERCENT,
    MetricUnit.NoUnit: cloudwatch.Unit.NONE,
}


class QueueMetrics:
    """Makes metrics of a source queue or target, its DLQ, its parking lot, its outcome queue and its re-driver.

    Metrics of a DLQ, its letters and its passes have the name of its first source. Circuit, window and verdicts have
    the name of each.
    """

    def __init__(
        self,
        *,
        watched: Watched,
        dead_letter_queue: sqs.IQueue,
        parking_lot: sqs.IQueue,
        outcome_queue: sqs.IQueue,
        function: lambda_.IFunction,
    ) -> None:
        self.watched = watched
        self._dead_letter_queue = dead_letter_queue
        self._parking_lot = parking_lot
        self._outcome_queue = outcome_queue
        self._function = function

    @property
    def queue_name(self) -> str:
        """The name of the source queue or target."""
        return self.watched.name

    def of(self, watched: Watched) -> QueueMetrics:
        """Return the metrics of another source queue that shares the DLQ."""
        return QueueMetrics(
            watched=watched,
            dead_letter_queue=self._dead_letter_queue,
            parking_lot=self._parking_lot,
            outcome_queue=self._outcome_queue,
            function=self._function,
        )

    def own(
        self,
        metric: metrics.Metric,
        statistic: str,
        period: cdk.Duration,
        *,
        label: str | None = None,
        **dimensions: str,
    ) -> cloudwatch.Metric:
        """A metric that the re-driver emits about this queue."""
        return cloudwatch.Metric(
            namespace=metrics.NAMESPACE,
            metric_name=metric.name,
            dimensions_map={metrics.QUEUE: self.queue_name, **dimensions},
            statistic=statistic,
            period=period,
            unit=_UNITS[metric.unit],
            label=label,
        )

    def source(
        self, name: str, statistic: str, period: cdk.Duration, label: str | None = None
    ) -> cloudwatch.Metric:
        """One of SQS's metrics of the source queue."""
        return _of_sqs(self.queue_name, name, statistic, period, label)

    def dead_letters(
        self, name: str, statistic: str, period: cdk.Duration, label: str | None = None
    ) -> cloudwatch.Metric:
        """One of SQS's metrics of the dead-letter queue."""
        return _of_sqs(self._dead_letter_queue.queue_name, name, statistic, period, label)

    def depth(self, period: cdk.Duration) -> dict[str, cloudwatch.Metric]:
        """``visible`` and ``hidden``. Their sum is the DLQ's depth, however long a pass hides letters.

        While the depth stays the same, the most visible and the fewest hidden add up to it. While letters come, the sum
        is at least the depth at the moment when the fewest were hidden.
        """
        return {
            "visible": self.dead_letters(VISIBLE, "Maximum", period),
            "hidden": self.dead_letters(IN_FLIGHT, "Minimum", period),
        }

    def parking_lot(
        self, name: str, statistic: str, period: cdk.Duration, label: str | None = None
    ) -> cloudwatch.Metric:
        """One of SQS's metrics of the parking lot."""
        return _of_sqs(self._parking_lot.queue_name, name, statistic, period, label)

    def reports(self, name: str, statistic: str, period: cdk.Duration) -> cloudwatch.Metric:
        """One of SQS's metrics of the outcome queue."""
        return _of_sqs(self._outcome_queue.queue_name, name, statistic, period, None)

    def tried(self, period: cdk.Duration) -> cloudwatch.Metric | None:
        """The number of tries before the DLQ: a queue's receives or a function's invocations; None if not counted."""
        if self.watched.is_queue:
            return self.source("NumberOfMessagesReceived", "Sum", period)
        if self.watched.function:
            return _of_lambda(self.watched.function, "Invocations", "Sum", period)
        return None

    def function(
        self, name: str, statistic: str, period: cdk.Duration, label: str
    ) -> cloudwatch.Metric | None:
        """One of Lambda's metrics of the function whose invocations failed; None if there is none."""
        if self.watched.function is None:
            return None
        return _of_lambda(self.watched.function, name, statistic, period, label)

    def redriver(self, name: str, statistic: str, period: cdk.Duration) -> cloudwatch.Metric:
        """One of Lambda's metrics of the re-driver."""
        return _of_lambda(self._function.function_name, name, statistic, period)


def math(
    expression: str,
    period: cdk.Duration,
    *,
    label: str,
    **parts: cloudwatch.Metric,
) -> cloudwatch.MathExpression:
    """Metric math over ``parts``. The expression uses their keywords."""
    using: Mapping[str, cloudwatch.IMetric] = parts
    return cloudwatch.MathExpression(
        expression=expression, using_metrics=using, period=period, label=label
    )


def _of_lambda(
    function_name: str, name: str, statistic: str, period: cdk.Duration, label: str | None = None
) -> cloudwatch.Metric:
    return cloudwatch.Metric(
        namespace="AWS/Lambda",
        metric_name=name,
        dimensions_map={"FunctionName": function_name},
        statistic=statistic,
        period=period,
        label=label,
    )


def _of_sqs(
    queue_name: str, name: str, statistic: str, period: cdk.Duration, label: str | None
) -> cloudwatch.Metric:
    return cloudwatch.Metric(
        namespace="AWS/SQS",
        metric_name=name,
        dimensions_map={"QueueName": queue_name},
        statistic=statistic,
        period=period,
        label=label,
    )
