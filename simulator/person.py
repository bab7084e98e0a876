"""A person's orders in the middle of a scenario, given by the functions that the command calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from enum import Enum

from simulator.smart_policy import SmartPolicy
from simulator.world import SOURCE, World
from smart_redriver.engine.model import breaker
from smart_redriver.engine.model.circuit import Circuit, Orders, State


class Order(str, Enum):
    """One order."""

    CLOSE = "close"
    OPEN = "open"
    PAUSE = "pause"
    RESUME = "resume"


_CHANGES: dict[Order, Callable[[Circuit, datetime], Circuit]] = {
    Order.CLOSE: lambda circuit, now: breaker.force(circuit, State.CLOSED, "by a person", now),
    Order.OPEN: lambda circuit, now: breaker.force(circuit, State.OPEN, "by a person", now),
    Order.PAUSE: lambda circuit, now: breaker.order(
        circuit, Orders(is_paused=True, by="a person"), now
    ),
    Order.RESUME: lambda circuit, now: breaker.order(
        circuit, replace(circuit.orders, is_paused=False, by="a person"), now
    ),
}


def give(order: Order, policy: SmartPolicy, world: World) -> None:
    """Give our re-driver this order now."""
    now = world.clock.now()
    circuit = policy.circuit or breaker.new_circuit(SOURCE, policy.settings, now)
    policy.store.save_circuit(_CHANGES[order](circuit, now))
