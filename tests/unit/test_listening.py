"""When it is worth listening for reports every few seconds, and what the passes of one invocation say together."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest

from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.model.permit import (
    LISTENING,
    REPORTS_EXPECTED,
    expects_reports,
    is_worth_listening,
)
from smart_redriver.engine.model.queue_metrics import QueueMetrics
from smart_redriver.engine.passes.assess import OnceAMinute
from smart_redriver.engine.report import Outcome, Report, report_of_invocation
from tests.unit.examples import NOW, a_batch, a_circuit, ago, ahead

SECOND = timedelta(seconds=1)


def out(**changes: Any) -> Any:
    """A batch whose letters went out half a minute ago."""
    sent = ago(seconds=30)
    return a_batch(**{"sent_at": sent, "first_try_at": sent, "last_try_at": sent} | changes)


def listens(*pending: Any, heard_at: datetime | None = ago(minutes=30)) -> bool:  # noqa: B008
    return is_worth_listening(a_circuit(pending=pending, heard_at=heard_at), NOW)


def test_it_is_worth_it_while_letters_are_out_at_a_consumer_that_reports() -> None:
    assert listens(out())


@pytest.mark.parametrize(
    ("heard_at", "reports"),
    [
        (None, False),
        (NOW - REPORTS_EXPECTED - SECOND, False),
        (NOW - REPORTS_EXPECTED, True),
        (NOW, True),
    ],
    ids=["never", "more than a day ago", "a day ago", "now"],
)
def test_a_consumer_that_does_not_report_is_not_listened_to(
    heard_at: datetime | None, reports: bool
) -> None:
    assert listens(out(), heard_at=heard_at) == reports
    assert expects_reports(a_circuit(heard_at=heard_at), NOW) == reports


def test_with_nothing_out_there_is_nothing_to_hear() -> None:
    assert not listens(heard_at=NOW)


@pytest.mark.parametrize(("seconds_over", "worth_it"), [(0, True), (1, False)])
def test_it_ends_some_time_after_the_last_try_or_report(seconds_over: int, worth_it: bool) -> None:
    then = NOW - LISTENING - timedelta(seconds=seconds_over)
    long_out = out(first_try_at=ago(hours=1), last_try_at=ago(hours=1))

    assert listens(out(first_try_at=then, last_try_at=then)) == worth_it
    assert listens(long_out, heard_at=then) == worth_it


@pytest.mark.parametrize(("seconds_over", "worth_it"), [(-1, True), (0, True), (1, False)])
def test_it_begins_when_the_first_of_them_can_be_received_soon(
    seconds_over: int, worth_it: bool
) -> None:
    first = NOW + LISTENING + timedelta(seconds=seconds_over)

    assert listens(out(first_try_at=first, last_try_at=first)) == worth_it


def test_letters_that_nobody_can_receive_yet_are_not_listened_for() -> None:
    """A batch can be delayed by fifteen minutes, and a pass every five seconds would find nothing."""
    delayed = out(first_try_at=ahead(minutes=2), last_try_at=ahead(minutes=15))
    paced = out(first_try_at=ahead(seconds=10), last_try_at=ahead(minutes=15))

    assert not listens(delayed)
    assert listens(paced)
    assert listens(delayed, out())


# One report of an invocation.


def a_report(**changes: Any) -> Report:
    return Report(**{"queue": "orders", "mode": "automatic"} | changes)


def test_the_report_of_a_visit_of_one_pass_is_that_passs() -> None:
    one = a_report(redriven=3, heard=Counter(succeeded=2), look_again_seconds=60)

    assert report_of_invocation([one]) == one


def test_what_passes_did_adds_up_and_how_things_stand_is_as_the_last_found_them() -> None:
    first = a_report(
        redriven=5,
        depth=100,
        heard=Counter(succeeded=1),
        parked=Counter(PERMANENT=1),
        held=Counter(NO_PERMIT=9),
        faults=Counter({"SendMessage:Throttled": 1}),
        verdicts=[{"batch": 1}],
        duration_seconds=1.5,
        look_again_seconds=5,
    )
    second = a_report(
        redriven=20,
        depth=80,
        heard=Counter(succeeded=4, failed=1),
        held=Counter(NO_PERMIT=3),
        verdicts=[{"batch": 2}],
        duration_seconds=2.0,
        look_again_seconds=60,
        outcome=Outcome.WAITING,
    )

    whole = report_of_invocation([first, second])

    assert (whole.redriven, whole.depth, whole.duration_seconds) == (25, 80, 3.5)
    assert whole.heard == Counter(succeeded=5, failed=1)
    assert (whole.parked, whole.held) == (Counter(PERMANENT=1), Counter(NO_PERMIT=3))
    assert whole.faults == Counter({"SendMessage:Throttled": 1})
    assert whole.verdicts == [{"batch": 1}, {"batch": 2}]
    assert (whole.outcome, whole.look_again_seconds) == (Outcome.WAITING, 60)


def test_adding_up_leaves_the_passes_own_reports_alone() -> None:
    first, second = a_report(heard=Counter(failed=1)), a_report(heard=Counter(failed=2))

    report_of_invocation([first, second])

    assert (first.heard, second.heard) == (Counter(failed=1), Counter(failed=2))


def circuit_report(*states: str) -> dict[str, Any]:
    return {"queue": "orders", "before": states[0], "after": states[-1], "states": list(states)}


def test_the_circuit_of_a_visit_went_through_what_it_went_through_in_all_passes() -> None:
    passes = [
        a_report(circuit_before="OPEN", circuits=[circuit_report("OPEN", "HALF_OPEN")]),
        a_report(circuit_before="HALF_OPEN", circuits=[circuit_report("HALF_OPEN")]),
        a_report(circuit_before="HALF_OPEN", circuits=[circuit_report("HALF_OPEN", "CLOSED")]),
    ]

    whole = report_of_invocation(passes)

    assert whole.circuit_before == "OPEN"
    assert whole.circuits == [circuit_report("OPEN", "HALF_OPEN", "CLOSED")]


def test_a_visit_whose_last_pass_could_not_read_the_circuit_says_how_it_was_before() -> None:
    whole = report_of_invocation(
        [a_report(circuit_before="CLOSED"), a_report(outcome=Outcome.FAILED)]
    )

    assert whole.circuit_before == "CLOSED"
    assert whole.circuits == []


# Answers of CloudWatch are paid for.


class QueueMetricsReader:
    def __init__(self) -> None:
        self.asked: list[tuple[datetime, datetime, str]] = []
        self.is_down = False

    def since(self, start: datetime, now: datetime, queue_name: str) -> QueueMetrics:
        self.asked.append((start, now, queue_name))
        if self.is_down:
            raise CallFailed("GetMetricData", "Throttling", "later")
        return QueueMetrics()


def test_the_witness_is_asked_once_a_minute() -> None:
    metrics_reader = QueueMetricsReader()
    once = OnceAMinute(metrics_reader)

    for seconds in range(0, 125, 5):
        once.since(ago(hours=1), ahead(seconds=seconds), "orders")

    assert [now for _, now, _ in metrics_reader.asked] == [
        NOW,
        ahead(seconds=60),
        ahead(seconds=120),
    ]


def test_it_is_asked_again_about_another_queue_and_about_an_earlier_time() -> None:
    metrics_reader = QueueMetricsReader()
    once = OnceAMinute(metrics_reader)

    for start, queue in ((ago(hours=1), "orders"), (ago(hours=1), "refunds")):
        once.since(start, NOW, queue)
    once.since(ago(hours=2), NOW, "orders")
    once.since(ago(hours=1), NOW, "orders")

    assert len(metrics_reader.asked) == 3


def test_an_answer_that_did_not_come_is_asked_for_again() -> None:
    metrics_reader = QueueMetricsReader()
    once = OnceAMinute(metrics_reader)
    metrics_reader.is_down = True

    for _ in range(2):
        with pytest.raises(CallFailed):
            once.since(ago(hours=1), NOW, "orders")

    assert len(metrics_reader.asked) == 2
