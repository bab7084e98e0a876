"""Rows 2, 3 and 13 with reports: their consumers have the kit."""

from __future__ import annotations

from dataclasses import replace

from simulator.consumers import Reports
from simulator.limits import Limits
from simulator.scenarios.outages import PARTIALS
from simulator.scenarios.scenario import Scenario
from simulator.scenarios.usual import LONG_OUTAGE, LONG_OUTAGE_IN_TRAFFIC, SOME_POISON

SEEDS = 2


def _with_reports(
    scenario: Scenario, limits: Limits, name: str = "", *, permanent: bool = False
) -> Scenario:
    return replace(
        scenario.reporting(Reports(permanent=permanent)),
        name=name or f"{scenario.name}:reports",
        title=f"{scenario.title}, with reports",
        seeds=SEEDS,
        limits=limits,
    )


KNOWN_POISON = _with_reports(
    SOME_POISON,
    replace(SOME_POISON.limits, poison_parked=5),
    "2:permanent",
    permanent=True,
)

REPORTING = (
    KNOWN_POISON,
    _with_reports(LONG_OUTAGE, replace(LONG_OUTAGE.limits, drained=35)),
    _with_reports(LONG_OUTAGE_IN_TRAFFIC, replace(LONG_OUTAGE_IN_TRAFFIC.limits, drained=12)),
    *(_with_reports(one, replace(one.limits, drained=30, wasted=150)) for one in PARTIALS),
)
