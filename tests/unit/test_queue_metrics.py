"""What the minutes of a source's metrics add up to: bounds of what became of its messages."""

from __future__ import annotations

from typing import Any

import pytest

from smart_redriver.engine.model.queue_metrics import Account, QueueMetrics
from tests.unit.examples import NOW, ago
from tests.unit.queue_minutes import a_minute


def an_account(**changes: Any) -> Account:
    """Ten messages that were sent and received, and are not deleted."""
    usual: dict[str, Any] = {
        "present": 0,
        "sent": 10,
        "received": 10,
        "deleted": 0,
        "left": 0,
        "left_at_least": 0,
        "waiting": 0,
        "in_flight": 0,
        "since": ago(minutes=5),
        "until": NOW,
        "deleted_lately": 0,
    }
    return Account(**usual | changes)


@pytest.mark.parametrize(
    ("deleted", "left_at_least", "done"),
    [(4, 0, 4), (10, 3, 7), (12, 0, 10), (4, 10, 0), (4, 12, 0)],
)
def test_no_more_messages_are_done_than_have_gone(
    deleted: int, left_at_least: int, done: int
) -> None:
    """A message may be deleted twice."""
    assert an_account(deleted=deleted, left_at_least=left_at_least).done == done


@pytest.mark.parametrize(
    ("before", "deleted", "in_flight", "failed"),
    [(0, 0, 0, 10), (3, 0, 0, 13), (0, 4, 0, 6), (0, 0, 4, 6), (3, 4, 2, 7), (0, 12, 0, -2)],
)
def test_receives_that_ended_without_a_delete_are_those_that_began_and_neither_last_nor_succeeded(
    before: int, deleted: int, in_flight: int, failed: int
) -> None:
    account = an_account(in_flight_before=before, deleted=deleted, in_flight=in_flight)

    assert account.failed_tries_of_all == failed


@pytest.mark.parametrize(("since", "before"), [(5, 0), (4, 3), (3, 5)])
def test_what_was_in_flight_before_a_span_is_what_the_minute_before_it_ended_with(
    since: int, before: int
) -> None:
    """Before the first minute that is known nothing is."""
    metrics = QueueMetrics(
        (a_minute(5, in_flight=3), a_minute(4, in_flight=5), a_minute(3, in_flight=7))
    )

    account = metrics.account(ago(minutes=since))

    assert account is not None
    assert account.in_flight_before == before


def test_a_gauge_that_was_not_told_says_that_nothing_was_in_flight() -> None:
    metrics = QueueMetrics((a_minute(5, in_flight=None), a_minute(4, in_flight=None)))

    account = metrics.account(ago(minutes=4))

    assert account is not None
    assert (account.in_flight_before, account.in_flight) == (0, 0)
