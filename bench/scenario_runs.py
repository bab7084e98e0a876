"""Plays every scenario with every policy, over all seeds, on all processors."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench.timeline import Timeline, timeline
from simulator.measures import Measures
from simulator.rivals import EventSource, NativeMove, NoBreaker, PublishedPattern
from simulator.scenarios import LONG_OUTAGE, SCENARIOS, PolicyMaker, named

OURS = "smart re-driver"

POLICIES: dict[str, PolicyMaker | None] = {
    OURS: None,  # as the scenario has it
    "ours, no breaker": NoBreaker,
    "published pattern": PublishedPattern,
    "event source": EventSource,
    "native move": NativeMove,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One run: a scenario by its name, a policy by its, and a seed."""

    scenario: str
    policy: str
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """The result of a job. `timeline` only for the first seed of scenario 3, which is plotted."""

    job: Job
    measures: Measures
    timeline: Timeline | None


def play_all(console: Console, *, is_quick: bool) -> list[Played]:
    """Every scenario with every policy over the scenario's seeds."""
    return play_jobs(
        [
            Job(scenario=scenario.name, policy=policy, seed=seed)
            for scenario in SCENARIOS
            for policy in POLICIES
            for seed in range(1 if is_quick else scenario.seeds)
        ],
        console,
    )


def play_jobs(jobs: Sequence[Job], console: Console) -> list[Played]:
    """These runs in this order, whichever was ready first."""
    played = {result.job: result for result in _in_parallel(jobs, console)}
    return [played[job] for job in jobs]


def play(job: Job) -> Played:
    """One run."""
    scenario = named(job.scenario)
    played = scenario.played(job.seed, POLICIES[job.policy])
    is_plotted = scenario is LONG_OUTAGE and job.seed == 0
    return Played(
        job=job,
        measures=played.measures,
        timeline=timeline(played.world) if is_plotted else None,
    )


def _in_parallel(jobs: Sequence[Job], console: Console) -> list[Played]:
    # The longest first, so that no processor is left with one of them at the end.
    by_size = sorted(jobs, key=lambda job: -named(job.scenario).letters)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with (
        Progress(*columns, TimeElapsedColumn(), console=console) as progress,
        # Not forked: the progress bar has a thread.
        ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool,
    ):
        task = progress.add_task("scenarios in virtual time", total=len(jobs))
        played = []
        for future in as_completed([pool.submit(play, job) for job in by_size]):
            played.append(future.result())
            progress.advance(task)
    return played
