"""The metrics that CloudWatch would have on record of a world that our re-driver worked in.

Our own metrics are read from the very lines that the function logs, SQS's from the fake CloudWatch.
"""

from __future__ import annotations

import contextlib
import io
import json
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from simulator.smart_policy import SmartPolicy
from simulator.world import DLQ, PARKING_LOT, SOURCE, World
from smart_redriver.engine.aws.metrics import Everything, emit
from smart_redriver.engine.report import Report

#: The name that the re-driver's function has in a simulated world.
FUNCTION = "redriver"

_SQS_METRICS = (
    "ApproximateNumberOfMessagesVisible",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
    "ApproximateAgeOfOldestMessage",
    "NumberOfMessagesReceived",
)
_MINUTE = 60


@dataclass(frozen=True, slots=True)
class MetricId:
    """The identity of a metric in CloudWatch."""

    namespace: str
    name: str
    dimensions: frozenset[tuple[str, str]]

    @classmethod
    def of(cls, namespace: str, name: str, **dimensions: str) -> MetricId:
        """With dimensions by keyword."""
        return cls(namespace, name, frozenset(dimensions.items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Emitted:
    """One metric of one line in the embedded metric format."""

    metric: MetricId
    unit: str
    values: tuple[float, ...]


def parse_emf(line: str) -> Iterator[Emitted]:
    """The metrics in one line of a function's log; none if it is not in the embedded metric format.

    Source: CloudWatch User Guide, "Embedded metric format specification".
    """
    try:
        document = json.loads(line)
        directives = document["_aws"]["CloudWatchMetrics"]
    except (ValueError, KeyError, TypeError):
        return
    for directive in directives:
        for names in directive["Dimensions"]:
            dimensions = {name: document[name] for name in names}
            for told in directive["Metrics"]:
                metric = MetricId.of(directive["Namespace"], told["Name"], **dimensions)
                value = document[told["Name"]]
                values = value if isinstance(value, list) else [value]
                yield Emitted(metric=metric, unit=told["Unit"], values=tuple(values))


def emitted_by(report: Report) -> list[Emitted]:
    """The metrics in the function's log of a pass with this report."""
    log = io.StringIO()
    with contextlib.redirect_stdout(log):
        emit(report, Everything())
    return [one for line in log.getvalue().splitlines() for one in parse_emf(line)]


class MetricRecord:
    """Data points by metric; times in seconds since any epoch."""

    def __init__(self) -> None:
        self._points: defaultdict[MetricId, list[tuple[float, float]]] = defaultdict(list)

    def put(self, metric: MetricId, at: float, *values: float) -> None:
        """Record data points, none older than those before them."""
        self._points[metric].extend((at, float(value)) for value in values)

    def statistic(self, metric: MetricId, name: str, start: float, end: float) -> float | None:
        """The statistic of the points from `start` until before `end`; None if there are none."""
        points = self._points.get(metric, [])
        first, last = bisect_left(points, (start,)), bisect_left(points, (end,))
        values = [value for _, value in points[first:last]]
        return _STATISTICS[name](values) if values else None


_STATISTICS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "Sum": sum,
    "Maximum": max,
    "Minimum": min,
    "Average": lambda values: sum(values) / len(values),
}


def record(world: World, policy: SmartPolicy) -> MetricRecord:
    """All that CloudWatch would know of a world that was played."""
    kept = MetricRecord()
    started = world.started.timestamp()
    for after, report in zip(policy.times, policy.reports, strict=True):
        at = started + after.total_seconds()
        for told in emitted_by(report):
            kept.put(told.metric, at, *told.values)
    # The schedule invokes it every minute, also where nothing is due.
    for minute in range(int(world.elapsed.total_seconds() // _MINUTE) + 1):
        for name, count in (("Invocations", 1), ("Errors", 0), ("Throttles", 0)):
            metric = MetricId.of("AWS/Lambda", name, FunctionName=FUNCTION)
            kept.put(metric, started + minute * _MINUTE, count)
    for queue in (SOURCE, DLQ, PARKING_LOT):
        for name, points in _of_queue(world, queue).items():
            metric = MetricId.of("AWS/SQS", name, QueueName=queue)
            for at, value in points:
                kept.put(metric, at, value)
    return kept


def _of_queue(world: World, queue: str) -> Mapping[str, Sequence[tuple[float, float]]]:
    answer: dict[str, Any] = world.cloudwatch.get_metric_data(
        MetricDataQueries=[
            {
                "Id": f"m{number}",
                "Label": name,
                "MetricStat": {
                    "Metric": {
                        "Namespace": "AWS/SQS",
                        "MetricName": name,
                        "Dimensions": [{"Name": "QueueName", "Value": queue}],
                    },
                    "Period": _MINUTE,
                    "Stat": "Maximum",
                },
            }
            for number, name in enumerate(_SQS_METRICS)
        ],
        StartTime=world.started,
        EndTime=world.started + world.elapsed + timedelta(minutes=1),
        ScanBy="TimestampAscending",
    )
    return {
        result["Label"]: [
            (at.timestamp(), value)
            for at, value in zip(result["Timestamps"], result["Values"], strict=True)
        ]
        for result in answer["MetricDataResults"]
    }
