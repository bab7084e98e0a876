# ruff: noqa: N803 - the parameters have boto3's names
"""A fake of the boto3 CloudWatch client: the AWS/SQS metrics of the fake queues, AWS/Lambda's of functions; only reads.

Source: SQS Developer Guide, "Available CloudWatch metrics", and botocore GetMetricData. A metric
is known a while after its minute is over; a queue that nobody uses reports nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

from fakes.boto_client import FakeClient, Fault, Response, operation
from fakes.clock import VirtualClock
from fakes.sqs import FakeSqs
from fakes.sqs.metrics import MINUTE, Figures, QueueMetrics

MAX_DATAPOINTS = 100_800  # [botocore GetMetricData]
MAX_QUERIES = 500

Metric = Mapping[str, Any]

#: A period's start, and what is known of each of its minutes.
Periods = list[tuple[datetime, list[tuple[int, ...]]]]


class FunctionFigures(NamedTuple):
    """All that Lambda tells CloudWatch of one minute of one function that is invoked asynchronously."""

    received: int
    invocations: int
    errors: int
    dropped: int
    throttles: int


_STATISTICS: dict[str, Callable[[Sequence[float]], float]] = {
    "Sum": sum,
    "Maximum": max,
    "Minimum": min,
    "Average": lambda values: sum(values) / len(values),
    "SampleCount": len,
}


class FakeCloudWatch(FakeClient):
    """What CloudWatch knows about the queues of one `FakeSqs`.

    lag_seconds: a minute's value can be read so long after the minute's end.
    functions: what is known of a minute since the epoch, by the names of functions.
    """

    functions: Mapping[str, Callable[[int], FunctionFigures]] = {}

    def __init__(self, clock: VirtualClock, sqs: FakeSqs, *, lag_seconds: float = 120.0) -> None:
        super().__init__("cloudwatch")
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
        results = [
            _result(query, past, newest_first=ScanBy == "TimestampDescending")
            for query in MetricDataQueries
            if query.get("ReturnData", True)
        ]
        return {"MetricDataResults": results, "Messages": []}

    def periods(self, metric: Metric, first: int, last: int, minutes: int) -> Periods:
        """What is known of a metric's queue, by period of so many minutes, for those with anything."""
        figures_of = self._figures_of(metric)
        known_until = int((self._clock.time() - self._lag_seconds) // MINUTE)
        periods: Periods = []
        for start in range(first - first % minutes, min(last, known_until), minutes):
            told = map(figures_of, range(start, min(start + minutes, known_until)))
            if present := [figures for figures in told if figures is not None]:
                periods.append((_instant(start), present))
        return periods

    def _figures_of(self, metric: Metric) -> Callable[[int], tuple[int, ...] | None]:
        # As in CloudWatch, a namespace, dimension or queue that does not exist is merely empty.
        dimensions = metric.get("Dimensions", [])
        if len(dimensions) != 1:
            return QueueMetrics().figures_of
        of, name = metric["Namespace"], dimensions[0]["Value"]
        if (of, dimensions[0]["Name"]) == ("AWS/Lambda", "FunctionName") and name in self.functions:
            return self.functions[name]
        is_queue = (of, dimensions[0]["Name"]) == ("AWS/SQS", "QueueName")
        metrics = self._sqs.inspect.metrics(name) if is_queue else None
        return (metrics or QueueMetrics()).figures_of


class _Past:
    """The queues' past as one request asks for it: its queries are mostly of the same queue and periods."""

    def __init__(self, cloudwatch: FakeCloudWatch, first: int, last: int) -> None:
        self._cloudwatch = cloudwatch
        self._range = first, last
        self._periods: dict[str, Periods] = {}

    def of(self, metric: Metric, minutes: int) -> Periods:
        """What is known of the metric's queue, by period."""
        key = f"{metric['Namespace']} {metric.get('Dimensions')} {minutes}"
        if key not in self._periods:
            self._periods[key] = self._cloudwatch.periods(metric, *self._range, minutes)
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
    # A metric that the service does not have has no points.
    field = _FIELDS.get((metric["Namespace"], metric["MetricName"]))
    periods = past.of(metric, minutes) if field is not None else []
    timestamps = [start for start, _ in periods]
    values = [float(aggregate([one[field or 0] for one in figures])) for _, figures in periods]
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
    ("AWS/SQS", name): Figures._fields.index(field)
    for name, field in {
        "NumberOfMessagesSent": "sent",
        "NumberOfMessagesReceived": "received",
        "NumberOfMessagesDeleted": "deleted",
        "ApproximateNumberOfMessagesVisible": "visible",
        "ApproximateNumberOfMessagesNotVisible": "in_flight",
        "ApproximateNumberOfMessagesDelayed": "delayed",
        "ApproximateAgeOfOldestMessage": "oldest_age",
    }.items()
} | {
    ("AWS/Lambda", name): FunctionFigures._fields.index(field)
    for name, field in {
        "AsyncEventsReceived": "received",
        "Invocations": "invocations",
        "Errors": "errors",
        "AsyncEventsDropped": "dropped",
        "Throttles": "throttles",
    }.items()
}


@lru_cache(maxsize=10_000)
def _instant(minute: int) -> datetime:
    return datetime.fromtimestamp(minute * MINUTE, UTC)


def _epoch(time: datetime) -> float:
    """Seconds since the epoch; a time without a zone is UTC, as for boto3."""
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def _invalid(message: str) -> Fault:
    return Fault("InvalidParameterValueException", message)
