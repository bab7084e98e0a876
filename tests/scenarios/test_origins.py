"""The design's scenarios with DLQs that other origins fill: what `python -m bench.play --scenario NAME --origin ORIGIN`
plays.

Each origin has one kind of target in the simulated world: SNS an endpoint, which answers with a failure (a bounce);
EventBridge a function and Scheduler a state machine, which are refused or at fault for a letter's content; Lambda a
function whose letters come back. Rows that need what has no meaning there are refused, and not played.
"""

from __future__ import annotations

from functools import lru_cache

import pytest

from bench.play_options import parse
from simulator.measures import Measures
from simulator.scenarios import ROWS, Scenario, named
from simulator.variation import ImpossibleError, Wishes, vary
from smart_redriver.engine.config.targets import SERVED, Origin

ORIGINS = ("sns", "lambda", "eventbridge", "scheduler")
MOST_LETTERS = 600
SEED = 0

#: What is played by hand only, as it takes long: `python -m bench.play --scenario 8 --origin lambda`.
TOO_LONG = {
    ("8", "lambda"),
    *((name, "lambda") for name in ("4:1:48h", "4:2:48h", "4:5:48h", "24:20:6")),
    *((name, "sns") for name in ("24:1:6", "24:3:6", "24:20:6", "24:11:3:closed")),
}

#: Rows, a target's letters of which are at large at the end of the row's time, and why.
_PAUSED = "near their expiry they are renewed, and wait on while the queue is paused"
_HALF = "near their expiry they are renewed, and the circuit is OPEN: half of the deliveries fail"
_ALONE = "nobody vouches for an endpoint whose bounces are alone: given up after 72 h, and the row ends before"
STAY = {
    **dict.fromkeys([(one.name, "sns") for one in ROWS if one.name.startswith("24")], _ALONE),
    **dict.fromkeys([("21:20m:paused", origin) for origin in ORIGINS], _PAUSED),
    **dict.fromkeys([("21:20m:half", origin) for origin in ("eventbridge", "scheduler")], _HALF),
    ("5:live", "sns"): _ALONE,
    ("8", "sns"): _ALONE,
}

#: A function's verdict takes twelve minutes and not three: all tries, the waits between them, and CloudWatch's delay.
#: Minutes that were measured, and a fifth more, where that is beyond the row's own limit.
SLOWER = {
    "1": 45,
    "2": 75,
    "4": 60,
    "8:5-5": 330,
    "16:900x5": 50,
    "16:300x3": 45,
    "16:5400x5": 50,
    "16:900x5:outage": 80,
    "16:300x3:outage": 100,
    "18": 170,
    "20:few": 85,
    "20:flap": 200,
    "25": 50,
    "25:live": 50,
}

#: Of poison: twenty pills and one live message in five minutes, of which each verdict sees two.
POISON_SLOWER = {("24:20:0.2", "lambda"): 990.0}

#: From this row on, the engine does not keep all rows of queues yet (`NOT_YET` in test_capacity_and_kinds.py). Those of
#: targets follow.
FIRST_OF_QUEUES_ALONE = 28

#: Letters that a target that is down is given all the same: a few before the circuit opens, then canaries.
BEFORE_OPEN, AN_HOUR = 30, 2.5


def has_meaning(scenario: Scenario, origin: str) -> bool:
    if scenario.letters > MOST_LETTERS or (scenario.name, origin) in TOO_LONG:
        return False
    if int(scenario.name.partition(":")[0]) >= FIRST_OF_QUEUES_ALONE:
        return False
    try:
        vary(scenario, Wishes(origin=origin), scenario.settings)
    except ImpossibleError:
        return False
    return True


PLAYED = [(one.name, origin) for one in ROWS for origin in ORIGINS if has_meaning(one, origin)]


@lru_cache(maxsize=len(PLAYED))
def play(options: str) -> Measures:
    asked = parse(f"{options} --seed {SEED}".split())
    return asked.scenario.played(SEED, asked.policy).measures


@pytest.mark.enumeration
@pytest.mark.parametrize(("name", "origin"), PLAYED)
def test_nothing_is_lost_parked_wrongly_or_left(name: str, origin: str) -> None:
    run, limits = play(f"--scenario {name} --origin {origin}"), named(name).limits

    assert (run.lost, run.repeated, run.stripped) == (0, 0, 0)
    assert run.parked_wrongly == 0 or limits.parks_good
    assert (run.at_large > 0) == ((name, origin) in STAY)


@pytest.mark.enumeration
@pytest.mark.parametrize(("name", "origin"), PLAYED)
def test_letters_are_back_within_the_rows_time(name: str, origin: str) -> None:
    run, limits = play(f"--scenario {name} --origin {origin}"), named(name).limits
    limit = limits.drained or limits.good_drained
    if origin == "lambda":
        limit = max(limit or 0, SLOWER.get(name, 0)) or None

    drained = run.good_drained_after_minutes
    assert limit is None or (drained is not None and drained <= limit)
    parked = run.poison_parked_after_minutes
    parks_by = POISON_SLOWER.get((name, origin), limits.poison_parked)
    is_timed = parks_by is not None and (name, origin) not in STAY
    assert not is_timed or (parked is not None and parked <= parks_by)  # type: ignore[operator]


@pytest.mark.enumeration
@pytest.mark.parametrize(("name", "origin"), PLAYED)
def test_a_target_that_is_down_is_given_few(name: str, origin: str) -> None:
    run, outage = play(f"--scenario {name} --origin {origin}"), named(name).outage
    if outage is None or outage.share < 1:
        return

    hours = outage.lasts.total_seconds() / 3600
    assert run.redriven_in_outage is not None
    assert run.redriven_in_outage <= BEFORE_OPEN + AN_HOUR * hours


#: Consumers that a verdict could be wrong about.
HOSTILE = {
    "a fifth of the tries fail": "--letters 60 --receive-failures 0.2",
    "half of the tries fail": "--letters 60 --receive-failures 0.5",
    "up and down": "--letters 60 --flapping 10/10",
    "two in five need what is down": "--letters 60 --partial 0.4 --down-hours 2",
    "counts that are wrong": "--letters 60 --count-noise 5 --down-hours 1",
    "CloudWatch is late": "--letters 60 --metrics-lag 600 --down-hours 1",
    "poison beside steady traffic": "--letters 200 --poison 5 --live-per-minute 3",
    "poison on a quiet DLQ": "--letters 200 --poison 5",
}


@pytest.mark.parametrize("origin", ["lambda", "sns"])
@pytest.mark.parametrize("options", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_consumers_cost_no_letter(options: str, origin: str) -> None:
    run = play(f"--origin {origin} {options}")

    assert (run.lost, run.repeated, run.parked_wrongly, run.at_large) == (0, 0, 0, 0)


@pytest.mark.parametrize("live", ["", "--live-per-minute 3"])
def test_a_functions_poison_is_parked_at_its_last_chance(live: str) -> None:
    """Steady traffic once kept a function's metrics from ever speaking; without any, pills were given up after 72 h."""
    run = play(f"--origin lambda --letters 200 --poison 5 {live}".strip())

    assert (run.parked_rightly, run.at_large) == (5, 0)
    assert run.poison_parked_after_minutes is not None
    assert run.poison_parked_after_minutes < 450


def test_a_late_cloudwatch_convicts_no_function() -> None:
    """What it had not told passed for nothing: batches that were well failed, and one letter went in five minutes."""
    run = play("--origin lambda --letters 100 --metrics-lag 600")

    assert run.circuit is not None
    assert (run.circuit.opened, run.lost, run.repeated) == (False, 0, 0)
    assert run.drained_after_minutes is not None
    assert run.drained_after_minutes < 60


def test_every_origin_is_played() -> None:
    assert {origin for _, origin in PLAYED} == {one.value for one in Origin if SERVED[one]}
