"""The simulator's consumers under more than they bear, and what redriving costs producers' messages."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from random import Random

import pytest

from simulator.capacity import FALLEN, Capacity
from simulator.consumers import Beyond, Consumer, Scaling, Validity
from simulator.measures import live_cost
from simulator.nobody import Nobody
from simulator.rivals import NativeMove
from simulator.scenarios import Scenario
from simulator.sources import LiveTraffic
from simulator.world import World, hours, minutes

SECOND = timedelta(seconds=1)


def capacity(per_second: float, beyond: Beyond) -> Capacity:
    return Capacity(Consumer(capacity_per_second=per_second, beyond=beyond), Random(1))


def test_where_messages_wait_it_takes_what_it_bears_and_parts_of_a_message_add_up() -> None:
    bears = capacity(2.5, Beyond.WAIT)

    assert [bears.room(SECOND, 100) for _ in range(4)] == [2, 3, 2, 3]


def test_where_tries_fail_those_fail_that_are_too_many() -> None:
    failing = capacity(20, Beyond.FAIL).overloaded(50, timedelta(), SECOND)

    assert (sum(failing), len(failing)) == (30, 50)


def test_where_throughput_collapses_it_follows_the_load_of_the_step_before() -> None:
    bears = capacity(20, Beyond.COLLAPSE)

    done = [tries - sum(bears.overloaded(tries, timedelta(), SECOND)) for tries in (80, 80, 10, 30)]

    assert done == [20, 5, 5, 20]


def test_one_that_falls_over_is_down_for_ten_minutes() -> None:
    bears = capacity(20, Beyond.FALL)

    bears.overloaded(20, timedelta(), SECOND)
    assert not bears.is_fallen(timedelta())
    bears.overloaded(21, SECOND, SECOND)
    bears.overloaded(21, 2 * SECOND, SECOND)

    assert bears.falls == [SECOND]
    assert bears.is_fallen(FALLEN)
    assert not bears.is_fallen(SECOND + FALLEN)
    assert not bears.is_fallen(timedelta())


def test_lambda_scales_while_messages_wait_and_begins_anew_when_none_do() -> None:
    bears = Capacity(Consumer(scaling=Scaling(batch_seconds=10, limit=12)), Random(1))

    rooms = [bears.room(SECOND, waiting) for waiting in (100, 100, 100, 0, 100)]

    assert rooms == [5, 10, 12, 5, 5]


WORLD = Scenario(
    name="own",
    title="",
    letters=600,
    consumer=lambda _: Consumer(capacity_per_second=20, beyond=Beyond.FAIL),
    traffic=LiveTraffic(per_minute=600),
    until=hours(2),
    step=SECOND,
)


def test_the_native_move_kills_producers_messages_of_a_consumer_that_fails_beyond_its_capacity() -> (
    None
):
    live = WORLD.played(0, NativeMove, watches_live=True).measures.live

    assert live is not None
    assert live.died == live.died_after_recovery > 0


def test_where_they_wait_none_dies_and_all_wait_longer() -> None:
    waiting = replace(
        WORLD, consumer=lambda _: Consumer(capacity_per_second=20, beyond=Beyond.WAIT)
    )
    live = waiting.played(0, NativeMove, watches_live=True).measures.live

    assert live is not None
    assert live.died == 0
    assert live.wait_p99_seconds == pytest.approx(30, abs=3)  # behind 600 letters at 20 a second


def test_what_befalls_them_without_letters_is_not_charged() -> None:
    def world() -> World:
        down = replace(WORLD, letters=0, consumer=lambda _: Consumer(failure_probability=0.9))
        one = down.world(0)
        one.run(Nobody(), until=minutes(10))
        return one

    cost = live_cost(world(), world(), timedelta())

    assert (cost.died, cost.died_after_recovery, cost.wait_p99_seconds) == (0, 0, 0)


def test_a_message_that_is_no_longer_valid_is_poison() -> None:
    perishing = replace(
        WORLD,
        letters=20,
        traffic=None,
        consumer=lambda _: Consumer(validity=Validity(lasts=minutes(10), share=0.5)),
    )
    world = perishing.world(0)
    world.run(Nobody(), until=minutes(11))

    world.spoil()

    assert 0 < len(world.poison) < 20
