"""Rows 28 to 41, as far as they are not for `python -m bench scenario-matrix` alone. Up to 40, the design has them."""

from __future__ import annotations

import pytest

from bench.play_options import parse
from simulator.limits import breaches_of_mean, breaches_of_run
from simulator.scenarios import Scenario, named
from tests.scenarios.runs import play

PLAYED = (
    "28:0",
    "28:10",
    "28:lambda",
    "28:down",
    "28:off",
    "28:unknown",
    "28:2",
    "28:3",
    "28:4",
    "29",
    "29:60",
    "29:quiet",
    "29:soon",
    "30:300:2",
    "31:60:40",
    "31:300:10",
    "31:300:60",
    "31:300:60:reports",
    "32",
    "32:reports",
    "33",
    "34:20:0.5h",
    "34:20:6h:live",
    "34:300:2h",
    "34:300:2h:reports",
    "34:300:2h:live",
    "34:300:2h:live:reports",
    "34:300:6h:live",
    "34:3000:6h:live",
    "35:event",
    "35:event:reports",
    "35:alarm",
    "35:neighbour",
    "35:false",
    "36",
    "36:outage",
    "36:fifo",
    "37:1800x5",
    "37:43200x2",
    "38:0.5h",
    "38:1.5h",
    "38:3h",
    "39:held",
    "40",
    "41:3-7",
    "41:4-16",
    "41:5-25",
)

#: Rows that the engine breaks: what is mended goes from here, and nothing comes to it.
NOT_YET = frozenset(
    {
        "28:2",
        "28:4",
        "29:quiet",
        "30:300:2",
        "31:60:40",
        "31:300:60",
        "33",
        "40",
    }
)


def _marked(name: str) -> object:
    marks = [pytest.mark.xfail(strict=True, reason="not yet")] if name in NOT_YET else []
    return pytest.param(named(name), id=name, marks=marks)


@pytest.mark.enumeration
@pytest.mark.parametrize("scenario", [_marked(name) for name in PLAYED])
def test_the_scenario_keeps_its_limits(scenario: Scenario) -> None:
    runs = []
    for seed in range(min(scenario.seeds, 2)):
        run = play(scenario, seed)
        runs.append(run)
        broken = list(breaches_of_run(scenario.limits, run.measures))
        if run.world.conditions.fifo:
            broken += map(str, run.world.order.overtakings(run.world.letters))
        if scenario.name in NOT_YET:  # the first seed that shows it is enough
            broken += breaches_of_mean(scenario.limits, [one.measures for one in runs])
        assert not broken, "; ".join(broken)

    broken = list(breaches_of_mean(scenario.limits, [run.measures for run in runs]))
    assert not broken, "; ".join(broken)


def test_what_is_not_yet_kept_is_played() -> None:
    assert set(PLAYED) >= NOT_YET


@pytest.mark.enumeration
def test_pills_of_producers_keep_no_circuit_half_open_beside_live_successes() -> None:
    """Each canary was full of them, and showed nothing: of 428 that were seven hours old, 77 were parked."""
    world = {
        "letters": 800,
        "poison": 8,
        "down-hours": 3,
        "live-per-minute": 2,
        "live-poison-per-minute": 0.5,
    }
    world |= {"consumer-delay": 2, "watch-hours": 20}
    asked = parse([f"--{name}={value}" for name, value in world.items()])

    run = asked.scenario.played(3, watches_live=False).measures

    assert run.circuit is not None
    assert run.circuit.final_state == "CLOSED"
    assert run.parked_rightly >= 300
    assert (run.lost, run.parked_wrongly) == (0, 0)


@pytest.mark.enumeration
@pytest.mark.parametrize("seed", range(3))
def test_pills_of_a_quiet_backlog_are_compared_with_its_last_good_letters(seed: int) -> None:
    """All good letters had gone before the first pill came back: it stayed for three days."""
    world = {"letters": 150, "poison": 15, "down-hours": 2, "watch-hours": 20}
    asked = parse([f"--{name}={value}" for name, value in world.items()])

    run = asked.scenario.played(seed, watches_live=False).measures

    assert run.circuit is not None
    assert run.circuit.final_state == "CLOSED"
    assert (run.parked_rightly, run.at_large) == (15, 0)
    assert (run.lost, run.parked_wrongly) == (0, 0)
