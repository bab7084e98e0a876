"""How soon letters are done once the consumer has recovered, by backlog and length of the outage: row 34."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import fmean, median
from typing import Any

from matplotlib.figure import Figure

from bench.request import Request
from bench.results import Results, Table
from bench.scenario_plots import save
from bench.scenario_runs import OURS, Job, Played, play_jobs
from simulator.scenarios import named
from simulator.scenarios.recovery import PER_SECOND, RECOVERIES

MOVE = "native move"
#: It moves all letters again and again while the consumer is down: more than these take it an hour to play.
MOST_MOVED = 3_000

#: The second edition, at commit 549985c6, as `bench.play` measured it: means of three seeds, in minutes.
BEFORE = Path(__file__).resolve().parent.parent / "docs" / "benchmarks" / "second-edition.csv"

_LETTERS, _DOWN = (20, 300, 3_000, 20_000), (0.5, 2, 6)
_TRAFFIC = {"": "quiet", ":live": "6 live messages a minute"}
_LINES = {
    "second edition": ("#9aa5b1", "--"),
    "smart re-driver": ("#1f3a5f", "-"),
    "second edition, with reports": ("#e0b1a4", "--"),
    "smart re-driver, with reports": ("#c8553d", "-"),
}

NOTE = f"""\
Minutes from the consumer's recovery until the last letter is done, divided by what a consumer of {PER_SECOND} a second takes for the
letters alone. Live messages that died in the outage are letters, too, and count only in the time. The second edition's simulator had no
limit for the consumer: for 20,000 letters, {PER_SECOND} a second take 6.7 minutes of this edition's time alone."""


def bench(request: Request) -> None:
    """Play, draw, show, leave."""
    played = play_jobs(
        [
            Job(scenario=one.name, policy=policy, seed=seed)
            for one in RECOVERIES
            for policy, most in ((OURS, one.letters), (MOVE, MOST_MOVED))
            for seed in range(1 if request.is_quick else one.seeds)
            if one.letters <= (_LETTERS[1] if request.is_quick else most)
        ],
        request.console,
    )
    minutes = {
        policy: _minutes([one for one in played if one.job.policy == policy])
        for policy in (OURS, MOVE)
    }
    results = Results(name="recovery", title="From recovery to drained")
    results.figures |= minutes
    headings = ("policy", "letters", "median", "worst", "slowest, min")
    rows = [row for policy, took in minutes.items() for row in _rows(policy, took)]
    title = f"{len(played)} runs of row 34: how many times longer than the consumer needs"
    results.show(request, Table(title=title, headings=headings, rows=rows, note=NOTE))
    if request.out:
        request.out.mkdir(parents=True, exist_ok=True)
        results.plots.append("recovery.svg")
        _draw(request.out / results.plots[-1], minutes[OURS])
    results.leave(request)


def _minutes(played: Sequence[Played]) -> dict[str, float]:
    """The mean of all seeds, by scenario. Raises ValueError if a run never ends."""
    took: defaultdict[str, list[float]] = defaultdict(list)
    for one in played:
        drained = one.measures.drained_after_minutes
        if drained is None:
            raise ValueError(f"{one.job} was never drained")
        took[one.job.scenario].append(drained)
    return {name: fmean(of) for name, of in took.items()}


def _rows(policy: str, minutes: Mapping[str, float]) -> Iterator[list[str]]:
    """A row for each backlog, and one for all."""
    groups: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for name, took in minutes.items():
        groups[f"{named(name).letters:,}"][name] = took
    for letters, of in (*groups.items(), ("all", minutes)):
        ratios = [took / (named(name).letters / PER_SECOND / 60) for name, took in of.items()]
        slowest = max(of.values())
        yield [policy, letters, f"{median(ratios):,.1f}", f"{max(ratios):,.1f}", f"{slowest:.1f}"]


def _draw(path: Path, minutes: Mapping[str, float]) -> None:
    """The time over the backlog: a column for each length of the outage."""
    with BEFORE.open(newline="") as file:
        before = {row["scenario"]: float(row["minutes"]) for row in csv.DictReader(file)}
    taken = {"second edition": before, "smart re-driver": minutes}
    figure = Figure(figsize=(10, 5.5), layout="constrained")
    panels: Any = figure.subplots(len(_TRAFFIC), len(_DOWN), sharex=True, sharey=True)
    for (row, traffic), (column, down) in product(enumerate(_TRAFFIC), enumerate(_DOWN)):
        axes = panels[row][column]
        for label, (colour, style) in _LINES.items():
            edition, _, has_reports = label.partition(", with ")
            names = [f"34:{one}:{down:g}h{traffic}{has_reports and ':reports'}" for one in _LETTERS]
            times = [taken[edition][name] for name in names]
            axes.plot(_LETTERS, times, style, color=colour, marker="o", markersize=3, label=label)
        axes.set(xscale="log")
        axes.set_title(f"down for {down:g} h, {_TRAFFIC[traffic]}", fontsize=10)
    panels[0][0].set(ylim=(0, None))
    panels[-1][1].set(xlabel="letters")
    figure.supylabel("minutes from recovery to drained", fontsize=10)
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(_LINES), frameon=False)
    save(figure, path)
