"""The design's scenarios on FIFO queues: what is lost, overtaken or repeated, and what others pay for a blocked group."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from statistics import fmean

from bench.request import Request
from bench.results import Results, Table
from simulator.scenarios import ROWS, Scenario
from simulator.scenarios.scenario import Played
from simulator.variation import OWN

#: Larger rows take minutes each, and have the same groups, only longer.
MOST_LETTERS = 1_000
GROUPS = 10
#: Every row's first seed is played, then every row's second: what does not fit in is not, and the table says so.
BUDGET_SECONDS = 5_400.0
BUDGET_WHEN_QUICK = 20.0
WINDOW = timedelta(minutes=5)

#: Rows that have no meaning with groups, or none that is not another row's.
LEFT_OUT = {
    "17": "each source has its own groups",
    "22": "the splitter orders the parts",
    "22:copy": "likewise",
}

HEADINGS = (
    "scenario",
    "runs",
    "lost",
    "overtaken",
    "before their turn",
    "repeated in 5 min",
    "repeated",
    "parked wrongly",
    "drained after, min",
)

NOTE = f"""\
Letters are in {GROUPS} groups. Figures are sums over the runs (the drain is their mean), of as many seeds as {BUDGET_SECONDS / 60:.0f} minutes allow. Overtaken: an earlier letter
of the group succeeded later. Before their turn: tried before an earlier letter. Rows of more than {MOST_LETTERS:,} letters are left out. Some rows end before they are
drained: 2, 8, 10, 11, 12 and 24:1000, because each pill blocks its group for six hours; 9, because most groups have no good phase. Some good letters are
parked: in 21 near expiry, in 20:slow after three days."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Breaches of order in one run, in letters; minutes until all was drained, None where it never was."""

    lost: int
    overtaken: int
    before_turn: int
    repeated_soon: int
    repeated: int
    parked_wrongly: int
    drained: float | None


def bench(request: Request) -> None:
    """Play, show, leave."""
    results = Results(name="fifo", title="FIFO queues: order, and what it costs")
    budget = BUDGET_WHEN_QUICK if request.is_quick else BUDGET_SECONDS
    runs = _play_rows(budget)
    results.figures["rows"] = {name: [_told(one) for one in some] for name, some in runs.items()}
    broken = [name for name, some in runs.items() if any(map(_is_broken, some))]
    results.show(
        request,
        Table(
            title=f"{sum(map(len, runs.values()))} runs of {len(runs)} scenarios; {len(broken)} lose, overtake or repeat",
            headings=HEADINGS,
            rows=[_cells(one, runs[one.name]) for one in ROWS if one.name in runs],
            note=NOTE
            + " "
            + "Not played: "
            + "; ".join(f"{name} ({why})" for name, why in LEFT_OUT.items())
            + ".",
        ),
    )
    blocked = list(_beside_a_blocked_group())
    results.show(
        request,
        Table(
            title="Other groups beside one that a poison pill blocks",
            headings=("world", "others done, min", "without the pill, min"),
            rows=blocked,
            note="50 letters in 10 groups, the mean of five seeds.",
        ),
    )
    results.show(request, _one_group(is_quick=request.is_quick))
    results.leave(request)


def _is_fifo_row(scenario: Scenario) -> bool:
    return scenario.letters <= MOST_LETTERS and scenario.name not in LEFT_OUT and not scenario.burst


def on_fifo(scenario: Scenario, groups: int = GROUPS) -> Scenario:
    """The scenario on FIFO queues."""
    return replace(scenario, conditions=replace(scenario.conditions, fifo=True, groups=groups))


def _play_rows(budget: float) -> dict[str, list[Figures]]:
    """Figures by row, seed after seed, as many as the budget allows."""
    runs: dict[str, list[Figures]] = {}
    until = time.perf_counter() + budget
    rows = [one for one in ROWS if _is_fifo_row(one)]
    for seed in range(max(one.seeds for one in rows)):
        for row in rows:
            if seed < row.seeds and time.perf_counter() < until:
                runs.setdefault(row.name, []).append(figures(on_fifo(row).played(seed)))
    return runs


def figures(played: Played) -> Figures:
    """The figures of order in a run."""
    order, letters, run = played.world.order, played.world.letters, played.measures
    return Figures(
        lost=run.lost,
        overtaken=len(order.overtakings(letters)),
        before_turn=len(order.tried_past(letters)),
        repeated_soon=len(order.repeats(WINDOW)),
        repeated=run.repeated,
        parked_wrongly=run.parked_wrongly,
        drained=run.drained_after_minutes,
    )


def _is_broken(one: Figures) -> bool:
    return bool(one.lost or one.overtaken or one.before_turn or one.repeated_soon)


def _told(one: Figures) -> list[float | None]:
    return [getattr(one, name) for name in Figures.__dataclass_fields__]


def _cells(scenario: Scenario, runs: Sequence[Figures]) -> list[str]:
    total: Counter[str] = Counter()
    for one in runs:
        total.update(
            lost=one.lost,
            overtaken=one.overtaken,
            before_turn=one.before_turn,
            soon=one.repeated_soon,
            repeated=one.repeated,
            wrong=one.parked_wrongly,
        )
    drained = [one.drained for one in runs if one.drained is not None]
    return [
        f"{scenario.name}. {scenario.title}",
        str(len(runs)),
        *(str(total[name]) for name in ("lost", "overtaken", "before_turn", "soon", "repeated")),
        str(total["wrong"]),
        f"{fmean(drained):,.0f}" if drained else "never",
    ]


def _beside_a_blocked_group() -> Iterator[list[str]]:
    world = replace(OWN, letters=50)
    for name, one in (("no reports", world), ("with reports", world.reporting())):
        with_pill, without = (
            [_others_done(on_fifo(replace(one, poison=poison)).played(seed)) for seed in range(5)]
            for poison in (1, 0)
        )
        yield [name, f"{fmean(with_pill):.0f}", f"{fmean(without):.0f}"]


def _others_done(played: Played) -> float:
    """Minutes until the last letter of groups without a poison pill was done."""
    order, poison = played.world.order, played.world.poison
    others = [group for group, bodies in order.sent.items() if not poison & set(bodies)]
    done = [one.done_at for group in others for one in order.tries[group] if one.done_at]
    return max(done) / timedelta(minutes=1)


def _one_group(*, is_quick: bool) -> Table:
    rows = []
    for letters, reports in ((300, False), (300, True), (10_000, True)):
        world = replace(OWN, letters=30 if is_quick else letters)
        played = on_fifo(world.reporting() if reports else world, 1).played(0)
        minutes = played.measures.drained_after_minutes
        assert minutes, "a healthy consumer drains a group"
        an_hour = 60 * world.letters / minutes
        rows.append(
            [
                f"{world.letters:,}, {'with' if reports else 'no'} reports",
                f"{minutes:,.0f}",
                f"{an_hour:,.0f}",
            ]
        )
    return Table(
        title="One group",
        headings=("letters", "drained after, min", "letters an hour"),
        rows=rows,
        note="One letter of a group for each outcome. The simulated function looks every ten seconds, the deployed one every two: 10,000 letters take it some eight hours.",
    )
