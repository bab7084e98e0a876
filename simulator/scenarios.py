"""The scenarios that the re-driver must pass, as data: the same for the tests and for the benchmark.

A scenario says what the world is like and when it has been watched for long enough. It knows no policy and no
limits; those are in `tests/scenarios` for ours, and the benchmark compares ours with its rivals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from simulator.consumers import Consumer, down_until, flapping
from simulator.world import LiveTraffic, Policy, World, hours, minutes

#: After all has come to rest, the policy goes on for this long: what it still has to decide, it does then.
AFTERMATH = minutes(30)

#: The consumer of scenario 9 is up and then down for this long each.
FLAP = minutes(10)
#: Where in that round each seed starts: a round of eight phases.
PHASES = 8

#: Live messages before the redriven letters of scenario 7, and what the consumer works off a second: 20 minutes.
BURST = 6_000
BURST_CAPACITY = 5.0

#: A policy for one world; the number seeds its jitter.
PolicyMaker = Callable[[World, int], Policy]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One world and how long to watch it.

    Attributes:
        name: the scenario's number in the design, for tables and test ids.
        letters, poison: dead letters at the start, and how many of them are poison pills.
        consumer: by the seed.
        burst: live messages that wait in the source queue before the first pass.
        calm_at: when the consumer is well for good and no new poison comes; the time to drain counts from here.
        seeds: how many of them, from 0 on, make the scenario's runs.
        lasts: it is watched for this long even when nothing waits anywhere.
        until: then it ends, whatever is left.

    """

    name: str
    title: str
    letters: int
    poison: int = 0
    consumer: Callable[[int], Consumer] = lambda _: Consumer()
    traffic: LiveTraffic | None = None
    burst: int = 0
    calm_at: timedelta = timedelta()
    lasts: timedelta = timedelta()
    until: timedelta
    seeds: int = 5

    def world(self, seed: int) -> World:
        """The world of this scenario, its letters in the DLQ."""
        world = World(seed=seed, consumer=self.consumer(seed), traffic=self.traffic)
        world.dead_letters(self.letters, poison=self.poison)
        for number in range(self.burst):
            world.send(f"burst-{number}")
        return world

    def play(self, world: World, policy: Policy) -> None:
        """Let the policy work until nothing waits any more, and a little longer."""
        world.run(
            policy,
            until=self.until,
            stop=lambda: world.is_drained and world.elapsed >= self.lasts,
        )
        world.run(policy, until=min(world.elapsed + AFTERMATH, self.until))


def _flapping(seed: int) -> Consumer:
    phase = 2 * FLAP * (seed % PHASES) / PHASES
    return Consumer(health=flapping(FLAP, FLAP, phase))


HEALTHY = Scenario(name="1", title="consumer healthy again", letters=200, until=hours(12))

SOME_POISON = Scenario(
    name="2", title="10 poison pills among 200", letters=200, poison=10, until=hours(12)
)

LONG_OUTAGE = Scenario(
    name="3",
    title="backlog of 10,000, down for 2 h",
    letters=10_000,
    consumer=lambda _: Consumer(health=down_until(hours(2))),
    calm_at=hours(2),
    until=hours(24),
    seeds=3,
)

DAY_OUTAGE = Scenario(
    name="4",
    title="5 letters, down for 24 h",
    letters=5,
    consumer=lambda _: Consumer(health=down_until(hours(24))),
    calm_at=hours(24),
    until=hours(48),
)

ONLY_POISON = Scenario(
    name="5a", title="only poison, no other traffic", letters=5, poison=5, until=hours(72)
)

POISON_IN_TRAFFIC = Scenario(
    name="5b",
    title="only poison, beside live traffic",
    letters=5,
    poison=5,
    traffic=LiveTraffic(per_minute=6),
    until=hours(24),
)

COIN_TOSS = Scenario(
    name="6",
    title="every receive fails with p = 0.5",
    letters=200,
    consumer=lambda _: Consumer(failure_probability=0.5),
    until=hours(24),
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
    title="500 letters, 2 new poison pills a pass",
    letters=500,
    traffic=LiveTraffic(per_minute=30, poison_per_minute=0.4, poison_until=hours(6)),
    calm_at=hours(6),
    lasts=hours(6),
    until=hours(12),
)

FLAPPING = Scenario(
    name="9",
    title="consumer flaps every 10 min",
    letters=1_000,
    consumer=_flapping,
    until=hours(24),
    seeds=PHASES,
)

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
