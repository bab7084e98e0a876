"""Evaluates synthesized CloudWatch alarms on recorded metrics, as CloudWatch documents that it does.

Source: CloudWatch User Guide, "Using CloudWatch alarms" and "Configuring how alarms treat missing data".
Not AWS, but near enough to be wrong where an alarm is: M of N, missing data, metric math, composites and
their suppressors.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from bench.metric_record import MetricId, MetricRecord
from emulator.overlay.expressions import Value, evaluate

_MINUTE = 60
_HOUR = 3600
#: CloudWatch looks at more periods than an alarm asks for; its guide shows two more.
_EXTRA_PERIODS = 2

OK, ALARM, NO_DATA = "OK", "ALARM", "INSUFFICIENT_DATA"

_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "GreaterThanOrEqualToThreshold": operator.ge,
    "GreaterThanThreshold": operator.gt,
    "LessThanThreshold": operator.lt,
    "LessThanOrEqualToThreshold": operator.le,
}

Properties = Mapping[str, Any]


def values(
    queries: Sequence[Properties], record: MetricRecord, ends: Sequence[float], period: int
) -> list[Value]:
    """What metric queries return for the periods with these ends; the first is only there for DIFF."""
    series: dict[str, list[Value]] = {}
    for query in queries:
        if stat := query.get("MetricStat"):
            metric = metric_id(stat["Metric"])
            series[query["Id"]] = [
                record.statistic(metric, stat["Stat"], end - period, end) for end in ends
            ]
    for query in queries:
        if expression := query.get("Expression"):
            at = [{name: found[i] for name, found in series.items()} for i in range(len(ends))]
            series[query["Id"]] = [
                evaluate(expression, now, at[i - 1] if i else None) for i, now in enumerate(at)
            ]
    [returned] = [query["Id"] for query in queries if query.get("ReturnData", True)]
    return series[returned][1:]


def metric_id(metric: Properties) -> MetricId:
    """Of a metric as templates and calls of the API write it."""
    dimensions = {one["Name"]: one["Value"] for one in metric.get("Dimensions", ())}
    return MetricId.of(metric["Namespace"], metric["MetricName"], **dimensions)


def queries_of(alarm: Properties) -> Sequence[Properties]:
    """What an alarm asks for, whether it says so as one metric or as metric math."""
    if queries := alarm.get("Metrics"):
        return list(queries)
    stat = {"Metric": alarm, "Period": alarm["Period"], "Stat": alarm["Statistic"]}
    return [{"Id": "only", "MetricStat": stat}]


def period_of(alarm: Properties) -> int:
    """The seconds of each of its periods. Raises ValueError if its metrics have different ones."""
    [period] = {int(q["MetricStat"]["Period"]) for q in queries_of(alarm) if "MetricStat" in q}
    return period


def last_end(alarm: Properties, now: float) -> float:
    """When the newest period that is over ended: periods are the clock's, long ones end every hour."""
    step = min(period_of(alarm), _HOUR)
    return now // step * step


def judge(alarm: Properties, record: MetricRecord, end: float, before: str) -> str:
    """The alarm's next state when its period with this end is over, `before` being its last one."""
    period, count = period_of(alarm), int(alarm["EvaluationPeriods"])
    ends = [end - age * period for age in range(count + _EXTRA_PERIODS, -1, -1)]
    crosses, threshold = _COMPARISONS[alarm["ComparisonOperator"]], float(alarm["Threshold"])
    seen = [
        crosses(value, threshold)
        for value in values(queries_of(alarm), record, ends, period)
        if value is not None
    ][-count:]
    return _state(seen, count - len(seen), alarm, before)


def _state(seen: list[bool], missing: int, alarm: Properties, before: str) -> str:
    needed, treatment = int(alarm["DatapointsToAlarm"]), alarm["TreatMissingData"]
    if sum(seen) + (missing if treatment == "breaching" else 0) >= needed:
        return ALARM
    if treatment == "ignore" and sum(seen) + missing >= needed:
        return before
    return OK


class Alarms:
    """The alarms of a template, with its references resolved, as time goes by.

    Attributes:
        states: each alarm's state by its logical id.
        told: when which topic was told that which alarm got into which state.

    """

    def __init__(self, resources: Mapping[str, Properties], record: MetricRecord) -> None:
        self._record = record
        self._metric = _of_type(resources, "AWS::CloudWatch::Alarm")
        self._composite = _of_type(resources, "AWS::CloudWatch::CompositeAlarm")
        self.states = dict.fromkeys((*self._metric, *self._composite), NO_DATA)
        self.told: list[tuple[float, str, str, str]] = []
        self._known = dict.fromkeys(self.states, OK)
        self._judged: dict[str, float] = {}
        self._since = dict.fromkeys(self.states, float("-inf"))

    def watch(self, start: float, end: float) -> Iterator[float]:
        """Evaluate them every minute; yields each minute when that is done."""
        for minute in range(int(start // _MINUTE), int(end // _MINUTE) + 1):
            now = float(minute * _MINUTE)
            for name, alarm in self._metric.items():
                end = last_end(alarm, now)
                if end != self._judged.get(name):
                    self._judged[name] = end
                    self._become(name, judge(alarm, self._record, end, self.states[name]), now)
            for name, alarm in self._composite.items():
                self._become(name, self._of_rule(alarm["AlarmRule"]), now)
            for name, alarm in (*self._metric.items(), *self._composite.items()):
                self._tell(name, alarm, now)
            yield now

    def _become(self, name: str, state: str, now: float) -> None:
        if state != self.states[name]:
            self.states[name], self._since[name] = state, now

    def _of_rule(self, rule: str) -> str:
        named = {name: state == ALARM for name, state in self.states.items()}
        # Only ALARM("...") and OR are in use; anything else is refused here.
        children = re.findall(r'ALARM\("([^"]+)"\)', rule)
        if rule != "(" + " OR ".join(f'ALARM("{child}")' for child in children) + ")":
            raise ValueError(f"not a rule of alarms joined by OR: {rule}")
        return ALARM if any(named[child] for child in children) else OK

    def _tell(self, name: str, alarm: Properties, now: float) -> None:
        state = self.states[name]
        if state in (self._known[name], NO_DATA) or self._is_suppressed(name, alarm, now):
            return
        self._known[name] = state
        for topic in alarm.get("AlarmActions" if state == ALARM else "OKActions", ()):
            self.told.append((now, topic, name, state))

    def _is_suppressed(self, name: str, alarm: Properties, now: float) -> bool:
        """While the suppressor is in ALARM, a while longer, and while it may still get there."""
        suppressor = alarm.get("ActionsSuppressor")
        if suppressor is None:
            return False
        return (
            self.states[suppressor] == ALARM
            or now - self._since[suppressor] < alarm["ActionsSuppressorExtensionPeriod"]
            or now - self._since[name] < alarm["ActionsSuppressorWaitPeriod"]
        )


def _of_type(resources: Mapping[str, Properties], kind: str) -> dict[str, Properties]:
    return {name: one["Properties"] for name, one in resources.items() if one["Type"] == kind}
