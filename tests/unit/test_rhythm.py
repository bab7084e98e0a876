"""When a tick of the schedule looks, and when it is spared."""

from datetime import timedelta

import pytest

from smart_redriver.engine.passes.redrive_pass import TOLERANCE, Rhythm
from smart_redriver.engine.report import Report
from tests.unit.examples import NOW, QUEUE, ahead

SECOND = timedelta(seconds=1)


def report(look_again_seconds: int) -> Report:
    return Report(queue=QUEUE, mode="automatic", look_again_seconds=look_again_seconds)


def after_a_look(look_again_seconds: int) -> Rhythm:
    rhythm = Rhythm()
    rhythm.looked(report(look_again_seconds), NOW)
    return rhythm


def test_without_a_memory_the_first_tick_looks() -> None:
    assert Rhythm().is_due(NOW)


def test_a_tick_before_the_next_look_is_spared_and_the_one_at_its_time_is_not() -> None:
    rhythm = after_a_look(300)

    assert not rhythm.is_due(ahead(seconds=300) - TOLERANCE - SECOND)
    assert rhythm.is_due(ahead(seconds=300))
    assert rhythm.is_due(ahead(days=1))


def test_a_tick_that_comes_a_little_early_looks() -> None:
    assert after_a_look(300).is_due(ahead(seconds=300) - TOLERANCE)


@pytest.mark.parametrize(
    ("look_again_seconds", "ticks"), [(0, [1, 2, 3]), (60, [1, 2, 3]), (180, [3, 6, 9])]
)
def test_ticks_of_a_minute_look_as_often_as_the_passes_ask_for(
    look_again_seconds: int, ticks: list[int]
) -> None:
    rhythm, looks = after_a_look(look_again_seconds), []
    for minute in range(1, 10):
        if rhythm.is_due(ahead(minutes=minute)):
            rhythm.looked(report(look_again_seconds), ahead(minutes=minute))
            looks.append(minute)

    assert looks[:3] == ticks


def test_the_last_pass_decides_whatever_those_before_it_said() -> None:
    """A person's invocation may look in between, and find that there is something to wait for."""
    rhythm = after_a_look(3_600)

    rhythm.looked(report(60), ahead(minutes=1))

    assert rhythm.is_due(ahead(minutes=2))


def test_a_tolerance_lets_no_tick_look_twice_for_one_moment() -> None:
    rhythm = after_a_look(60)

    rhythm.looked(report(60), ahead(seconds=60) - TOLERANCE)

    assert not rhythm.is_due(ahead(seconds=60))
