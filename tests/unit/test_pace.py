"""Deliveries that no queue can delay are spread by the pass itself."""

import pytest

from smart_redriver.engine.targets.target_source import Pace


class Watch:
    """Seconds that pass when somebody waits."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def wait(self, seconds: float) -> None:
        self.now += seconds


def delivered_at(rate: float, count: int, *, each_takes: float = 0.0) -> list[float]:
    watch = Watch()
    pace = Pace(rate, clock=lambda: watch.now, pause=watch.wait)
    moments = []
    for _ in range(count):
        pace.wait()
        moments.append(watch.now - 1_000)
        watch.now += each_takes
    return moments


def test_deliveries_come_no_faster_than_the_rate() -> None:
    assert delivered_at(4, 5) == [0, 0.25, 0.5, 0.75, 1]


def test_what_takes_longer_than_its_share_does_not_wait_as_well() -> None:
    assert delivered_at(4, 3, each_takes=1) == [0, 1, 2]


def test_time_that_was_not_used_is_not_made_up_for() -> None:
    watch = Watch()
    pace = Pace(1, clock=lambda: watch.now, pause=watch.wait)
    pace.wait()
    watch.now += 60

    moments = []
    for _ in range(3):
        pace.wait()
        moments.append(watch.now - 1_060)

    assert moments == [0, 1, 2]


@pytest.mark.parametrize("count", [1, 50])
def test_without_a_limit_nobody_waits(count: int) -> None:
    assert delivered_at(0, count) == [0] * count
