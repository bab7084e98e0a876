"""Gives letters near expiry a new clock, whatever the circuit says: looks through DLQ and parking lot when due."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from redrive.core.circuit import Circuit
from redrive.core.queue_facts import QueueFacts
from redrive.core.retention import (
    is_dlq_sweep_due,
    is_lot_sweep_due,
    next_dlq_sweep,
    next_lot_sweep,
)
from redrive.passes.circuit_keeper import CircuitKeeper
from redrive.passes.rounds import Rounds
from redrive.passes.sweep import Sweep
from redrive.passes.tools import Workplace


def guard_retention(
    place: Workplace, keeper: CircuitKeeper, rounds: Rounds, *, is_paused: bool
) -> None:
    """Sweep what has to be swept, and note in the circuit when the next sweep is due. Raises CallFailed."""
    now = place.tools.clock()
    if place.dlq.depth and is_dlq_sweep_due(keeper.circuit, now, is_paused=is_paused):
        sweep = _sweep(place, rounds, place.dlq)
        oldest = sweep.park_expiring(keeper.circuit, hidden_for=place.hidden_for())
        due = next_dlq_sweep(oldest, place.dlq.retention, place.sources.retention, now)
        keeper.change(
            replace(keeper.circuit, dlq_sweep_at=now if sweep.has_unfinished_work else due)
        )
    if place.parking_lot.depth and is_lot_sweep_due(keeper.circuit, now):
        lot = place.rounds(place.tools.queues.out_of_parking_lot())
        sweep = _sweep(place, lot, place.parking_lot)
        oldest = sweep.renew_parked(hidden_for=place.hidden_for())
        due_lot = next_lot_sweep(oldest, place.parking_lot.retention) if oldest else None
        keeper.change(
            replace(keeper.circuit, lot_sweep_at=now if sweep.has_unfinished_work else due_lot)
        )


def with_first_lot_sweep(circuit: Circuit, place: Workplace, now: datetime) -> Circuit:
    """The circuit that knows of the first letters in an empty parking lot."""
    if not place.report.parked or circuit.lot_sweep_at is not None:
        return circuit
    return replace(circuit, lot_sweep_at=next_lot_sweep(now, place.parking_lot.retention))


def _sweep(place: Workplace, rounds: Rounds, queue: QueueFacts) -> Sweep:
    return Sweep(
        rounds,
        place.report,
        retention=queue.retention,
        clock=place.tools.clock,
        deadline=place.deadline,
    )
