"""CloudWatch's metrics of the source queue, of which moto keeps none: written as the queue's calls go by."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

MINUTE = timedelta(minutes=1)
#: CloudWatch knows a minute so long after its end.
LAG = 2 * MINUTE

COUNTERS = {
    "SendMessage": "NumberOfMessagesSent",
    "SendMessageBatch": "NumberOfMessagesSent",
    "ReceiveMessage": "NumberOfMessagesReceived",
    "DeleteMessage": "NumberOfMessagesDeleted",
}
GAUGES = {
    "ApproximateNumberOfMessagesVisible": "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible": "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed": "ApproximateNumberOfMessagesDelayed",
}


class SourceMetrics:
    """Hears of every call, and answers GetMetricData. `ask` gets the source queue's attributes."""

    def __init__(self, source_url: str, ask: Callable[[], dict[str, str]]) -> None:
        self._source_url = source_url
        self._ask = ask
        self._sums: defaultdict[str, Counter[datetime]] = defaultdict(Counter)
        self._gauges: dict[datetime, dict[str, int]] = {}

    def hear(self, operation: str, request: dict[str, Any], answer: dict[str, Any]) -> None:
        """Count what one call moved, and measure the queue after it."""
        if operation not in COUNTERS or request.get("QueueUrl") != self._source_url:
            return
        batch = {"SendMessageBatch": "Successful", "ReceiveMessage": "Messages"}.get(operation)
        count = len(answer.get(batch, ())) if batch else 1
        self._sums[COUNTERS[operation]][_minute(_now())] += count
        told = self._ask()
        self._gauges[_minute(_now())] = {name: int(told[GAUGES[name]]) for name in GAUGES}

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer to GetMetricData."""
        end = min(request["EndTime"], _minute(_now() - LAG + MINUTE) - MINUTE)
        count = max(0, (end - request["StartTime"]) // MINUTE)
        minutes = [request["StartTime"] + MINUTE * n for n in range(count)]
        return {
            "MetricDataResults": [
                self._result(one, minutes) for one in request["MetricDataQueries"]
            ]
        }

    def _result(self, query: dict[str, Any], minutes: list[datetime]) -> dict[str, Any]:
        name = query["MetricStat"]["Metric"]["MetricName"]
        return {
            "Id": query["Id"],
            "Timestamps": minutes,
            "Values": [float(self._value(name, minute)) for minute in minutes],
            "StatusCode": "Complete",
        }

    def _value(self, name: str, minute: datetime) -> int:
        """A counter's sum, or what a gauge was last measured to be."""
        if name not in GAUGES:
            return self._sums[name][minute]
        measured = [at for at in self._gauges if at <= minute]
        return self._gauges[max(measured)][name] if measured else 0


def _now() -> datetime:
    return datetime.now(UTC)


def _minute(at: datetime) -> datetime:
    return at.replace(second=0, microsecond=0)
