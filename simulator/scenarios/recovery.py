"""Rows 34 to 38: how soon the re-driver notices a recovery, with or without a hint, late metrics and long waits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fakes.cloudwatch import Lateness
from simulator.conditions import Conditions
from simulator.consumers import Consumer
from simulator.limits import Limits
from simulator.scenarios.expiry import FOUR_DAYS
from simulator.scenarios.scenario import Outage, Scenario
from simulator.smart_policy import Hint
from simulator.sources import LiveTraffic
from simulator.world import hours, minutes

#: Messages that the consumer of row 34 processes a second.
PER_SECOND = 50

#: The longest cool-down by default, in minutes.
COOL_DOWN = 30


def _recovery(letters: int, down: float) -> Iterator[Scenario]:
    """With and without live traffic, with and without reports."""
    work = letters / PER_SECOND / 60
    canary = min(COOL_DOWN, down * 60 / 2)
    quiet = Scenario(
        name=f"34:{letters}:{down:g}h",
        title=f"{letters:,} letters, down for {down:g} h, 50 a second",
        letters=letters,
        consumer=lambda _: Consumer(capacity_per_second=PER_SECOND),
        outage=Outage(lasts=hours(down)),
        calm_at=hours(down),
        until=hours(down + 24),
        seeds=3,
        limits=Limits(drained=canary + 8 + work),
    )
    live = replace(
        quiet,
        name=f"{quiet.name}:live",
        title=f"{quiet.title}, 6 live a minute",
        traffic=LiveTraffic(per_minute=6),
        lasts=hours(down),
        limits=Limits(drained=10 + work),
    )
    for one, wait in ((quiet, canary), (live, 0)):
        yield one
        yield replace(
            one.reporting(),
            name=f"{one.name}:reports",
            title=f"{one.title}, with reports",
            limits=Limits(drained=wait + 3 + work),
        )


RECOVERIES = tuple(
    scenario
    for letters in (20, 300, 3_000, 20_000)
    for down in (0.5, 2, 6)
    for scenario in _recovery(letters, down)
)


def _told(hint: Hint) -> Iterator[Scenario]:
    """A hint one minute after the consumer is well: CLOSED six minutes later, or two with reports."""
    told = Scenario(
        name=f"35:{hint.value}",
        title=f"300 letters, down for 2 h, its end told by {hint.value}",
        letters=300,
        outage=Outage(lasts=hours(2)),
        hints=((hours(2) + minutes(1), hint),),
        calm_at=hours(2),
        until=hours(26),
        seeds=3,
        limits=Limits(closed_within=1 + 6, opens=True),
    )
    yield told
    yield replace(
        told.reporting(),
        name=f"{told.name}:reports",
        title=f"{told.title}, with reports",
        limits=replace(told.limits, closed_within=1 + 2),
    )


#: A canary a minute for an hour, plus what row 3 allows in two hours.
FALSE_HINTS = Scenario(
    name="35:false",
    title="300 letters, down for 2 h, told to be well each minute of the second",
    letters=300,
    outage=Outage(lasts=hours(2)),
    hints=tuple((hours(1) + minutes(one), Hint.EVENT) for one in range(60)),
    calm_at=hours(2),
    until=hours(26),
    seeds=3,
    limits=Limits(redriven_in_outage=60 + 50, opens=True),
)

HINTS = (*(one for hint in Hint for one in _told(hint)), FALSE_HINTS)

#: Counters come one to three minutes after the gauges, and a third of them even later. One minute in twenty reads 0,
#: and one has no gauges.
_DOUBTFUL = Conditions(
    lateness=Lateness(
        counters_seconds=120, revised=0.33, revised_seconds=60, missing=0.05, blank_share=0.05
    )
)

DOUBTFUL_METRICS = (
    Scenario(
        name="36",
        title="600 letters, healthy, counters late and revised, gauges that read 0",
        letters=600,
        traffic=LiveTraffic(per_minute=6),
        conditions=_DOUBTFUL,
        until=hours(24),
        seeds=3,
        limits=Limits(opens=False),
    ),
    Scenario(
        name="36:outage",
        title="200 letters, down for 2 h, counters late and revised, gauges that read 0",
        letters=200,
        outage=Outage(lasts=hours(2)),
        conditions=_DOUBTFUL,
        calm_at=hours(2),
        until=hours(24),
        seeds=3,
    ),
    Scenario(
        name="36:fifo",
        title="20 letters in 4 groups, down for 2 h, fails hidden for 5 min, gauges that read 0",
        letters=20,
        consumer=lambda _: Consumer(backoff_seconds=300),
        outage=Outage(lasts=hours(2)),
        conditions=replace(_DOUBTFUL, fifo=True, groups=4, max_receive_count=5),
        calm_at=hours(2),
        until=hours(48),
        seeds=3,
    ),
)


def _long_waits(visibility: int, receives: int, drained: float) -> Scenario:
    return Scenario(
        name=f"37:{visibility}x{receives}",
        title=f"300 letters, visibility {visibility} s x {receives}, down for 3 h",
        letters=300,
        outage=Outage(lasts=hours(3)),
        conditions=Conditions(visibility_timeout=visibility, max_receive_count=receives),
        calm_at=hours(3),
        until=hours(75),
        seeds=3,
        limits=Limits(drained=drained),
    )


LONG_WAITS = (_long_waits(1_800, 5, 75), _long_waits(43_200, 2, 720 + 60))


def _renewed(down: float) -> Scenario:
    return Scenario(
        name=f"38:{down:g}h",
        title=f"1,000 letters with 2.4 h to live, down for {down:g} h",
        letters=1_000,
        left=hours(2.4),
        outage=Outage(lasts=hours(down)),
        conditions=Conditions(dlq_retention=FOUR_DAYS),
        calm_at=hours(down),
        until=hours(down + 24),
        seeds=2,
    )


RENEWED = tuple(_renewed(down) for down in (0.5, 1.5, 3))

RECOVERY = (*RECOVERIES, *HINTS, *DOUBTFUL_METRICS, *LONG_WAITS, *RENEWED)
