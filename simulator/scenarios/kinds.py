"""Rows 30 to 33 and 40: messages that fail beside messages that succeed, for hours or for ever."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from simulator.conditions import Conditions
from simulator.consumers import Consumer, Reports, Validity
from simulator.limits import Limits
from simulator.scenarios.scenario import Outage, Scenario
from simulator.scenarios.usual import LAST_CHANCE_MINUTES
from simulator.sources import LiveTraffic
from simulator.world import hours

#: How long producers send nothing but poison.
BROKEN = hours(6)


def _broken_producers(letters: int, per_minute: float) -> Scenario:
    return Scenario(
        name=f"30:{letters}:{per_minute:g}",
        title=f"{letters:,} good letters, producers send {per_minute:g} broken messages a minute for 6 h",
        letters=letters,
        traffic=LiveTraffic(poison_per_minute=per_minute, poison_until=BROKEN),
        lasts=BROKEN,
        until=hours(30),
        seeds=2,
        limits=Limits(good_drained=60, poison_parked=6 * 60 + LAST_CHANCE_MINUTES),
    )


BROKEN_PRODUCERS = (
    replace(_broken_producers(500, 6), name="30"),
    *(_broken_producers(letters, rate) for letters in (300, 1_000) for rate in (2, 6, 60)),
)


def _mostly_poison(letters: int, percent: int) -> Iterator[Scenario]:
    scenario = Scenario(
        name=f"31:{letters}:{percent}",
        title=f"{letters:,} letters, {percent} % of them poison, nothing else",
        letters=letters,
        poison=letters * percent // 100,
        until=hours(30),
        seeds=3,
        limits=Limits(good_drained=90, poison_parked=13 * 60),
    )
    yield scenario
    yield replace(
        scenario.reporting(),
        name=f"{scenario.name}:reports",
        title=f"{scenario.title}, with reports",
        limits=replace(scenario.limits, good_drained=30),
    )


MOSTLY_POISON = tuple(
    scenario
    for letters in (60, 300, 1_000)
    for percent in (10, 20, 40, 60, 80)
    for scenario in _mostly_poison(letters, percent)
)

BROKEN_KIND = Scenario(
    name="32",
    title="a third of the message types broken for 9 h, 1,000 letters, 6 live a minute",
    letters=1_000,
    outage=Outage(lasts=hours(9), share=1 / 3, live_share=1 / 3),
    traffic=LiveTraffic(per_minute=6),
    calm_at=hours(9),
    lasts=hours(9),
    until=hours(33),
    seeds=2,
    limits=Limits(parks_good=True, parked_early=0),
)
BROKEN_KINDS = (
    BROKEN_KIND,
    replace(
        BROKEN_KIND.reporting(),
        name="32:reports",
        title=f"{BROKEN_KIND.title}, with reports",
        limits=replace(BROKEN_KIND.limits, wasted_on_letters=200),
    ),
)

PERISHED = Scenario(
    name="33",
    title="half of 500 letters are valid for an hour, and met after three",
    letters=500,
    consumer=lambda _: Consumer(validity=Validity(lasts=hours(1), share=0.5)),
    outage=Outage(lasts=hours(3)),
    traffic=LiveTraffic(per_minute=6),
    calm_at=hours(3),
    lasts=hours(3),
    until=hours(27),
    seeds=2,
    limits=Limits(good_drained=30, poison_parked=LAST_CHANCE_MINUTES),
)

#: The same cause for an outage of a fifth of the messages and for poison; receives also fail by chance.
ALIKE = Scenario(
    name="40",
    title="1,000 letters, 50 poison, a fifth down for 3 h, one in ten dies by chance, one cause for all of it",
    letters=1_000,
    poison=50,
    consumer=lambda _: Consumer(failure_probability=0.1, says_alike=True, reports=Reports()),
    outage=Outage(lasts=hours(3), share=0.2, live_share=0.2),
    traffic=LiveTraffic(per_minute=6),
    conditions=Conditions(max_receive_count=1),
    calm_at=hours(3),
    lasts=hours(3),
    until=hours(48),
    seeds=3,
)

#: A hundred runs of this make a million good letters. `python -m bench error-rate` draws as many from smaller worlds.
GOOD_BY_CHANCE = Scenario(
    name="40:good",
    title="10,000 good letters, one in ten dies by chance at each try, 5 % poison beside them",
    letters=10_500,
    poison=500,
    consumer=lambda _: Consumer(failure_probability=0.1),
    traffic=LiveTraffic(per_minute=30),
    conditions=Conditions(max_receive_count=1),
    until=hours(48),
    seeds=100,
)

KINDS = (*BROKEN_PRODUCERS, *MOSTLY_POISON, *BROKEN_KINDS, PERISHED, ALIKE, GOOD_BY_CHANCE)
