"""CloudWatch metrics that AWS records by itself: AWS/SQS, and the embedded metric format (EMF).

SQS metrics are kept as one statistic set per queue, metric and minute, updated in place. That keeps days of virtual
time small, and Sum, Maximum and SampleCount read the same.
"""

import contextvars
import json
import logging
import math
import threading
import time
from collections.abc import Iterable
from typing import Any

from ministack.core import responses
from ministack.services import cloudwatch, sqs

from .patching import wrap

logger = logging.getLogger("overlay.metrics")

#: AWS/SQS reports once a minute, and so does a statistic set here.
RESOLUTION_SECONDS = 60
#: A minute of AWS/SQS is readable only when another minute is over: on AWS it takes one to three.
LAG_SECONDS = 60

#: Gauges, each with the queue attribute from which it is read.
_GAUGES = {
    "ApproximateNumberOfMessagesVisible": "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible": "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed": "ApproximateNumberOfMessagesDelayed",
}
#: Counters, which AWS reports as zero for an active queue in which nothing happened.
_COUNTERS = ("NumberOfMessagesSent", "NumberOfMessagesReceived", "NumberOfMessagesDeleted")

_folding = threading.Lock()


def count(queue: dict[str, Any], metric: str, messages: int) -> None:
    """Add to a counter of one queue, in the account and region of the current request."""
    if messages:
        _observe(metric, {"QueueName": queue["name"]}, messages, "Count")


def sample_queues(now: float) -> None:
    """Record what AWS reports every minute about each queue."""
    for (account, region, _url), queue in list(sqs._queues.all_items()):
        responses.set_request_account_id(account)
        responses.set_request_region(region)
        with sqs._queues_lock:
            sqs._refresh_counts(queue)
            age = now - min(map(_age_starts, queue["messages"]), default=now)
        name = {"QueueName": queue["name"]}
        for metric, attribute in _GAUGES.items():
            _observe(metric, name, int(queue["attributes"][attribute]), "Count")
        _observe("ApproximateAgeOfOldestMessage", name, max(0.0, age), "Seconds")
        for metric in _COUNTERS:
            _observe(metric, name, 0, "Count")


def _age_starts(message: dict[str, Any]) -> float:
    """In a dead-letter queue, the age metric starts when the message arrived there.

    Its retention does not: that still runs from the first send.
    """
    started: float = message.get("dead_since", message.get("sent_at", time.time()))
    return started


def _observe(metric: str, dimensions: dict[str, str], value: float, unit: str) -> None:
    minute = time.time() // RESOLUTION_SECONDS * RESOLUTION_SECONDS
    key = ("AWS/SQS", metric, cloudwatch._dims_key(dimensions))
    with _folding:
        points = cloudwatch._metric_bucket(key)
        if not points or points[-1]["Timestamp"] != minute:
            empty = {"SampleCount": 0, "Sum": 0.0, "Minimum": math.inf, "Maximum": -math.inf}
            points.append(
                {
                    "Timestamp": minute,
                    "Value": 0.0,
                    "Unit": unit,
                    "Dimensions": dimensions,
                    "_stat": empty,
                }
            )
        statistics = points[-1]["_stat"]
        statistics["SampleCount"] += 1
        statistics["Sum"] += value
        statistics["Minimum"] = min(statistics["Minimum"], value)
        statistics["Maximum"] = max(statistics["Maximum"], value)


def publish_embedded(line: str) -> None:
    """Record the metrics of one log line, if it is in the embedded metric format."""
    start = line.find("{")
    if start < 0 or '"_aws"' not in line:
        return
    try:
        document = json.loads(line[start:])
        for directive in document["_aws"]["CloudWatchMetrics"]:
            for names in directive.get("Dimensions") or [[]]:
                dimensions = {name: str(document[name]) for name in names}
                for metric in directive["Metrics"]:
                    values = document[metric["Name"]]
                    for value in values if isinstance(values, list) else [values]:
                        cloudwatch.record_metric(
                            directive["Namespace"],
                            metric["Name"],
                            value,
                            metric.get("Unit", "None"),
                            dimensions,
                        )
    except (ValueError, KeyError, TypeError) as fault:
        # CloudWatch drops a malformed document without telling the function.
        logger.warning("not a valid EMF document (%r): %.200s", fault, line)


_newest_first: contextvars.ContextVar[bool] = contextvars.ContextVar("newest_first", default=False)


def install() -> None:
    @wrap(cloudwatch, "_get_metric_data")
    def get_metric_data(
        answer: Any, params: Any, query: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        """Round StartTime down to the minute, report SQS late, and return the newest data point first."""
        token = _newest_first.set(query.get("ScanBy") != "TimestampAscending")
        stats = [one.get("MetricStat") for one in query.get("MetricDataQueries", ())]
        is_of_sqs = any(stat and stat["Metric"]["Namespace"] == "AWS/SQS" for stat in stats)
        asked = _up_to_what_is_known(query) if is_of_sqs else query
        try:
            return answer(params, _from_whole_minute(asked), *args, **kwargs)
        finally:
            _newest_first.reset(token)

    for encoder in ("_cbor_ok", "_json_ok"):

        @wrap(cloudwatch, encoder)
        def encode_in_order(encode: Any, answer: dict[str, Any]) -> Any:
            if _newest_first.get():
                _reverse(answer.get("MetricDataResults", ()))
            return encode(answer)

    @wrap(cloudwatch, "_get_metric_statistics")
    def get_metric_statistics(
        answer: Any, params: Any, query: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        """Round StartTime down to the minute, and report SQS late."""
        is_of_sqs = query.get("Namespace") == "AWS/SQS"
        asked = _up_to_what_is_known(query) if is_of_sqs else query
        return answer(params, _from_whole_minute(asked), *args, **kwargs)


def _reverse(results: Iterable[dict[str, Any]]) -> None:
    for result in results:
        result["Timestamps"] = result["Timestamps"][::-1]
        result["Values"] = result["Values"][::-1]


def _from_whole_minute(query: dict[str, Any]) -> dict[str, Any]:
    start = cloudwatch._parse_ts(query.get("StartTime"))
    if start is None:
        return query
    return {**query, "StartTime": start // RESOLUTION_SECONDS * RESOLUTION_SECONDS}


def _up_to_what_is_known(query: dict[str, Any]) -> dict[str, Any]:
    known = time.time() // RESOLUTION_SECONDS * RESOLUTION_SECONDS - LAG_SECONDS
    end = cloudwatch._parse_ts(query.get("EndTime"))
    return {**query, "EndTime": known if end is None else min(end, known)}
