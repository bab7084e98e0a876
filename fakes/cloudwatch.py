# ruff: noqa: N803 - the parameters have boto3's names
"""A fake of the boto3 CloudWatch client: the AWS/SQS metrics of the fake queues, and only reads.

Source: SQS Developer Guide, "Available CloudWatch metrics", and botocore GetMetricData. A metric
is known a while after its minute is over; a queue that nobody uses reports nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from fakes.boto_client import FakeClient, Fault, Response, operation
from fakes.clock import VirtualClock
from fakes.sqs import FakeSqs
from fakes.sqs.metrics import MINUTE, Observation, QueueMetrics

MAX_DATAPOINTS = 100_800  # [botocore GetMetricData]
MAX_QUERIES = 500

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
    """

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
        results = [
            self._result(query, first, last, newest_first=ScanBy == "TimestampDescending")
            for query in MetricDataQueries
            if query.get("ReturnData", True)
        ]
        return {"MetricDataResults": results, "Messages": []}

    def _result(
        self, query: Mapping[str, Any], first: int, last: int, *, newest_first: bool
    ) -> dict[str, Any]:
        if "MetricStat" not in query:
            unsupported = "this fake knows MetricStat queries only"
            raise NotImplementedError(unsupported)
        metric_stat = query["MetricStat"]
        metric = metric_stat["Metric"]
        minutes, remainder = divmod(metric_stat["Period"], MINUTE)
        if remainder or minutes < 1:
            raise _invalid("Period must be a multiple of 60.")
        metrics, aggregate = self._metrics_of(metric), _STATISTICS[metric_stat["Stat"]]
        known_until = int((self._clock.time() - self._lag_seconds) // MINUTE)
        value_of = _VALUES.get(metric["MetricName"], _nothing)
        points: list[tuple[datetime, float]] = []
        for start in range(first - first % minutes, min(last, known_until), minutes):
            present = [
                value_of(metrics, minute, observed)
                for minute in range(start, min(start + minutes, known_until))
                if (observed := metrics.at_end_of(minute)) is not None
            ]
            if present and None not in present:
                points.append((datetime.fromtimestamp(start * MINUTE, UTC), aggregate(present)))
        if newest_first:
            points.reverse()
        return {
            "Id": query["Id"],
            "Label": query.get("Label", metric["MetricName"]),
            "Timestamps": [timestamp for timestamp, _ in points],
            "Values": [float(value) for _, value in points],
            "StatusCode": "Complete",
        }

    def _metrics_of(self, metric: Mapping[str, Any]) -> QueueMetrics:
        # As in CloudWatch, a namespace, dimension or queue that does not exist is merely empty.
        dimensions = metric.get("Dimensions", [])
        if metric["Namespace"] != "AWS/SQS" or len(dimensions) != 1:
            return QueueMetrics()
        dimension = dimensions[0]
        name = dimension["Value"] if dimension["Name"] == "QueueName" else ""
        return self._sqs.inspect.metrics(name) or QueueMetrics()


def _nothing(_metrics: QueueMetrics, _minute: int, _observed: Observation) -> None:
    """Of a metric that SQS does not have."""


def _age(_metrics: QueueMetrics, minute: int, observed: Observation) -> float:
    oldest = observed.oldest_arrived_at
    return 0 if oldest is None else int((minute + 1) * MINUTE - oldest)


_VALUES: dict[str, Callable[[QueueMetrics, int, Observation], Any]] = {
    "NumberOfMessagesSent": lambda metrics, minute, _: metrics.sent_in.get(minute, 0),
    "NumberOfMessagesReceived": lambda metrics, minute, _: metrics.received_in.get(minute, 0),
    "NumberOfMessagesDeleted": lambda metrics, minute, _: metrics.deleted_in.get(minute, 0),
    "ApproximateNumberOfMessagesVisible": lambda _, __, observed: observed.counts.visible,
    "ApproximateNumberOfMessagesNotVisible": lambda _, __, observed: observed.counts.in_flight,
    "ApproximateNumberOfMessagesDelayed": lambda _, __, observed: observed.counts.delayed,
    "ApproximateAgeOfOldestMessage": _age,
}


def _epoch(time: datetime) -> float:
    """Seconds since the epoch; a time without a zone is UTC, as for boto3."""
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def _invalid(message: str) -> Fault:
    return Fault("InvalidParameterValueException", message)
