"""Rows 1 to 9 of the design's section 8, each over seeds that were fixed before any of them was run.

Row 7 is in `test_backed_up.py` besides, row 10 in `test_two_passes.py`, rows 11 and 12 are in `tests/faults`: every
crash and every fault. What SQS's retention has to do with an outage is in `test_retention.py`.

Chance plays in row 6: a letter that fails five times in a row there is parked, and rightly so by the rules. That has
a probability of (1/8)^5 for a letter, 0.6 % for a run of 200. None of the seeds 0 to 4 meets it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from redrive.core.triage import hard_cap
from redrive.settings import Settings
from simulator.measures import measure
from simulator.rivals import NoBreaker
from simulator.scenarios import (
    BACKED_UP,
    COIN_TOSS,
    DAY_OUTAGE,
    FLAPPING,
    HEALTHY,
    LONG_OUTAGE,
    NEW_POISON,
    ONLY_POISON,
    POISON_IN_TRAFFIC,
    SCENARIOS,
    SOME_POISON,
)
from simulator.world import hours
from tests.scenarios.runs import Run, in_, play

SETTINGS = Settings()


@in_(*SCENARIOS)
def test_nothing_is_ever_lost_or_done_twice_or_stripped_of_its_attributes(run: Run) -> None:
    assert (run.measures.lost, run.measures.repeated, run.measures.stripped) == (0, 0, 0)


@in_(*SCENARIOS)
def test_in_the_end_every_letter_is_done_and_every_poison_pill_is_parked(run: Run) -> None:
    assert run.world.is_drained
    assert set(run.world.parked()) == run.world.poison
    assert run.world.letters - run.world.poison <= run.world.deliveries.done.keys()


@in_(HEALTHY)
def test_row_1_the_circuit_never_leaves_closed_while_the_consumer_is_healthy(run: Run) -> None:
    assert run.states == {"CLOSED"}


@in_(SOME_POISON, POISON_IN_TRAFFIC, NEW_POISON)
def test_rows_2_5_and_8_poison_is_parked_after_five_strikes_each(run: Run) -> None:
    parked = run.ledger_of_parked()

    assert len(parked) == len(run.world.poison)
    assert {entry.strikes for entry in parked} == {SETTINGS.max_attempts}


@in_(SOME_POISON, POISON_IN_TRAFFIC, COIN_TOSS, NEW_POISON)
def test_rows_2_5_6_and_8_the_circuit_never_opens_while_the_consumer_works(run: Run) -> None:
    assert "OPEN" not in run.states


@in_(LONG_OUTAGE)
def test_row_3_the_circuit_is_open_before_30_letters_were_redriven(run: Run) -> None:
    opened_at = run.first_in("OPEN")

    assert run.redriven_before(opened_at) < 30


@in_(LONG_OUTAGE)
def test_row_3_at_most_50_letters_are_redriven_during_the_whole_outage(run: Run) -> None:
    assert run.redriven_before(LONG_OUTAGE.calm_at) <= 50


@in_(LONG_OUTAGE)
def test_row_3_the_first_two_canaries_after_recovery_close_the_circuit_for_good(run: Run) -> None:
    closed_at = run.first_in("CLOSED", since=LONG_OUTAGE.calm_at)

    assert len(list(canaries(run, LONG_OUTAGE.calm_at, closed_at))) <= 2
    assert {state for at, state in run.policy.states if at >= closed_at} == {"CLOSED"}


def canaries(run: Run, since: timedelta, until: timedelta) -> Iterator[timedelta]:
    """When canaries were sent."""
    for at, report in run.passes:
        if since <= at < until and report.redriven and report.circuit_after == "HALF_OPEN":
            yield at


@in_(DAY_OUTAGE)
def test_row_4_nothing_is_parked_during_an_outage_of_a_day(run: Run) -> None:
    assert sum(report.parked.total() for _, report in run.passes) == 0


@in_(ONLY_POISON)
def test_row_5_what_looks_like_an_outage_opens_the_circuit_and_ends_by_the_hard_cap(
    run: Run,
) -> None:
    parked = run.ledger_of_parked()

    assert "OPEN" in run.states
    assert {entry.redrive_count for entry in parked} == {hard_cap(SETTINGS)}
    assert max(run.world.settled_at().values()) < hours(72)


def test_row_9_fewer_deliveries_are_wasted_than_without_a_breaker() -> None:
    """Summed over the phases: without a breaker, who starts in an up phase is done before it ends."""
    ours = sum(play(FLAPPING, seed).measures.wasted for seed in range(FLAPPING.seeds))

    assert ours < sum(wasted_without_breaker(seed) for seed in range(FLAPPING.seeds))


def wasted_without_breaker(seed: int) -> int:
    world = FLAPPING.world(seed)
    FLAPPING.play(world, NoBreaker(world, seed))
    return measure(world, FLAPPING).wasted


@in_(BACKED_UP)
def test_row_7_a_backed_up_source_costs_neither_strikes_nor_failures(run: Run) -> None:
    verdicts = {verdict["verdict"] for _, report in run.passes for verdict in report.verdicts}

    assert verdicts == {"SUCCESS"}
    assert run.states == {"CLOSED"}
