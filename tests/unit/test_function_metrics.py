"""A function's metrics: successes of its events and of nobody else, told when they are sure."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.model.batch import Batch
from smart_redriver.engine.model.evidence import (
    Evidence,
    LiveOutcome,
    gather_evidence,
    live_outcome,
)
from smart_redriver.engine.model.function_metrics import FunctionMinute, metrics_of_function
from smart_redriver.engine.model.queue_metrics import QueueMetrics
from smart_redriver.engine.targets.functions import LATENESS, FunctionMetricsReader
from tests.unit.examples import NOW, a_batch, ago
from tests.unit.sqs_client import denial

NAME = "lambda:orders"

#: Of a function that fails within seconds: the waits between its tries, a minute more each, and CloudWatch's lateness.
TIME_TO_FAIL = timedelta(minutes=6)
MINUTES_TO_FAIL = 9

RECEIVED, INVOCATIONS, ERRORS, DROPPED, THROTTLES = (
    "AsyncEventsReceived",
    "Invocations",
    "Errors",
    "AsyncEventsDropped",
    "Throttles",
)


@dataclass
class Past:
    """What happened to a function, by how many minutes ago; `metrics` is what CloudWatch counted."""

    metrics: dict[str, Counter[int]] = field(
        default_factory=lambda: {
            one: Counter() for one in (RECEIVED, INVOCATIONS, ERRORS, DROPPED, THROTTLES)
        }
    )

    def count(self, metric: str, ago: int, times: int = 1) -> None:
        self.metrics[metric][ago] += times

    def fails(self, ago: int, waits: tuple[int, ...] = (0, 1, 2)) -> None:
        """An event is tried as often as there are waits, in minutes, and is dropped."""
        self.count(RECEIVED, ago)
        for wait in waits:
            ago -= wait
            self.count(INVOCATIONS, ago)
            self.count(ERRORS, ago)
        self.count(DROPPED, ago)

    def is_throttled(self, ago: int, gaps: list[int]) -> None:
        """An event is throttled now, and after each of these minutes; then it fails."""
        self.count(RECEIVED, ago)
        self.count(THROTTLES, ago)
        for gap in gaps:
            ago -= gap
            self.count(THROTTLES, ago)
        self.fails(ago, waits=(5, 1, 2))
        self.metrics[RECEIVED][ago] -= 1

    def succeeds(self, ago: int, failed_before: int = 0) -> None:
        """An event succeeds at the first try, or a minute later each time."""
        self.count(RECEIVED, ago)
        for _ in range(failed_before):
            self.count(INVOCATIONS, ago)
            self.count(ERRORS, ago)
            ago -= 1
        self.count(INVOCATIONS, ago)

    def is_invoked_otherwise(self, ago: int, times: int = 1, errors: int = 0) -> None:
        self.count(INVOCATIONS, ago, times)
        self.count(ERRORS, ago, errors)


class CloudWatch:
    """Tells of a past what is over at `now`, so many minutes after NOW; points in no order."""

    def __init__(self, past: Past, later: int = 0, fault: Exception | None = None) -> None:
        self.requests: list[dict[str, Any]] = []
        self._past = past
        self._later = later
        self._fault = fault

    def get_metric_data(self, **request: Any) -> Any:
        self.requests.append(request)
        if self._fault:
            raise self._fault
        return {
            "MetricDataResults": [
                self._result(one, request) for one in request["MetricDataQueries"]
            ]
        }

    def _result(self, query: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
        counted = self._past.metrics[query["MetricStat"]["Metric"]["MetricName"]]
        points = [
            (ago(minutes=one), float(value))
            for one, value in counted.items()
            if request["StartTime"] <= ago(minutes=one) < request["EndTime"]
        ]
        Random(1).shuffle(points)
        return {
            "Id": query["Id"],
            "Timestamps": [at for at, _ in points],
            "Values": [value for _, value in points],
            "StatusCode": "Complete",
        }


def metrics_of(past: Past, *, since: int = 60, later: int = 0) -> QueueMetrics:
    cloudwatch = CloudWatch(past, later)
    metrics = FunctionMetricsReader(cloudwatch, lambda name: TIME_TO_FAIL)
    return metrics.since(ago(minutes=since), NOW + timedelta(minutes=later), NAME)


def batch(size: int, minutes: int) -> Batch:
    return a_batch(
        size=size,
        sent_at=ago(minutes=minutes),
        first_try_at=ago(minutes=minutes),
        due_at=ago(minutes=minutes) + TIME_TO_FAIL,
    )


def evidence(past: Past, size: int, minutes: int, *, later: int = 0) -> Evidence:
    metrics = metrics_of(past, later=later)
    return gather_evidence(batch(size, minutes), (), metrics, max_receives=3)


def test_events_that_succeed_are_told_when_none_of_them_can_fail_any_more() -> None:
    past = Past()
    for failed_before in (0, 0, 0, 1, 2):
        past.succeeds(20, failed_before)

    told = [evidence(past, 5, 20, later=later).succeeded for later in range(-16, 4)]

    settled = told.index(3)
    assert told[:settled] == [0] * settled
    assert settled - 16 == MINUTES_TO_FAIL + 3 - 20 + 1
    assert told[settled:] == [3, 4] + [5] * (len(told) - settled - 2)


def test_where_events_succeed_the_metrics_end_with_those_that_had_time_to_fail() -> None:
    """What came later is not told yet, and waits for nothing in them."""
    past = Past()
    for minutes in (20, 14, 13, 5):
        past.succeeds(minutes)

    metrics = metrics_of(past)

    told = [(one.at, one.sent, one.deleted, one.held) for one in metrics.minutes if one.sent]
    assert told == [
        (ago(minutes=20), 1, 1, 0),
        (ago(minutes=14), 1, 1, 0),
        (ago(minutes=13), 1, 1, 0),
    ]
    assert metrics.minutes[-1].at == ago(minutes=3 + MINUTES_TO_FAIL + 1)


def test_letters_beside_steady_traffic_are_shown_when_they_had_time_to_fail() -> None:
    """What producers have sent since then is not taken for letters that nobody has tried."""
    past = Past()
    for minutes in range(4, 200):
        for _ in range(3):
            past.succeeds(minutes)
    for _ in range(5):
        past.succeeds(20)

    told = [evidence(past, 5, 20, later=later) for later in range(-17, 4)]

    first = -20 + 3 + MINUTES_TO_FAIL + 1
    assert [one.succeeded for one in told] == [0 if later < first else 5 for later in range(-17, 4)]
    assert told[-1].were_tried
    assert not told[-1].is_still_there


def test_events_that_were_dropped_have_failed() -> None:
    past = Past()
    for _ in range(5):
        past.fails(20)

    seen = evidence(past, 5, 20)

    assert (seen.succeeded, seen.failed) == (0, 5)


def test_where_every_try_fails_that_is_told_at_once() -> None:
    past = Past()
    for _ in range(5):
        past.fails(5, waits=(0,))

    assert evidence(past, 5, 5).failed_tries == 5
    assert live_outcome(metrics_of(past), ago(hours=1)) is LiveOutcome.FAILS


def test_tries_that_fail_while_others_may_be_succeeding_convict_nobody_yet() -> None:
    past = Past()
    past.succeeds(6)
    for _ in range(4):
        past.succeeds(6, failed_before=1)

    assert evidence(past, 5, 6).failed_tries == 0


def test_an_event_that_is_tried_again_later_is_still_there() -> None:
    past = Past()
    past.count(RECEIVED, 6)
    past.is_invoked_otherwise(6, errors=1)

    seen = evidence(past, 1, 6)

    assert (seen.succeeded, seen.failed, seen.is_still_there) == (0, 0, True)


def test_an_event_waits_for_its_next_try_or_for_its_first() -> None:
    past = Past()
    past.count(RECEIVED, 6, times=3)
    past.is_invoked_otherwise(6, errors=1)

    last = metrics_of(past).minutes[-1]

    assert (last.visible, last.delayed) == (2, 1)


def minutes_of(*counted: dict[str, int]) -> list[FunctionMinute]:
    """Minutes in which nothing was counted but this."""
    nothing = dict.fromkeys(("received", "invocations", "errors", "dropped", "throttles"), 0)
    return [FunctionMinute(at=NOW, **nothing | one) for one in counted]


@pytest.mark.parametrize(
    ("first", "dropped", "held"),
    [(0, 0, [0, 2, 2, 2]), (0, 1, [0, 2, 1, 1]), (0, 2, [0, 2, 0, 0]), (2, 2, [0, 2, 0, 0])],
)
def test_an_event_that_was_dropped_is_not_there_any_more(
    first: int, dropped: int, held: list[int]
) -> None:
    """Nor is one that was dropped before it was seen to be received."""
    counted = [{"dropped": first}, {}, {}, {}, {"received": 2}, {"dropped": dropped}, {}]

    metrics = metrics_of_function(minutes_of(*counted), minutes_to_fail=3)

    assert [one.held for one in metrics.minutes] == held


@pytest.mark.parametrize(("place", "is_known"), [(0, True), (1, True), (2, False), (3, False)])
@pytest.mark.parametrize("end", ["invocations", "dropped"])
def test_what_came_of_events_before_the_first_minutes_is_believed_of_these_alone(
    end: str, place: int, is_known: bool
) -> None:
    """An event that was received before the metrics begin has failed or succeeded by then."""
    counted: list[dict[str, int]] = [{}, {}, {}, {}, {}, {}]
    counted[place] = {end: 1}

    metrics = metrics_of_function(minutes_of(*counted), minutes_to_fail=2)

    assert bool(metrics.minutes) == is_known


def test_tries_of_minutes_that_are_settled_are_all_received_and_no_event_is_in_flight() -> None:
    counted = [{}, {"received": 3, "invocations": 4, "errors": 1}, {}, {}, {}]

    metrics = metrics_of_function(minutes_of(*counted), minutes_to_fail=1)

    assert [(one.received, one.deleted, one.in_flight) for one in metrics.minutes] == [
        (4, 3, 0),
        (0, 0, 0),
        (0, 0, 0),
        (0, 0, 0),
    ]
    assert not metrics.has_gauges


@pytest.mark.parametrize(("failed_at", "waiting"), [(3, (0, 1)), (2, (0, 1)), (1, (1, 0))])
def test_an_event_that_failed_lately_waits_for_its_next_try_and_one_that_failed_long_ago_for_none(
    failed_at: int, waiting: tuple[int, int]
) -> None:
    """It is taken for one that nobody has tried when its tries are longer ago than it takes to fail."""
    counted: list[dict[str, int]] = [{}, {}, {}, {}]
    counted[failed_at] = {"invocations": 1, "errors": 1}
    counted[2] = counted[2] | {"received": 1}

    last = metrics_of_function(minutes_of(*counted), minutes_to_fail=2).minutes[-1]

    assert (last.visible, last.delayed) == waiting


def test_an_event_that_fails_in_the_next_minute_has_not_been_tried_yet() -> None:
    counted = [{}, {}, {"received": 1}, {"invocations": 1, "errors": 1}]

    metrics = metrics_of_function(minutes_of(*counted), minutes_to_fail=2)

    assert [(one.visible, one.delayed) for one in metrics.minutes] == [(1, 0), (0, 1)]


@pytest.mark.parametrize(
    ("dropped", "told"), [(0, [(0, 0), (1, 0)]), (1, [(0, 1), (0, 1)]), (2, [(0, 2), (0, 2)])]
)
def test_of_the_last_successes_as_many_are_told_as_leave_what_was_dropped_since(
    dropped: int, told: list[tuple[int, int]]
) -> None:
    """Events that were dropped may have been there, and others may have had the successes."""
    last = {"received": 3, "invocations": 1, "dropped": dropped}
    counted = [{}, {}, {}, {"received": 1, "invocations": 1}, {"received": 1}, last]

    metrics = metrics_of_function(minutes_of(*counted), minutes_to_fail=2)

    assert [(one.deleted, one.held) for one in metrics.minutes] == told


def test_an_event_of_the_very_first_minute_is_held_as_long_as_it_takes_to_fail() -> None:
    metrics = metrics_of_function(minutes_of({"received": 1}, {}, {}, {}), minutes_to_fail=2)

    assert [one.held for one in metrics.minutes] == [1, 0]


def test_an_event_that_nothing_came_of_is_not_there_again_when_another_is_received() -> None:
    counted: list[dict[str, int]] = [{"received": 1}, {}, {}, {}, {"received": 1}]

    metrics = metrics_of_function(minutes_of(*counted), minutes_to_fail=2)

    assert [one.held for one in metrics.minutes] == [1, 0, 1]


def test_while_throttles_of_the_very_first_minutes_last_nothing_is_told() -> None:
    first = {"received": 2, "invocations": 1, "throttles": 1}

    metrics = metrics_of_function(minutes_of(first, {}, {}, {}, {}), minutes_to_fail=2)

    assert metrics.minutes == ()


@pytest.mark.parametrize(("throttled", "told"), [(2, 6), (3, 0), (5, 1), (8, 4), (9, 5)])
def test_while_a_throttled_event_may_come_again_all_minutes_since_stay_open(
    throttled: int, told: int
) -> None:
    """It comes again after five minutes at the latest; its minute may be that of any event that may still fail."""
    counted: list[dict[str, int]] = [{} for _ in range(10)]
    counted[throttled] = {"throttles": 1}
    counted[9] = counted[9] | {"received": 1, "invocations": 1}

    assert len(metrics_of_function(minutes_of(*counted), minutes_to_fail=2).minutes) == told


@pytest.mark.parametrize("since", [6, 30, 100])
def test_a_function_that_is_invoked_otherwise_has_no_metrics(since: int) -> None:
    past = Past()
    past.is_invoked_otherwise(since)

    assert metrics_of(past) == QueueMetrics()


def test_a_function_whose_events_come_and_go_all_the_time_has_metrics() -> None:
    """Some were under way when the look began."""
    past = Past()
    for minutes in range(4, 200):
        for failed_before in range(3):
            past.succeeds(minutes, failed_before)
    for _ in range(5):
        past.succeeds(20)

    seen = evidence(past, 5, 20)

    assert seen.live.succeeded > 15
    assert live_outcome(metrics_of(past), ago(hours=1)) is LiveOutcome.SUCCEEDS


def test_successes_of_others_are_no_letters_that_were_dropped_after_them() -> None:
    """In the last minute whose events all had time to fail; events that came since make up for them in the sum."""
    past = Past()
    for _ in range(3):
        past.fails(14)
    past.is_invoked_otherwise(13, times=3)
    past.count(RECEIVED, 12, times=3)
    past.succeeds(5)

    metrics = metrics_of(past)

    assert metrics.minutes[-1].at == ago(minutes=13)
    assert evidence(past, 3, 14).succeeded == 0


def test_after_throttles_what_succeeds_waits_to_be_told() -> None:
    past = Past()
    past.count(THROTTLES, 15)
    for _ in range(5):
        past.succeeds(20)

    assert [evidence(past, 5, 20, later=later).succeeded for later in (0, 2, 3, 9)] == [0, 0, 5, 5]


def test_more_errors_than_invocations_are_none_that_can_be_believed() -> None:
    past = Past()
    past.count(ERRORS, 10)

    assert metrics_of(past) == QueueMetrics()


COUNTS = st.dictionaries(st.integers(-30, 120), st.integers(1, 5), max_size=6)


@given(
    size=st.integers(1, 8),
    waits=st.lists(
        st.tuples(st.integers(0, 1), st.integers(1, 2), st.integers(2, 3)), min_size=8, max_size=8
    ),
    otherwise=COUNTS,
    errors=COUNTS,
    live=COUNTS,
    live_failing=COUNTS,
)
@example(8, [(0, 1, 2)] * 8, {20: 5, 12: 3}, {}, {}, {})
@example(5, [(1, 2, 3)] * 8, {19: 5}, {}, {}, {})
@example(5, [(1, 2, 3)] * 8, {20: 5}, {}, {20: 5, 14: 5, 12: 5}, {})
def test_a_batch_whose_letters_all_fail_never_shows_a_success(
    size: int,
    waits: list[tuple[int, ...]],
    otherwise: dict[int, int],
    errors: dict[int, int],
    live: dict[int, int],
    live_failing: dict[int, int],
) -> None:
    """Whoever else invokes the function, and whenever one looks."""
    past = Past()
    for place in range(size):
        past.fails(20, waits[place])
    for minutes, times in otherwise.items():
        past.is_invoked_otherwise(minutes, times)
    for minutes, times in errors.items():
        past.is_invoked_otherwise(minutes, times, times)
    for minutes, times in live.items():
        for failed_before in range(times):
            past.succeeds(minutes, failed_before % 3)
    for minutes, times in live_failing.items():
        for _ in range(times):
            past.fails(minutes)

    for later in range(-17, 15):
        assert evidence(past, size, 20, later=later).succeeded == 0


STEADY = st.dictionaries(st.integers(-30, 60), st.integers(1, 12), min_size=10, max_size=60)


@given(
    failing=st.lists(
        st.tuples(st.integers(0, 1), st.integers(1, 2), st.integers(2, 3)), min_size=1, max_size=8
    ),
    succeeding=st.lists(st.integers(0, 2), max_size=8),
    sent=st.integers(16, 24),
    live=STEADY,
    live_failing=st.one_of(COUNTS, STEADY),
    otherwise=st.one_of(COUNTS, STEADY),
)
def test_no_traffic_makes_successes_of_letters_that_fail(
    failing: list[tuple[int, ...]],
    succeeding: list[int],
    sent: int,
    live: dict[int, int],
    live_failing: dict[int, int],
    otherwise: dict[int, int],
) -> None:
    """However much of it, and however many invocations that nobody knows of succeed meanwhile."""
    past = Past()
    for waits in failing:
        past.fails(sent, waits)
    for failed_before in succeeding:
        past.succeeds(sent, failed_before)
    for minutes, times in live.items():
        for number in range(times):
            past.succeeds(minutes, number % 3)
    for minutes, times in live_failing.items():
        for _ in range(times):
            past.fails(minutes)
    for minutes, times in otherwise.items():
        past.is_invoked_otherwise(minutes, times)

    size = len(failing) + len(succeeding)
    for later in range(-17, 15):
        assert evidence(past, size, sent, later=later).succeeded <= len(succeeding)


@given(
    gaps=st.lists(st.lists(st.integers(1, 5), max_size=5), min_size=1, max_size=5),
    otherwise=COUNTS,
)
@example([[5]], {20: 1})
def test_nor_does_one_whose_letters_are_throttled_before_they_fail(
    gaps: list[list[int]], otherwise: dict[int, int]
) -> None:
    past = Past()
    for one in gaps:
        past.is_throttled(20, one)
    for minutes, times in otherwise.items():
        past.is_invoked_otherwise(minutes, times)

    for later in range(-17, 40, 2):
        assert evidence(past, len(gaps), 20, later=later).succeeded == 0


@given(st.data())
def test_whatever_cloudwatch_counts_the_metrics_are_none_or_hold_together(
    data: st.DataObject,
) -> None:
    past = Past()
    for counted in past.metrics.values():
        counted.update(data.draw(COUNTS))

    for one in metrics_of(past).minutes:
        assert min(one.sent, one.received, one.deleted, one.held) >= 0
        assert one.deleted <= one.received


def test_a_functions_metrics_are_asked_for_by_its_name() -> None:
    cloudwatch = CloudWatch(Past())
    metrics = FunctionMetricsReader(cloudwatch, lambda name: TIME_TO_FAIL)

    metrics.since(ago(minutes=10), NOW, "lambda:orders")
    metrics.since(ago(minutes=10), NOW, "lambda:orders:live")

    first, second = (request["MetricDataQueries"] for request in cloudwatch.requests)
    dimensions = [one[0]["MetricStat"]["Metric"]["Dimensions"] for one in (first, second)]
    assert dimensions[0] == [{"Name": "FunctionName", "Value": "orders"}]
    assert dimensions[1] == [*dimensions[0], {"Name": "Resource", "Value": "orders:live"}]
    assert len(first) == 5
    assert {one["MetricStat"]["Stat"] for one in first} == {"Sum"}


def test_what_is_not_over_for_long_enough_is_not_asked_for() -> None:
    cloudwatch = CloudWatch(Past())
    metrics = FunctionMetricsReader(cloudwatch, lambda name: TIME_TO_FAIL)

    assert metrics.since(NOW - LATENESS, NOW, NAME) == QueueMetrics()
    assert cloudwatch.requests == []
    assert metrics.since(ago(minutes=10), NOW, NAME).minutes[0].at == ago(minutes=10)


def test_a_cloudwatch_that_does_not_answer_is_told() -> None:
    cloudwatch = CloudWatch(Past(), fault=denial("Throttling"))

    with pytest.raises(CallFailed, match="GetMetricData"):
        FunctionMetricsReader(cloudwatch, lambda name: TIME_TO_FAIL).since(
            ago(minutes=10), NOW, NAME
        )
