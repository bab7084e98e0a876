"""The error rate's bounds are the published ones, and its tries are those of the real pass."""

import pytest

from bench.error_rate import ALLOWED, CHANCE, WALD, clopper_pearson, pills_of
from smart_redriver.engine.config.settings import Settings


@pytest.mark.parametrize(
    ("hits", "of", "low", "high"),
    [
        (0, 10, 0.0, 0.30850),
        (1, 10, 0.0025286, 0.44502),
        (5, 10, 0.18709, 0.81291),
        (10, 10, 0.69150, 1.0),
        (0, 1_000_000, 0.0, 3.68887e-6),
        (100_000, 1_000_000, 0.0994126, 0.1005896),
    ],
)
def test_the_bounds_are_those_of_clopper_and_pearson(
    hits: int, of: int, low: float, high: float
) -> None:
    assert clopper_pearson(hits, of) == pytest.approx((low, high), rel=1e-4, abs=1e-5 / of)


def test_a_pill_is_tried_as_often_as_its_settings_say_before_it_is_parked() -> None:
    pills = pills_of(Settings(max_attempts=3, last_chance_seconds=0), seed=1)

    assert len(pills) == 20
    assert min(len(one.tries) for one in pills) >= 3
    assert all(one.tries[-1] < one.parked for one in pills)


def test_walds_test_has_enough_when_chance_alone_would_seldom_do_it() -> None:
    assert pytest.approx(ALLOWED) == CHANCE**WALD
