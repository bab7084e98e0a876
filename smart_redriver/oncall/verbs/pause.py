"""`redrive pause`, `resume`, `open` and `close`: orders that are kept with the circuit, which every pass reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from smart_redriver.engine.headline import short_name
from smart_redriver.engine.model import breaker
from smart_redriver.engine.model.circuit import Circuit, Orders, State
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.status.standing import (
    INSIST,
    change_and_tell,
    change_circuit,
    confirm_against,
    show_standing,
    take_standing,
    tell_circuit,
    tell_standing,
)
from smart_redriver.oncall.terminal.exits import Exit
from smart_redriver.oncall.terminal.words import listed, parse_lasting, stamp


def pause(session: Session, reason: str, lasts: timedelta | None, *, insists: bool = False) -> Exit:
    """Keep passes from doing anything, until resumed or for a while. Raises CallFailed and Refused.

    Queues that share a DLQ are paused together: the first source's circuit keeps the order for all. A drain, which each
    circuit keeps, ends for all of them. Another person's pause is replaced only after a second yes, or if the caller
    insists.
    """
    until = session.clock() + lasts if lasts else None
    end = f"until {stamp(until)}" if until else "until `redrive resume`"
    session.terminal.plan(
        f"Plan: pause {listed(session.place.sources)} {end}. Its letters stay in the DLQ; those near expiry are "
        "still renewed or parked. A replay at work stops within two minutes, and so does an import to the source, "
        f"unless it began with {INSIST}."
    )
    standing = tell_standing(session)
    is_anothers = standing.is_paused and standing.orders.by != session.who
    replaced = [f"{standing.pause_in_words()} This pause takes its place."] if is_anothers else []
    confirm_against(session, "Pause?", replaced, insists=insists)

    def change(circuit: Circuit, now: datetime) -> Circuit:
        orders = Orders(is_paused=True, paused_until=until, by=session.who, reason=reason)
        return breaker.order(circuit, orders, now)

    queue, now = session.place.queue, session.clock()
    ended = change_and_tell(session, queue, f"pause {end}", reason, change, f"Paused {end}.")
    for one in standing.circuits:
        if one.queue != queue and one.orders.drains(now):
            change_circuit(session, one.queue, _without_drain)
    return ended


def _without_drain(circuit: Circuit, now: datetime) -> Circuit:
    orders = replace(circuit.orders, drain_until=None, drain_window=None, drain_rate=None)
    return breaker.order(circuit, orders, now)


def resume(session: Session, reason: str) -> Exit:
    """Let passes redrive again, and change nothing if nobody keeps them from it. Raises CallFailed and Refused."""
    sources, standing = session.place.sources, take_standing(session)
    if not standing.is_paused:
        show_standing(session, standing)
        told = f"{listed(sources)} {'is' if len(sources) == 1 else 'are'} not paused by anybody: nothing was changed."
        return tell_circuit(session, standing.circuits[0], told)
    session.terminal.plan(f"Plan: resume {listed(sources)}. The next pass goes on where it was.")
    show_standing(session, standing)
    session.terminal.confirm("Resume?")

    def change(circuit: Circuit, now: datetime) -> Circuit:
        orders = replace(
            circuit.orders, is_paused=False, paused_until=None, by=session.who, reason=reason
        )
        return breaker.order(circuit, orders, now)

    return change_and_tell(session, session.place.queue, "resume", reason, change, "Resumed.")


def act(session: Session, given: Mapping[str, Any]) -> Exit:
    """Carry out `pause`."""
    lasts = parse_lasting(given["for"]) if "for" in given else None
    insists = given.get("even_though_paused", False)
    return pause(session, given["reason"], lasts, insists=insists)


def act_resume(session: Session, given: Mapping[str, Any]) -> Exit:
    """Carry out `resume`."""
    return resume(session, given.get("reason", ""))


def force(session: Session, state: State, reason: str) -> Exit:
    """Open or close one source queue's circuit by hand. Raises CallFailed and Refused."""
    queue = session.source
    if state is State.OPEN:
        effect = "nothing is redriven until the cool-down is over; then canaries decide"
    else:
        effect = "redrives begin with a window of 1, which grows with each batch that succeeds"
    session.terminal.plan(f"Plan: force the circuit of {queue} {state.value}: {effect}.")
    tell_standing(session)
    session.terminal.confirm(f"Force it {state.value}?")

    def change(circuit: Circuit, now: datetime) -> Circuit:
        why = f"forced by {short_name(session.who)}: {reason}"
        return breaker.force(circuit, state, why, now)

    return change_and_tell(
        session,
        queue,
        f"force {queue} {state.value}",
        reason,
        change,
        f"The circuit of {queue} is {state.value}.",
    )


def act_open(session: Session, given: Mapping[str, Any]) -> Exit:
    """Carry out `open`."""
    return force(session, State.OPEN, given["reason"])


def act_close(session: Session, given: Mapping[str, Any]) -> Exit:
    """Carry out `close`."""
    return force(session, State.CLOSED, given["reason"])
