"""A pass dies before, within and after every one of its statements and calls: nothing is lost, and nothing repeated."""

from collections import Counter
from collections.abc import Iterator

import pytest

from fakes.faults import Mishap, Wire, at, die_before
from tests.postgres.bench import Bench, die_within, lose_the_answer

#: A life of ten letters: window after window of five, two that fail whenever they are tried, and their parking.
LETTERS = ["bad 1", *(f"good {n}" for n in range(4)), "bad 2", *(f"good {n}" for n in range(4, 8))]
SETTINGS = {
    "max_attempts": 1,
    "last_chance_seconds": 0,
    "base_delay_seconds": 0,
    "initial_window": 5,
}
#: More calls than such a life has.
ENOUGH = 400


def fails(payload: str) -> str | None:
    return f"Refused{payload[-1]}" if payload.startswith("bad") else None


def lives(bench: Bench, mishap: Mishap) -> Iterator[tuple[str, int]]:
    """A life for each of its calls that the mishap can befall; the call, and how many passes died."""
    for number in range(ENOUGH):
        bench.begin_anew()
        bench.die(*LETTERS)
        wire = Wire(at({number: mishap}))
        deaths = bench.live(wire, fails=fails, steps=16, **SETTINGS)
        if len(wire.calls) <= number:
            return
        yield str(wire.calls[number]), deaths


def complaints(bench: Bench) -> list[str]:
    """What is wrong at the end of a life: each letter is there once, what is good is done,
    and nothing else is parked.
    """
    found = []
    if bench.everywhere() != Counter(LETTERS):
        found.append(f"lost or repeated: {bench.everywhere()}")
    if bench.done != Counter(one for one in LETTERS if not fails(one)):
        found.append(f"done: {bench.done}")
    if not set(bench.payloads("jobs_parked")) <= {"bad 1", "bad 2"}:
        found.append(f"parked: {bench.payloads('jobs_parked')}")
    return found


def test_a_life_without_a_mishap_ends_well(bench):
    bench.die(*LETTERS)

    assert bench.live(fails=fails, **SETTINGS) == 0

    assert complaints(bench) == []
    assert sorted(bench.payloads("jobs_parked")) == ["bad 1", "bad 2"]


@pytest.mark.parametrize("mishap", [die_before, die_within], ids=lambda one: one.__name__)
def test_a_pass_that_dies_at_any_call_loses_and_repeats_nothing(bench, mishap):
    wrong, tried = [], 0
    for call, deaths in lives(bench, mishap):
        tried += 1
        wrong += [f"{call}: {one}" for one in complaints(bench)]
        wrong += [f"{call}: {deaths} deaths"] if deaths != 1 else []

    assert wrong == []
    assert tried > 40


def test_an_answer_that_is_lost_at_any_statement_costs_nothing(bench):
    """The statement was carried out, and is asked again on another connection."""
    wrong, tried = [], 0

    def mishap(call, act):
        return lose_the_answer(call, act) if call.operation in STATEMENTS else act(**call.request)

    for call, _ in lives(bench, mishap):
        tried += any(one in call for one in STATEMENTS)
        wrong += [f"{call}: {one}" for one in complaints(bench)]

    assert wrong == []
    assert tried > 20


STATEMENTS = (
    "CountLetters",
    "CountJobs",
    "ReadLetters",
    "RedriveLetters",
    "ParkLetters",
    "FindLetters",
    "HoldLetters",
    "ReadOutcomes",
    "SettleJobs",
    "ForgetJobs",
)
