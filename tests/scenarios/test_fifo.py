"""Dead letters of FIFO queues, redriven: in the order of their groups, whatever the consumer does."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from bench.play_options import parse
from simulator.scenarios import Played, named

WINDOW = timedelta(minutes=5)

#: Queues that one meets. Of a group of ten or more SQS shows no more than ten: of those behind them numbers tell.
WORLDS = {
    "a healthy consumer": "--letters 100 --groups 10",
    "as many groups as letters": "--letters 100 --groups 100",
    "one group": "--letters 20 --groups 1",
    "an outage": "--letters 100 --groups 20 --down-hours 2",
    "an outage of large groups": "--letters 60 --groups 3 --down-hours 2",
    "poison": "--letters 60 --groups 20 --poison 3 --down-hours 1",
    "every receive fails half of the time": "--letters 60 --groups 12 --receive-failures 0.5",
    "live messages": "--letters 60 --groups 12 --live-per-minute 6 --down-hours 1",
    "a partial outage": "--letters 60 --groups 12 --partial 0.4 --down-hours 2",
    "a consumer that flaps": "--letters 60 --groups 12 --flapping 10/10",
    "a long visibility timeout": "--letters 60 --groups 12 --visibility-timeout 900 --down-hours 3",
    "counts that are wrong": "--letters 60 --groups 12 --count-lag 60 --count-noise 2 --down-hours 1",
    "a twentieth of the calls throttled": "--scenario 12 --poison 0 --groups 40",
    "large groups, and every receive fails half of the time": "--letters 60 --groups 3 --receive-failures 0.5",
    "large groups in a partial outage": "--letters 60 --groups 4 --partial 0.4 --down-hours 2",
    "large groups and a consumer that flaps": "--letters 60 --groups 4 --flapping 10/10",
    "large groups, and it takes long to fail": "--letters 60 --groups 4"
    " --visibility-timeout 300 --receive-failures 0.4",
    "a consumer that is switched off, and fails then": "--letters 24 --groups 6 --off-hours 3 --receive-failures 0.5",
    "a consumer that is switched off for longer than a day": "--letters 24 --groups 6"
    " --off-hours 30 --receive-failures 0.5",
    "large groups and reports": "--letters 60 --groups 3 --receive-failures 0.5 --reports",
    "poison in large groups, reported as permanent": "--letters 60 --groups 3 --poison 3 --permanent",
}
SEEDS = range(2)


def play(options: str, seed: int) -> Played:
    asked = parse(f"--fifo {options} --seed {seed}".split())
    return asked.scenario.played(seed, asked.policy)


@pytest.mark.enumeration
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("options", WORLDS.values(), ids=WORLDS.keys())
def test_letters_go_back_in_the_order_of_their_groups_and_none_is_lost(
    options: str, seed: int
) -> None:
    played = play(options, seed)
    world, run = played.world, played.measures

    assert world.order.overtakings(world.letters) == []
    assert world.order.tried_past(world.letters) == []
    assert world.order.repeats(WINDOW) == []
    assert (run.lost, run.parked_wrongly, run.at_large) == (0, 0, 0)
    assert run.drained_after_minutes is not None


def test_live_messages_of_a_busy_queue_hardly_wait_for_letters() -> None:
    options = "--fifo --letters 600 --groups 600 --live-per-minute 600 --capacity 14 --seed 0"
    asked = parse(options.split())

    played = asked.scenario.played(0, asked.policy, watches_live=True)

    run, order = played.measures, played.world.order
    assert run.live is not None
    assert (
        run.live.wait_p99_seconds <= 30
    )  # as for a standard queue; 58 if all letters went at once
    assert run.live.died == 0
    assert order.overtakings(played.world.letters) == []
    assert order.repeats(WINDOW) == []
    assert (run.lost, run.parked_wrongly, run.at_large) == (0, 0, 0)


@pytest.mark.parametrize("row", ["21", "21:6h", "21:6h:half", "21:6h:open", "21:6h:paused"])
@pytest.mark.parametrize("groups", [1, 3])
def test_of_long_groups_that_near_their_expiry_nothing_is_lost(row: str, groups: int) -> None:
    """As many expire at once as would take days, one after the other."""
    scenario = named(row)
    in_groups = replace(scenario.conditions, fifo=True, groups=groups)

    played = replace(scenario, letters=1_000, conditions=in_groups).played(0)

    world = played.world
    assert world.lost() == set()
    assert world.order.overtakings(world.letters) == []
    assert world.order.repeats(WINDOW) == []
    assert len(set(world.deliveries.done) | set(world.parked())) == 1_000


def test_a_group_that_poison_blocks_slows_no_other() -> None:
    """A pill in one of ten groups; the others are drained as without it."""
    with_pill, without = (
        play("--letters 50 --groups 10 --poison 1", 0),
        play("--letters 50 --groups 10", 0),
    )
    group = next(
        group
        for group, bodies in with_pill.world.order.sent.items()
        if with_pill.world.poison & set(bodies)
    )

    def last_done(played: Played) -> timedelta:
        others = [
            one
            for name in played.world.order.sent
            if name != group
            for one in played.world.order.tries[name]
        ]
        return max(one.done_at for one in others if one.done_at is not None)

    assert last_done(with_pill) <= last_done(without) + timedelta(minutes=5)


def test_blocked_groups_wait_for_a_person_and_the_others_go_on() -> None:
    """With `fifo_poison=block` nothing overtakes a pill, not even once it is known to be one."""
    played = play(
        "--letters 60 --groups 20 --poison 3 --live-per-minute 2 --fifo-poison block --watch-hours 24",
        0,
    )
    world = played.world
    behind = {
        body
        for bodies in world.order.sent.values()
        for pill in world.poison & set(bodies)
        for body in bodies[bodies.index(pill) + 1 :]
    } & world.letters

    assert world.parked() == []
    assert world.lost() == set()
    assert behind
    assert not behind & set(world.deliveries.done)
    assert world.letters - behind - world.poison <= set(world.deliveries.done)


def test_large_groups_beside_busy_producers_are_drained_within_hours() -> None:
    """A look at a rate sends a letter or two: each is a batch, and the counts of a minute include several."""
    run = play("--letters 300 --groups 30 --live-per-minute 90 --down-hours 0.1", 1).measures

    assert (run.at_large, run.repeated) == (0, 0)
    assert run.good_drained_after_minutes is not None
    assert run.good_drained_after_minutes < 180
