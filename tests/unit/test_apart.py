"""A consumer that fails all that it takes at once: how that is known, and what goes then."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from smart_redriver.engine.aws.items import circuit_from_item, circuit_to_item
from smart_redriver.engine.model.batch import APART, Judged, Verdict
from smart_redriver.engine.model.circuit import Circuit, State
from smart_redriver.engine.model.judging import judge
from smart_redriver.engine.model.permit import ALONE_FIRST, TOGETHER, allow, fails_together
from tests.unit.circuits import SETTINGS, all_succeeded, failing
from tests.unit.examples import NOW, a_batch, a_circuit

WINDOW = 40
APART_SECONDS = int(APART.total_seconds())

#: What became of a batch: `a` and `A` of a letter alone, `t` and `T` of letters together; capitals succeeded. `m`: half
#: of those together succeeded.
BATCHES = {
    "A": {"verdict": Verdict.SUCCESS, "size": 1, "is_apart": True},
    "a": {"verdict": Verdict.FAILURE, "size": 1, "is_apart": True, "returned": 1},
    "T": {"verdict": Verdict.SUCCESS, "size": 5},
    "t": {"verdict": Verdict.FAILURE, "size": 5, "returned": 5},
    "m": {"verdict": Verdict.SUCCESS, "size": 10, "returned": 5},
}


def after(batches: str, **changes: object) -> Circuit:
    """The circuit after these batches, in this order."""
    judged = tuple(
        Judged(
            id=number,
            generation=0,
            is_strike=False,
            sent_at=NOW - timedelta(hours=2) + timedelta(minutes=number),
            **BATCHES[batch],  # type: ignore[arg-type]
        )
        for number, batch in enumerate(batches)
    )
    return a_circuit(judged=judged, window=WINDOW, **changes)


@pytest.mark.parametrize(
    ("batches", "is_known"),
    [
        ("AtA", False),
        ("AtAtA", True),
        ("tAtA", True),
        ("AtaAtaA", False),
        ("ttttA", False),
        ("tATtA", False),
        ("tAtAT", False),
        ("tAtAm", False),
        ("tAtAaaaaaaaa", True),
        ("", False),
    ],
    ids=[
        "once is chance",
        "twice is not",
        "also at the beginning",
        "a letter alone fails right afterwards: the consumer is down",
        "an outage that is over",
        "they succeeded together in between",
        "they succeed together since",
        "half of them do",
        "an outage says nothing about it",
        "nothing is known",
    ],
)
def test_a_consumer_fails_together_if_letters_alone_succeed_right_after_a_batch_failed(
    batches: str, is_known: bool
) -> None:
    assert fails_together(after(batches)) is is_known


def test_the_order_is_that_of_the_sends_and_not_that_of_the_verdicts() -> None:
    circuit = after("tAtA")
    shuffled = replace(circuit, judged=circuit.judged[::-1])

    assert fails_together(shuffled)


def test_its_letters_go_one_by_one_one_batch_at_a_time() -> None:
    circuit = after("tAtA")

    permit = allow(circuit, SETTINGS, NOW)

    assert (permit.limit, permit.is_apart) == (WINDOW, True)
    assert "one by one" in permit.reason
    waits = replace(circuit, pending=(a_batch(),))
    assert allow(waits, SETTINGS, NOW).limit == 0


def test_a_canary_has_as_many_letters_as_the_first_window() -> None:
    """One letter of a backlog that is mostly poison fails too often: nothing would ever close the circuit."""
    half_open = after("tAtA", state=State.HALF_OPEN)

    permit = allow(half_open, SETTINGS, NOW)

    assert (permit.limit, permit.is_canary, permit.is_apart) == (
        SETTINGS.initial_window,
        True,
        True,
    )


@pytest.mark.parametrize(
    ("batches", "is_apart"),
    [
        ("tAtA" + (ALONE_FIRST - 2) * "A", True),
        ("tAtA" + (ALONE_FIRST - 1) * "A", False),
        ("tAtAt" + (2 * ALONE_FIRST - 1) * "A", True),
        ("tAtAt" + 2 * ALONE_FIRST * "A", False),
    ],
)
def test_from_time_to_time_some_go_together_and_more_rarely_after_each_failure(
    batches: str, is_apart: bool
) -> None:
    permit = allow(after(batches), SETTINGS, NOW)

    assert (permit.is_apart, permit.limit) == (is_apart, WINDOW if is_apart else TOGETHER)


def test_such_a_consumer_does_not_flap() -> None:
    """Its batches failed right after a trial, but it was up all the time."""
    circuit = after("tAtA", flaps=3, probed_at=NOW)

    assert failing(circuit).flaps == 0
    assert failing(after("tAaA", flaps=3)).flaps == 3


@pytest.mark.parametrize("is_undelayed", [False, True])
def test_a_letter_that_cannot_be_delayed_is_not_known_to_be_alone(*, is_undelayed: bool) -> None:
    """A function that goes up and down looked as if it failed what it took at once: 620 minutes instead of 330."""
    batch = a_batch(size=1)
    circuit = after("tAt", flaps=3, is_shaken=True, pending=(batch,))

    told, _ = judge(
        circuit,
        {batch.id: all_succeeded(batch)},
        SETTINGS,
        NOW,
        roll=0.5,
        is_undelayed=is_undelayed,
    )

    assert fails_together(told) is not is_undelayed
    assert (told.flaps > 0) is is_undelayed


@pytest.mark.parametrize(
    ("size", "seconds", "is_apart"),
    [(1, 0, True), (3, 2 * APART_SECONDS, True), (3, 2 * APART_SECONDS - 1, False)],
)
def test_letters_went_one_by_one_if_there_was_time_between_them(
    size: int, seconds: int, is_apart: bool
) -> None:
    ended = NOW + timedelta(seconds=seconds)

    batch = a_batch(size=size, first_try_at=NOW, last_try_at=ended)

    assert batch.is_apart is is_apart
    assert not replace(batch, is_complete=False).is_apart, "nobody knows how many went"


def test_the_state_table_keeps_how_letters_went() -> None:
    circuit = after("tAtAT")

    item = circuit_to_item(circuit)

    assert circuit_from_item(circuit.queue, item).judged == circuit.judged
