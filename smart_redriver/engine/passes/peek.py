"""The first look of a pass, at circuits and depths: whether there is anything to do. It costs next to nothing.

It comes before the pass takes the lease. Most passes end here.
"""

from __future__ import annotations

from datetime import datetime

from smart_redriver.engine.config.settings import Mode, Settings
from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.model.circuit import Circuit, State
from smart_redriver.engine.passes import assess, guard
from smart_redriver.engine.passes.circuit_keeper import CircuitKeeper
from smart_redriver.engine.passes.pass_state import PassState
from smart_redriver.engine.passes.ports import Tools
from smart_redriver.engine.passes.reporting import BUSY_SECONDS
from smart_redriver.engine.passes.source_context import SourceContext
from smart_redriver.engine.report import Outcome, Report


def peek(tools: Tools, settings: Settings, deadline: datetime) -> PassState:
    """Read the circuits and measure DLQ and parking lot. Raises CallFailed."""
    first = tools.sources[0].name
    contexts = tuple(
        SourceContext(
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
    for context in contexts if dlq.depth else ():
        context.hint = context.keeper.load_hint()
    is_paused = settings.mode is Mode.PAUSED or contexts[0].circuit.orders.pauses(tools.clock())
    for context in contexts:
        context.is_paused = is_paused
    return PassState(
        tools=tools,
        settings=settings,
        deadline=deadline,
        is_dry=settings.mode is Mode.DRY_RUN,
        is_paused=is_paused,
        dlq=dlq,
        parking_lot=tools.parking_lot.facts(),
        contexts=contexts,
    )


def unreadable(tools: Tools, settings: Settings, failed: CallFailed) -> Report:
    """The report of a pass that can't read the state table or a queue: it does nothing and says so."""
    tools.tell_failed(failed)
    report = Report(
        queue=tools.sources[0].name,
        mode=settings.mode.value,
        outcome=Outcome.FAILED,
        reason=str(failed),
        look_again_seconds=BUSY_SECONDS,  # not at once: what can't be read now can't be read in a second either
    )
    report.faults[f"{failed.call}:{failed.code}"] += 1
    return report


def may_have_work(state: PassState, now: datetime) -> bool:
    """Whether there may be work, by what is known already: an empty DLQ or a waiting circuit costs no further call."""
    if _is_sweep_due(state, now):
        return True
    if state.is_paused:
        return False
    if any(context.circuit.pending or context.circuit.left_failing for context in state.contexts):
        return True
    may_flow = any(
        context.allow(now).limit or context.circuit.state is State.OPEN
        for context in state.contexts
    )
    return bool(state.dlq.depth) and may_flow


def has_work(state: PassState, now: datetime) -> bool:
    """Whether the queue metrics lead to anything: a verdict, a letter to send, or a return to look for."""
    if _is_sweep_due(state, now):
        return True
    return not state.is_paused and any(_has_news(state, context, now) for context in state.contexts)


def _has_news(state: PassState, context: SourceContext, now: datetime) -> bool:
    if context.has_left_behind or context.feels_anew(now):
        return True
    before = context.circuit
    circuit, rulings = context.judged(now)
    if circuit.failure_count > before.failure_count or circuit.state is not before.state:
        return True
    if any(one.judgement.verdict is not None for one in rulings):
        return True
    if _is_counted(circuit) != _is_counted(before):
        return True
    return state.dlq.depth > 0 and (
        bool(context.allow(now).limit) or assess.is_worth_a_look(state, now)
    )


def _is_counted(circuit: Circuit) -> list[tuple[bool, ...]]:
    """Whether the numbers of each batch are complete, and whether it has left its source queue."""
    return [(one.is_over, one.is_gone) for one in circuit.counted_batches]


def _is_sweep_due(state: PassState, now: datetime) -> bool:
    circuit = state.contexts[0].circuit
    is_flowing = all(context.is_flowing for context in state.contexts)
    if state.dlq.depth and guard.is_dlq_sweep_due(circuit, now, is_flowing=is_flowing):
        return True
    return bool(state.parking_lot.depth) and guard.is_lot_sweep_due(circuit, now)
