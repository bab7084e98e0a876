"""`redrive pause`, `resume`, `open`, `close`: orders to the re-driver, kept with the circuit that every pass reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from redrive.core import breaker
from redrive.core.circuit import Circuit, Orders, State
from smart_redriver.oncall.exits import Exit, Refused
from smart_redriver.oncall.outcome import recorded
from smart_redriver.oncall.session import Session
from smart_redriver.oncall.words import stamp

#: A pass writes the circuit twice; whoever comes between reads again.
_TRIES = 5

Change = Callable[[Circuit, datetime], Circuit]


def pause(session: Session, reason: str, lasts: timedelta | None) -> Exit:
    """Let no pass do anything, until resumed or for a while. Raises CallFailed and Refused."""
    until = session.clock() + lasts if lasts else None
    end = f"until {stamp(until)}" if until else "until `redrive resume`"
    session.terminal.plan(
        f"Plan: pause {session.place.queue} {end}. Its letters stay in the DLQ; those near expiry are still parked."
    )
    session.terminal.confirm("Pause?")

    def change(circuit: Circuit, now: datetime) -> Circuit:
        orders = Orders(is_paused=True, paused_until=until, by=session.who, reason=reason)
        return breaker.order(circuit, orders, now)

    return _ordered(session, f"pause {end}", reason, change, f"Paused {end}.")


def resume(session: Session, reason: str) -> Exit:
    """Let passes work again. Raises CallFailed and Refused."""
    session.terminal.plan(
        f"Plan: resume {session.place.queue}. The next pass goes on where it was."
    )
    session.terminal.confirm("Resume?")

    def change(circuit: Circuit, now: datetime) -> Circuit:
        orders = replace(
            circuit.orders, is_paused=False, paused_until=None, by=session.who, reason=reason
        )
        return breaker.order(circuit, orders, now)

    return _ordered(session, "resume", reason, change, "Resumed.")


def force(session: Session, state: State, reason: str) -> Exit:
    """Open or close the circuit by hand. Raises CallFailed and Refused."""
    if state is State.OPEN:
        effect = "nothing is redriven until the cool-down is over; then canaries decide"
    else:
        effect = "redrives begin with a window of 1 and double with each batch that succeeds"
    session.terminal.plan(
        f"Plan: force the circuit of {session.place.queue} {state.value}: {effect}."
    )
    session.terminal.confirm(f"Force it {state.value}?")

    def change(circuit: Circuit, now: datetime) -> Circuit:
        told = f"forced by {session.who}" + (f": {reason}" if reason else "")
        return breaker.force(circuit, state, told, now)

    return _ordered(
        session, f"force {state.value}", reason, change, f"The circuit is {state.value}."
    )


def change_circuit(session: Session, change: Change) -> Circuit:
    """Apply a change to the circuit as it stands, whoever else writes it. Raises CallFailed and Refused."""
    for _ in range(_TRIES):
        now = session.clock()
        circuit = session.store.load_circuit() or breaker.new_circuit(
            session.place.queue, session.settings, now
        )
        if written := session.store.save_circuit(change(circuit, now)):
            return written
    raise Refused("The circuit is being changed by others all the time. Run it again in a moment.")


def _ordered(session: Session, what: str, reason: str, change: Change, done: str) -> Exit:
    with recorded(session, what, reason):
        circuit = change_circuit(session, change)
    session.terminal.say(done)
    session.terminal.result(
        {
            "queue": session.place.queue,
            "circuit": circuit.state.value,
            "paused": circuit.orders.is_paused,
            "paused_until": stamp(circuit.orders.paused_until),
        }
    )
    return Exit.DONE
