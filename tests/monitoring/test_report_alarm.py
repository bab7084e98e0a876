"""The alarm about reports that nobody reads: as patient as the re-driver is at an idle queue."""

from collections.abc import Callable

import pytest

from bench.synthesized import OUTCOMES
from tests.monitoring.given import Given

HOUR = 60


def ageing(given: Given, *, hours: int, read_after: int | None = None) -> None:
    """A report that waits, its age told every minute; read after some hours, or never."""
    minutes = range(hours * HOUR)
    end = hours if read_after is None else read_after
    given.queue(OUTCOMES, age=[60 * minute if minute <= end * HOUR else 0 for minute in minutes])


def test_reports_that_nobody_has_read_for_an_hour_warn(given: Given) -> None:
    ageing(given, hours=2)

    assert HOUR < min(given.alarms().minutes_in_alarm("ReportsUnread")) <= HOUR + 20


def test_reports_that_wait_for_the_next_look_warn_nobody(given: Given) -> None:
    ageing(given, hours=3, read_after=1)

    assert not given.alarms().fired("ReportsUnread")


def test_the_warning_ends_when_they_are_read(given: Given) -> None:
    ageing(given, hours=5, read_after=3)

    alarms = given.alarms()

    assert alarms.fired("ReportsUnread")
    assert not alarms.is_in_alarm("ReportsUnread")


@pytest.mark.parametrize(("hours", "fires"), [(7, False), (9, True)])
def test_a_queue_that_is_looked_at_every_four_hours_has_time_for_two_looks(
    given_with: Callable[..., Given], hours: int, fires: bool
) -> None:
    given = given_with(schedule_minutes="240")
    ageing(given, hours=hours)

    assert given.alarms().fired("ReportsUnread") is fires


def test_a_consumer_without_the_kit_warns_nobody(given: Given) -> None:
    given.passes(*[{}] * 60)

    assert not given.alarms().fired("ReportsUnread")
