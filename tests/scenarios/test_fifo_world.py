"""A world of FIFO queues, with nobody who redrives, or somebody who does it badly."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from simulator.conditions import OUTCOMES, Conditions
from simulator.consumers import Consumer, Downstream, Reports, down_until, flapping, never
from simulator.nobody import Nobody
from simulator.rivals import NativeMove
from simulator.sources import LiveTraffic, Source
from simulator.variation import OWN, ImpossibleError, Wishes, vary
from simulator.world import DLQ, PARKING_LOT, SOURCE, World, hours, minutes
from smart_redriver.engine.config.settings import Settings

WINDOW = timedelta(minutes=5)


def fifo_world(
    consumer: Consumer, *, groups: int = 3, per_minute: float = 0, seed: int = 0, **more: Any
) -> World:
    return World(
        seed=seed,
        consumer=consumer,
        traffic=LiveTraffic(per_minute=per_minute),
        conditions=Conditions(fifo=True, groups=groups),
        **more,
    )


def letters_by_group(world: World) -> dict[str | None, list[str]]:
    """Bodies in the DLQ, in their order."""
    by_group: dict[str | None, list[str]] = {}
    name = world.queue_name(DLQ)
    for message in sorted(world.sqs.inspect.messages(name), key=lambda one: one.sequence_number):
        by_group.setdefault(message.group_id, []).append(message.body)
    return by_group


def redrive(world: World, bodies: list[str], attempt: str = "") -> None:
    """Send these letters back as told, whatever their order is, and delete nothing."""
    letters = {one.body: one for one in world.sqs.inspect.messages(world.queue_name(DLQ))}
    for body in bodies:
        letter = letters[body]
        world.sqs.send_message(
            QueueUrl=world.url(SOURCE),
            MessageBody=body,
            MessageGroupId=letter.group_id,
            MessageDeduplicationId=letter.message_id + attempt,
            MessageAttributes=letter.attributes,
        )


def test_all_queues_but_that_of_outcomes_are_fifo_queues() -> None:
    world = fifo_world(Consumer(reports=Reports()), neighbours=[Source(name="payments")])

    for queue in (SOURCE, DLQ, PARKING_LOT, "payments"):
        assert world.url(queue).endswith(f"/{queue}.fifo")
    assert world.source_names == ("orders.fifo", "payments.fifo")
    assert world.outcome_queue_url.endswith(f"/{OUTCOMES}")


def test_messages_are_dealt_to_groups_evenly_by_the_seed_alone() -> None:
    def dealt(seed: int, consumer: Consumer) -> dict[str, list[str]]:
        world = fifo_world(consumer, groups=7, seed=seed)
        world.dead_letters(100)
        return dict(world.order.sent)

    sent = dealt(1, Consumer())
    assert len(sent) == 7
    assert {len(bodies) for bodies in sent.values()} == {14, 15}
    assert sent == dealt(1, Consumer(failure_probability=0.5))
    assert sent != dealt(2, Consumer())


def test_a_healthy_consumer_does_each_group_in_its_order() -> None:
    world = fifo_world(Consumer(), per_minute=60)

    world.run(Nobody(), until=minutes(10))

    assert len(world.sent) == 600
    assert {group: world.order.done(group) for group in world.order.sent} == world.order.sent
    assert world.order.overtakings(world.sent) == []
    assert world.letters == set()


def test_an_outage_moves_every_message_to_the_dlq_in_its_group_s_order() -> None:
    world = fifo_world(Consumer(health=never), per_minute=6)
    world.run(Nobody(), until=minutes(20))

    dead = letters_by_group(world)

    assert world.letters == {body for bodies in dead.values() for body in bodies}
    for group, bodies in dead.items():
        assert bodies == world.order.sent[str(group)][: len(bodies)]
    assert sum(map(len, dead.values())) > 60
    assert not world.lost()


def test_letters_at_the_start_are_in_their_groups_order_and_know_where_they_died() -> None:
    world = fifo_world(Consumer(), groups=5, neighbours=[Source(name="payments")])
    world.dead_letters(20, of="payments")
    world.dead_letters(200, poison=10)

    dead = letters_by_group(world)

    assert dead == dict(world.order.sent)
    assert (world.depth(DLQ), len(world.letters), len(world.poison)) == (220, 220, 10)
    assert set(world.order.died_at.values()) == {timedelta()}
    sources = Counter(
        str(one.dead_letter_source_arn).rpartition(":")[2]
        for one in world.sqs.inspect.messages("orders-dlq.fifo")
    )
    assert sources == {"orders.fifo": 200, "payments.fifo": 20}


@pytest.mark.parametrize("groups", [1, 1000])
def test_a_thousand_letters_in_one_group_or_each_in_its_own_die_at_once(groups: int) -> None:
    world = fifo_world(Consumer(), groups=groups)
    world.dead_letters(1000, left=hours(2))
    assert world.depth(DLQ) == 1000
    assert len(world.order.sent) == groups

    world.clock.advance(7199)
    assert world.depth(DLQ) == 1000
    world.clock.advance(1)
    assert world.depth(DLQ) == 0, "of a FIFO queue, letters expire by the time of their move"


def test_a_failure_holds_back_the_rest_of_its_group_and_no_other() -> None:
    world = fifo_world(Consumer(), groups=2)
    world.send("pill", is_poison=True)
    (stuck,) = world.order.sent
    while len(world.order.sent[stuck]) < 3:
        world.send(f"good-{len(world.sent)}")
    (other,) = world.order.sent.keys() - {stuck}

    world.run(Nobody(), until=timedelta(seconds=20))

    assert [one.body for one in world.order.tries[stuck]] == ["pill"]
    assert world.order.done(other) == world.order.sent[other]
    assert world.deliveries.tried.keys() == {"pill", *world.order.sent[other]}


def test_behind_a_poison_pill_messages_die_untried() -> None:
    """As on AWS: each receive counts for the whole batch. They are good letters, and to be redriven."""
    world = fifo_world(Consumer(), groups=1)
    world.send("pill", is_poison=True)
    for number in range(4):
        world.send(f"good-{number}")

    world.run(Nobody(), until=minutes(5))

    assert letters_by_group(world) == {"group-0": ["pill", "good-0", "good-1", "good-2", "good-3"]}
    assert world.letters == world.sent
    assert world.deliveries.tried == {"pill": 3}


def test_a_group_goes_on_when_its_pill_is_dead() -> None:
    world = fifo_world(Consumer(), groups=1)
    world.send("pill", is_poison=True)
    world.run(Nobody(), until=minutes(1))
    world.send("good")

    world.run(Nobody(), until=minutes(5))

    assert world.order.done("group-0") == ["good"]
    assert letters_by_group(world) == {"group-0": ["pill"]}


def test_in_a_partial_outage_letters_are_overtaken_by_what_never_was_one() -> None:
    downstream = Downstream(health=down_until(hours(1)), share=0.0, live_share=0.1)
    world = fifo_world(Consumer(downstream=downstream), groups=10, per_minute=12)
    world.run(Nobody(), until=hours(1))
    dead = world.letters.copy()
    assert 0 < len(dead) < len(world.sent)

    redrive(world, [body for bodies in letters_by_group(world).values() for body in bodies])
    world.run(Nobody(), until=hours(2))

    assert dead <= world.deliveries.done.keys()
    assert world.order.overtakings(dead) == []
    assert world.order.tried_past(dead) == []
    assert world.order.overtakings(world.sent) != []


def test_the_native_move_keeps_order() -> None:
    world = fifo_world(Consumer(), groups=4)
    world.dead_letters(100)

    world.run(NativeMove(world), until=minutes(30))

    assert world.is_drained
    assert world.order.overtakings(world.letters) == world.order.tried_past(world.letters) == []
    assert world.order.repeats(WINDOW) == []


def test_who_redrives_in_the_wrong_order_is_found_out() -> None:
    world = fifo_world(Consumer(), groups=1)
    world.dead_letters(3)

    redrive(world, ["letter-2", "letter-0", "letter-1"])
    world.run(Nobody(), until=minutes(1))

    assert world.order.done("group-0") == ["letter-2", "letter-0", "letter-1"]
    told = [(one.body, one.overtaken) for one in world.order.overtakings(world.letters)]
    assert told == [("letter-2", "letter-0"), ("letter-2", "letter-1")]


def test_who_redrives_past_a_letter_that_fails_again_is_found_out() -> None:
    world = fifo_world(Consumer(health=down_until(minutes(5))), groups=1)
    world.dead_letters(2)
    redrive(world, ["letter-0", "letter-1"])
    world.run(Nobody(), until=minutes(5))

    redrive(world, ["letter-1"], "-again")
    world.run(Nobody(), until=minutes(11))
    redrive(world, ["letter-0"], "-again")
    world.run(Nobody(), until=minutes(12))

    told = {(one.body, one.overtaken) for one in world.order.tried_past(world.letters)}
    assert told == {("letter-1", "letter-0")}


def test_who_sends_a_letter_twice_is_found_out_unless_its_id_is_the_same() -> None:
    world = fifo_world(Consumer(), groups=2)
    world.dead_letters(2)

    redrive(world, ["letter-0", "letter-1"])
    redrive(world, ["letter-0"])
    world.run(Nobody(), until=minutes(1))
    assert world.order.repeats(WINDOW) == []

    redrive(world, ["letter-1"], "-another")
    world.run(Nobody(), until=minutes(2))
    assert world.order.repeats(WINDOW) == ["letter-1"]


def test_a_slow_consumer_that_outlives_its_visibility_timeout_repeats_itself_in_order() -> None:
    """The delete fails, so that the message comes again: the record shows both."""
    world = fifo_world(Consumer(processing_seconds=50), groups=1)
    world.send("1")
    world.run(Nobody(), until=minutes(4))

    assert world.order.done("group-0").count("1") > 1
    assert world.depth(DLQ) == 1, "done, and dead all the same"


def test_a_consumer_with_the_kit_parks_pills_in_the_fifo_parking_lot() -> None:
    world = fifo_world(Consumer(reports=Reports(permanent=True)), groups=1)
    world.send("pill", is_poison=True)
    world.send("good")

    world.run(Nobody(), until=minutes(1))

    assert world.parked() == ["pill"]
    assert world.order.done("group-0") == ["good"]


def test_a_world_may_be_wished_for_with_fifo_queues() -> None:
    wished = vary(OWN, Wishes(fifo=True, groups=4, letters=8), Settings())

    world = wished.world(0)

    assert world.conditions == replace(Conditions(), fifo=True, groups=4)
    assert {len(bodies) for bodies in world.order.sent.values()} == {2}


def test_groups_without_fifo_queues_can_t_be_wished_for() -> None:
    with pytest.raises(ImpossibleError, match="add --fifo"):
        vary(OWN, Wishes(groups=4), Settings())


@pytest.mark.parametrize("seed", range(5))
def test_whatever_fails_what_never_dies_is_done_once_and_in_its_group_s_order(seed: int) -> None:
    consumer = Consumer(
        health=flapping(minutes(3), minutes(1)), failure_probability=0.2, capacity_per_second=1
    )
    world = fifo_world(consumer, groups=5, per_minute=30, seed=seed)

    world.run(Nobody(), until=hours(1))

    living = world.deliveries.done.keys() - world.letters
    assert len(living) > 500
    assert world.letters
    assert world.order.overtakings(living) == []
    assert set(world.deliveries.done.values()) == {1}
    assert not world.lost()
