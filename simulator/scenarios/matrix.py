"""Row M: the usual rows under every schedule, and with consumers of every patience."""

from __future__ import annotations

from dataclasses import replace

from simulator.conditions import Conditions
from simulator.limits import Limits
from simulator.scenarios.scenario import Scenario
from simulator.scenarios.usual import (
    COIN_TOSS,
    DAY_OUTAGE,
    FLAPPING,
    HEALTHY,
    LONG_OUTAGE,
    NEW_POISON,
    SOME_POISON,
)
from simulator.world import hours
from smart_redriver.engine.config.settings import Settings

SCHEDULES = (1, 5, 15)
PATIENCE = ((30, 3), (300, 3), (30, 1), (30, 10), (900, 5))
ROWS = (
    HEALTHY,
    SOME_POISON,
    replace(LONG_OUTAGE, letters=1_000, title="backlog of 1,000, down for 2 h"),
    DAY_OUTAGE,
    COIN_TOSS,
    NEW_POISON,
    FLAPPING,
)
#: Hours allowed for rows that take longer; all others must be over within 72 h.
HOURS = {"6": 96, "9": 96}


def _cell(row: Scenario, schedule: int, visibility: int, receives: int) -> Scenario:
    return replace(
        row,
        name=f"M:{row.name}:{schedule}:{visibility}x{receives}",
        title=f"{row.title}, every {schedule} min, visibility {visibility} s x {receives}",
        settings=Settings(schedule_minutes=schedule),
        conditions=Conditions(visibility_timeout=visibility, max_receive_count=receives),
        until=hours(HOURS.get(row.name, 72)),
        seeds=1,
        limits=Limits(),
    )


MATRIX = tuple(
    _cell(row, schedule, visibility, receives)
    for row in ROWS
    for schedule in SCHEDULES
    for visibility, receives in PATIENCE
)
