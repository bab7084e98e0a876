"""How CloudWatch evaluates a metric alarm: from properties and statistics to a state. Pure.

One evaluator for two callers: the emulator uses it on its own metrics, and benches and tests on series that were
recorded or made up. It imports only its neighbour, because the emulator runs in an environment without the project's
packages.

Sources: CloudWatch User Guide, "Alarm evaluation", "Alarm evaluation window", "Alarm warm-up periods" and "Configuring
how CloudWatch alarms treat missing data" (whose tables are tests here). Late data is not modelled.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from emulator.metric_math import Value, evaluate

Properties = Mapping[str, Any]
#: A metric's statistic over the data points from a start until before an end; None if there are none.
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
    """Return an alarm's queries, whether it has a single metric or metric math."""
    if queries := alarm.get("Metrics"):
        return list(queries)
    statistic = alarm.get("ExtendedStatistic") or alarm.get("Statistic") or "Average"
    stat = {"Metric": alarm, "Period": alarm.get("Period") or _MINUTE, "Stat": statistic}
    return [{"Id": "only", "MetricStat": stat}]


def period_of(alarm: Properties) -> int:
    """The length of each of its periods in seconds. Raises ValueError if its metrics have different ones."""
    [period] = {int(q["MetricStat"]["Period"]) for q in queries_of(alarm) if "MetricStat" in q}
    return period


def periods_of(alarm: Properties) -> int:
    """How many periods it evaluates: the N of M of N."""
    return int(alarm.get("EvaluationPeriods") or 1)


def last_evaluation(alarm: Properties, now: float) -> float:
    """When it was last evaluated: every minute, or every hour if it looks back more than a day.

    Its newest period ends then: the window slides on with each evaluation.
    """
    step = _HOUR if period_of(alarm) * periods_of(alarm) > _DAY else _MINUTE
    return now // step * step


def next_state(
    alarm: Properties, statistic: Statistic, end: float, *, before: str, created: float
) -> tuple[str, list[Value]]:
    """The state after an evaluation at ``end``, and the values of its periods, oldest first.

    ``before`` is the state so far; ``created`` is when the alarm was made or last changed.
    """
    period, count = period_of(alarm), periods_of(alarm)
    # One more period at the front, so that DIFF can compare the first one with it.
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
    """Return the values of metric queries for the periods with these ends. The first value is only for DIFF."""
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
    """The warm-up ends early once data fills the window. Until then the alarm says nothing."""
    configuration = alarm.get("WarmUpConfiguration") or {}
    return created + int(configuration.get("WarmUpPeriodDurationInMinutes") or 0) * _MINUTE


def _state(alarm: Properties, breaching: list[bool], before: str) -> str:
    """ALARM if M of the last N periods are breaching. Missing data points count as the alarm says.

    Real data points decide if they can: one that is not breaching is enough to leave an old state.
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
