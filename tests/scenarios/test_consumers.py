"""Consumers in the world do what real ones do: else to pass in it would prove nothing."""

from __future__ import annotations

from datetime import timedelta

import pytest

from fakes.sqs.message import Rest
from simulator.conditions import Conditions
from simulator.consumers import (
    Consumer,
    Downstream,
    Splitting,
    down_between,
    down_until,
    flapping,
    never,
    well_from,
)
from simulator.nobody import Nobody
from simulator.rivals import EventSource, NativeMove
from simulator.sources import LiveTraffic
from simulator.world import DLQ, SOURCE, World, hours, minutes

STEP = timedelta(seconds=10)


def letter_at_its_consumer(consumer: Consumer, conditions: Conditions | None = None) -> World:
    """One letter, moved back by SQS and seen by its consumer for the first time ten seconds ago."""
    world = World(seed=0, consumer=consumer, conditions=conditions)
    world.dead_letters(1)
    NativeMove(world).tick()
    world.run(Nobody(), until=2 * STEP)
    return world


def seconds_in_flight(world: World) -> int:
    """How long the letter is in flight from its last receive on."""
    received = world.elapsed - STEP
    while world.sqs.inspect.messages(SOURCE, Rest.IN_FLIGHT):
        world.run(Nobody(), until=world.elapsed + STEP)
    return (world.elapsed - received) // timedelta(seconds=1)


@pytest.mark.parametrize("seconds", [60, 300, 900])
def test_a_consumer_that_backs_off_keeps_its_letter_in_flight_on_each_receive(seconds: int) -> None:
    world = letter_at_its_consumer(Consumer(health=never, backoff_seconds=seconds))

    for _ in range(3):
        assert seconds_in_flight(world) == seconds
        world.run(Nobody(), until=world.elapsed + STEP)

    assert world.depth(DLQ) == 1
    assert world.deliveries.tried["letter-0"] == 3


def test_without_backing_off_a_letter_is_back_after_its_visibility_timeouts() -> None:
    world = letter_at_its_consumer(Consumer(health=never))

    world.run(Nobody(), until=minutes(2))

    assert world.depth(DLQ) == 1


def test_a_slow_consumer_holds_its_letter_until_it_is_done() -> None:
    conditions = Conditions(visibility_timeout=300)
    world = letter_at_its_consumer(Consumer(processing_seconds=240), conditions)

    world.run(Nobody(), until=timedelta(seconds=250))
    assert len(world.sqs.inspect.messages(SOURCE, Rest.IN_FLIGHT)) == 1
    assert not world.deliveries.done

    world.run(Nobody(), until=timedelta(seconds=260))
    assert world.deliveries.done == {"letter-0": 1}
    assert world.depth(SOURCE) == 0


def test_a_slow_consumer_whose_visibility_timeout_is_too_short_does_its_work_again() -> None:
    world = letter_at_its_consumer(Consumer(processing_seconds=50))

    world.run(Nobody(), until=minutes(5))

    assert world.deliveries.done["letter-0"] > 1


def test_a_partial_outage_fails_the_same_messages_each_time_and_wastes_only_those() -> None:
    downstream = Downstream(health=down_until(hours(1)), share=0.3)
    world = World(seed=3, consumer=Consumer(downstream=downstream))
    world.dead_letters(100)

    world.run(NativeMove(world), until=minutes(50))

    undone = world.letters - world.deliveries.done.keys()
    assert undone == world.register.dependent
    assert len(undone) == 30
    assert world.deliveries.wasted == sum(world.deliveries.tried[body] for body in undone)


def test_which_letters_need_the_downstream_is_the_seeds_choice_alone() -> None:
    """So that runs can be compared whose consumers differ otherwise."""

    def dependent(seed: int, probability: float) -> set[str]:
        downstream = Downstream(health=never, share=0.5)
        consumer = Consumer(downstream=downstream, failure_probability=probability)
        world = World(seed=seed, consumer=consumer)
        world.dead_letters(20)
        world.run(NativeMove(world), until=minutes(10))
        return world.register.dependent

    assert dependent(1, 0) == dependent(1, 0.5)
    assert dependent(1, 0) != dependent(2, 0)


def test_a_partial_outage_may_concern_live_messages_and_then_they_become_letters() -> None:
    downstream = Downstream(health=never, share=0, live_share=0.5)
    traffic = LiveTraffic(per_minute=60)
    world = World(seed=0, consumer=Consumer(downstream=downstream), traffic=traffic)

    world.run(Nobody(), until=minutes(30))

    assert len(world.register.dependent) == pytest.approx(900, rel=0.1)
    assert world.letters <= world.register.dependent
    assert set(world.bodies(DLQ)) == world.letters - set(world.bodies(SOURCE))
    assert world.depth(DLQ) > 800


def test_receives_fail_by_chance_until_they_do_no_more() -> None:
    consumer = Consumer(failure_probability=1, fails_until=minutes(10))
    world = World(seed=0, consumer=consumer, traffic=LiveTraffic(per_minute=6))

    world.run(Nobody(), until=minutes(20))

    assert min(world.deliveries.done_at.values()) >= minutes(10)
    assert world.deliveries.wasted == 0


def test_a_consumer_that_is_switched_off_sees_nothing_and_fails_nothing() -> None:
    world = letter_at_its_consumer(Consumer(polls=down_until(hours(3))))

    world.run(Nobody(), until=hours(3))
    assert world.deliveries.total == 0
    assert len(world.sqs.inspect.messages(SOURCE, Rest.VISIBLE)) == 1

    world.run(Nobody(), until=hours(3) + minutes(1))
    assert world.deliveries.done == {"letter-0": 1}


def test_a_letter_is_split_into_parts_with_its_attributes_and_each_is_accounted_for() -> None:
    world = World(seed=0, consumer=Consumer(splits=Splitting(parts=3, poison=1)))
    world.dead_letters(1)

    world.run(EventSource(world), until=minutes(2))

    parts = {f"letter-0/part-{number}" for number in range(3)}
    assert world.deliveries.done.keys() == {"letter-0", *parts} - {"letter-0/part-0"}
    assert world.letters == {"letter-0", *parts}
    assert world.poison == {"letter-0/part-0"}
    (bad,) = (message for queue in (SOURCE, DLQ) for message in world.sqs.inspect.messages(queue))
    assert bad.attributes.keys() == {"Tenant", EventSource.COUNTER}


@pytest.mark.parametrize(
    ("health", "up", "down"),
    [
        (flapping(minutes(3), minutes(3)), [0, 2.9, 6], [3, 5.9, 9]),
        (flapping(minutes(7), minutes(13)), [0, 6.9, 20], [7, 19.9, 27]),
        (flapping(minutes(10), minutes(10), minutes(5)), [0, 4.9, 15], [5, 14.9, 25]),
        (well_from(minutes(20), flapping(minutes(2), minutes(2))), [1, 22, 23], [2, 18]),
        (down_between(minutes(1), minutes(2)), [0, 2, 99], [1, 1.9]),
    ],
    ids=["3-3", "7-13", "phased", "well-from", "between"],
)
def test_healths_are_up_and_down_when_they_say(health, up, down) -> None:
    assert [health(minutes(at)) for at in up] == [True] * len(up)
    assert [health(minutes(at)) for at in down] == [False] * len(down)


def test_patience_is_the_source_queues() -> None:
    world = letter_at_its_consumer(
        Consumer(health=never), Conditions(visibility_timeout=900, max_receive_count=5)
    )

    world.run(Nobody(), until=minutes(74))
    assert world.depth(DLQ) == 0

    world.run(Nobody(), until=minutes(76))
    assert world.depth(DLQ) == 1
    assert world.deliveries.tried["letter-0"] == 5
