"""Rows 10 to 12: passes that run twice, die, or have calls refused, by chance.

The tests beside them are exhaustive: `tests/scenarios/test_two_passes.py` overlaps two passes at every call, and
`tests/faults` lets a pass die at every call, and meet every fault of each call.
"""

from __future__ import annotations

from dataclasses import replace

from simulator.limits import Limits
from simulator.mishaps import Mishaps
from simulator.scenarios.scenario import Scenario
from simulator.world import hours

TWICE = Scenario(
    name="10",
    title="the schedule always fires twice",
    letters=200,
    poison=10,
    mishaps=Mishaps(fires_twice=True),
    until=hours(80),  # with too many strikes lost, poison is left to `give_up_seconds`
)

DEATHS = replace(
    TWICE,
    name="11",
    title="every fifth pass dies at one of its calls",
    mishaps=Mishaps(deaths=0.2),
    limits=Limits(repeats=True),
)

REFUSALS = replace(
    DEATHS,
    name="12",
    title="one call in twenty is throttled",
    mishaps=Mishaps(refusals=0.05),
)

UNLUCKY = (TWICE, DEATHS, REFUSALS)
