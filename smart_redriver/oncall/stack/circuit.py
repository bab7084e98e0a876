"""A source queue's circuit, changed by hand: under its version, whoever else writes it, and on the record."""

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


def load_circuit(session: Session, queue: str) -> Circuit:
    """The circuit of a source queue as it stands, or as the first pass will make it. Raises CallFailed and Refused."""
    found = session.store.of(queue).load_circuit()
    return found or breaker.new_circuit(queue, session.settings, session.clock())


def change_circuit(session: Session, queue: str, change: Change) -> Circuit:
    """Apply a change to a source queue's circuit, whoever else writes it. Raises CallFailed and Refused."""
    store = session.store.of(queue)
    for _ in range(_TRIES):
        circuit = load_circuit(session, queue)
        if written := store.save_circuit(change(circuit, session.clock())):
            return written
    raise Refused("The circuit is being changed by others all the time. Run it again in a moment.")


def change_and_tell(
    session: Session, queue: str, what: str, reason: str, change: Change, done: str
) -> Exit:
    """Record the change, apply it, and say `done`. Raises CallFailed and Refused."""
    with recorded(session, what, reason):
        circuit = change_circuit(session, queue, change)
    session.terminal.say(done)
    session.terminal.result(
        {
            "queue": queue,
            "circuit": circuit.state.value,
            "paused": circuit.orders.is_paused,
            "paused_until": stamp(circuit.orders.paused_until),
        }
    )
    return Exit.DONE
