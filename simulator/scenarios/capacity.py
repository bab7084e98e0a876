"""Rows 28, 29 and 39: how much a consumer can handle a second, and large numbers of letters."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta
from random import Random

from simulator.conditions import Conditions
from simulator.consumers import Beyond, Consumer, Reports, Scaling, down_until
from simulator.limits import Limits
from simulator.scenarios.scenario import Outage, Scenario
from simulator.sources import LiveTraffic
from simulator.world import hours, minutes
from smart_redriver.engine.config.settings import Settings

#: Worlds of row 28.
DRAWN = 40

#: How much longer than letters / (capacity - live) redriving may take for each kind of consumer, and the share of live
#: messages that may die because of it.
SLACK = {Beyond.WAIT: 1.25, Beyond.FAIL: 1.5, Beyond.COLLAPSE: 2.0}
DEATHS = {Beyond.WAIT: 0.0, Beyond.FAIL: 1e-4, Beyond.COLLAPSE: 1e-4}

#: The largest share of the capacity that live messages take, unless said otherwise.
BUSIEST = {Beyond.WAIT: 0.8, Beyond.FAIL: 0.8, Beyond.COLLAPSE: 0.6}

#: A world with more letters than its consumer can process in this time shows nothing more, and takes minutes to play.
LONGEST = timedelta(hours=2)

#: How long a world goes on when the letters are done: the consumer's capacity shows nothing more by then.
AFTERMATH = minutes(3)


def _drawn(number: int) -> Scenario:
    """One of the worlds of row 28."""
    rng = Random(28_000 + number)
    beyond = (Beyond.WAIT, Beyond.FAIL, Beyond.COLLAPSE)[number % 3]
    capacity = round(math.exp(rng.uniform(math.log(2), math.log(500))), 1)
    live = round(capacity * rng.uniform(0, BUSIEST[beyond]) * (rng.random() > 0.1), 2)
    left = capacity - live
    drawn = math.exp(rng.uniform(math.log(300), math.log(20_000)))
    letters = round(min(drawn, max(300, left * LONGEST.total_seconds())))
    lag = rng.choice((5, 30))
    reports = Reports() if rng.random() < 1 / 4 else None
    per_second = max(left, 1e-3)
    minutes_left = SLACK[beyond] * letters / per_second / 60 + (3 if reports else 10)
    return Scenario(
        name=f"28:{number}",
        title=f"{letters:,} letters, consumer bears {capacity:g} a second, {live:g} of them live, beyond it they "
        f"{beyond.value}, counts {lag} s old{', with reports' if reports else ''}",
        letters=letters,
        consumer=lambda _: Consumer(capacity_per_second=capacity, beyond=beyond, reports=reports),
        traffic=LiveTraffic(per_minute=60 * live) if live else None,
        conditions=Conditions(count_lag_seconds=lag),
        until=hours(24),
        aftermath=AFTERMATH,
        step=timedelta(seconds=1),
        seeds=1,
        limits=Limits(
            drained=round(minutes_left, 1), live_died=DEATHS[beyond], live_wait=30, opens=False
        ),
    )


BORNE = tuple(_drawn(number) for number in range(DRAWN))

SCALED = Scenario(
    name="28:lambda",
    title="3,000 letters, Lambda with 20 batches at most, 6 live a second",
    letters=3_000,
    consumer=lambda _: Consumer(scaling=Scaling(batch_seconds=10, limit=20)),
    traffic=LiveTraffic(per_minute=360),
    conditions=Conditions(count_lag_seconds=5),
    until=hours(12),
    aftermath=AFTERMATH,
    step=timedelta(seconds=1),
    seeds=1,
    limits=Limits(drained=1.25 * 3_000 / 14 / 60 + 10, live_died=0, live_wait=30, opens=False),
)


def _back(
    name: str,
    title: str,
    away: timedelta,
    live: float,
    consumer: Consumer,
    limits: Limits,
    *,
    letters: int = 1_000,
    outage: Outage | None = None,
) -> Scenario:
    """A consumer of limited capacity that was away at first, beside live messages."""
    return Scenario(
        name=name,
        title=f"{letters:,} letters, {title}, {live:g} live a minute",
        letters=letters,
        consumer=lambda _: consumer,
        outage=outage,
        traffic=LiveTraffic(per_minute=live),
        conditions=Conditions(count_lag_seconds=5),
        calm_at=away,
        lasts=away,
        until=hours(12),
        aftermath=AFTERMATH,
        step=timedelta(seconds=1),
        seeds=1,
        limits=limits,
    )


#: What an outage left in the queue must not be taken for usual when the consumer is back. And the metrics may never
#: show what became of a batch: each deletion and each move could be that of a live message.
BACK = (
    _back(
        "28:down",
        "down for an hour, then throughput collapses beyond 17 a second",
        hours(1),
        270,
        Consumer(capacity_per_second=17, beyond=Beyond.COLLAPSE),
        Limits(live_died=1e-4, live_wait=30),
        outage=Outage(lasts=hours(1)),
    ),
    _back(
        "28:off",
        "switched off for half an hour, then throughput collapses beyond 5.6 a second",
        minutes(30),
        90,
        Consumer(capacity_per_second=5.6, beyond=Beyond.COLLAPSE, polls=down_until(minutes(30))),
        Limits(live_died=1e-4, live_wait=30),
    ),
    _back(
        "28:unknown",
        "switched off for an hour, then tries fail beyond 4.8 a second",
        hours(1),
        20,
        Consumer(capacity_per_second=4.8, beyond=Beyond.FAIL, polls=down_until(hours(1))),
        Limits(drained=60),
        letters=2_500,
    ),
)


def _falls(name: str, live: float) -> Scenario:
    return Scenario(
        name=name,
        title="3,000 letters, down for 2 h, then falls over for 10 min at more than 20 a second, "
        + (f"{live:g} live a minute" if live else "no live traffic"),
        letters=3_000,
        consumer=lambda _: Consumer(capacity_per_second=20, beyond=Beyond.FALL),
        outage=Outage(lasts=hours(2)),
        traffic=LiveTraffic(per_minute=live) if live else None,
        conditions=Conditions(count_lag_seconds=5),
        calm_at=hours(2),
        lasts=hours(2),
        until=hours(14),
        step=timedelta(seconds=1),
        seeds=1,
        limits=Limits(drained=45, falls=2),
    )


FALLING = (_falls("29", 6), _falls("29:30", 30), _falls("29:60", 60), _falls("29:quiet", 0))

#: The rate comes near its limit again and again, and each fall costs ten minutes.
WEAK = replace(
    _falls("29:weak", 31),
    title="10,000 letters, down for 1 h, then falls over for 10 min at more than 6 a second, 31 live a minute",
    letters=10_000,
    consumer=lambda _: Consumer(capacity_per_second=6, beyond=Beyond.FALL),
    outage=Outage(lasts=hours(1)),
    calm_at=hours(1),
    lasts=hours(1),
    limits=Limits(drained=120, falls=5),
)

#: The first window is too much for it, and each batch after a successful canary.
SOON = Scenario(
    name="29:soon",
    title="300 letters, falls over for 10 min at more than 4.7 a second, 30 live a minute, reports",
    letters=300,
    poison=15,
    consumer=lambda _: Consumer(capacity_per_second=4.7, beyond=Beyond.FALL, reports=Reports()),
    traffic=LiveTraffic(per_minute=30),
    conditions=Conditions(count_lag_seconds=5),
    until=hours(14),
    step=timedelta(seconds=1),
    seeds=1,
    limits=Limits(good_drained=120),
)

MILLION_AT_ONCE = Scenario(
    name="39",
    title="1,000,000 letters, a consumer that bears 2,000 a second, no rate",
    letters=1_000_000,
    consumer=lambda _: Consumer(capacity_per_second=2_000),
    settings=Settings(max_rate=0),
    step=timedelta(seconds=10),
    until=hours(24),
    seeds=1,
    limits=Limits(opens=False),
)

HELD = Scenario(
    name="39:held",
    title="121,000 letters, 120,000 of them in somebody else's hands for an hour",
    letters=121_000,
    held=(120_000, 3_600),
    calm_at=hours(1),
    lasts=hours(1),
    until=hours(24),
    seeds=1,
    limits=Limits(opens=False),
)

FOREIGN = Scenario(
    name="39:foreign",
    title="1,000 letters beside 150,000 of a queue that nobody knows",
    letters=1_000,
    foreign=150_000,
    until=hours(24),
    seeds=1,
    limits=Limits(opens=False),
)

CAPACITY = (*BORNE, SCALED, *BACK, *FALLING, WEAK, SOON, MILLION_AT_ONCE, HELD, FOREIGN)
