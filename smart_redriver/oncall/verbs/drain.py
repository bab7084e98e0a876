"""`redrive drain`: after a fix, a larger window and rate for a while, with the circuit breaker still at work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from smart_redriver.engine.counts import letters
from smart_redriver.engine.headline import Headline, worst
from smart_redriver.engine.model import breaker
from smart_redriver.engine.model.circuit import Circuit, State
from smart_redriver.oncall.audit.trail import recorded
from smart_redriver.oncall.deployment.session import Session, invoke
from smart_redriver.oncall.status.outlook import became_of, gone_since
from smart_redriver.oncall.status.standing import (
    CircuitChange,
    change_circuit,
    confirm_against,
    headlines_of,
    load_circuit,
    show_standing,
    take_standing,
)
from smart_redriver.oncall.terminal.exits import Exit, Refused
from smart_redriver.oncall.terminal.table import printable
from smart_redriver.oncall.terminal.words import listed, parse_lasting, span, stamp

#: A pass looks first, so it costs nearly nothing when there is nothing to do yet.
_BETWEEN_PASSES_SECONDS = 20.0
_WINDOW_FACTOR = 10
_RATE_FACTOR = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainRequest:
    """The limits of a drain: time, letters at once, letters a second. None means a multiple of the present limit."""

    lasts: timedelta
    window: int | None = None
    rate: float | None = None
    reason: str = ""
    follows: bool = True
    insists: bool = False  # although the queue is paused


def drain(session: Session, request: DrainRequest) -> Exit:
    """Write the order into the circuits, then run passes and show their progress until the DLQ is empty.

    Queues that share a DLQ are drained together. Raises CallFailed and Refused.
    """
    settings, now = session.settings, session.clock()
    depth = session.dead_letters.facts().depth
    if not depth:
        raise Refused("The DLQ is empty: there is nothing to drain. `redrive status` tells more.")
    standing = take_standing(session)
    windows = {
        one.queue: min(request.window or _larger_window(one), settings.max_window)
        for one in standing.circuits
    }
    rate = request.rate or settings.max_rate * _RATE_FACTOR
    _tell_plan(session, request, standing.circuits, windows, rate, depth)
    show_standing(session, standing)
    ends = [f"{standing.pause_in_words()}. A drain ends the pause."] if standing.is_paused else []
    confirm_against(session, "Drain?", ends, insists=request.insists)
    with recorded(session, f"drain for {span(request.lasts)}", request.reason):
        for name, window in windows.items():
            change_circuit(session, name, _order(session, request, window, rate))
    if not request.follows:
        session.terminal.say("Ordered. `redrive watch` shows how it goes.")
        first = windows[session.place.queue]
        session.terminal.result({"window": first, "windows": windows, "rate": rate, "depth": depth})
        return Exit.DONE
    ends_at = now + request.lasts
    try:
        return _follow(session, ends_at, depth, counted_at=now)
    except KeyboardInterrupt:
        session.terminal.warn(
            f"The order stays in force until {stamp(ends_at)}: passes go on with it. `redrive watch` shows how; "
            "`redrive pause` ends it."
        )
        raise


def _larger_window(circuit: Circuit) -> int:
    """Ten times the window, but not ten times one that the last drain enlarged: that was never shown to be good."""
    larger = circuit.window * _WINDOW_FACTOR
    drained = circuit.orders.drain_window
    return min(larger, drained) if drained and circuit.window <= drained else larger


def _tell_plan(
    session: Session,
    request: DrainRequest,
    circuits: Sequence[Circuit],
    windows: Mapping[str, int],
    rate: float,
    depth: int,
) -> None:
    plan = session.terminal.plan
    more = [
        f"{letters(windows[one.queue])} of {one.queue} (now {one.window:,})" for one in circuits
    ]
    each = "" if len(more) == 1 else " each"
    plan(
        f"Plan: for {span(request.lasts)}, let {listed(more)} await a verdict at once, at up to {rate:g} a "
        f"second{each}. {letters(depth)} {'is' if depth == 1 else 'are'} in the DLQ. The circuit breaker still stops "
        "on failure."
    )
    if session.dead_letters.is_fifo:
        plan("One letter of each message group is out at a time, however large the window is.")
    for one in circuits:
        if one.state is not State.CLOSED:
            plan(
                f"The circuit of {one.queue} is {one.state.value}: canaries come first. `redrive close --queue "
                f"{one.queue}` forces it, if you are sure."
            )


def _order(session: Session, request: DrainRequest, window: int, rate: float) -> CircuitChange:
    def change(circuit: Circuit, now: datetime) -> Circuit:
        orders = replace(
            circuit.orders,
            is_paused=False,
            paused_until=None,
            drain_until=now + request.lasts,
            drain_window=window,
            drain_rate=rate,
            by=session.who,
            reason=request.reason,
        )
        return breaker.order(circuit, orders, now)

    return change


def _follow(session: Session, until: datetime, first: int, *, counted_at: datetime) -> Exit:
    """Run passes until the end. `first` letters were there before the question, during which passes went on."""
    left, circuit, end = first, "", ""
    seen: Headline | None = None
    was_flowing = False
    told_faults: set[str] = set()
    while not end:
        states, faults = _after_a_pass(session)
        _tell_faults(session, faults - told_faults)
        told_faults |= faults
        is_flowing = State.CLOSED.value in states.values()
        was_flowing = was_flowing or is_flowing
        circuit = _in_words(states)
        facts = session.dead_letters.facts()
        circuits = _circuits(session)
        keeps_order = session.dead_letters.is_fifo
        gone = gone_since(circuits.values(), counted_at, keeps_order=keeps_order)
        left = facts.depth
        progress = _progress(session.clock() - counted_at, first, left, gone)
        seen = _tell_progress(
            session, progress, worst(headlines_of(session, circuits, facts)), seen
        )
        if not left:
            end = "The DLQ is empty; letters on their way may still return"
        elif was_flowing and not is_flowing:
            end = f"Stopped: the circuit is {circuit}, the consumer is not well. `redrive status` says why"
        elif session.clock() >= until:
            end = "The time is up"
        else:
            session.sleep(_BETWEEN_PASSES_SECONDS)
    session.terminal.say(f"{end}.")
    if became := became_of(_circuits(session).values(), counted_at):
        session.terminal.say(became)
    session.terminal.result({"depth_before": first, "depth": left, "circuit": circuit, "end": end})
    if not left:
        return Exit.DONE
    return Exit.PARTLY if left < first else Exit.REFUSED


def _tell_faults(session: Session, faults: Set[str]) -> None:
    if faults:
        met = listed([fault.replace(":", ": ") for fault in sorted(faults)])
        session.terminal.say(f"The pass met {printable(met)}. `redrive doctor` tells more.")


def _tell_progress(
    session: Session, progress: str, headline: Headline, before: Headline | None
) -> Headline:
    """Tell the progress, and the headline if it is about something else than before."""
    is_news = before is None or headline.is_about != before.is_about
    told = printable(headline.sentence(session.clock()))
    session.terminal.say(f"{progress}. {told}" if is_news else progress)
    return headline


def _after_a_pass(session: Session) -> tuple[dict[str, str], set[str]]:
    """The state of each circuit after a pass by the function, and the pass's faults; the states are none if the pass
    could not read them. If a process makes passes by itself, the present states.
    """
    if session.place.process is not None:
        return {name: one.state.value for name, one in _circuits(session).items()}, set()
    report = invoke(session)
    states = {one["queue"]: one["after"] for one in report.get("circuits") or ()}
    return states, set(report.get("faults") or ())


def _in_words(states: Mapping[str, str]) -> str:
    if len(states) > 1:
        return listed([f"{state} for {name}" for name, state in states.items()])
    return next(iter(states.values()), "not known")


def _circuits(session: Session) -> dict[str, Circuit]:
    return {name: load_circuit(session, name) for name in session.place.sources}


def _progress(elapsed: timedelta, first: int, left: int, gone: int) -> str:
    arrived = max(0, left - (first - gone))
    progress = f"{left:,} left of {first + arrived:,}"
    if arrived:
        progress += f" ({arrived:,} came, or came back, meanwhile)"
    drained = first + arrived - left
    if drained > 0 and elapsed:
        rate = drained / elapsed.total_seconds()
        progress += f", {rate:.1f} a second" if rate >= 1 else f", {60 * rate:.1f} a minute"
        progress += f", about {span(timedelta(seconds=left / rate))} to go" if left else ""
    return progress


def act(session: Session, given: Mapping[str, Any]) -> Exit:
    """Carry out `drain`."""
    request = DrainRequest(
        lasts=parse_lasting(given["for"]),
        window=given.get("window"),
        rate=given.get("rate"),
        reason=given.get("reason", ""),
        follows=given.get("follow", True),
        insists=given.get("even_though_paused", False),
    )
    return drain(session, request)
