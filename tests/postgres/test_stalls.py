"""A pass dies at any of its calls, and the next one redrives: nothing waits for the hour that a job has to fail."""

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from fakes.faults import Crash, Mishap, Wire, at, die_before, nothing
from tests.postgres.bench import Bench, die_within

LETTERS = 40
SETTINGS: dict[str, Any] = {"initial_window": 5, "base_delay_seconds": 0}
#: More calls than the pass has.
ENOUGH = 100
#: A pass's time and its lease, which nobody gave back.
A_LEASE_LATER = 300


@pytest.fixture
def slow(bench: Bench) -> Bench:
    """Jobs may take an hour to fail, so that a batch of which nothing is known is due after more than that."""
    bench.place = replace(bench.place, time_to_fail_seconds=3600)
    bench.database = bench.open()
    return bench


def redriven(bench: Bench) -> int:
    """Letters that have left the DLQ: the worker is done with all of them, or has them."""
    return LETTERS - len(bench.payloads("jobs_dlq"))


def after_a_death(bench: Bench, number: int, mishap: Mishap) -> tuple[str, int] | None:
    """The call at which the second pass died, and what the third redrove in its time; None without such a call."""
    bench.begin_anew()
    bench.die(*range(LETTERS))
    bench.run_pass(**SETTINGS)
    bench.work()
    bench.clock.advance(60)
    before, wire = redriven(bench), Wire(at({number: mishap}))
    try:
        bench.run_pass(wire, **SETTINGS)
    except Crash:
        pass
    else:
        return None
    bench.work()
    bench.clock.advance(A_LEASE_LATER)
    bench.run_pass(**SETTINGS)
    return str(wire.calls[number]), redriven(bench) - before


@pytest.mark.parametrize("mishap", [die_before, die_within], ids=lambda one: one.__name__)
def test_a_pass_that_dies_at_any_call_keeps_no_letter_waiting(slow, mishap):
    deaths = (after_a_death(slow, number, mishap) for number in range(ENOUGH))
    found = dict(one for one in iter(lambda: next(deaths), None) if one)

    assert {call: count for call, count in found.items() if not count} == {}
    assert len(found) > 15


def test_a_loop_of_deaths_only_slows_the_drain_down(slow):
    """Every other pass dies at some call. Each costs a lease at most, and the window grows all the same."""
    rng, letters = Random(7), 400
    slow.die(*range(letters))
    began = slow.clock.now()
    for _ in range(60):
        wire = Wire(at({rng.randrange(30): die_before}) if rng.random() < 0.5 else nothing)
        with suppress(Crash):
            slow.run_pass(wire, **SETTINGS)
        slow.work()
        slow.clock.advance(A_LEASE_LATER)
        if slow.done.total() == letters:
            break

    assert slow.everywhere() == Counter(range(letters))
    assert slow.done.total() == letters
    assert slow.clock.now() - began < timedelta(hours=2)
