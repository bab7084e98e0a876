"""Every scenario and the whole matrix with our policy, over all of their seeds, held to the same limits as the tests."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import groupby
from statistics import fmean

from bench.request import Request
from bench.results import Results, Table
from bench.scenario_runs import OURS, Job, play_jobs
from simulator.limits import breaches_of_mean, breaches_of_run
from simulator.measures import Measures
from simulator.scenarios import MATRIX, ROWS, Scenario, named

#: More letters than this are for the long bench alone.
LETTERS_WHEN_QUICK = 500

HEADINGS = ("scenario", "runs", "wasted", "drained after, min", "slowest", "limits broken")

NOTE = """\
Means over the seeds but for the slowest run. A limit is broken where a run loses, parks or leaves a good letter, opens a circuit
that it must not, or where the mean is above what the design allows."""


def bench(request: Request) -> None:
    """Play, show, leave."""
    scenarios = [
        one
        for one in (*ROWS, *MATRIX)
        if not request.is_quick or max(one.letters, one.burst) <= LETTERS_WHEN_QUICK
    ]
    started = time.perf_counter()
    played = play_jobs(
        [
            Job(scenario=one.name, policy=OURS, seed=seed)
            for one in scenarios
            for seed in range(1 if request.is_quick else one.seeds)
        ],
        request.console,
    )
    runs = {
        name: [one.measures for one in group]
        for name, group in groupby(played, key=lambda one: one.job.scenario)
    }
    broken = {name: list(breaches(named(name), group)) for name, group in runs.items()}
    results = Results(name="scenario-matrix", title="Every scenario, and the matrix")
    results.figures["seconds"] = round(time.perf_counter() - started, 1)
    results.figures["broken"] = {name: told for name, told in broken.items() if told}
    results.show(
        request,
        Table(
            title=f"{len(played)} runs of {len(runs)} scenarios with our policy; "
            f"{len(results.figures['broken'])} break a limit",
            headings=HEADINGS,
            rows=[_cells(named(name), group, broken[name]) for name, group in runs.items()],
            note=NOTE,
        ),
    )
    results.leave(request)


def breaches(scenario: Scenario, runs: Sequence[Measures]) -> Iterator[str]:
    """The limits of the scenario that the runs broke, with the seed where it was one run."""
    for seed, run in enumerate(runs):
        yield from (f"seed {seed}: {told}" for told in breaches_of_run(scenario.limits, run))
    yield from breaches_of_mean(scenario.limits, runs)


def _cells(scenario: Scenario, runs: Sequence[Measures], broken: Sequence[str]) -> list[str]:
    drained = [run.drained_after_minutes for run in runs if run.drained_after_minutes is not None]
    return [
        f"{scenario.name}. {scenario.title}",
        str(len(runs)),
        f"{fmean(run.wasted for run in runs):,.0f}",
        f"{fmean(drained):,.0f}" if drained else "-",
        f"{max(drained):,.0f}" if len(drained) == len(runs) else "never",
        "; ".join(broken),
    ]
