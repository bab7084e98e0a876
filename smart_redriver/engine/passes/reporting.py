"""Makes the report of a pass from the results of its steps."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from smart_redriver.engine.errors import CallFailed, EntryFault
from smart_redriver.engine.headline import headline, seen_of, worst
from smart_redriver.engine.model.circuit import Circuit, State
from smart_redriver.engine.model.judging import Ruling
from smart_redriver.engine.model.permit import LISTENING, is_worth_listening
from smart_redriver.engine.model.rate import Rate
from smart_redriver.engine.passes import guard
from smart_redriver.engine.passes.pass_state import PassState
from smart_redriver.engine.passes.source_context import SourceContext
from smart_redriver.engine.report import Outcome, Report
from smart_redriver.engine.triage.decision import Decision, HoldReason

#: Decisions that a dry run lists one by one; its counts cover all.
DECISIONS_LISTED = 100


def report_of(
    state: PassState,
    outcome: Outcome,
    reason: str,
    decided: list[tuple[Any, Decision]],
    now: datetime,
) -> Report:
    """The report of a pass that has finished, or ended early."""
    first, effects = state.contexts[0], state.effects
    report = Report(
        queue=first.source.name,
        mode=state.settings.mode.value,
        outcome=outcome,
        reason=reason,
        headline=_headline(state, now),
        circuit_before=first.keeper.states[0],
        circuit_after=first.keeper.states[-1],
        circuits=[_circuit(context) for context in state.contexts],
        window=first.circuit.window,
        depth=state.dlq.depth,
        parked_depth=state.parking_lot.depth,
        examined=state.examined,
        redriven=effects.counts["redriven"] - effects.counts["bounced"],
        bounced=effects.counts["bounced"],
        returned=sum(context.returned for context in state.contexts) + effects.counts["bounced"],
        discarded=effects.counts["discarded"],
        renewed=effects.counts["renewed"],
        failed=len(effects.faults),
        parked=effects.parked,
        held=effects.held,
        heard=state.heard,
        verdicts=[_verdict(one) for context in state.contexts for one in context.rulings],
        oldest_waiting_seconds=first.circuit.waiting_seconds(now),
        suspects_waiting=first.circuit.suspects_waiting(now),
    )
    report.look_again_seconds = _look_again(state, report, now)
    faults: list[EntryFault | CallFailed] = [*effects.faults, *effects.healed, *state.faults]
    for fault in faults:
        report.faults[f"{fault.call}:{fault.code}"] += 1
    if state.oldest is not None:
        age = int((now - state.oldest).total_seconds())
        report.oldest_letter_seconds = age
        kept = int(state.dlq.retention.total_seconds())
        report.least_seconds_to_expiry = kept - age
        report.least_percent_left = 100 * (kept - age) / kept
    if state.is_dry:
        report.decisions = [_decision(case, what) for case, what in decided[:DECISIONS_LISTED]]
    return report


def _headline(state: PassState, now: datetime) -> str:
    orders, dlq, lot = state.contexts[0].circuit.orders, state.dlq, state.parking_lot
    if not state.is_dry:  # counted before anything left it
        dlq = replace(dlq, visible=max(0, dlq.visible - state.effects.removed))
        lot = replace(lot, visible=lot.visible + state.effects.parked.total())
    told = {
        context.source.name: headline(
            seen_of(
                context.circuit,
                state.settings,
                now,
                dlq=dlq,
                lot=lot,
                orders=orders,
                unread=context.unread,
                hears_live=context.facts is None or not context.source.settles_at_once,
            )
        )
        for context in state.contexts
    }
    return worst(told).sentence(now)


#: While letters are out, or a circuit may change, a look every minute is worthwhile.
BUSY_SECONDS = 60


#: While the consumer reports on the letters that are out, passes go on: listen, judge, send the next letters.
LISTENING_SECONDS = 5
#: The next letter of a message group goes when the last one's outcome is reported, so looks set its pace.
LISTENING_SECONDS_FIFO = 2


#: With these outcomes a pass has done what there was to do.
_FINISHED = frozenset({Outcome.DONE, Outcome.IDLE, Outcome.WAITING})


def _look_again(state: PassState, report: Report, now: datetime) -> int:
    """Return the seconds until the next look."""
    idle = _idle(state, now)
    if state.is_paused or state.is_dry:
        # A dry run gains nothing by looking sooner, and each look counts as a receive.
        return idle
    if report.failed or report.outcome not in _FINISHED:
        return min(idle, BUSY_SECONDS)
    waits_for_permit = report.held[HoldReason.NO_PERMIT.value] > 0
    goes_on_after = _goes_on_after(state, now)
    if goes_on_after is not None:
        return goes_on_after
    if waits_for_permit or state.has_unread_reports or _is_busy(state, now):
        return min(idle, BUSY_SECONDS)
    next_canary = _next_canary_of_a_cause(state)
    if next_canary is None:
        return idle
    return min(idle, max(BUSY_SECONDS, int((next_canary - now).total_seconds())))


def _goes_on_after(state: PassState, now: datetime) -> int | None:
    """Return the seconds until the next pass if letters or reports come within seconds; None otherwise."""
    looks = [after for context in state.contexts if (after := context.looks_again_after())]
    if state.dlq.depth and looks:
        return int(min(looks).total_seconds())
    if any(is_worth_listening(context.circuit, now) for context in state.contexts):
        return LISTENING_SECONDS_FIFO if state.dlq.is_fifo else LISTENING_SECONDS
    return None


def _next_canary_of_a_cause(state: PassState) -> datetime | None:
    """Return when the next canary of a held cause may go; None if the DLQ is empty."""
    if not state.dlq.depth:
        return None
    held = (
        one for context in state.contexts for one in context.circuit.causes if one.holds_letters
    )
    return min((at for one in held if (at := one.cools_until) is not None), default=None)


def _idle(state: PassState, now: datetime) -> int:
    """Return the time of the next look at an idle queue: by its schedule, or sooner if letters may be near expiry, or
    if a pause ends.
    """
    by_schedule = 60 * state.settings.schedule_minutes
    orders = state.contexts[0].circuit.orders
    pause_ends = orders.paused_until if orders.pauses(now) else None
    moments = [at for at in (guard.next_sweep_at(state), pause_ends) if at is not None]
    if not moments:
        return by_schedule
    return min(by_schedule, max(BUSY_SECONDS, int((min(moments) - now).total_seconds())))


def _is_busy(state: PassState, now: datetime) -> bool:
    """Whether something is about to change: a verdict, the circuit, or letters that may go because others succeeded."""
    circuits = [context.circuit for context in state.contexts]
    if any(one.pending for one in circuits):
        return True
    return bool(state.dlq.depth) and any(_may_let_letters_go(one, now) for one in circuits)


def _may_let_letters_go(circuit: Circuit, now: datetime) -> bool:
    """Whether letters of the DLQ that may not go yet may go soon."""
    is_congested = circuit.rate is not None and circuit.rate.is_congested
    has_heard = circuit.heard_at is not None and now < circuit.heard_at + 2 * LISTENING
    return (
        circuit.state is not State.CLOSED
        or is_congested
        or has_heard
        or any(one.is_open(now) for one in circuit.counted_batches)
    )


def _circuit(context: SourceContext) -> dict[str, Any]:
    states = context.keeper.states
    return {
        "queue": context.source.name,
        "before": states[0],
        "after": states[-1],
        "states": list(states),
        "window": context.circuit.window,
        "awaiting_verdict": context.circuit.outstanding,
        "outcome_unknown": context.circuit.unknown,
        "letters_per_second": _given(context.circuit.rate),
    }


def _given(rate: Rate | None) -> float | None:
    """Return the rate, in letters a second, as the pass left it."""
    if rate is None:
        return None
    return 0.0 if rate.is_congested else round(rate.per_second, 2)


def _verdict(ruling: Ruling) -> dict[str, Any]:
    verdict = ruling.judgement.verdict
    return {
        "queue": ruling.queue,
        "batch": ruling.batch.id,
        "size": ruling.batch.size,
        "returned": ruling.batch.seen_again,
        "verdict": verdict.value if verdict else None,
        "reason": ruling.judgement.reason,
    }


def _decision(case: Any, decision: Decision) -> dict[str, Any]:
    return {
        "message_id": case.message_id,
        "original_id": case.original_id,
        "decision": type(decision).__name__.lower(),
        "reason": getattr(decision.reason, "value", decision.reason),
    }
