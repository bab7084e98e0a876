"""The scenarios that the re-driver must pass, as data: the same for the tests, the benches and the command.

A scenario says what the world is like, how long it is watched, and what must hold. Its name is its row in the design's
table; variants add more after a colon: `14:900:50`. A row's number alone is its default variant.
"""

from simulator.scenarios.capacity import CAPACITY
from simulator.scenarios.drawn import PREFIX, drawn
from simulator.scenarios.expiry import EXPIRY
from simulator.scenarios.kinds import KINDS
from simulator.scenarios.matrix import MATRIX
from simulator.scenarios.mixed import MIXED
from simulator.scenarios.outages import OUTAGES
from simulator.scenarios.recovery import RECOVERY
from simulator.scenarios.reporting import REPORTING
from simulator.scenarios.scenario import Played, PolicyMaker, Scenario
from simulator.scenarios.unlucky import UNLUCKY
from simulator.scenarios.usual import (
    BACKED_UP,
    BURST_CAPACITY,
    COIN_TOSS,
    DAY_OUTAGE,
    FLAPPING,
    HEALTHY,
    LONG_OUTAGE,
    NEW_POISON,
    ONLY_POISON,
    POISON_IN_TRAFFIC,
    SCENARIOS,
    SOME_POISON,
    USUAL,
)

__all__ = [
    "BACKED_UP",
    "BURST_CAPACITY",
    "BY_NAME",
    "COIN_TOSS",
    "DAY_OUTAGE",
    "FLAPPING",
    "HEALTHY",
    "LONG_OUTAGE",
    "MATRIX",
    "NEW_POISON",
    "ONLY_POISON",
    "POISON_IN_TRAFFIC",
    "ROWS",
    "SCENARIOS",
    "SOME_POISON",
    "Played",
    "PolicyMaker",
    "Scenario",
    "drawn",
    "named",
]


def _by_row(scenario: Scenario) -> int:
    return int(scenario.name.partition(":")[0])


#: All rows with their variants.
ROWS = tuple(
    sorted(
        (*USUAL, *UNLUCKY, *OUTAGES, *MIXED, *EXPIRY, *REPORTING, *CAPACITY, *KINDS, *RECOVERY),
        key=_by_row,
    )
)

BY_NAME = {scenario.name: scenario for scenario in (*ROWS, *MATRIX)}


#: Other names: defaults, named after what makes them variants, and rows that have no default variant.
ALIASES = {
    "4:5:24h": "4",
    "9:10-10": "9",
    "13:30": "13",
    "13:30:reports": "13:reports",
    "14:300:50": "14",
    "15:1": "15",
    "16": "16:900x5",
    "20:half": "20",
    "20:half:deep": "20:deep",
    "21:20m": "21",
    "22:split": "22",
    "24:3:1": "24",
    "28": "28:0",
    "31": "31:1000:40",
    "34": "34:300:2h",
    "35": "35:event",
    "37": "37:1800x5",
    "38": "38:1.5h",
    "M": "M:1:1:300x3",
}


def named(name: str) -> Scenario:
    """The scenario with this name, or the world drawn from the seed in it. Raises KeyError."""
    seed = name.removeprefix(PREFIX)
    if seed != name and seed.isdecimal():
        return drawn(int(seed))
    return BY_NAME[ALIASES.get(name, name)]
