"""How CloudWatch evaluates a metric alarm: from properties and statistics to a state. Pure.

One evaluator for two callers: the emulator, on its own metrics, and the benches and tests, on
series that were recorded or made up. It imports nothing but its neighbour, since the emulator runs
in an environment without the project's packages.

Sources: CloudWatch User Guide, "Alarm evaluation", "Alarm evaluation window", "Alarm warm-up
periods" and "Configuring how CloudWatch alarms treat missing data" (whose tables are tests here).
Left out: that data arrives late.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from emulator.metric_math import Value, evaluate

Properties = Mapping[str, Any]
#: A statistic of a metric over the data points from a start until before an end; None without any.
Statistic = Callable[[Properties, str, float, float], Value]

OK, ALARM, NO_DATA = "OK", "ALARM", "INSUFFICIENT_DATA"

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
#: CloudWatch looks at more periods than an alarm asks for; its guide shows two more.
_EXTRA_PERIODS = 2

_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "GreaterThanOrEqualToThreshold": operator.ge,
    "GreaterThanThreshold": operator.gt,
    "LessThanThreshold": operator.lt,
    "LessThanOrEqualToThreshold": operator.le,
}


def queries_of(alarm: Properties) -> Sequence[Properties]:
    """Return the queries of an alarm, whether it says so as one metric or as metric math."""
    if queries := alarm.get("Metrics"):
        return list(queries)
    statistic = alarm.get("ExtendedStatistic") or alarm.get("Statistic") or "Average"
    stat = {"Metric": alarm, "Period": alarm.get("Period") or _MINUTE, "Stat": statistic}
    return [{"Id": "only", "MetricStat": stat}]


def period_of(alarm: Properties) -> int:
    """The seconds of each of its periods. Raises ValueError if its metrics have different ones."""
    [period] = {int(q["MetricStat"]["Period"]) for q in queries_of(alarm) if "MetricStat" in q}
    return period


def periods_of(alarm: Properties) -> int:
    """How many periods it evaluates: the N of M of N."""
    return int(alarm.get("EvaluationPeriods") or 1)


def last_evaluation(alarm: Properties, now: float) -> float:
    """When it was evaluated last: every minute, or every hour if it reaches back for more than a day.

    The newest of its periods ends then: the window slides on with each evaluation.
    """
    step = _HOUR if period_of(alarm) * periods_of(alarm) > _DAY else _MINUTE
    return now // step * step


def next_state(
    alarm: Properties, statistic: Statistic, end: float, *, before: str, created: float
) -> tuple[str, list[Value]]:
    """The state by an evaluation at ``end``, and the values of its periods, oldest first.

    ``before`` is the state so far, ``created`` when the alarm was made or last changed.
    """
    period, count = period_of(alarm), periods_of(alarm)
    # One more at the front for DIFF to compare the first one with.
    ends = [end - age * period for age in range(count + _EXTRA_PERIODS, -1, -1)]
    found = values(queries_of(alarm), statistic, ends, period)
    known = [value for value in found if value is not None][-count:]
    if before == NO_DATA and len(known) < count and end < _end_of_warm_up(alarm, created):
        return NO_DATA, found
    crosses = _COMPARISONS[alarm["ComparisonOperator"]]
    breaching = [crosses(value, float(alarm.get("Threshold") or 0)) for value in known]
    return _state(alarm, breaching, before), found


def values(
    queries: Sequence[Properties], statistic: Statistic, ends: Sequence[float], period: int
) -> list[Value]:
    """Return the values of metric queries for the periods with these ends; the first is only there for DIFF."""
    series: dict[str, list[Value]] = {}
    for query in queries:
        if stat := query.get("MetricStat"):
            series[query["Id"]] = [
                statistic(stat["Metric"], stat["Stat"], end - period, end) for end in ends
            ]
    for query in queries:
        if expression := query.get("Expression"):
            at = [{name: found[i] for name, found in series.items()} for i in range(len(ends))]
            series[query["Id"]] = [
                evaluate(expression, now, at[i - 1] if i else None) for i, now in enumerate(at)
            ]
    # CloudFormation's booleans arrive in the emulator as text.
    [returned] = [q["Id"] for q in queries if str(q.get("ReturnData", True)).lower() == "true"]
    return series[returned][1:]


def _end_of_warm_up(alarm: Properties, created: float) -> float:
    """It ends early once data fills the window; until then the alarm says nothing."""
    configuration = alarm.get("WarmUpConfiguration") or {}
    return created + int(configuration.get("WarmUpPeriodDurationInMinutes") or 0) * _MINUTE


def _state(alarm: Properties, breaching: list[bool], before: str) -> str:
    """M breaching ones of the last N, where those that are missing count as the alarm says.

    Real data points decide if they can: one that is fine is enough not to keep an old state.
    """
    needed = int(alarm.get("DatapointsToAlarm") or periods_of(alarm))
    missing = periods_of(alarm) - len(breaching)
    treatment = alarm.get("TreatMissingData") or "missing"
    if sum(breaching) + (missing if treatment == "breaching" else 0) >= needed:
        return ALARM
    if not missing or not all(breaching) or treatment in ("breaching", "notBreaching"):
        return OK
    if treatment == "ignore":
        return before
    return ALARM if breaching else NO_DATA
