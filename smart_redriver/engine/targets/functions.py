"""A Lambda function as a target: how long it takes to fail, and its metrics minute by minute."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from smart_redriver.engine.aws.clients import naming
from smart_redriver.engine.aws.queue_metrics import (
    PERIOD,
    CloudWatchClient,
    instant_of,
    metric_query,
    minute_of,
    read_points,
)
from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.model.function_metrics import FunctionMinute, metrics_of_function
from smart_redriver.engine.model.queue_metrics import QueueMetrics

#: Assumptions if Lambda does not say: the longest possible time-out, and the retries of a function without a setting.
#: https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
LONGEST_TIMEOUT = timedelta(seconds=900)
USUAL_RETRIES = 2

#: How long Lambda waits before the second try, and before the third. Same page.
WAITS = (timedelta(minutes=1), timedelta(minutes=2))


class FunctionFacts:
    """Lambda's description of one function, read once. One that can't be described counts as the slowest possible."""

    def __init__(self, lambdas: Any, function_arn: str) -> None:
        self._lambdas = lambdas
        self._arn = function_arn

    def timeout(self) -> timedelta:
        """The time-out of one try."""
        return self._timeout

    def tries(self) -> int:
        """The tries of one invocation, the first one included."""
        return 1 + self._retries

    def time_to_fail(self) -> timedelta:
        """Return the time from the invocation to the end of the last try, if none waits for capacity."""
        return self.timeout() * self.tries() + sum(WAITS[: self._retries], timedelta())

    @cached_property
    def _timeout(self) -> timedelta:
        try:
            with naming("GetFunctionConfiguration"):
                answer = self._lambdas.get_function_configuration(FunctionName=self._arn)
        except CallFailed:
            return LONGEST_TIMEOUT
        return timedelta(seconds=int(answer.get("Timeout", LONGEST_TIMEOUT.total_seconds())))

    @cached_property
    def _retries(self) -> int:
        try:
            with naming("GetFunctionEventInvokeConfig"):
                answer = self._lambdas.get_function_event_invoke_config(FunctionName=self._arn)
        except CallFailed:  # usually because there is none: ResourceNotFoundException
            return USUAL_RETRIES
        return min(int(answer.get("MaximumRetryAttempts", USUAL_RETRIES)), len(WAITS))


#: Field of `FunctionMinute` -> metric. A minute without a count has no point.
_COUNTERS = {
    "received": "AsyncEventsReceived",
    "invocations": "Invocations",
    "errors": "Errors",
    "dropped": "AsyncEventsDropped",
    "throttles": "Throttles",
}

#: A minute counts as known this long after its end, unless our sends in it show otherwise.
LATENESS = 3 * PERIOD

#: How much earlier time is read, too: other invocations of the function usually show there.
LOOKBACK = timedelta(hours=1)


class FunctionMetricsReader:
    """The metrics of functions, by the names of their targets.
    `time_to_fail` says how long an event of one takes to fail.
    """

    def __init__(
        self, cloudwatch: CloudWatchClient, time_to_fail: Callable[[str], timedelta]
    ) -> None:
        self._cloudwatch = cloudwatch
        self._time_to_fail = time_to_fail

    def since(self, start: datetime, now: datetime, queue_name: str) -> QueueMetrics:
        """The metrics of the target of this name from the minute of `start` on; none if nothing is known for sure.

        Raises CallFailed, also if CloudWatch returned only a part.
        """
        # An invocation counts in the minute in which it began, when it is over.
        minutes_to_fail = math.ceil((self._time_to_fail(queue_name) + LATENESS) / PERIOD)
        first, end = minute_of(start), minute_of(now - LATENESS)
        if first >= end:
            return QueueMetrics()
        before = math.ceil(LOOKBACK / PERIOD) + minutes_to_fail
        queries = [
            metric_query(name, "AWS/Lambda", metric, "Sum", **_dimensions(queue_name))
            for name, metric in _COUNTERS.items()
        ]
        points = read_points(self._cloudwatch, queries, first - before, end)
        minutes = [
            FunctionMinute(
                at=instant_of(number),
                **{name: int(points[name].get(number, 0)) for name in _COUNTERS},
            )
            for number in range(first - before, end)
        ]
        metrics = metrics_of_function(minutes, minutes_to_fail)
        told = tuple(one for one in metrics.minutes if one.at >= instant_of(first))
        return replace(metrics, minutes=told)


def _dimensions(target_name: str) -> dict[str, Any]:
    """The dimensions of `lambda:orders`, or of `lambda:orders:live`, which is a version or alias."""
    resource = target_name.partition(":")[2]
    name, _, qualifier = resource.partition(":")
    if not qualifier:
        return {"FunctionName": name}
    return {"FunctionName": name, "Resource": resource}
