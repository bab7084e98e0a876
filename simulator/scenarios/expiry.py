"""Row 21: letters near their expiry, in each state of the circuit. They may be parked, and must never be lost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

from simulator.conditions import Conditions
from simulator.consumers import Consumer, flapping
from simulator.limits import Limits
from simulator.person import Order
from simulator.scenarios.scenario import Outage, Scenario
from simulator.world import hours, minutes
from smart_redriver.engine.config.settings import Settings

FOUR_DAYS = 4 * 86_400

NOTHING_LOST = Limits(parks_good=True, leaves_some=True)


#: Settings with which a day is too short for 3,000 letters, and six hours for 1,000.
NARROW = Settings(initial_window=2, max_window=2)


def _told(left: timedelta) -> str:
    return f"{left / minutes(1):g} min" if left < hours(1) else f"{left / hours(1):g} h"


def _near_expiry(
    name: str, left: timedelta, letters: int, settings: Settings | None = None
) -> Iterator[Scenario]:
    """More letters than the window lets through in time, in each state of the circuit."""
    closed = Scenario(
        name=f"21:{name}",
        title=f"{letters:,} letters {_told(left)} from their expiry, CLOSED",
        letters=letters,
        left=left,
        settings=settings or Settings(),
        until=left + hours(6),
        seeds=2,
        limits=NOTHING_LOST,
    )
    yield closed
    yield replace(
        closed,
        name=f"{closed.name}:half",
        title=f"{closed.title}, half of the receives fail",
        consumer=lambda _: Consumer(failure_probability=0.5),
    )
    over = left + hours(2)
    yield replace(
        closed,
        name=f"{closed.name}:open",
        title=f"{letters:,} letters {_told(left)} from their expiry, OPEN",
        outage=Outage(lasts=over),
        orders=((timedelta(), Order.OPEN),),
        calm_at=over,
    )
    yield replace(
        closed,
        name=f"{closed.name}:paused",
        title=f"{letters:,} letters {_told(left)} from their expiry, paused",
        orders=((timedelta(), Order.PAUSE),),
    )


NEAR_EXPIRY = (
    *_near_expiry("20m", minutes(20), 300),
    *_near_expiry("20m:many", minutes(20), 10_000),
    *_near_expiry("6h", hours(6), 1_000, NARROW),
    *_near_expiry("1d", hours(24), 3_000, NARROW),
)

SHORT_RETENTION = (
    Scenario(
        name="21:4d:flap",
        title="1,000 letters in a DLQ that keeps 4 days, 12 h left, flapping",
        letters=1_000,
        left=hours(12),
        consumer=lambda _: Consumer(health=flapping(minutes(10), minutes(10))),
        conditions=Conditions(dlq_retention=FOUR_DAYS),
        until=hours(30),
        seeds=2,
        limits=NOTHING_LOST,
    ),
    Scenario(
        name="21:4d:open",
        title="1,000 letters in a DLQ that keeps 4 days, down for 5 days",
        letters=1_000,
        outage=Outage(lasts=hours(120)),
        conditions=Conditions(dlq_retention=FOUR_DAYS),
        calm_at=hours(120),
        until=hours(126),
        step=minutes(1),
        seeds=1,
        limits=NOTHING_LOST,
    ),
)

EXPIRY = (replace(NEAR_EXPIRY[0], name="21"), *NEAR_EXPIRY[1:], *SHORT_RETENTION)
