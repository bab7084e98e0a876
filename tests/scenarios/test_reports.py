"""Simulated consumers with the kit report what became of their messages, and park what is permanent,
as real ones do.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from importlib.resources import files
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from simulator.conditions import Conditions
from simulator.consumers import (
    Consumer,
    Downstream,
    Reports,
    down_between,
    down_until,
    never,
)
from simulator.measures import measure
from simulator.nobody import Nobody
from simulator.rivals import NativeMove
from simulator.scenarios import named
from simulator.smart_policy import SmartPolicy
from simulator.sources import LiveTraffic, Source
from simulator.variation import Wishes, vary
from simulator.world import DLQ, OUTCOMES, PARKING_LOT, SOURCE, World, hours, minutes
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.messages.letter import METADATA_ATTRIBUTE, RedriveMetadata
from smart_redriver.engine.reports.outcomes import Result, parse_outcomes
from tests.scenarios.reported import Reported

SCHEMA = files("smart_redriver.consumer").joinpath("outcomes.schema.json")
VALIDATOR = Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))

STEP = timedelta(seconds=10)
FAILURES = "simulator.failures"

#: Meets every reason to fail within two hours.
TROUBLED = Consumer(
    health=down_between(minutes(20), minutes(40)),
    downstream=Downstream(health=down_until(hours(1)), share=0.3),
    failure_probability=0.1,
)


def troubled(how: Reports | None, seed: int = 0) -> tuple[World, Reported]:
    """A world in all kinds of trouble, after two hours of ours."""
    world = World(
        seed=seed,
        consumer=replace(TROUBLED, reports=how),
        traffic=LiveTraffic(per_minute=6, poison_per_minute=0.2, poison_until=hours(1)),
    )
    world.dead_letters(40, poison=4)
    reported = Reported(world)
    world.run(SmartPolicy(world), until=hours(2))
    return world, reported


def moved_back(letters: int, consumer: Consumer, **more: Any) -> tuple[World, Reported]:
    """Letters that SQS has just moved back to this consumer, which has not polled yet."""
    world = World(seed=0, consumer=consumer, **more)
    world.dead_letters(letters)
    reported = Reported(world)
    NativeMove(world).tick()
    return world, reported


def one_pill(how: Reports) -> tuple[World, Reported]:
    """A producer's poison pill among nine good messages, delivered once."""
    world = World(seed=0, consumer=Consumer(reports=how))
    reported = Reported(world)
    for number in range(10):
        world.send(f"live-{number}", is_poison=number == 7)
    world.run(Nobody(), until=STEP)
    return world, reported


@pytest.mark.parametrize("permanent", [False, True], ids=["reports", "permanent"])
def test_what_consumers_report_is_valid_and_can_be_read(permanent: bool) -> None:
    _, reported = troubled(Reports(permanent=permanent))

    invalid = [body for body in reported.bodies if not VALIDATOR.is_valid(json.loads(body))]

    assert invalid == []
    assert {one.error_class for one in reported.outcomes if one.error_class} == {
        f"{FAILURES}.{name}"
        for name in ("DownstreamUnavailable", "PaymentDeclined", "BadOrder", "Flaked")
    }
    assert {one.queue for one in reported.outcomes} == {SOURCE}
    assert {one.receive_count for one in reported.outcomes} == {1, 2, 3}
    assert {len(batch) for batch in reported.batches} <= set(range(1, 11))


@pytest.mark.parametrize("permanent", [False, True], ids=["reports", "permanent"])
def test_every_failure_is_reported_and_of_the_successes_those_of_redriven_messages(
    permanent: bool,
) -> None:
    world, reported = troubled(Reports(permanent=permanent))
    seen = world.deliveries

    results = Counter(one.result for one in reported.outcomes)

    redriven = [one for one in reported.outcomes if one.result is Result.SUCCEEDED and one.batch]
    assert len(redriven) == len(world.letters & seen.done.keys()) > 0
    # Of the others one tells of a recovery now and then, twice a minute at most.
    assert 0 < results[Result.SUCCEEDED] - len(redriven) < world.elapsed.total_seconds() / 30
    assert results[Result.FAILED] + results[Result.PERMANENT] == seen.total - seen.done.total()
    assert (results[Result.PERMANENT] > 0) == permanent
    assert any(one.batch for one in reported.outcomes if one.result is Result.FAILED)
    assert any(one.batch is None for one in reported.outcomes if one.result is Result.FAILED)


def test_a_letter_is_reported_by_the_id_of_its_metadata() -> None:
    world = World(seed=0, consumer=Consumer(reports=Reports()))
    world.dead_letters(3)
    reported = Reported(world)
    died = {message.message_id for message in world.sqs.inspect.messages(DLQ)}

    world.run(SmartPolicy(world), until=minutes(20))

    assert {one.original_id for one in reported.outcomes} == died
    assert not {one.message_id for one in reported.outcomes} & died
    assert {one.consumer.name for one in reported.outcomes} == {"orders-consumer"}


def test_what_letters_died_of_before_the_world_began_was_reported_then() -> None:
    dependent = Downstream(health=never, share=0.5)
    world = World(seed=0, consumer=Consumer(downstream=dependent, reports=Reports()))
    reported = Reported(world)

    world.dead_letters(20, poison=2)

    died = {message.message_id for message in world.sqs.inspect.messages(DLQ)}
    assert {one.message_id for one in reported.outcomes} == died
    assert {(one.result, one.receive_count) for one in reported.outcomes} == {(Result.FAILED, 3)}
    causes = Counter(one.error_class for one in reported.outcomes)
    assert causes[f"{FAILURES}.BadOrder"] == 2
    assert causes[f"{FAILURES}.PaymentDeclined"] == len(world.register.dependent - world.poison)
    assert causes.total() == 20


def test_a_batch_of_ten_messages_makes_one_report() -> None:
    world, reported = moved_back(25, Consumer(health=never, reports=Reports()))

    world.run(Nobody(), until=2 * STEP)

    assert sorted(len(batch) for batch in reported.batches) == [5, 10, 10]


def test_a_slow_consumer_reports_a_batch_when_it_is_over() -> None:
    consumer = Consumer(processing_seconds=240, failure_probability=0.5, reports=Reports())
    world, reported = moved_back(10, consumer, conditions=Conditions(visibility_timeout=300))

    world.run(Nobody(), until=timedelta(seconds=250))
    assert reported.bodies == []

    world.run(Nobody(), until=timedelta(seconds=260))
    [failed] = reported.batches
    assert len(failed) == 10 - len(world.deliveries.done) == world.depth(SOURCE)


def test_each_source_reports_what_it_is_told_to_in_its_own_name() -> None:
    neighbours = [
        Source(name="invoices", consumer=Consumer(health=never, reports=Reports())),
        Source(name="mails", consumer=Consumer(health=never)),
    ]
    world = World(seed=0, consumer=Consumer(health=never, reports=Reports()), neighbours=neighbours)
    reported = Reported(world)
    for name in world.source_names:
        world.send(f"{name}-message", to=name)

    world.run(Nobody(), until=STEP)

    assert {(one.queue, one.consumer.name) for one in reported.outcomes} == {
        ("orders", "orders-consumer"),
        ("invoices", "invoices-consumer"),
    }


def test_a_consumer_without_the_kit_sends_nothing_and_there_is_no_queue_for_it() -> None:
    world, reported = troubled(None)

    assert reported.bodies == []
    assert world.outcome_queue_url == ""
    assert world.sqs.inspect.metrics(OUTCOMES) is None
    assert set(world.parked()) <= world.poison


def test_permanent_poison_is_parked_by_its_consumer_at_its_first_try() -> None:
    world, reported = one_pill(Reports(permanent=True))

    assert world.parked() == ["live-7"]
    assert world.deliveries.tried["live-7"] == 1
    assert (world.depth(SOURCE), world.depth(DLQ)) == (0, 0)
    assert world.letters == set()
    assert "live-7" not in world.deliveries.done
    [parked] = world.sqs.inspect.messages(PARKING_LOT)
    [outcome] = reported.outcomes
    assert (outcome.result, outcome.parked_id) == (Result.PERMANENT, parked.message_id)
    assert (outcome.error_class, outcome.first_line) == (
        f"{FAILURES}.BadOrder",
        "an order without items: [body]",
    )
    assert "BadOrder" in parked.attributes[METADATA_ATTRIBUTE]["StringValue"]


def test_what_a_consumer_parks_counts_as_parked_rightly() -> None:
    world, _ = one_pill(Reports(permanent=True))

    figures = measure(world, Nobody(), timedelta())

    assert (figures.parked_rightly, figures.parked_wrongly) == (1, 0)
    assert (figures.at_large, figures.lost) == (0, 0)
    assert figures.poison_parked_after_minutes == 0


def test_a_redriven_pill_is_parked_with_the_metadata_of_its_letter() -> None:
    world = World(seed=0, consumer=Consumer(reports=Reports(permanent=True)))
    world.dead_letters(1, poison=1)
    [letter] = world.sqs.inspect.messages(DLQ)

    world.run(SmartPolicy(world), until=minutes(20))

    [parked] = world.sqs.inspect.messages(PARKING_LOT)
    metadata = RedriveMetadata.decode(parked.attributes[METADATA_ATTRIBUTE]["StringValue"])
    assert metadata.original_id == letter.message_id
    assert world.deliveries.tried == {"letter-0": 1}


def test_a_consumer_that_is_down_knows_no_pill() -> None:
    world = World(seed=0, consumer=Consumer(health=never, reports=Reports(permanent=True)))
    reported = Reported(world)
    world.send("pill", is_poison=True)

    world.run(Nobody(), until=minutes(5))

    assert world.parked() == []
    assert world.bodies(DLQ) == ["pill"]
    assert {one.error_class for one in reported.outcomes} == {f"{FAILURES}.DownstreamUnavailable"}
    assert not any(one.permanent for one in reported.outcomes)


def test_a_pill_that_the_parking_lot_refuses_fails_and_is_reported_as_permanent() -> None:
    world, reported = one_pill(Reports(permanent=True, unparked=1))

    assert world.parked() == []
    assert world.bodies(SOURCE) == ["live-7"]
    [outcome] = reported.outcomes
    assert (outcome.result, outcome.permanent) == (Result.FAILED, True)


def test_reports_get_lost() -> None:
    world, reported = moved_back(5, Consumer(health=never, reports=Reports(lost=1)))

    world.run(Nobody(), until=minutes(5))

    assert reported.bodies == []
    assert world.deliveries.total == 15


def test_reports_arrive_twice() -> None:
    world, reported = moved_back(5, Consumer(health=never, reports=Reports(twice=1)))

    world.run(Nobody(), until=2 * STEP)

    first, second = reported.bodies
    assert first == second


def test_reports_arrive_late() -> None:
    late = Reports(late=1, late_by=hours(2))
    world, reported = moved_back(5, Consumer(health=never, reports=late))
    world.run(Nobody(), until=2 * STEP)
    tried_at = world.elapsed - STEP

    world.run(Nobody(), until=hours(3))

    assert reported.times[0] == tried_at + hours(2)
    assert [len(batch) for batch in reported.batches] == [5, 5, 5]


def test_garbage_comes_beside_reports_and_says_nothing_of_this_queue() -> None:
    consumer = Consumer(failure_probability=0.5, reports=Reports(garbage=1))
    world = World(seed=0, consumer=consumer, traffic=LiveTraffic(per_minute=60))
    reported = Reported(world)

    world.run(Nobody(), until=hours(1))

    garbage, reports = reported.bodies[::2], reported.bodies[1::2]
    assert len(garbage) == len(reports) > 100
    assert all(VALIDATOR.is_valid(json.loads(body)) for body in reports)
    told = [one for body in set(garbage) for one in parse_outcomes(body).outcomes]
    assert [one.queue for one in told] == ["nowhere"]
    assert len(set(garbage)) > 8


UNLUCKY = Reports(
    permanent=True, lost=0.2, twice=0.2, late=0.2, late_by=hours(1), garbage=0.2, unparked=0.2
)


def test_the_same_seed_plays_the_same_whatever_befalls_reports() -> None:
    (world, reported), (again, reported_again) = troubled(UNLUCKY), troubled(UNLUCKY)

    assert (reported_again.bodies, reported_again.times) == (reported.bodies, reported.times)
    assert again.deliveries == world.deliveries
    assert again.parked() == world.parked()
    assert troubled(UNLUCKY, seed=1)[1].bodies != reported.bodies


def test_whatever_befalls_reports_nothing_is_lost_and_no_good_message_parked() -> None:
    world, _ = troubled(UNLUCKY)

    assert world.lost() == set()
    assert set(world.parked()) <= world.poison


def test_the_kit_reports_without_a_warning_but_for_what_it_parks(caplog) -> None:
    troubled(Reports(permanent=True))

    assert {record.getMessage().partition(":")[0] for record in caplog.records} == {
        "message.parked"
    }


def test_a_scenario_is_varied_to_one_whose_consumer_reports() -> None:
    flaps = named("9")

    def reports(wishes: Wishes) -> Reports | None:
        return vary(flaps, wishes, Settings()).consumer(3).reports

    assert reports(Wishes(reports=True)) == Reports()
    assert reports(Wishes(permanent=True)) == Reports(permanent=True)
    assert reports(Wishes(letters=5)) is None
    unlucky = flaps.reporting(Reports(lost=0.5))
    again = vary(unlucky, Wishes(permanent=True), Settings()).consumer(0).reports
    assert again == Reports(permanent=True, lost=0.5)


def test_a_reporting_scenario_is_the_same_otherwise_and_its_neighbour_reports_too() -> None:
    flaps, shared = named("9"), named("17").reporting()

    healths = [one.consumer(3).health for one in (flaps, flaps.reporting())]
    assert [healths[1](minutes(at)) for at in range(20)] == [
        healths[0](minutes(at)) for at in range(20)
    ]
    assert (shared.name, shared.limits) == ("17", named("17").limits)
    assert shared.neighbour is not None
    assert shared.neighbour.source.consumer.reports == Reports()
    assert shared.neighbour.source.traffic == named("17").neighbour.source.traffic
