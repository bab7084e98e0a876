"""How people move the circuit: they open and close it, and pause, resume and drain its queue. Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from smart_redriver.engine.model.breaker import SMALLEST_WINDOW, change_state
from smart_redriver.engine.model.circuit import Circuit, Orders, State


def force(circuit: Circuit, state: State, reason: str, now: datetime) -> Circuit:
    """After a person opened or closed the circuit."""
    counted = replace(
        circuit,
        failure_count=0,
        success_count=0,
        is_shaken=False,
        probed_at=None,
        up_since=None,
        flaps=0,
        consecutive_opens=1 if state is State.OPEN else 0,
        window=SMALLEST_WINDOW if state is State.CLOSED else circuit.window,
    )
    return change_state(counted, state, reason, now)


def order(circuit: Circuit, orders: Orders, now: datetime) -> Circuit:
    """After a person paused, resumed or began to drain the queue; a drain raises the window at once."""
    circuit = replace(circuit, orders=orders)
    if circuit.state is not State.CLOSED:
        return circuit  # the drain's window is that of the close, see `breaker`
    return replace(circuit, window=max(circuit.window, orders.window(now)))
