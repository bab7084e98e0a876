"""The design's scenarios on a DLQ topic: which keep their limits on a log, and how soon they are drained."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from bench.request import Request
from bench.results import Results, Table
from simulator.kafka_world import KafkaWorld
from simulator.limits import breaches_of_run
from simulator.measures import Measures
from simulator.outside_of_sqs import check_outside
from simulator.scenarios import ROWS, Scenario
from simulator.variation import ImpossibleError, Wishes

#: One read of so many has room in memory; larger rows are the same, only longer.
MOST_LETTERS = 20_000
#: The rows are played in their order: what does not fit in is not, and the table says how many were.
BUDGET_SECONDS = 5_400.0
BUDGET_WHEN_QUICK = 20.0

HEADINGS = (
    "scenario",
    "limits",
    "lost",
    "repeated",
    "parked wrongly",
    "wasted",
    "drained after, min",
)

NOTE = """\
The first seed of each row that a topic can have: four partitions, each message with a key of its own, a group that tries a message
three times in its place before it writes it to the DLQ topic, one process. Limits: those of the row on SQS, as `python -m bench.play`
has them. Left out are rows about what only SQS has, and those of more than 20,000 letters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One row that was played, and its limits that were not kept."""

    scenario: Scenario
    measures: Measures
    breaches: tuple[str, ...]

    def cells(self) -> tuple[str, ...]:
        """The row of the table."""
        run = self.measures
        drained = run.drained_after_minutes
        return (
            f"{self.scenario.name}: {self.scenario.title}",
            "; ".join(self.breaches) or "kept",
            f"{run.lost:,}",
            f"{run.repeated:,}",
            f"{run.parked_wrongly:,}",
            f"{run.wasted:,}",
            "never" if drained is None else f"{drained:,.1f}",
        )


def bench(request: Request) -> None:
    """Play, show, leave."""
    results = Results(name="kafka-scenarios", title="DLQ topics in Kafka: the scenarios on a log")
    rows = [one for one in ROWS if _is_of_a_topic(one)]
    runs = list(_play(rows, BUDGET_WHEN_QUICK if request.is_quick else BUDGET_SECONDS))
    kept = sum(not one.breaches for one in runs)
    results.figures["rows"] = {one.scenario.name: list(one.cells()[1:]) for one in runs}
    results.show(
        request,
        Table(
            title=f"{len(runs)} of {len(rows)} scenarios; {kept} keep all their limits",
            headings=HEADINGS,
            rows=[one.cells() for one in runs],
            note=NOTE,
        ),
    )
    results.leave(request)


def _is_of_a_topic(scenario: Scenario) -> bool:
    try:
        check_outside("kafka", scenario, Wishes())
    except ImpossibleError:
        return False
    return scenario.letters <= MOST_LETTERS


def _play(rows: list[Scenario], budget: float) -> Iterator[Ran]:
    until = time.perf_counter() + budget
    for row in rows:
        if time.perf_counter() < until:
            measures = replace(row, make_world=KafkaWorld).played(0).measures
            breaches = tuple(map(str, breaches_of_run(row.limits, measures)))
            yield Ran(scenario=row, measures=measures, breaches=breaches)
