"""Limits say what was broken: else every scenario would pass."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from simulator.limits import Limits, breaches_of_mean, breaches_of_run
from simulator.measures import Course, Measures

GOOD = Measures(
    deliveries=10,
    wasted=4,
    wasted_on_letters=3,
    stripped=0,
    parked_rightly=1,
    parked_wrongly=0,
    at_large=0,
    lost=0,
    repeated=0,
    drained_after_minutes=10.0,
    good_drained_after_minutes=5.0,
    poison_parked_after_minutes=10.0,
    redriven_in_outage=2,
    circuit=Course(
        opened=True, opened_after_minutes=15.0, redriven_before_open=7, final_state="OPEN"
    ),
)


@pytest.mark.parametrize(
    ("limits", "seen", "told"),
    [
        (Limits(), {}, []),
        (Limits(), {"lost": 2}, ["2 lost"]),
        (Limits(repeats=True), {"lost": 2, "repeated": 1}, ["2 lost"]),
        (Limits(), {"repeated": 1}, ["1 repeated"]),
        (Limits(), {"parked_wrongly": 3}, ["3 parked wrongly"]),
        (Limits(parks_good=True), {"parked_wrongly": 3}, []),
        (Limits(), {"at_large": 1}, ["1 at large"]),
        (Limits(leaves_some=True), {"at_large": 1}, []),
        (Limits(opens=True), {}, []),
        (Limits(opens=False), {}, ["was OPEN"]),
        (
            Limits(opens=True),
            {"circuit": Course(opened=False, final_state="CLOSED")},
            ["was never OPEN"],
        ),
        (Limits(opened_within=15), {}, []),
        (Limits(opened_within=14), {}, ["OPEN after 15.0 minutes, limit 14"]),
        (Limits(redriven_before_open=8), {}, []),
        (Limits(redriven_before_open=7), {}, ["7 letters redriven before OPEN, limit 7"]),
        (Limits(stays_open=False), {}, ["OPEN at the end"]),
        (Limits(stays_open=False, opens=False), {"circuit": None}, []),
    ],
)
def test_a_run_is_told_what_it_broke(limits: Limits, seen: dict[str, Any], told: list[str]) -> None:
    assert list(breaches_of_run(limits, replace(GOOD, **seen))) == told


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        (Limits(drained=15), []),
        (Limits(drained=14), ["drained after 15, limit 14"]),
        (Limits(wasted=4, redriven_in_outage=2), []),
        (Limits(wasted=3), ["wasted 4, limit 3"]),
        (
            Limits(good_drained=4, poison_parked=9),
            ["good drained after 5, limit 4", "poison parked after 10, limit 9"],
        ),
    ],
)
def test_the_mean_is_held_to_its_limit(limits: Limits, told: list[str]) -> None:
    runs = [GOOD, replace(GOOD, drained_after_minutes=20.0)]

    assert list(breaches_of_mean(limits, runs)) == told


def test_a_run_that_never_drained_is_later_than_any_limit() -> None:
    runs = [GOOD, replace(GOOD, drained_after_minutes=None)]

    assert list(breaches_of_mean(Limits(drained=1000), runs)) == [
        "drained after 1000: never in 1 of 2 runs"
    ]
