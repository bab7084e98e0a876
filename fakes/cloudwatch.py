# ruff: noqa: N803 - the parameters have boto3's names
"""A fake of the boto3 CloudWatch client: reads of the queues' AWS/SQS metrics, and of functions' AWS/Lambda metrics.

Source: SQS Developer Guide, "Available CloudWatch metrics", and botocore GetMetricData. A metric is known a while after
its minute is over; a queue that no one uses reports nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from random import Random
from typing import Any, Protocol

from fakes.boto_client import FakeClient, Fault, Response, operation
from fakes.clock import VirtualClock
from fakes.sqs import FakeSqs
from fakes.sqs.metrics import MINUTE, Figures, QueueMetrics

MAX_DATAPOINTS = 100_800  # [botocore GetMetricData]
MAX_QUERIES = 500

Metric = Mapping[str, Any]

#: A period's start, and what is known of each of its minutes.
Periods = list[tuple[datetime, list[Figures]]]

_STATISTICS: dict[str, Callable[[Sequence[float]], float]] = {
    "Sum": sum,
    "Maximum": max,
    "Minimum": min,
    "Average": lambda values: sum(values) / len(values),
    "SampleCount": len,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lateness:
    """Mishaps of a queue's data points, besides the lag that all have. Shares are from 0 to 1.

    The same minute always has the same lot.

    Attributes:
        counters_seconds: how much later counters (sent, received, deleted) come than gauges.
        revised: share of a minute's counts that come `revised_seconds` after the others: the sums grow after they were
            read.
        missing: share of the minutes whose gauges have no point.
        blank_share: share of the minutes whose gauges read 0.

    """

    counters_seconds: float = 0.0
    revised: float = 0.0
    revised_seconds: float = 120.0
    missing: float = 0.0
    blank_share: float = 0.0

    def told(self, figures: Figures, minute: int, age_seconds: float) -> tuple[Figures, bool]:
        """The figures that a minute shows once it has been readable for this long, and whether it has gauges."""
        if age_seconds < self.counters_seconds + self.revised_seconds:
            share = 1 - self.revised
            figures = figures._replace(
                sent=int(figures.sent * share),
                received=int(figures.received * share),
                deleted=int(figures.deleted * share),
            )
        lot = Random(minute).random()
        if lot < self.blank_share:
            figures = figures._replace(visible=0, in_flight=0, delayed=0, oldest_age=0)
        return figures, lot < 1 - self.missing


class Counting(Protocol):
    """Counts of invocations: by function name, by metric, and by minutes since the epoch."""

    @property
    def counted(self) -> Mapping[str, Mapping[str, Mapping[int, int]]]: ...


class FakeCloudWatch(FakeClient):
    """CloudWatch's metrics of the queues of one `FakeSqs`, and of functions whose invocations `lambdas` counts.

    lag_seconds: how long after a minute's end its value can be read.
    lateness: other mishaps of its points; None for none.
    """

    def __init__(
        self,
        clock: VirtualClock,
        sqs: FakeSqs,
        lambdas: Counting | None = None,
        *,
        lag_seconds: float = 120.0,
        lateness: Lateness | None = None,
    ) -> None:
        super().__init__("cloudwatch")
        self._lateness = lateness
        self._lambdas = lambdas
        self._clock = clock
        self._sqs = sqs
        self._lag_seconds = lag_seconds

    @operation
    def get_metric_data(
        self,
        *,
        MetricDataQueries: Sequence[Mapping[str, Any]],
        StartTime: datetime,
        EndTime: datetime,
        ScanBy: str = "TimestampDescending",
        MaxDatapoints: int = MAX_DATAPOINTS,
    ) -> Response:
        """MetricStat queries over periods that start in StartTime..EndTime; all in one page."""
        if len(MetricDataQueries) > MAX_QUERIES or MaxDatapoints > MAX_DATAPOINTS:
            raise _invalid("Too many queries or datapoints.")
        if EndTime <= StartTime:
            raise _invalid("The parameter StartTime must be less than the parameter EndTime.")
        # The start is rounded down to its minute; a period belongs to the range when it starts
        # before the end. [botocore GetMetricData, StartTime]
        first, last = int(_epoch(StartTime) // MINUTE), -int(-_epoch(EndTime) // MINUTE)
        past = _Past(self, first, last)
        newest_first = ScanBy == "TimestampDescending"
        results = [
            self._of_function(query, first, last, newest_first=newest_first)
            if query.get("MetricStat", {}).get("Metric", {}).get("Namespace") == "AWS/Lambda"
            else _result(query, past, newest_first=newest_first)
            for query in MetricDataQueries
            if query.get("ReturnData", True)
        ]
        return {"MetricDataResults": results, "Messages": []}

    def periods(self, metric: Metric, first: int, last: int, minutes: int) -> Periods:
        """The known figures of a metric's queue, by period of this many minutes, for periods that have any."""
        figures_of = self._metrics_of(metric).figures_of
        known_until = int((self._clock.time() - self._lag_seconds) // MINUTE)
        periods: Periods = []
        for start in range(first - first % minutes, min(last, known_until), minutes):
            told = map(figures_of, range(start, min(start + minutes, known_until)))
            if present := [figures for figures in told if figures is not None]:
                periods.append((_instant(start), present))
        return periods

    @property
    def tells_counters_later(self) -> bool:
        """Whether counters have other points than gauges."""
        return self._lateness is not None

    def late(self, periods: Periods, *, is_counter: bool) -> Periods:
        """These periods as they look for a counter, or for a gauge."""
        lateness = self._lateness
        if lateness is None:
            return periods
        readable_at = self._clock.time() - self._lag_seconds - MINUTE
        told: Periods = []
        for start, present in periods:
            age = readable_at - start.timestamp()
            if is_counter and age < lateness.counters_seconds:
                continue
            minute = int(start.timestamp()) // MINUTE
            seen = [lateness.told(one, minute, age) for one in present]
            if is_counter or all(has_gauges for _, has_gauges in seen):
                told.append((start, [figures for figures, _ in seen]))
        return told

    def _of_function(
        self, query: Mapping[str, Any], first: int, last: int, *, newest_first: bool
    ) -> dict[str, Any]:
        """A function's sums by the minute, by its name. Minutes in which nothing was counted have no point."""
        metric = query["MetricStat"]["Metric"]
        named = {one["Name"]: one["Value"] for one in metric["Dimensions"]}
        counted: Mapping[int, int] = {}
        if self._lambdas and named.keys() == {"FunctionName"}:
            counted = self._lambdas.counted[named["FunctionName"]][metric["MetricName"]]
        known_until = int((self._clock.time() - self._lag_seconds) // MINUTE)
        minutes = sorted(
            (one for one in counted if first <= one < min(last, known_until)), reverse=newest_first
        )
        return {
            "Id": query["Id"],
            "Label": query.get("Label", metric["MetricName"]),
            "Timestamps": [_instant(one) for one in minutes],
            "Values": [float(counted[one]) for one in minutes],
            "StatusCode": "Complete",
        }

    def _metrics_of(self, metric: Metric) -> QueueMetrics:
        # As in CloudWatch, a namespace, dimension or queue that does not exist is merely empty.
        dimensions = metric.get("Dimensions", [])
        if metric["Namespace"] != "AWS/SQS" or len(dimensions) != 1:
            return QueueMetrics()
        dimension = dimensions[0]
        name = dimension["Value"] if dimension["Name"] == "QueueName" else ""
        return self._sqs.inspect.metrics(name) or QueueMetrics()


class _Past:
    """The queues' past, cached for one request: most of its queries are about the same queue and periods."""

    def __init__(self, cloudwatch: FakeCloudWatch, first: int, last: int) -> None:
        self._cloudwatch = cloudwatch
        self._range = first, last
        self._periods: dict[str, Periods] = {}

    def of(self, metric: Metric, minutes: int, *, is_counter: bool) -> Periods:
        """The known figures of the metric's queue, by period."""
        is_counter = is_counter and self._cloudwatch.tells_counters_later
        key = f"{metric['Namespace']} {metric.get('Dimensions')} {minutes} {is_counter}"
        if key not in self._periods:
            periods = self._cloudwatch.periods(metric, *self._range, minutes)
            self._periods[key] = self._cloudwatch.late(periods, is_counter=is_counter)
        return self._periods[key]


def _result(query: Mapping[str, Any], past: _Past, *, newest_first: bool) -> dict[str, Any]:
    if "MetricStat" not in query:
        unsupported = "this fake knows MetricStat queries only"
        raise NotImplementedError(unsupported)
    metric_stat = query["MetricStat"]
    metric = metric_stat["Metric"]
    minutes, remainder = divmod(metric_stat["Period"], MINUTE)
    if remainder or minutes < 1:
        raise _invalid("Period must be a multiple of 60.")
    aggregate = _STATISTICS[metric_stat["Stat"]]
    # A metric that SQS does not have has no points.
    is_known = metric["MetricName"] in _FIELDS
    field = _FIELDS.get(metric["MetricName"], 0)
    periods = past.of(metric, minutes, is_counter=field <= _LAST_COUNTER) if is_known else []
    timestamps = [start for start, _ in periods]
    values = [float(aggregate([one[field] for one in figures])) for _, figures in periods]
    if newest_first:
        timestamps.reverse()
        values.reverse()
    return {
        "Id": query["Id"],
        "Label": query.get("Label", metric["MetricName"]),
        "Timestamps": timestamps,
        "Values": values,
        "StatusCode": "Complete",
    }


_FIELDS = {
    name: Figures._fields.index(field)
    for name, field in {
        "NumberOfMessagesSent": "sent",
        "NumberOfMessagesReceived": "received",
        "NumberOfMessagesDeleted": "deleted",
        "ApproximateNumberOfMessagesVisible": "visible",
        "ApproximateNumberOfMessagesNotVisible": "in_flight",
        "ApproximateNumberOfMessagesDelayed": "delayed",
        "ApproximateAgeOfOldestMessage": "oldest_age",
    }.items()
}

_LAST_COUNTER = Figures._fields.index("deleted")


@lru_cache(maxsize=10_000)
def _instant(minute: int) -> datetime:
    return datetime.fromtimestamp(minute * MINUTE, UTC)


def _epoch(time: datetime) -> float:
    """Seconds since the epoch; a time without a zone is UTC, as for boto3."""
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def _invalid(message: str) -> Fault:
    return Fault("InvalidParameterValueException", message)
