"""Rows 20, 22 and 24: failures beside successes, copies, and pills among few live messages."""

from __future__ import annotations

from dataclasses import replace

from simulator.conditions import Conditions
from simulator.consumers import Consumer, Splitting, flapping, well_from
from simulator.limits import Limits
from simulator.person import Order
from simulator.scenarios.scenario import Outage, Scenario
from simulator.scenarios.usual import PHASES
from simulator.sources import LiveTraffic
from simulator.world import hours, minutes

#: Letters in the DLQ at the start, in the deep variants of row 20.
DEEP = 5_000


def _flaps_for_hours(seed: int) -> Consumer:
    phase = minutes(20) * (seed % PHASES) / PHASES
    return Consumer(health=well_from(hours(4), flapping(minutes(10), minutes(10), phase)))


ALL_IS_WELL = Scenario(
    name="20",
    title="half of the messages fail for 2 h, 6 live a minute",
    letters=0,
    outage=Outage(lasts=hours(2), share=0.5, live_share=0.5),
    traffic=LiveTraffic(per_minute=6),
    calm_at=hours(2),
    lasts=hours(2),
    until=hours(26),
    limits=Limits(drained=60),
)
AFTER_FEW = replace(
    ALL_IS_WELL,
    name="20:few",
    title="5 % of the messages fail for 2 h, 60 live a minute",
    outage=Outage(lasts=hours(2), share=0.05, live_share=0.05),
    traffic=LiveTraffic(per_minute=60),
)
AFTER_FLAPPING = replace(
    ALL_IS_WELL,
    name="20:flap",
    title="flapping for 4 h, 6 live a minute",
    outage=None,
    consumer=_flaps_for_hours,
    calm_at=hours(4),
    lasts=hours(4),
    until=hours(28),
)
AFTER_RECEIVES = replace(
    ALL_IS_WELL,
    name="20:receives",
    title="70 % of the receives fail for 3 h, 6 live a minute",
    outage=None,
    consumer=lambda _: Consumer(failure_probability=0.7, fails_until=hours(3)),
    calm_at=hours(3),
    lasts=hours(3),
    until=hours(27),
)
SHALLOW = (ALL_IS_WELL, AFTER_FEW, AFTER_FLAPPING, AFTER_RECEIVES)
ALL_WELL_AFTER = (
    *SHALLOW,
    *(
        replace(
            one,
            name=f"{one.name}:deep",
            title=f"{one.title}, {DEEP:,} letters",
            letters=DEEP,
            seeds=2,
        )
        for one in SHALLOW
    ),
)

#: Verdicts take longer than a probe is waited for: there is always a probe about which nothing is known.
SLOW = Scenario(
    name="20:slow",
    title="takes 4 min for a message, 10 min up, 13 down for 6 h, 6 live a minute",
    letters=600,
    consumer=lambda _: Consumer(
        health=well_from(hours(6), flapping(minutes(10), minutes(13))), processing_seconds=240
    ),
    traffic=LiveTraffic(per_minute=6),
    conditions=Conditions(visibility_timeout=300),
    calm_at=hours(6),
    lasts=hours(6),
    until=hours(80),
    limits=Limits(drained=180),  # a verdict takes eight minutes
)

#: Receives fail by chance, so that some parts of a letter fail while others succeed.
SPLIT = Scenario(
    name="22",
    title="a letter is split into 25, one of them poison",
    letters=5,
    consumer=lambda _: Consumer(failure_probability=0.5, splits=Splitting(parts=25, poison=1)),
    until=hours(80),  # a few poison parts alone count as an outage, until `give_up_seconds`
)
COPY = replace(
    SPLIT,
    name="22:copy",
    title="a letter is copied onto its queue",
    letters=50,
    consumer=lambda _: Consumer(failure_probability=0.5, splits=Splitting(parts=1)),
)

NINE_HOURS = 9 * 60.0


def _whole_batches(name: str, poison: int, live: float | None) -> Scenario:
    """No one reports which messages of a batch failed: good letters fail as often as they share a batch with poison."""
    return Scenario(
        name=name,
        title=f"{poison} poison pills among 200 fail whole batches, "
        + (f"{live:g} live a minute" if live else "no live traffic"),
        letters=200,
        poison=poison,
        consumer=lambda _: Consumer(whole_batches=True),
        traffic=LiveTraffic(per_minute=live) if live else None,
        until=hours(80),
        limits=Limits(poison_parked=NINE_HOURS) if live else Limits(good_drained=NINE_HOURS),
    )


WHOLE_BATCHES = (
    _whole_batches("27", 10, 6),
    _whole_batches("27:many", 40, 6),
    _whole_batches("27:live", 10, 60),
    _whole_batches("27:quiet", 10, None),
    _whole_batches("27:quiet:many", 40, None),
    # Some seeds take two days: nothing tells a batch of poison from an outage.
    replace(_whole_batches("27:quiet:most", 120, None), limits=Limits()),
)


def _pills(count: int, live: float) -> Scenario:
    return Scenario(
        name=f"24:{count}:{live:g}",
        title=f"{count:,} poison pill{'s'[: count > 1]}, {live:g} live a minute",
        letters=count,
        poison=count,
        traffic=LiveTraffic(per_minute=live),
        until=hours(48),
        limits=Limits(poison_parked=NINE_HOURS, stays_open=False),
    )


PILLS = (
    replace(_pills(3, 1), name="24"),
    *(
        _pills(count, live)
        for count in (1, 3, 20)
        for live in (0.2, 1, 6)
        if (count, live) != (3, 1)
    ),
    _pills(1_000, 3),
    _pills(1_000, 6),
    replace(
        _pills(11, 3),
        name="24:11:3:closed",
        title="11 poison pills, 3 live a minute, circuit closed by hand",
        orders=((minutes(30), Order.CLOSE),),
    ),
)

MIXED = (*ALL_WELL_AFTER, SLOW, SPLIT, COPY, *PILLS, *WHOLE_BATCHES)
