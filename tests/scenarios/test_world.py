"""The world does what real queues do: else to pass in it would prove nothing."""

from __future__ import annotations

from datetime import timedelta

import pytest

from simulator.conditions import Conditions
from simulator.consumers import (
    Consumer,
    never,
)
from simulator.mishaps import BadWire, Mishaps
from simulator.nobody import Nobody
from simulator.person import Order, give
from simulator.rivals import NativeMove
from simulator.scenarios import named
from simulator.smart_policy import SmartPolicy
from simulator.sources import LiveTraffic, Producers, Source
from simulator.world import DLQ, SOURCE, World, hours, minutes


def test_counts_are_wrong_by_up_to_the_noise_and_never_below_zero() -> None:
    world = World(
        seed=0,
        consumer=Consumer(health=never),
        conditions=Conditions(count_lag_seconds=0, count_noise=5),
    )
    world.dead_letters(20)

    def told(queue: str) -> set[int]:
        answers = (
            world.sqs.get_queue_attributes(QueueUrl=world.url(queue), AttributeNames=["All"])
            for _ in range(200)
        )
        return {int(one["Attributes"]["ApproximateNumberOfMessages"]) for one in answers}

    assert told(DLQ) == set(range(15, 26))
    assert told(SOURCE) == set(range(6))


@pytest.mark.parametrize("left", [minutes(20), hours(6), hours(24)])
def test_letters_can_be_near_their_expiry_when_the_world_begins(left: timedelta) -> None:
    world = World(seed=0, consumer=Consumer(), conditions=Conditions(dlq_retention=4 * 86_400))
    world.dead_letters(3, left=left)

    world.run(Nobody(), until=left - minutes(1))
    assert world.lost() == set()

    world.run(Nobody(), until=left + minutes(1))
    assert world.lost() == world.letters


def test_two_sources_share_a_dlq_and_each_has_its_own_consumer_and_traffic() -> None:
    invoices = Source(name="invoices", traffic=LiveTraffic(per_minute=6))
    world = World(seed=0, consumer=Consumer(health=never), neighbours=[invoices])
    world.dead_letters(4)
    world.dead_letters(3, of="invoices")
    arns = [one.dead_letter_source_arn or "" for one in world.sqs.inspect.messages(DLQ)]

    NativeMove(world).tick()
    world.run(Nobody(), until=minutes(10))

    assert world.source_names == ("orders", "invoices")
    assert sorted(arn.rpartition(":")[2] for arn in arns) == ["invoices"] * 3 + ["orders"] * 4
    done = world.deliveries.done.keys()
    assert {body for body in done if "letter" in body} == {f"invoices-letter-{n}" for n in range(3)}
    assert len(done) == 3 + 60
    assert world.deliveries.wasted == 4 * 3


def test_fractions_of_a_message_a_minute_add_up() -> None:
    producers = Producers(LiveTraffic(per_minute=0.2, poison_per_minute=1, poison_until=hours(1)))
    step = timedelta(seconds=10)

    due = [producers.due(step * number, step) for number in range(720)]

    assert [sum(kind) for kind in zip(*due, strict=True)] == [24, 60]


def test_what_a_policy_redrives_is_told_by_when_and_whether_the_consumer_was_down() -> None:
    played = named("4").played(0)
    policy = played.policy
    assert isinstance(policy, SmartPolicy)

    down = [count for at, count in played.world.redrives if at < hours(24)]

    assert played.measures.redriven_in_outage == sum(down) > 0
    assert sum(count for _, count in played.world.redrives) == policy.redriven


def test_a_person_pauses_closes_and_opens_in_the_middle_of_a_scenario() -> None:
    world = World(seed=0, consumer=Consumer())
    world.dead_letters(5)
    policy = SmartPolicy(world)

    give(Order.PAUSE, policy, world)
    world.run(policy, until=hours(1))
    assert policy.redriven == 0

    give(Order.RESUME, policy, world)
    give(Order.OPEN, policy, world)
    assert policy.circuit is not None
    assert policy.circuit.state.value == "OPEN"

    give(Order.CLOSE, policy, world)
    world.run(policy, until=hours(2))
    assert policy.redriven == 5


@pytest.mark.parametrize(
    ("mishaps", "died", "refused"),
    [(Mishaps(deaths=0.5), True, False), (Mishaps(refusals=0.3), False, True)],
    ids=["deaths", "refusals"],
)
def test_passes_die_and_calls_are_refused_as_often_as_it_is_told(mishaps, died, refused) -> None:
    world = World(seed=0, consumer=Consumer())
    world.dead_letters(50)
    wire = BadWire(world, mishaps, seed=0)
    policy = SmartPolicy(world)

    world.run(wire.under(policy), until=hours(2))

    assert (wire.deaths > 0) == died
    assert (wire.refusals > 0) == refused
