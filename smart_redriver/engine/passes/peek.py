"""The first look of a pass, which costs next to nothing: circuits and depths."""

from __future__ import annotations

from datetime import datetime

from smart_redriver.engine.config.settings import Mode, Settings
from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.passes.circuit_keeper import CircuitKeeper
from smart_redriver.engine.passes.lane import Lane
from smart_redriver.engine.passes.pass_state import PassState
from smart_redriver.engine.passes.ports import Tools
from smart_redriver.engine.passes.reporting import BUSY_SECONDS
from smart_redriver.engine.report import Outcome, Report


def peek(tools: Tools, settings: Settings, deadline: datetime) -> PassState:
    """What costs next to nothing: the circuits, and how much is where. Raises CallFailed."""
    first = tools.sources[0].name
    lanes = tuple(
        Lane(
            source=source,
            keeper=CircuitKeeper(
                tools.memory if source.name == first else tools.memory.of(source.name),
                source.name,
                settings,
                tools.clock,
            ),
            settings=settings,
            roll=tools.rng.random(),
        )
        for source in tools.sources
    )
    dlq = tools.dead_letters.facts()
    for lane in lanes if dlq.depth else ():
        lane.hint = lane.keeper.load_hint()
    is_paused = settings.mode is Mode.PAUSED or lanes[0].circuit.orders.pauses(tools.clock())
    for lane in lanes:
        lane.is_paused = is_paused
    return PassState(
        tools=tools,
        settings=settings,
        deadline=deadline,
        is_dry=settings.mode is Mode.DRY_RUN,
        is_paused=is_paused,
        dlq=dlq,
        parking_lot=tools.parking_lot.facts(),
        lanes=lanes,
    )


def unreadable(tools: Tools, settings: Settings, failed: CallFailed) -> Report:
    """The state table or a queue can't be read: the pass does nothing and says so."""
    tools.tell_failed(failed)
    report = Report(
        queue=tools.sources[0].name,
        mode=settings.mode.value,
        outcome=Outcome.FAILED,
        reason=str(failed),
        look_again_seconds=BUSY_SECONDS,  # and not at once: what can't be read now can't be read in a second either
    )
    report.faults[f"{failed.call}:{failed.code}"] += 1
    return report
