"""Rows 1 to 9: outages, poison pills, doubtful and flapping consumers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from simulator.consumers import Consumer, flapping
from simulator.limits import Limits
from simulator.scenarios.scenario import Outage, Scenario
from simulator.sources import LiveTraffic
from simulator.world import hours, minutes

#: When a letter is parked: its last chance comes six hours after its first strike.
LAST_CHANCE_MINUTES = 7 * 60.0

#: `give_up_seconds` after the first redrive, plus the time until the re-driver looks again.
GIVEN_UP_MINUTES = 72.5 * 60

#: Each seed starts at another of this many phases in the consumer's round of up and down.
PHASES = 8

#: Live messages ahead of the redriven letters of scenario 7, and how many the consumer processes a second: 20 minutes.
BURST = 6_000
BURST_CAPACITY = 5.0

HEALTHY = Scenario(
    name="1",
    title="consumer healthy again",
    letters=200,
    until=hours(12),
    limits=Limits(drained=12, opens=False),
)

SOME_POISON = Scenario(
    name="2",
    title="10 poison pills among 200",
    letters=200,
    poison=10,
    until=hours(12),
    limits=Limits(good_drained=20, poison_parked=LAST_CHANCE_MINUTES, opens=False),
)

LONG_OUTAGE = Scenario(
    name="3",
    title="backlog of 10,000, down for 2 h",
    letters=10_000,
    outage=Outage(lasts=hours(2)),
    calm_at=hours(2),
    until=hours(24),
    seeds=3,
    limits=Limits(drained=45, redriven_in_outage=50, redriven_before_open=30, opens=True),
)

LONG_OUTAGE_IN_TRAFFIC = replace(
    LONG_OUTAGE,
    name="3:live",
    title="backlog of 10,000, down for 2 h, beside live traffic",
    traffic=LiveTraffic(per_minute=30),
    limits=replace(LONG_OUTAGE.limits, drained=25),
)


def _lonely(letters: int, hours_down: int) -> Scenario:
    return Scenario(
        name=f"4:{letters}:{hours_down}h",
        title=f"{letters} letter{'s'[: letters > 1]}, down for {hours_down} h",
        letters=letters,
        outage=Outage(lasts=hours(hours_down)),
        calm_at=hours(hours_down),
        until=hours(hours_down + 24),
        seeds=5,
        limits=Limits(drained=45),
    )


DAY_OUTAGE = replace(_lonely(5, 24), name="4")
DAY_OUTAGES = (
    DAY_OUTAGE,
    *(
        _lonely(letters, down)
        for down in (24, 48)
        for letters in (1, 2, 5)
        if (letters, down) != (5, 24)
    ),
)

ONLY_POISON = Scenario(
    name="5",
    title="only poison, no other traffic",
    letters=5,
    poison=5,
    until=hours(84),
    limits=Limits(poison_parked=GIVEN_UP_MINUTES, opens=True),
)

POISON_IN_TRAFFIC = Scenario(
    name="5:live",
    title="only poison, beside live traffic",
    letters=5,
    poison=5,
    traffic=LiveTraffic(per_minute=6),
    until=hours(24),
    limits=Limits(poison_parked=LAST_CHANCE_MINUTES, opens=False),
)

COIN_TOSS = Scenario(
    name="6",
    title="every receive fails with p = 0.5",
    letters=200,
    consumer=lambda _: Consumer(failure_probability=0.5),
    until=hours(48),
    limits=Limits(opens=False),
)

BACKED_UP = Scenario(
    name="7",
    title="source backed up for 20 min",
    letters=200,
    consumer=lambda _: Consumer(capacity_per_second=BURST_CAPACITY),
    burst=BURST,
    until=hours(12),
)

NEW_POISON = Scenario(
    name="8",
    title="500 letters, 2 new poison pills in 5 min",
    letters=500,
    traffic=LiveTraffic(per_minute=30, poison_per_minute=0.4, poison_until=hours(6)),
    calm_at=hours(6),
    lasts=hours(6),
    until=hours(18),
    limits=Limits(opens=False),
)


def _phased(up: float, down: float) -> Callable[[int], Consumer]:
    """A consumer that flaps; the seed decides where in its round it starts."""

    def consumer(seed: int) -> Consumer:
        phase = minutes(up + down) * (seed % PHASES) / PHASES
        return Consumer(health=flapping(minutes(up), minutes(down), phase))

    return consumer


def _flaps(up: float, down: float) -> Scenario:
    return Scenario(
        name=f"9:{up}-{down}",
        title=f"consumer flaps, {up} min up, {down} min down",
        letters=1_000,
        consumer=_phased(up, down),
        until=hours(24),
        seeds=PHASES,
        limits=Limits(drained=240),
    )


FLAPPING = replace(_flaps(10, 10), name="9")
#: A suspect that is tried alone must not keep in step with it.
FLAPPING_WITH_POISON = replace(
    _flaps(5, 5),
    name="8:5-5",
    title="consumer flaps, 5 min up, 5 min down, 15 of 300 letters are poison",
    letters=300,
    poison=15,
    until=hours(96),
    seeds=2,
    limits=Limits(good_drained=240),
)
#: It is down again by the time that a success is known, and for much longer than it is up. These are no rows 9: fewer
#: deliveries would be wasted without a breaker, as all letters go in one time up, or are given up. A function's
#: verdicts take twelve minutes, so that its letters are not back in a day.
UP_BRIEFLY = tuple(
    replace(_flaps(up, down), name=f"41:{up}-{down}", letters=300, limits=Limits(drained=limit))
    for up, down, limit in ((3, 7, 180), (4, 16, 480), (5, 25, 600))
)
FLAPPINGS = (
    FLAPPING,
    _flaps(3, 3),
    _flaps(7, 13),
    _flaps(30, 30),
    *UP_BRIEFLY,
    FLAPPING_WITH_POISON,
)

#: The scenarios in which ours is compared with the rivals.
SCENARIOS = (
    HEALTHY,
    SOME_POISON,
    LONG_OUTAGE,
    DAY_OUTAGE,
    ONLY_POISON,
    POISON_IN_TRAFFIC,
    COIN_TOSS,
    BACKED_UP,
    NEW_POISON,
    FLAPPING,
)

USUAL = (
    HEALTHY,
    SOME_POISON,
    LONG_OUTAGE,
    LONG_OUTAGE_IN_TRAFFIC,
    *DAY_OUTAGES,
    ONLY_POISON,
    POISON_IN_TRAFFIC,
    COIN_TOSS,
    BACKED_UP,
    NEW_POISON,
    *FLAPPINGS,
)
