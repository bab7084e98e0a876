"""Rows 13 to 19, 23 and 25: outages that a re-driver could misread, and a backlog without one."""

from __future__ import annotations

from dataclasses import replace

from simulator.conditions import Conditions
from simulator.consumers import Consumer, down_between, down_until
from simulator.limits import Limits
from simulator.scenarios.scenario import Neighbour, Outage, Scenario
from simulator.scenarios.usual import LONG_OUTAGE
from simulator.sources import LiveTraffic, Source
from simulator.world import hours, minutes


def _partial(percent: int) -> Scenario:
    return Scenario(
        name=f"13:{percent}",
        title=f"{percent} % of 1,000 letters need a downstream that is down for 4 h",
        letters=1_000,
        outage=Outage(lasts=hours(4), share=percent / 100),
        traffic=LiveTraffic(per_minute=30),
        calm_at=hours(4),
        until=hours(28),
        limits=Limits(drained=150),
    )


PARTIAL = replace(_partial(30), name="13")
PARTIALS = (PARTIAL, _partial(10), _partial(60))

BACKOFF_RECEIVES = 5


def _backs_off(seconds: int, letters: int) -> Scenario:
    return Scenario(
        name=f"14:{seconds}:{letters}",
        title=f"{letters:,} letters, consumer backs off for {seconds} s, down for 6 h",
        letters=letters,
        consumer=lambda _: Consumer(backoff_seconds=seconds),
        outage=Outage(lasts=hours(6)),
        conditions=Conditions(max_receive_count=BACKOFF_RECEIVES),
        calm_at=hours(6),
        until=hours(30),
        limits=Limits(opens=True, opened_within=60, wasted=100 * BACKOFF_RECEIVES / 3),
    )


BACKING_OFF = replace(_backs_off(300, 50), name="14")
BACKINGS_OFF = (
    BACKING_OFF,
    *(
        _backs_off(seconds, letters)
        for seconds in (60, 300, 900)
        for letters in (5, 50, 1_000)
        if (seconds, letters) != (300, 50)
    ),
)

EXACT = Conditions(count_lag_seconds=0)
VAGUE = Conditions(count_lag_seconds=60, count_noise=5)


def _vaguely_counted(letters: int) -> Scenario:
    return replace(
        LONG_OUTAGE,
        name=f"15:{letters}",
        title=f"{letters:,} letters, down for 2 h, counts 60 s late and wrong by 5",
        letters=letters,
        conditions=VAGUE,
        seeds=25,
        limits=Limits(),
    )


ONE_VAGUELY_COUNTED = replace(_vaguely_counted(1), name="15")
MANY_VAGUELY_COUNTED = _vaguely_counted(10_000)
#: The two above are compared with these scenarios, and may take twice as long.
ONE_EXACTLY_COUNTED, MANY_EXACTLY_COUNTED = (
    replace(
        one,
        name=f"15:{one.letters}:exact",
        title=f"{one.letters:,} letters, down for 2 h, counts exact",
        conditions=EXACT,
    )
    for one in (ONE_VAGUELY_COUNTED, MANY_VAGUELY_COUNTED)
)
COUNTED = (ONE_VAGUELY_COUNTED, MANY_VAGUELY_COUNTED, ONE_EXACTLY_COUNTED, MANY_EXACTLY_COUNTED)


def _patient(visibility: int, receives: int) -> tuple[Scenario, Scenario]:
    """A consumer with long timeouts: healthy, and after an outage."""
    healthy = Scenario(
        name=f"16:{visibility}x{receives}",
        title=f"300 letters, visibility {visibility} s x {receives} receives",
        letters=300,
        conditions=Conditions(visibility_timeout=visibility, max_receive_count=receives),
        until=hours(48),
        limits=Limits(drained=15, opens=False),
    )
    after_outage = replace(
        healthy,
        name=f"{healthy.name}:outage",
        title=f"{healthy.title}, down for 2 h",
        outage=Outage(lasts=hours(2)),
        calm_at=hours(2),
        limits=Limits(drained=150 if visibility > hours(1).total_seconds() else 60),
    )
    return healthy, after_outage


PATIENT = (*_patient(900, 5), *_patient(300, 3), *_patient(5_400, 5))

#: The neighbour's letters: the ones that it lets die while the other queue's consumer is down must flow, too.
NEIGHBOUR = Source(
    name="invoices",
    consumer=Consumer(failure_probability=0.3, fails_until=hours(4)),
    traffic=LiveTraffic(per_minute=30),
)
SHARED_DLQ = Scenario(
    name="17",
    title="two sources share a DLQ, one is down for 4 h",
    letters=500,
    outage=Outage(lasts=hours(4)),
    neighbour=Neighbour(source=NEIGHBOUR, letters=500),
    calm_at=hours(4),
    lasts=hours(4),
    until=hours(28),
    limits=Limits(opens=True),
)

SWITCHED_OFF = Scenario(
    name="18",
    title="consumer switched off for 3 h",
    letters=200,
    consumer=lambda _: Consumer(polls=down_until(hours(3))),
    calm_at=hours(3),
    until=hours(27),
    limits=Limits(drained=30),
)

MILLION = Scenario(
    name="19",
    title="1,000,000 letters, healthy",
    letters=1_000_000,
    step=minutes(0.5),
    until=hours(24),
    seeds=1,
    limits=Limits(drained=3.5 * 60, opens=False),
)

#: One of five letters fails while the others succeed, so it has a strike when everything goes down.
SUSPECTS = Scenario(
    name="23",
    title="one suspect, then a total outage of a day",
    letters=5,
    consumer=lambda _: Consumer(health=down_between(minutes(12), hours(24))),
    outage=Outage(lasts=hours(24), share=0.2),
    calm_at=hours(24),
    until=hours(48),
)


def _short_outage(name: str, traffic: LiveTraffic | None, drained: float) -> Scenario:
    return Scenario(
        name=name,
        title="32 letters, down for 15 min" + (", beside live traffic" if traffic else ""),
        letters=32,
        outage=Outage(lasts=minutes(15)),
        traffic=traffic,
        calm_at=minutes(15),
        until=hours(12),
        limits=Limits(drained=drained),
    )


SHORT_OUTAGES = (
    _short_outage("25", None, 20),
    _short_outage("25:live", LiveTraffic(per_minute=6), 15),
)

#: CloudWatch in its bad hours, or for a queue that was long unused.
_LATE = Conditions(metrics_lag_seconds=900)

LATE_METRICS = (
    Scenario(
        name="26",
        title="600 letters, CloudWatch 15 min late",
        letters=600,
        conditions=_LATE,
        until=hours(24),
        limits=Limits(drained=90, opens=False),
    ),
    Scenario(
        name="26:outage",
        title="200 letters, down for 2 h, beside live traffic, CloudWatch 15 min late",
        letters=200,
        outage=Outage(lasts=hours(2)),
        traffic=LiveTraffic(per_minute=6),
        conditions=_LATE,
        calm_at=hours(2),
        lasts=hours(2),
        until=hours(24),
        limits=Limits(drained=150),
    ),
    Scenario(
        name="26:poison",
        title="10 poison pills among 200, CloudWatch 15 min late",
        letters=200,
        poison=10,
        conditions=_LATE,
        until=hours(48),
        limits=Limits(good_drained=120, poison_parked=9 * 60),
    ),
)

OUTAGES = (
    *PARTIALS,
    *BACKINGS_OFF,
    *COUNTED,
    *PATIENT,
    SHARED_DLQ,
    SWITCHED_OFF,
    MILLION,
    SUSPECTS,
    *SHORT_OUTAGES,
    *LATE_METRICS,
)
