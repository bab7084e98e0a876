"""The scenarios of the design with our policy and its rivals: one table, JSON and plots."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bench import scenario_plots
from bench.request import COMMAND, Request, machine
from bench.scenario_runs import OURS, Played, play_all
from simulator.measures import Measures
from simulator.scenarios import SCENARIOS

#: With the width that each has in a terminal of 80 columns.
HEADINGS = {
    "policy": 17,
    "wasted": 8,
    "parked rightly": 8,
    "parked wrongly": 8,
    "at large": 6,
    "drained after": 10,
    "lost": 5,
    "repeated": 9,
    "stripped": 9,
}

#: Larger means are told in whole numbers.
FRACTIONS_BELOW = 100

HOW_TO_READ = """\
A cell begins with the slowest seed's time in hours and minutes, from when the consumer is well for good and no new poison comes, until every
good letter is done and every pill parked; "2/5 never": with 2 seeds of 5. Then come means over the seeds
(5 a scenario; 3 in scenario 3, 8 in scenario 9) that are not zero: deliveries *wasted* on a consumer that was down or *stripped* of attributes;
messages *lost*, *repeated*, wrongly *parked*, or *at large* at the end. [scenarios.json](scenarios.json) has every run, `simulator/rivals/` the other
policies. All have their default settings.
"""

#: Measures of which a cell of the page tells, each with its word.
TOLD = {
    "wasted": "wasted",
    "stripped": "stripped",
    "lost": "lost",
    "repeated": "repeated",
    "parked_wrongly": "parked",
    "at_large": "at large",
}

WHAT_IT_SHOWS = """\
The smart re-driver takes more time. It waits for verdicts, so a healthy consumer gets its letters back in nine minutes instead of one. Poison takes
six hours, because its failures could be an outage of what it needs.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A scenario with a policy, over all seeds."""

    scenario: str
    policy: str
    runs: Sequence[Measures]

    def cells(self) -> tuple[str, ...]:
        """The line as text, in the order of the headings."""
        return (
            self.policy,
            self._mean("wasted"),
            self._mean("parked_rightly"),
            self._mean("parked_wrongly"),
            self._mean("at_large"),
            self._slowest(),
            self._mean("lost"),
            self._mean("repeated"),
            self._mean("stripped"),
        )

    def in_words(self) -> str:
        """The line as a cell of the page."""
        told = ((self._mean(measure), word) for measure, word in TOLD.items())
        return ", ".join(
            (self._slowest(), *(f"{mean} {word}" for mean, word in told if mean != "0"))
        )

    def _mean(self, measure: str) -> str:
        mean = fmean(getattr(run, measure) for run in self.runs)
        return f"{mean:,.0f}" if mean >= FRACTIONS_BELOW else f"{mean:,.1f}".removesuffix(".0")

    def _slowest(self) -> str:
        times = [run.drained_after_minutes for run in self.runs]
        if None in times:
            never = times.count(None)
            return "never" if never == len(times) else f"{never}/{len(times)} never"
        hours, minutes = divmod(round(max(time for time in times if time is not None)), 60)
        return f"{hours}:{minutes:02}"


def run(request: Request) -> None:
    """Play, print, publish."""
    started = time.perf_counter()
    played = play_all(request.console, is_quick=request.is_quick)
    took = time.perf_counter() - started
    lines = list(summarise(played))
    request.console.print(as_table(lines))
    request.console.print(f"{len(played)} runs in {took:.0f} s; {_machine_in_words()}")
    if request.out is not None:
        publish(request.out, played, lines, took)
        request.console.print(f"Written to {request.out}.")


def summarise(played: Sequence[Played]) -> Iterator[Line]:
    """One line for each scenario and policy, in the order of the runs."""
    for (scenario, policy), runs in groupby(
        played, key=lambda one: (one.job.scenario, one.job.policy)
    ):
        yield Line(scenario=scenario, policy=policy, runs=[one.measures for one in runs])


def publish(out: Path, played: Sequence[Played], lines: Sequence[Line], took: float) -> None:
    """Leave table, figures and plots in `out`."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "scenarios.json").write_text(json.dumps(as_json(played, took), indent=1) + "\n")
    (out / "scenarios.md").write_text(as_markdown(lines, len(played), took))
    scenario_plots.draw_outage(out / "scenario-3.svg")
    timelines = {one.job.policy: one.timeline for one in played if one.timeline is not None}
    scenario_plots.draw_policies(out / "scenario-3-policies.svg", timelines)


def as_table(lines: Sequence[Line]) -> Group:
    """The table for a terminal: a line may run across all columns, which a `Table` can't."""
    parts: list[RenderableType] = [_row(tuple(HEADINGS), style="bold")]
    for title, group in _by_scenario(lines):
        parts.append(Text(f"\n{title}", style="bold"))
        parts += (
            _row(line.cells(), style="green" if line.policy == OURS else "") for line in group
        )
    return Group(*parts)


def _row(cells: tuple[str, ...], *, style: str) -> Table:
    grid = Table.grid(padding=0)
    for heading, width in HEADINGS.items():
        grid.add_column(width=width, justify="left" if heading == "policy" else "right")
    grid.add_row(*cells, style=style)
    return grid


def as_markdown(lines: Sequence[Line], runs: int, took: float) -> str:
    """The page: a row for each scenario and a column for each policy, and how to read them."""
    policies = list(dict.fromkeys(line.policy for line in lines))
    parts = [
        "# Scenarios in virtual time\n",
        f"Written by `{COMMAND}`: {runs} runs in {took:.0f} s on {_machine_in_words()}. "
        "The seed determines a run; only the seconds differ between machines.\n",
        HOW_TO_READ,
        "| " + " | ".join(("scenario", *policies)) + " |",
        "|---" * (len(policies) + 1) + "|",
    ]
    for title, group in _by_scenario(lines):
        cells = {line.policy: line.in_words() for line in group}
        parts.append("| " + " | ".join((title, *(cells[one] for one in policies))) + " |")
    parts += [
        "",
        WHAT_IT_SHOWS,
        "## What the consumer of scenario 3 sees\n\n"
        "![Deliveries a minute in scenario 3, by policy](scenario-3-policies.svg)\n",
    ]
    return "\n".join(parts)


def as_json(played: Sequence[Played], took: float) -> dict[str, Any]:
    """Every run with its figures."""
    return {
        "command": COMMAND,
        "machine": machine(),
        "seconds": round(took, 1),
        "runs": [asdict(one.job) | asdict(one.measures) for one in played],
    }


def _by_scenario(lines: Sequence[Line]) -> Iterator[tuple[str, Iterator[Line]]]:
    titles = {scenario.name: scenario.title for scenario in SCENARIOS}
    for name, group in groupby(lines, key=lambda line: line.scenario):
        yield f"{name}. {titles[name]}", group


def _machine_in_words() -> str:
    return ", ".join(machine().values())
