"""What can happen to a circuit, one function each: a batch that is judged, letters that are sent,
returns that come late.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.model.batch import Batch, Verdict
from smart_redriver.engine.model.breaker import register_batch
from smart_redriver.engine.model.circuit import Circuit
from smart_redriver.engine.model.evidence import Evidence, LiveOutcome
from smart_redriver.engine.model.judging import charge, judge
from smart_redriver.engine.model.permit import allow
from tests.unit.examples import NOW, a_batch
from tests.unit.judging import SOME_WELL, WELL, beside

SETTINGS = Settings(max_window=64)
ROLL = 0.5

Event = Callable[[Circuit], Circuit]
Witnessed = Callable[[Batch], Evidence]


def all_succeeded(batch: Batch) -> Evidence:
    size = batch.size
    return Evidence(succeeded=size, met=size, deleted=size, were_tried=True, has_metrics=True)


def all_failed(batch: Batch) -> Evidence:
    return Evidence(failed=batch.size, met=batch.size, were_tried=True, has_metrics=True)


def nearly_half_failed(batch: Batch) -> Evidence:
    failed = (batch.size - 1) // 2
    return Evidence(
        succeeded=batch.size - failed,
        failed=failed,
        met=batch.size,
        were_tried=True,
        has_metrics=True,
    )


def three_in_four_failed(batch: Batch) -> Evidence:
    succeeded = batch.size // 4
    return Evidence(
        succeeded=succeeded,
        failed=batch.size - succeeded,
        met=batch.size,
        were_tried=True,
        has_metrics=True,
    )


def all_succeeded_beside_live_successes(batch: Batch) -> Evidence:
    return replace(all_succeeded(batch), live=WELL)


def all_failed_beside_live_successes(batch: Batch) -> Evidence:
    return beside(WELL, failed=batch.size, ours=batch.size)


def all_failed_beside_some_live_successes(batch: Batch) -> Evidence:
    """Fewer than what leaves no doubt, at the same rate."""
    return beside(SOME_WELL, failed=batch.size, ours=batch.size)


def nothing_known(batch: Batch) -> Evidence:
    """All of it was tried and has left the queue, and what became of it will never be known."""
    return Evidence(met=batch.size, were_tried=True, has_metrics=True)


def judged(
    circuit: Circuit,
    witnessed: Witnessed = all_succeeded,
    now: datetime = NOW,
    settings: Settings = SETTINGS,
) -> Circuit:
    """The circuit after every verdict that falls by what was witnessed."""
    evidence = {batch.id: witnessed(batch) for batch in circuit.pending}
    return judge(circuit, evidence, settings, now, roll=ROLL)[0]


def judging(
    witnessed: Witnessed, settings: Settings = SETTINGS, *, generations_ago: int = 0, **batch: Any
) -> Event:
    """The event that a batch, of the size of the window if nothing else is said, is judged."""

    def happen(circuit: Circuit) -> Circuit:
        usual: dict[str, Any] = {
            "id": 7,
            "size": circuit.window,
            "generation": circuit.generation - generations_ago,
        }
        one = a_batch(**usual | batch)
        evidence = {one.id: witnessed(one)}
        return judge(
            replace(circuit, pending=(one, *circuit.pending)),
            evidence,
            settings,
            NOW,
            roll=ROLL,
        )[0]

    return happen


succeeding, failing = judging(all_succeeded), judging(all_failed)


def sending(now: datetime, live: LiveOutcome = LiveOutcome.UNSEEN) -> Event:
    """The event that a pass has a letter to send, and sends it where the circuit lets it."""

    def happen(circuit: Circuit) -> Circuit:
        permit = allow(circuit, SETTINGS, now, live)
        return register_batch(circuit, permit, now, due_at=now)[0] if permit.limit else circuit

    return happen


def waiting(now: datetime) -> Event:
    """The event that time passes, and no letter is there to send."""

    def happen(circuit: Circuit) -> Circuit:
        allow(circuit, SETTINGS, now)
        return judged(circuit, lambda _: Evidence(), now)

    return happen


def overturning(generations_ago: int = 0) -> Event:
    """The event that letters of a batch return after it was judged a success."""

    def happen(circuit: Circuit) -> Circuit:
        batch = a_batch(id=7, size=1, generation=circuit.generation - generations_ago)
        success = circuit.with_verdict(batch, Verdict.SUCCESS, is_strike=True, overturned_at=1)
        return judged(charge(success, {(batch.id, False): 1}), lambda _: Evidence())

    return happen
