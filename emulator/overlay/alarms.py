"""CloudWatch alarms that look at what AWS looks at.

MiniStack evaluates an alarm only when someone calls PutMetricData, over data of all dimensions,
and knows neither M of N, nor missing data, nor metric math. Here every alarm is evaluated when a
period has ended, over whole periods: never early, at most one period late.
"""

import logging
import operator
import time
from collections.abc import Callable
from typing import Any

from ministack.core import responses
from ministack.services import cloudwatch

from .expressions import Value, evaluate

logger = logging.getLogger("overlay.alarms")

_Alarm = dict[str, Any]

_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "GreaterThanOrEqualToThreshold": operator.ge,
    "GreaterThanThreshold": operator.gt,
    "LessThanThreshold": operator.lt,
    "LessThanOrEqualToThreshold": operator.le,
}

#: The period end up to which each alarm has been evaluated.
_evaluated: dict[tuple[str, str, str], float] = {}


def evaluate_alarms(now: float) -> None:
    """Evaluate each alarm that has not been since its last period ended."""
    for key, alarm in list(cloudwatch._alarms.all_items()):
        period_end = now // _period(alarm) * _period(alarm)
        if _evaluated.get(key) == period_end:
            continue
        _evaluated[key] = period_end
        account, region, _name = key
        responses.set_request_account_id(account)
        responses.set_request_region(region)
        try:
            _evaluate(alarm, period_end)
        except Exception:  # one faulty alarm must not blind the others
            logger.exception("alarm %s could not be evaluated", alarm["AlarmName"])


def _period(alarm: _Alarm) -> int:
    periods = [m["MetricStat"]["Period"] for m in alarm.get("Metrics") or () if "MetricStat" in m]
    return int(max(map(int, periods), default=alarm.get("Period") or 60))


def _evaluate(alarm: _Alarm, period_end: float) -> None:
    values = _values(alarm, period_end)
    old, new = alarm["StateValue"], _state(alarm, values)
    if new == old:
        return
    reason = (
        f"Threshold Crossed: {values} {alarm['ComparisonOperator']} {alarm.get('Threshold')} "
        f"({alarm.get('TreatMissingData', 'missing')} if missing)"
    )
    alarm.update(StateValue=new, StateReason=reason, StateUpdatedTimestamp=int(time.time()))
    cloudwatch._record_history(alarm["AlarmName"], old, new, reason)
    cloudwatch._dispatch_alarm_actions(alarm, old, new, reason)
    cloudwatch._evaluate_parent_alarms(alarm)


def _state(alarm: _Alarm, values: list[Value]) -> str:
    """M breaching data points of the last N, with missing ones treated as the alarm says."""
    crosses = _COMPARISONS[alarm["ComparisonOperator"]]
    threshold = float(alarm.get("Threshold") or 0)
    breaching = [None if value is None else crosses(value, threshold) for value in values]
    treatment = alarm.get("TreatMissingData") or "missing"
    if treatment in ("breaching", "notBreaching"):
        breaching = [treatment == "breaching" if b is None else b for b in breaching]
    if all(b is None for b in breaching):
        return str(alarm["StateValue"]) if treatment == "ignore" else "INSUFFICIENT_DATA"
    needed = int(alarm.get("DatapointsToAlarm") or alarm.get("EvaluationPeriods") or 1)
    return "ALARM" if sum(map(bool, breaching)) >= needed else "OK"


def _values(alarm: _Alarm, period_end: float) -> list[Value]:
    """What the alarm watches, one value for each of its last N periods."""
    count = int(alarm.get("EvaluationPeriods") or 1)
    queries = alarm.get("Metrics")
    if not queries:
        statistic = alarm.get("ExtendedStatistic") or alarm.get("Statistic") or "Average"
        return _statistics(alarm, _period(alarm), statistic, count, period_end)
    series: dict[str, list[Value]] = {}
    count += 1  # the period before them is what DIFF compares the first one with
    for query in queries:
        if stat := query.get("MetricStat"):
            metric, period = stat["Metric"], int(stat["Period"])
            series[query["Id"]] = _statistics(metric, period, stat["Stat"], count, period_end)
    for query in queries:
        if expression := query.get("Expression"):
            at = [{name: values[i] for name, values in series.items()} for i in range(count)]
            series[query["Id"]] = [
                evaluate(expression, values, at[i - 1] if i else None)
                for i, values in enumerate(at)
            ]
    returned = [q["Id"] for q in queries if str(q.get("ReturnData", True)).lower() == "true"]
    return series[returned[-1]][1:]


def _statistics(
    metric: dict[str, Any], period: int, statistic: str, count: int, period_end: float
) -> list[Value]:
    dimensions = cloudwatch._dims_from_list(metric.get("Dimensions") or [])
    key = (metric["Namespace"], metric["MetricName"], cloudwatch._dims_key(dimensions))
    points = list(cloudwatch._metrics.get(key) or ())
    values: list[Value] = []
    for age in range(count, 0, -1):
        start = period_end - age * period
        bucket = [p for p in points if start <= p["Timestamp"] < start + period]
        values.append(
            cloudwatch._stat_value(cloudwatch._calc_stats(bucket), statistic, bucket)
            if bucket
            else None
        )
    return values


def install() -> None:
    cloudwatch._evaluate_alarm = lambda _alarm: None  # evaluated by the turn, not by PutMetricData
