"""Series that are made up, minute by minute, and what the alarms make of them."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from bench.alarm_states import Alarms
from bench.metric_record import FUNCTION, MetricId, MetricRecord, emitted_by
from emulator.alarm_evaluation import ALARM
from simulator.world import DLQ, PARKING_LOT, SOURCE
from smart_redriver.engine.report import Outcome, Report

#: Midnight, so that every period of an alarm begins here.
MIDNIGHT = 1_799_971_200
MINUTE = 60
TICK = 5

_VISIBLE = "ApproximateNumberOfMessagesVisible"
_HIDDEN = "ApproximateNumberOfMessagesNotVisible"
_DELAYED = "ApproximateNumberOfMessagesDelayed"
_AGE = "ApproximateAgeOfOldestMessage"
_RECEIVED = "NumberOfMessagesReceived"


def circuit(*states: str, queue: str = SOURCE) -> dict[str, Any]:
    """What a report says of the circuit of a source queue that went through these states."""
    return {"queue": queue, "states": list(states), "window": 5}


class Given:
    """What CloudWatch was told from midnight on. A value of None is a minute without data."""

    def __init__(self, resources: Mapping[str, Any]) -> None:
        self._resources = resources
        self._record = MetricRecord()
        self._minutes = 0

    def dead_letters(self, **series: Iterable[float | None]) -> None:
        """`visible`, `hidden` and `age`, each a value a minute."""
        self.queue(DLQ, **series)

    def source(self, **series: Iterable[float | None]) -> None:
        """`visible`, `delayed`, `age` and `received`."""
        self.queue(SOURCE, **series)

    def parking_lot(self, **series: Iterable[float | None]) -> None:
        """`visible`."""
        self.queue(PARKING_LOT, **series)

    def passes(self, *reports: Mapping[str, Any], every: int = TICK, since: int = 0) -> None:
        """The reports of passes, each as what differs from a pass over an empty DLQ.

        In the minutes between them the function is invoked and finds nothing due.
        """
        for number, fields in enumerate(reports):
            looks_at = since + number * every
            self.one_pass(looks_at, **fields)
            for minute in range(looks_at + 1, looks_at + every):
                self.invocation(minute)

    def one_pass(self, minute: int, **fields: Any) -> None:
        """A pass that started in this minute and reported these fields."""
        report = Report(queue=SOURCE, mode="automatic")
        idle = {
            "outcome": Outcome.IDLE,
            "circuits": [circuit("CLOSED")],
            "depth": 0,
            "parked_depth": 0,
            "parked": Counter(),
            "oldest_waiting_seconds": 0,
            "suspects_waiting": 0,
        }
        for name, value in {**idle, **fields}.items():
            setattr(report, name, value)
        for told in emitted_by(report):
            self._put(told.metric, minute, *told.values)
        self.invocation(minute)

    def invocation(self, minute: int, *, errors: int = 0) -> None:
        """Lambda started the function."""
        for name, count in (("Invocations", 1), ("Errors", errors), ("Throttles", 0)):
            self._put(_of_lambda(name), minute, count)

    def throttle(self, minute: int) -> None:
        """Lambda refused to start it."""
        self._put(_of_lambda("Throttles"), minute, 1)

    def until(self, minute: int) -> None:
        """Go on watching although there is no data any more."""
        self._minutes = max(self._minutes, minute)

    def alarms(self) -> "Watched":
        """The alarms' states, evaluated every minute until all data is in."""
        alarms = Alarms(self._resources, self._record)
        end = MIDNIGHT + (self._minutes + 2 * TICK) * MINUTE
        past = [dict(alarms.states) for _ in alarms.watch(MIDNIGHT, end)]
        return Watched(past, alarms)

    def queue(self, queue: str, **series: Iterable[float | None]) -> None:
        """SQS's own metrics of any queue."""
        names = {
            "visible": _VISIBLE,
            "hidden": _HIDDEN,
            "delayed": _DELAYED,
            "age": _AGE,
            "received": _RECEIVED,
        }
        for short, values in series.items():
            metric = MetricId.of("AWS/SQS", names[short], QueueName=queue)
            for minute, value in enumerate(values):
                if value is not None:
                    self._put(metric, minute, value)
                self.until(minute)

    def _put(self, metric: MetricId, minute: int, *values: float) -> None:
        self._record.put(metric, MIDNIGHT + minute * MINUTE, *values)
        self.until(minute)


class Watched:
    """The alarms' past, by their construct ids."""

    def __init__(self, past: list[dict[str, str]], alarms: Alarms) -> None:
        self._past = past
        self._alarms = alarms

    def minutes_in_alarm(self, name: str) -> list[int]:
        """The minutes in which this alarm was in ALARM."""
        [logical_id] = [one for one in self._past[0] if _construct_id(one) == name]
        return [minute for minute, states in enumerate(self._past) if states[logical_id] == ALARM]

    def fired(self, name: str) -> bool:
        """Whether it ever was."""
        return bool(self.minutes_in_alarm(name))

    def is_in_alarm(self, name: str) -> bool:
        """Whether it is at the end."""
        return len(self._past) - 1 in self.minutes_in_alarm(name)

    def all_that_fired(self) -> set[str]:
        """The construct ids of all alarms that were ever in ALARM."""
        return {
            _construct_id(name)
            for states in self._past
            for name, state in states.items()
            if state == ALARM
        }

    @property
    def told(self) -> list[tuple[int, str, str]]:
        """Minute, alarm and state of each message to a topic."""
        return [
            (int(at - MIDNIGHT) // MINUTE, _construct_id(name), state)
            for at, _topic, name, state in self._alarms.told
        ]

    @property
    def pages(self) -> list[tuple[str, str]]:
        """Alarm and state of each message to the paging topic, in order."""
        return [
            (_construct_id(name), state)
            for _, topic, name, state in self._alarms.told
            if "Paging" in topic
        ]


def _of_lambda(name: str) -> MetricId:
    return MetricId.of("AWS/Lambda", name, FunctionName=FUNCTION)


def _construct_id(logical_id: str) -> str:
    return logical_id.partition("Monitoring")[2][:-8]
