"""Batches that nobody completed, and letters that return after their batch was judged."""

from dataclasses import replace

import pytest

from smart_redriver.engine.model.batch import Batch, Verdict
from smart_redriver.engine.model.breaker import register_batch
from smart_redriver.engine.model.circuit import Circuit, State
from smart_redriver.engine.model.judging import charge
from smart_redriver.engine.model.permit import Permit, allow
from tests.unit.circuits import (
    SETTINGS,
    all_failed_beside_live_successes,
    all_succeeded,
    judged,
    judging,
)
from tests.unit.examples import NOW, a_batch, a_circuit, ahead

GENERATION = 2

# Batches that are announced and never completed.


def announced(window: int = 8) -> tuple[Circuit, Batch]:
    permit = Permit(limit=window, reason="")
    return register_batch(a_circuit(window=window), permit, NOW, due_at=ahead(minutes=20))


def test_an_announced_batch_counts_in_full_against_the_window() -> None:
    circuit, batch = announced(8)

    assert (batch.id, batch.generation, batch.size) == (21, GENERATION, 8)
    assert not batch.is_complete
    assert circuit.last_attempt_at == NOW
    assert allow(circuit, SETTINGS, NOW).limit == 0


def test_a_batch_that_a_dead_pass_left_behind_opens_the_window_again_when_it_is_due() -> None:
    circuit, _ = announced(8)

    before = judged(circuit, all_succeeded, now=ahead(minutes=19))
    after = judged(circuit, all_succeeded, now=ahead(minutes=20))

    assert before.outstanding == 8
    assert (after.outstanding, after.window, after.failure_count) == (0, 8, 0)


def test_an_announced_canary_is_of_the_new_generation() -> None:
    cooled = a_circuit(state=State.OPEN, consecutive_opens=1, success_count=1)

    half_open, canary = register_batch(
        cooled, allow(cooled, SETTINGS, NOW), NOW, due_at=ahead(minutes=20)
    )

    assert (half_open.state, half_open.success_count) == (State.HALF_OPEN, 0)
    assert canary.generation == half_open.generation == GENERATION + 1
    assert not canary.is_probe


@pytest.mark.parametrize(
    ("opens", "is_hinted", "left"),
    [(0, True, 0), (1, True, 0), (3, True, 2), (0, False, 0), (3, False, 3)],
)
def test_a_canary_that_somebody_asked_for_counts_one_opening_less(
    opens: int, is_hinted: bool, left: int
) -> None:
    """Where it fails, the next cool-down is no longer than the one before."""
    circuit = a_circuit(state=State.OPEN, consecutive_opens=opens)
    permit = Permit(limit=1, reason="a canary", is_canary=True, is_hinted=is_hinted)

    half_open, _ = register_batch(circuit, permit, NOW, due_at=ahead(minutes=20))

    assert half_open.consecutive_opens == left


# Returns that come late.


def success_of(size: int) -> Circuit:
    """A CLOSED circuit that has just judged a batch of this size a success."""
    return judged(a_circuit(pending=(a_batch(size=size),)))


def test_a_success_falls_when_as_many_return_late_as_would_have_failed_it() -> None:
    almost = judged(charge(success_of(4), {(7, False): 1}))
    fallen = judged(charge(almost, {(7, False): 1}))

    judged_batch = fallen.judged_batch(7)
    assert almost.failure_count == 0
    assert fallen.failure_count == 1
    assert judged_batch is not None
    assert (judged_batch.verdict, judged_batch.is_strike) == (Verdict.FAILURE, False)


def test_a_success_falls_only_once() -> None:
    fallen = judged(charge(success_of(4), {(7, False): 3}))

    assert judged(charge(fallen, {(7, False): 1})).failure_count == 1


def test_suspects_that_return_late_overturn_nothing() -> None:
    assert judged(charge(success_of(4), {(7, True): 4})).failure_count == 0


def test_a_vouched_success_is_overturned_by_nothing() -> None:
    """Its letters were known to fail, and its strikes stand on the others that succeeded."""
    vouched = judging(all_failed_beside_live_successes, size=4)(a_circuit())

    late = judged(charge(vouched, {(7, False): 4}))

    judged_batch = late.judged_batch(7)
    assert judged_batch is not None
    assert judged_batch.is_strike
    assert late.failure_count == 0


def test_a_success_of_an_older_generation_falls_without_moving_the_circuit() -> None:
    """Its letters' strikes are taken back all the same: they spoke against nobody."""
    moved_on = replace(success_of(4), generation=GENERATION + 1)

    fallen = judged(charge(moved_on, {(7, False): 4}))

    judged_batch = fallen.judged_batch(7)
    assert (fallen.failure_count, fallen.window) == (0, moved_on.window)
    assert judged_batch is not None
    assert not judged_batch.is_strike
