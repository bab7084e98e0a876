"""The rivals do what their sources say: else to beat them would prove nothing."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from simulator.consumers import Consumer, never
from simulator.measures import measure
from simulator.rivals import EventSource, NativeMove, NoBreaker, PublishedPattern
from simulator.scenarios import DAY_OUTAGE, HEALTHY
from simulator.world import DLQ, World, hours, minutes


def one_letter_for_nobody() -> World:
    world = World(seed=0, consumer=Consumer(health=never))
    world.dead_letters(1)
    return world


def test_the_published_pattern_parks_nothing_and_never_opens_in_twenty_cycles_of_failure() -> None:
    """The measurement that the design starts from: identity is lost with every SendMessage."""
    world = one_letter_for_nobody()
    policy = PublishedPattern(world)

    world.run(policy, until=20 * policy.every)

    assert world.deliveries.total >= 20 * 3 - 3
    assert world.parked() == []
    assert policy.state == "CLOSED"


def test_the_published_pattern_strips_every_letter_that_it_redrives() -> None:
    world = one_letter_for_nobody()

    world.run(PublishedPattern(world), until=hours(1))

    assert world.deliveries.stripped == world.deliveries.total > 0


def test_the_published_pattern_takes_five_letters_a_pass() -> None:
    world = HEALTHY.world(0)

    PublishedPattern(world).tick()

    assert world.sqs.inspect.counts(DLQ).total == HEALTHY.letters - 5


def test_a_native_move_empties_the_dlq_at_once_and_as_often_as_it_fills_again() -> None:
    world = HEALTHY.world(0)
    policy = NativeMove(world)

    policy.tick()
    world.clock.advance(1)

    assert world.depth(DLQ) == 0


def test_a_native_move_never_gives_a_letter_up() -> None:
    world = one_letter_for_nobody()

    world.run(NativeMove(world), until=hours(24))

    assert world.parked() == []
    assert world.deliveries.total > 24 * 12 * 2


def test_an_event_source_gives_a_letter_up_after_three_replays_within_minutes() -> None:
    world = one_letter_for_nobody()

    world.run(EventSource(world), until=minutes(15))

    assert world.parked() == ["letter-0"]
    assert world.deliveries.total == 3 * EventSource.MAX_ATTEMPTS
    assert world.deliveries.stripped == 0


def test_without_a_breaker_a_letter_ends_at_a_hard_cap() -> None:
    world = one_letter_for_nobody()

    world.run(NoBreaker(world), until=hours(12))

    assert world.parked() == ["letter-0"]
    assert world.deliveries.total == 3 * NoBreaker.HARD_CAP


def test_a_letter_that_a_person_must_free_counts_as_not_drained() -> None:
    scenario = replace(DAY_OUTAGE, until=hours(26))
    world = scenario.world(0)
    policy = EventSource(world)
    scenario.play(world, policy)

    measures = measure(world, policy, scenario.calm_at)

    assert measures.parked_wrongly == 5
    assert measures.drained_after_minutes is None


def test_all_rivals_do_every_letter_once_for_a_healthy_consumer() -> None:
    for make in (PublishedPattern, NativeMove, EventSource, NoBreaker):
        world = HEALTHY.world(0)

        HEALTHY.play(world, make(world, 0))

        assert world.deliveries.done == Counter(dict.fromkeys(world.letters, 1)), make.__name__
