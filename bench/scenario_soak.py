"""Our policy in many more worlds than the tests have: how often chance breaks a promise.

The scenarios of the comparison over many seeds, and worlds drawn at random, each of which `python -m bench.play
--scenario drawn:SEED --seed SEED` plays again.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import groupby

from bench.request import Request
from bench.results import Results, Table
from bench.scenario_runs import OURS, Job, play_jobs
from simulator.limits import breaches_of_run
from simulator.measures import Measures
from simulator.scenarios import SCENARIOS, named
from simulator.scenarios.drawn import PREFIX

#: None of them is among the seeds of the tests.
SEEDS = range(1_000, 1_060)
SEEDS_WHEN_QUICK = range(1_000, 1_002)

DRAWN = range(1_000, 1_300)
DRAWN_WHEN_QUICK = range(1_000, 1_010)

NOTE = """\
Totals over all runs, but for the time, which is the slowest run's. A letter that fails five times in a row in
scenario 6 is parked, and rightly so by the rules: that has a probability of (1/8)^5 for a letter, 0.6 % for a run of
200, and 31 % for 60 runs."""


def bench(request: Request) -> None:
    """Play, show, leave."""
    seeds = SEEDS_WHEN_QUICK if request.is_quick else SEEDS
    started = time.perf_counter()
    played = play_jobs(
        [Job(scenario=one.name, policy=OURS, seed=seed) for one in SCENARIOS for seed in seeds],
        request.console,
    )
    results = Results(name="scenario-soak", title="The scenarios over many seeds")
    results.figures["seconds"] = round(time.perf_counter() - started, 1)
    figures = {
        name: _figures([one.measures for one in runs])
        for name, runs in groupby(played, key=lambda one: one.job.scenario)
    }
    results.figures["scenarios"] = figures
    titles = {one.name: one.title for one in SCENARIOS}
    results.show(
        request,
        Table(
            title=f"{len(played)} runs with our policy, {len(seeds)} seeds a scenario",
            headings=(
                "scenario",
                "lost",
                "repeated",
                "parked wrongly",
                "at large",
                "most wasted in a run",
                "slowest to drain",
            ),
            rows=[[f"{name}. {titles[name]}", *_cells(one)] for name, one in figures.items()],
            note=NOTE,
        ),
    )
    _play_drawn(request, results)
    results.leave(request)


def _play_drawn(request: Request, results: Results) -> None:
    """Play worlds drawn at random, and name each in which a letter was lost or a good one parked."""
    seeds = DRAWN_WHEN_QUICK if request.is_quick else DRAWN
    jobs = [Job(scenario=f"{PREFIX}{seed}", policy=OURS, seed=seed) for seed in seeds]
    broken = {
        one.job.scenario: told
        for one in play_jobs(jobs, request.console)
        if (told := list(breaches_of_run(named(one.job.scenario).limits, one.measures)))
    }
    results.figures["drawn"] = {"runs": len(jobs), "broken": broken}
    results.show(
        request,
        Table(
            title=f"{len(jobs)} worlds drawn at random, {PREFIX}{seeds[0]} to {seeds[-1]}; "
            f"{len(broken)} break a promise",
            headings=("world", "what it is like", "broken"),
            rows=[[name, named(name).title, "; ".join(told)] for name, told in broken.items()],
            note="`python -m bench.play --scenario drawn:1007 --seed 1007` plays one of them again.",
        ),
    )


def _figures(runs: Sequence[Measures]) -> dict[str, float]:
    drained = [one.drained_after_minutes for one in runs]
    return {
        "runs": len(runs),
        "lost": sum(one.lost for one in runs),
        "repeated": sum(one.repeated for one in runs),
        "parked_wrongly": sum(one.parked_wrongly for one in runs),
        "at_large": sum(one.at_large for one in runs),
        "most_wasted": max(one.wasted for one in runs),
        "slowest_minutes": max(one or 0 for one in drained),
        "never_drained": drained.count(None),
    }


def _cells(figures: Mapping[str, float]) -> list[str]:
    counts = ("lost", "repeated", "parked_wrongly", "at_large", "most_wasted")
    hours, minutes = divmod(round(figures["slowest_minutes"]), 60)
    never = f", {figures['never_drained']} never" if figures["never_drained"] else ""
    return [*(f"{figures[name]}" for name in counts), f"{hours}:{minutes:02}{never}"]
