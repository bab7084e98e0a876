"""Evaluates synthesized CloudWatch alarms on recorded metrics, minute by minute, and says who was told what.

Each alarm by `emulator.alarm_evaluation`, as the emulator does; composites here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from bench.metric_record import MetricId, MetricRecord
from emulator import alarm_evaluation
from emulator.alarm_evaluation import ALARM, NO_DATA, OK, Properties, last_evaluation, next_state
from emulator.metric_math import Value

_MINUTE = 60


def values(
    queries: Sequence[Properties], record: MetricRecord, ends: Sequence[float], period: int
) -> list[Value]:
    """The values of metric queries for the periods with these ends; the first is only there for DIFF."""
    return alarm_evaluation.values(queries, _statistics(record), ends, period)


def metric_id(metric: Properties) -> MetricId:
    """The id of a metric as templates and calls of the API write it."""
    dimensions = {one["Name"]: one["Value"] for one in metric.get("Dimensions", ())}
    return MetricId.of(metric["Namespace"], metric["MetricName"], **dimensions)


def _statistics(record: MetricRecord) -> alarm_evaluation.Statistic:
    ids: dict[
        int, tuple[Properties, MetricId]
    ] = {}  # with what they are of, or its number could be another's

    def statistic(metric: Properties, name: str, start: float, end: float) -> Value:
        known = ids.get(id(metric)) or ids.setdefault(id(metric), (metric, metric_id(metric)))
        return record.statistic(known[1], name, start, end)

    return statistic


class Alarms:
    """The alarms of a template, with its references resolved, as time goes by.

    Attributes:
        states: each alarm's state by its logical id.
        told: when which topic was told that which alarm got into which state.

    """

    def __init__(self, resources: Mapping[str, Properties], record: MetricRecord) -> None:
        self._statistic = _statistics(record)
        self._metric = _of_type(resources, "AWS::CloudWatch::Alarm")
        self._composite = _of_type(resources, "AWS::CloudWatch::CompositeAlarm")
        self._of_name = {one["AlarmName"]: logical_id for logical_id, one in self._metric.items()}
        self.states = dict.fromkeys((*self._metric, *self._composite), NO_DATA)
        self.told: list[tuple[float, str, str, str]] = []
        self._known = dict.fromkeys(self.states, OK)
        self._evaluated: dict[str, float] = {}

    def watch(self, start: float, end: float) -> Iterator[float]:
        """Made at the start, evaluated every minute; yields each minute when that is done."""
        for minute in range(int(start // _MINUTE), int(end // _MINUTE) + 1):
            now = float(minute * _MINUTE)
            for name, alarm in self._metric.items():
                at = last_evaluation(alarm, now)
                if at != self._evaluated.get(name):
                    self._evaluated[name] = at
                    self.states[name], _ = next_state(
                        alarm, self._statistic, at, before=self.states[name], created=start
                    )
            for name, alarm in self._composite.items():
                self.states[name] = self._of_rule(alarm["AlarmRule"])
            for name, alarm in (*self._metric.items(), *self._composite.items()):
                self._tell(name, alarm, now)
            yield now

    def _of_rule(self, rule: str) -> str:
        named = {name: self.states[one] == ALARM for name, one in self._of_name.items()}
        # Only ALARM("...") and OR are in use; anything else is refused here.
        children = re.findall(r'ALARM\("([^"]+)"\)', rule)
        if rule != " OR ".join(f'ALARM("{child}")' for child in children):
            raise ValueError(f"not a rule of alarms joined by OR: {rule}")
        return ALARM if any(named[child] for child in children) else OK

    def _tell(self, name: str, alarm: Properties, now: float) -> None:
        state = self.states[name]
        if state in (self._known[name], NO_DATA):
            return
        self._known[name] = state
        for topic in alarm.get("AlarmActions" if state == ALARM else "OKActions", ()):
            self.told.append((now, topic, name, state))


def _of_type(resources: Mapping[str, Properties], kind: str) -> dict[str, Properties]:
    return {name: one["Properties"] for name, one in resources.items() if one["Type"] == kind}
