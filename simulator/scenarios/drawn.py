"""Worlds drawn at random from a seed: `drawn:17` is the same world each time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from random import Random

from simulator.conditions import Conditions
from simulator.consumers import Consumer, flapping, well_from
from simulator.limits import Limits
from simulator.scenarios.scenario import Outage, Scenario
from simulator.sources import LiveTraffic
from simulator.world import hours, minutes
from smart_redriver.engine.config.settings import Settings

PREFIX = "drawn:"

MOST_LETTERS = 2_000

#: An outage of one downstream must be over by a letter's last chance, six hours after its first strike.
LONGEST_PARTIAL_HOURS = 5
LONGEST_HOURS = 24

#: A letter that returns by chance more often than this could use up its strikes by chance alone.
MOST_RETURNS_BY_CHANCE = 0.05

#: Busy producers fill the DLQ of a longer outage with more letters than a soak has time for.
BUSY_AT_MOST = hours(2)

#: Only what must never happen can be asserted for any world: how long it takes depends on what was drawn.
LIMITS = Limits(leaves_some=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """What the consumer suffers from, until `over_at`."""

    title: str
    consumer: Consumer
    outage: Outage | None
    over_at: timedelta


def drawn(seed: int) -> Scenario:
    """The world drawn from this seed."""
    rng = Random(seed)
    conditions = Conditions(
        visibility_timeout=rng.choice((30, 60, 300, 900)),
        max_receive_count=rng.choice((1, 3, 5, 10)),
        count_lag_seconds=rng.choice((0, 30, 60)),
        count_noise=rng.choice((0, 0, 2, 5)),
        metrics_lag_seconds=rng.choice((60, 120, 180)),
    )
    trouble = _trouble(rng, _consumer(rng, conditions))
    letters = round(MOST_LETTERS ** rng.random())
    poison = rng.choice((0, 0, 0, 1, letters // 20, letters // 5))
    live = rng.choice((0, 0, 0.2, 1, 6, 30) if trouble.over_at < BUSY_AT_MOST else (0, 0.2, 1, 6))
    schedule = rng.choice((1, 5, 15))
    return Scenario(
        name=f"{PREFIX}{seed}",
        title=f"{letters:,} letters, {poison} poison, {trouble.title}, {live:g} live a minute, every {schedule} min, "
        f"visibility {conditions.visibility_timeout} s x {conditions.max_receive_count}",
        letters=letters,
        poison=min(poison, letters),
        consumer=lambda _: trouble.consumer,
        outage=trouble.outage,
        traffic=LiveTraffic(per_minute=live) if live else None,
        conditions=conditions,
        settings=Settings(schedule_minutes=schedule),
        calm_at=trouble.over_at,
        lasts=trouble.over_at,
        until=trouble.over_at + hours(96),
        seeds=1,
        limits=LIMITS,
    )


def _consumer(rng: Random, conditions: Conditions) -> Consumer:
    probability = rng.choice((0, 0, 0.1, 0.3, 0.5))
    if probability**conditions.max_receive_count > MOST_RETURNS_BY_CHANCE:
        probability = 0
    delay = rng.choice((0, 0, 0.3, 0.8)) * conditions.visibility_timeout
    return Consumer(
        failure_probability=probability,
        backoff_seconds=rng.choice((0, 0, 60, 300, 900)),
        processing_seconds=int(delay),
        capacity_per_second=rng.choice((0, 0, 0, 5)),
        deletes=rng.choice((1, 1, 1, 2)),
    )


def _trouble(rng: Random, consumer: Consumer) -> Trouble:
    kind = rng.choice(("none", "outage", "partial", "flapping"))
    if kind == "outage":
        lasts = hours(round(LONGEST_HOURS ** rng.random(), 2))
        title = f"down for {lasts / hours(1):g} h"
        return Trouble(title=title, consumer=consumer, outage=Outage(lasts=lasts), over_at=lasts)
    if kind == "partial":
        lasts = hours(round(rng.uniform(0.2, LONGEST_PARTIAL_HOURS), 2))
        share = rng.choice((0.05, 0.1, 0.3, 0.6))
        outage = Outage(lasts=lasts, share=share, live_share=rng.choice((0, share)))
        title = f"{share:.0%} need what is down for {lasts / hours(1):g} h"
        return Trouble(title=title, consumer=consumer, outage=outage, over_at=lasts)
    if kind == "flapping":
        up, down = (minutes(rng.choice((2, 3, 7, 10, 13, 30))) for _ in range(2))
        over_at = hours(rng.choice((2, 4, 6)))
        health = well_from(over_at, flapping(up, down, (up + down) * rng.random()))
        title = (
            f"{up / minutes(1):g} min up, {down / minutes(1):g} down for {over_at / hours(1):g} h"
        )
        consumer = Consumer(
            health=health,
            backoff_seconds=consumer.backoff_seconds,
            processing_seconds=consumer.processing_seconds,
        )
        return Trouble(title=title, consumer=consumer, outage=None, over_at=over_at)
    return Trouble(title="healthy", consumer=consumer, outage=None, over_at=timedelta())
