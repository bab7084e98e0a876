"""`redrive drain`: after a fix, a larger window and rate for a while, with the circuit breaker still at work."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from redrive.core import breaker
from redrive.core.circuit import Circuit, State
from smart_redriver.oncall.stack.circuit import change_circuit
from smart_redriver.oncall.stack.function import invoke
from smart_redriver.oncall.stack.recording import recorded
from smart_redriver.oncall.stack.session import Session
from smart_redriver.oncall.terminal.exits import Exit
from smart_redriver.oncall.terminal.words import letters, span

#: A pass looks first and costs nearly nothing when there is nothing to do yet.
_BETWEEN_PASSES_SECONDS = 20.0
_WINDOW_FACTOR = 10
_RATE_FACTOR = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainRequest:
    """How long, how many letters at once, how many a second; None for a multiple of what holds now."""

    lasts: timedelta
    window: int | None = None
    rate: float | None = None
    reason: str = ""
    follows: bool = True


def drain(session: Session, request: DrainRequest) -> Exit:
    """Say so in the circuit, then run passes and show how they get on until the DLQ is empty. Raises CallFailed, Refused."""
    settings, now = session.settings, session.clock()
    circuit = session.store.load_circuit() or breaker.new_circuit(
        session.place.queue, settings, now
    )
    window = min(request.window or circuit.window * _WINDOW_FACTOR, settings.max_window)
    rate = request.rate or settings.max_rate * _RATE_FACTOR
    depth = session.queues.dead_letter_queue().depth
    session.terminal.plan(
        f"Plan: for {span(request.lasts)}, let {letters(window)} of {session.place.queue} await a verdict at once "
        f"(now {circuit.window:,}), at up to {rate:g} a second. {letters(depth)} are in the DLQ. The circuit breaker "
        "still stops on failure."
    )
    if circuit.state is not State.CLOSED:
        session.terminal.plan(
            f"The circuit is {circuit.state.value}: canaries come first. `redrive close` forces it, if you are sure."
        )
    session.terminal.confirm("Drain?")

    def change(here: Circuit, at: datetime) -> Circuit:
        orders = replace(
            here.orders,
            is_paused=False,
            paused_until=None,
            drain_until=at + request.lasts,
            drain_window=window,
            drain_rate=rate,
            by=session.who,
            reason=request.reason,
        )
        return breaker.order(here, orders, at)

    with recorded(session, f"drain for {span(request.lasts)}, window {window}", request.reason):
        change_circuit(session, change)
    if not request.follows:
        session.terminal.say("Ordered. `redrive watch` shows how it goes.")
        session.terminal.result({"window": window, "rate": rate, "depth": depth})
        return Exit.DONE
    return _follow(session, now + request.lasts, depth)


def _follow(session: Session, until: datetime, depth: int) -> Exit:
    started, first = session.clock(), depth
    left, state, end = depth, State.CLOSED.value, ""
    was_closed = False
    while not end:
        report = invoke(session)
        state = str(report.get("circuit_after"))
        was_closed = was_closed or state == State.CLOSED.value
        left = session.queues.dead_letter_queue().depth
        session.terminal.say(_progress(session.clock() - started, first, left, state))
        if not left:
            end = "The DLQ is empty; letters on their way may still return"
        elif was_closed and state != State.CLOSED.value:
            end = f"Stopped: the circuit is {state}, the consumer is not well. `redrive status` says why"
        elif session.clock() >= until:
            end = "The time is up"
        else:
            session.sleep(_BETWEEN_PASSES_SECONDS)
    session.terminal.say(f"{end}.")
    session.terminal.result({"depth_before": first, "depth": left, "circuit": state, "end": end})
    if not left:
        return Exit.DONE
    return Exit.PARTLY if left < first else Exit.REFUSED


def _progress(elapsed: timedelta, first: int, left: int, state: str) -> str:
    told = f"{left:,} left of {first:,}"
    drained = first - left
    if drained > 0 and elapsed:
        rate = drained / elapsed.total_seconds()
        told += f", {rate:.1f} a second" if rate >= 1 else f", {60 * rate:.1f} a minute"
        told += f", about {span(timedelta(seconds=left / rate))} to go" if left else ""
    return f"{told}; circuit {state}"
