"""Worlds drawn at random: `python -m bench.play --scenario drawn:7 --seed 7` plays the seventh again.

`python -m bench scenario-soak` draws some hundreds.
"""

from __future__ import annotations

import pytest

from simulator.limits import breaches_of_run
from simulator.scenarios import drawn, named

SEEDS = range(8)


@pytest.mark.enumeration
@pytest.mark.parametrize("seed", SEEDS)
def test_in_no_world_is_a_letter_lost_or_a_good_one_parked(seed: int) -> None:
    scenario = drawn(seed)

    run = scenario.played(seed).measures

    assert list(breaches_of_run(scenario.limits, run)) == [], scenario.title


def test_a_seed_draws_the_same_world_each_time_and_another_another() -> None:
    assert drawn(5).title == named("drawn:5").title
    assert len({drawn(seed).title for seed in range(100)}) == 100


def test_the_worlds_drawn_have_every_kind_of_trouble() -> None:
    """Else a soak would pass without them."""
    worlds = [drawn(seed) for seed in range(200)]
    consumers = [one.consumer(0) for one in worlds]

    assert {one.settings.schedule_minutes for one in worlds} == {1, 5, 15}
    assert {one.conditions.count_noise for one in worlds} == {0, 2, 5}
    assert {bool(one.traffic) for one in worlds} == {True, False}
    assert any(one.outage and one.outage.share == 1 for one in worlds)
    assert any(one.outage and one.outage.share < 1 for one in worlds)
    assert any(one.poison for one in worlds)
    assert any(one.failure_probability for one in consumers)
    assert {one.backoff_seconds for one in consumers} == {0, 60, 300, 900}
    assert any(one.processing_seconds for one in consumers)
    assert len({one.health for one in consumers}) > 1


def test_a_consumer_drawn_is_given_the_time_that_it_takes() -> None:
    """Else its messages would be done twice, by nobody's fault but its own."""
    for seed in range(200):
        world = drawn(seed)
        taken = world.consumer(0).processing_seconds
        assert taken < world.conditions.visibility_timeout
