"""Rows 1 to 25 of the design's section 8, and a part of its matrix, each over seeds fixed before any of them was run.

Rows 7, 10, 18 have more in `test_backed_up.py`, `test_two_passes.py`; rows 11 and 12 in `tests/faults`: every crash
and every fault. What SQS's retention has to do with a longer outage is in `test_retention.py`.

Chance plays where receives fail by chance: a letter that fails often enough in a row is parked, and rightly so by
the rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from statistics import fmean

import pytest

from simulator.limits import breaches_of_mean, breaches_of_run
from simulator.rivals import NoBreaker
from simulator.scenarios import (
    BACKED_UP,
    BY_NAME,
    LONG_OUTAGE,
    NEW_POISON,
    POISON_IN_TRAFFIC,
    SOME_POISON,
    Scenario,
    named,
)
from simulator.world import hours
from smart_redriver.engine.triage.triage import STRIKES_THAT_CONVICT
from tests.scenarios.runs import PLAYED, Run, in_, marks_of, runs_of, seeds_of

FLAPPINGS = [one for name, one in BY_NAME.items() if name.partition(":")[0] == "9"]


@in_(*PLAYED)
def test_every_run_keeps_the_limits_of_every_run(run: Run) -> None:
    broken = list(breaches_of_run(run.scenario.limits, run.measures))

    assert not broken, "; ".join(broken)


@pytest.mark.parametrize(
    "scenario",
    [pytest.param(one, marks=marks_of(one)) for one in PLAYED],
    ids=lambda scenario: scenario.name,
)
def test_the_mean_over_the_seeds_keeps_the_limits_of_the_mean(scenario: Scenario) -> None:
    runs = [run.measures for run in runs_of(scenario)]

    broken = list(breaches_of_mean(scenario.limits, runs))

    assert not broken, "; ".join(broken)


@in_(named("1"), named("7"))
def test_rows_1_and_7_the_circuit_never_leaves_closed_while_the_consumer_is_healthy(
    run: Run,
) -> None:
    assert run.states == {"CLOSED"}


@in_(SOME_POISON, POISON_IN_TRAFFIC, NEW_POISON)
def test_rows_2_5_and_8_poison_is_parked_when_it_is_convicted_after_its_last_chance(
    run: Run,
) -> None:
    last_chance = timedelta(seconds=run.scenario.settings.last_chance_seconds)
    parked = run.ledger_of_parked()

    assert len(parked) == len(run.world.poison)
    assert {entry.park_reason for entry in parked} == {"MAX_ATTEMPTS"}
    for entry in parked:
        assert entry.strikes >= STRIKES_THAT_CONVICT
        assert entry.first_strike is not None
        assert entry.last_redrive is not None
        assert entry.last_redrive >= entry.first_strike + last_chance


@in_(LONG_OUTAGE)
def test_row_3_at_most_50_letters_are_redriven_during_any_whole_outage(run: Run) -> None:
    assert run.measures.redriven_in_outage is not None
    assert run.measures.redriven_in_outage <= 50


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


@in_(BACKED_UP)
def test_row_7_a_backed_up_source_costs_neither_strikes_nor_failures(run: Run) -> None:
    verdicts = {verdict["verdict"] for _, report in run.passes for verdict in report.verdicts}

    assert "SUCCESS" in verdicts
    assert "FAILURE" not in verdicts


def test_row_3_live_traffic_spares_canaries() -> None:
    """Of the redriven letters: producers' own messages fail whatever a re-driver does."""
    alone, beside = (
        fmean(run.measures.wasted_on_letters for run in runs_of(named(name)))
        for name in ("3", "3:live")
    )

    assert beside < alone


@pytest.mark.enumeration
@pytest.mark.parametrize("scenario", FLAPPINGS, ids=lambda scenario: scenario.name)
def test_row_9_fewer_deliveries_are_wasted_than_without_a_breaker(scenario: Scenario) -> None:
    """Summed over the phases: without a breaker, who starts in an up phase is done before it ends."""
    ours = sum(run.measures.wasted for run in runs_of(scenario))

    assert ours < sum(
        scenario.played(seed, NoBreaker).measures.wasted for seed in seeds_of(scenario)
    )


@pytest.mark.enumeration
@pytest.mark.parametrize("letters", [1, 10_000], ids=["15", "15:10000"])
def test_row_15_vague_counts_take_at_most_twice_as_long_as_exact_ones(letters: int) -> None:
    vague = named("15" if letters == 1 else f"15:{letters}")

    assert mean_minutes(vague) <= 2 * mean_minutes(named(f"15:{letters}:exact"))


def mean_minutes(scenario: Scenario) -> float:
    drained = [run.measures.drained_after_minutes for run in runs_of(scenario)]
    assert None not in drained
    return fmean(minutes for minutes in drained if minutes is not None)


@in_(named("17"))
def test_row_17_the_healthy_sources_letters_flow_throughout(run: Run) -> None:
    """Some are done in every quarter of the neighbour's outage, and all that were there in the first."""
    done_at = run.world.deliveries.done_at
    theirs = [body for body in run.world.letters if not body.startswith("letter-")]
    quarters = {done_at[body] // hours(1) for body in theirs if body in done_at}

    assert quarters >= {0, 1, 2, 3}
    assert all(
        done_at.get(body, timedelta.max) < hours(1)
        for body in theirs
        if body.startswith("invoices-letter-")
    )


@in_(named("17"))
def test_row_17_hardly_a_letter_goes_to_the_source_that_is_down(run: Run) -> None:
    """As many as row 3 allows in two hours."""
    assert run.measures.wasted <= 50 * run.world.conditions.max_receive_count


@in_(named("22"))
def test_row_22_a_part_earns_its_own_strikes(run: Run) -> None:
    """It dies once before it is a letter, and then once for each strike."""
    limit = run.scenario.settings.max_attempts
    receives = run.world.conditions.max_receive_count
    tried = run.world.deliveries.tried

    assert run.world.poison
    assert all(tried[body] >= (1 + limit) * receives for body in run.world.parked())


@in_(named("18"))
def test_row_18_no_verdict_comes_before_a_letter_was_tried(run: Run) -> None:
    off = [verdict for at, report in run.passes if at < hours(3) for verdict in report.verdicts]

    assert [verdict for verdict in off if verdict["verdict"] != "NO_EVIDENCE"] == []
