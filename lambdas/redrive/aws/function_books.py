"""The books of functions that letters go back to: the witness of asynchronous invocations.

One GetMetricData call of five metrics a function, asked only when a verdict can hang on it.
https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from redrive.aws.metric_data import (
    PERIOD,
    CloudWatchClient,
    instant_of,
    metric_query,
    minute_of,
    read_points,
)
from redrive.core.books import Books
from redrive.core.function_books import FunctionMinute, books_of_function

#: Field of `FunctionMinute` -> metric. What was not counted in a minute has no point.
_COUNTERS = {
    "received": "AsyncEventsReceived",
    "invocations": "Invocations",
    "errors": "Errors",
    "dropped": "AsyncEventsDropped",
    "throttles": "Throttles",
}

#: A minute is taken for known when it is over for so long, unless what was sent in it shows otherwise.
LATENESS = 3 * PERIOD

#: Looked at before what is asked for: who invokes the function otherwise, too, as a rule shows there.
LOOKBACK = timedelta(hours=1)


class FunctionBooks:
    """The books of functions, by the names of their targets. `time_to_fail` says how long an event of one takes to fail."""

    def __init__(
        self, cloudwatch: CloudWatchClient, time_to_fail: Callable[[str], timedelta]
    ) -> None:
        self._cloudwatch = cloudwatch
        self._time_to_fail = time_to_fail

    def since(self, start: datetime, now: datetime, queue_name: str) -> Books:
        """The books of the target of this name from the minute of `start` on; none where nothing is known for sure.

        Raises CallFailed, also where CloudWatch has not told all that it knows.
        """
        # An invocation counts in the minute in which it began, when it is over.
        minutes_to_fail = math.ceil((self._time_to_fail(queue_name) + LATENESS) / PERIOD)
        first, end = minute_of(start), minute_of(now - LATENESS)
        if first >= end:
            return Books()
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
        books = books_of_function(minutes, minutes_to_fail)
        told = tuple(one for one in books.minutes if one.at >= instant_of(first))
        return replace(books, minutes=told)


def _dimensions(target_name: str) -> dict[str, Any]:
    """Of `lambda:orders`, and of `lambda:orders:live`, which is a version or alias."""
    resource = target_name.partition(":")[2]
    name, _, qualifier = resource.partition(":")
    if not qualifier:
        return {"FunctionName": name}
    return {"FunctionName": name, "Resource": resource}
