"""The circuit, changed by hand: under its version, whoever else writes it, and on the record."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from redrive.core import breaker
from redrive.core.circuit import Circuit
from smart_redriver.oncall.stack.recording import recorded
from smart_redriver.oncall.stack.session import Session
from smart_redriver.oncall.terminal.exits import Exit, Refused
from smart_redriver.oncall.terminal.words import stamp

#: A pass writes the circuit twice; whoever comes between reads again.
_TRIES = 5

Change = Callable[[Circuit, datetime], Circuit]


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


def change_and_tell(session: Session, what: str, reason: str, change: Change, done: str) -> Exit:
    """Record the change, apply it, and say `done`. Raises CallFailed and Refused."""
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
