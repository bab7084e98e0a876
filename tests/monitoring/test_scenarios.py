"""Whom the re-driver's real figures would have told what, had the scenarios been a deployment."""

from dataclasses import replace
from typing import Any

import pytest

from bench.alarm_states import Alarms
from bench.metric_record import record
from simulator import scenarios
from simulator.consumers import Consumer, down_until
from simulator.scenarios import Scenario
from simulator.smart_policy import SmartPolicy
from simulator.world import LiveTraffic, hours

Told = list[tuple[float, str, str]]


def told_in(scenario: Scenario, resources: dict[str, Any], *, seed: int = 0) -> Told:
    """Hours, alarm and state of each message to a person."""
    world = scenario.world(seed)
    policy = SmartPolicy(world, seed=seed)
    scenario.play(world, policy)
    started = world.started.timestamp()
    alarms = Alarms(resources, record(world, policy))
    for _ in alarms.watch(started, started + world.elapsed.total_seconds()):
        pass
    return [
        ((at - started) / 3600, name.partition("Monitoring")[2][:-8], state)
        for at, _topic, name, state in alarms.told
    ]


def pages(told: Told) -> list[tuple[str, str]]:
    """Those that wake somebody."""
    return [
        (name, state)
        for _, name, state in told
        if name in ("LettersPileUp", "RedriverUnwell", "LettersNearExpiry")
    ]


def test_an_outage_of_two_hours_pages_once_and_ends_by_itself(resources) -> None:
    told = told_in(scenarios.LONG_OUTAGE, resources)

    assert pages(told) == [("LettersPileUp", "ALARM"), ("LettersPileUp", "OK")]
    # 10,000 letters were there from the start.
    assert told[0][0] < 0.25
    # It is over only when the consumer has been well again for a while.
    assert next(at for at, name, state in told if (name, state) == ("LettersPileUp", "OK")) > 2


def test_a_few_letters_in_a_long_outage_page_once_after_the_third_cool_down(resources) -> None:
    told = told_in(scenarios.DAY_OUTAGE, resources)

    assert pages(told) == [("LettersPileUp", "ALARM"), ("LettersPileUp", "OK")]
    assert 0.5 < told[0][0] < 1


def test_poison_that_is_parked_warns_and_wakes_nobody(resources) -> None:
    told = told_in(scenarios.SOME_POISON, resources)

    assert pages(told) == []
    assert ("PoisonParked", "ALARM") in [(name, state) for _, name, state in told]


def test_a_circuit_that_stays_open_over_an_empty_dlq_ends_its_page(resources) -> None:
    told = told_in(scenarios.ONLY_POISON, resources)

    assert pages(told) == [("LettersPileUp", "ALARM"), ("LettersPileUp", "OK")]
    assert ("PoisonParked", "ALARM") in [(name, state) for _, name, state in told]


def test_a_few_letters_that_heal_tell_nobody_anything(resources) -> None:
    few = replace(scenarios.HEALTHY, letters=8, traffic=LiveTraffic(per_minute=30))

    assert told_in(few, resources) == []


def test_an_outage_that_is_over_before_the_third_cool_down_wakes_nobody(resources) -> None:
    blip = replace(
        scenarios.HEALTHY, letters=8, consumer=lambda _: Consumer(health=down_until(hours(0.25)))
    )

    assert pages(told_in(blip, resources)) == []


@pytest.mark.parametrize("seed", range(3))
def test_a_consumer_that_flaps_is_said_to_make_redriving_pointless(resources, seed) -> None:
    told = told_in(scenarios.named("9:7-13"), resources, seed=seed)

    assert ("RedriveNotWorking", "ALARM") in [(name, state) for _, name, state in told]


def test_a_coin_toss_consumer_heals_and_is_no_reason_for_that_warning(resources) -> None:
    told = told_in(scenarios.COIN_TOSS, resources)

    assert "RedriveNotWorking" not in [name for _, name, _ in told]
