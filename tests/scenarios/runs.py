"""Each run of a scenario is played once, however many tests look at it: a run changes nothing any more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache

import pytest

from simulator.measures import Measures
from simulator.scenarios import MATRIX, ROWS, SCENARIOS, Scenario
from simulator.scenarios.reporting import REPORTING
from simulator.scenarios.usual import PHASES
from simulator.smart_policy import SmartPolicy
from simulator.world import PARKING_LOT, World
from smart_redriver.engine.messages.letter import METADATA_ATTRIBUTE, RedriveMetadata
from smart_redriver.engine.report import Report
from smart_redriver.engine.triage.ledger import Entry

#: Only `python -m bench scenario-matrix` plays these: a million letters, and the largest of several alike.
FOR_THE_BENCH = {"19", "20:few:deep", "20:flap:deep", "24:1000:3"}

#: From this row on `test_capacity_and_kinds.py` plays some of the many variants.
LATER_ROWS = 28

#: The scenarios of the comparison and those with reports are played with so many of their seeds, the others with one.
#: `python -m bench scenario-matrix` plays each with all.
FEW = 3

#: Cells of the matrix that are played here: schedules and patience on which a rhythm or a verdict could trip.
CELLS = {
    "M:1:1:300x3",
    "M:2:1:900x5",
    "M:2:15:30x1",
    "M:3:1:900x5",
    "M:3:15:30x10",
    "M:4:1:30x1",
    "M:4:15:900x5",
    "M:6:1:30x10",
    "M:6:15:300x3",
    "M:8:15:30x3",
    "M:9:1:30x3",
    "M:9:15:300x3",
}

#: The rows that `make test` plays, with all of their seeds; `make prove` plays the others.
SAMPLES = {"1", "2", "3", "3:live", "4", "6", "7", "13", "14", "16", "18", "20", "23", "25"}

#: The one that is looked at, and another. Runs of others need not be kept, nor looked through for garbage.
SCENARIOS_KEPT = 2


PLAYED = (
    *(
        scenario
        for scenario in ROWS
        if scenario.name not in FOR_THE_BENCH and int(scenario.name.partition(":")[0]) < LATER_ROWS
    ),
    *(cell for cell in MATRIX if cell.name in CELLS),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A scenario that our re-driver has played to its end."""

    scenario: Scenario
    world: World
    policy: SmartPolicy
    measures: Measures

    @property
    def passes(self) -> Iterator[tuple[timedelta, Report]]:
        """Every pass with its time."""
        return zip(self.policy.times, self.policy.reports, strict=True)

    @property
    def states(self) -> set[str]:
        """The states that a pass left the circuit in."""
        return {state for _, state in self.policy.states}

    def first_in(self, state: str, *, since: timedelta = timedelta()) -> timedelta:
        """When a pass first left the circuit in this state."""
        return next(at for at, seen in self.policy.states if seen == state and at >= since)

    def ledger_of_parked(self) -> list[Entry]:
        """What the ledger knows of every letter in the parking lot."""
        metadata = [
            RedriveMetadata.decode(message.attributes[METADATA_ATTRIBUTE]["StringValue"])
            for message in self.world.sqs.inspect.messages(PARKING_LOT)
        ]
        return list(
            self.policy.store.read_ledger(
                metadata.original_id for metadata in metadata
            ).entries.values()
        )


def play(scenario: Scenario, seed: int) -> Run:
    """Our re-driver in this scenario, for tests to look at."""
    runs = _runs_of(scenario)
    if seed not in runs:
        runs[seed] = _play(scenario, seed)
    return runs[seed]


@lru_cache(maxsize=SCENARIOS_KEPT)
def _runs_of(scenario: Scenario) -> dict[int, Run]:
    """By seed, those that were played."""
    return {}


def _play(scenario: Scenario, seed: int) -> Run:
    played = scenario.played(seed)
    assert isinstance(played.policy, SmartPolicy)
    return Run(
        scenario=scenario,
        world=played.world,
        policy=played.policy,
        measures=played.measures,
    )


def seeds_of(scenario: Scenario) -> range:
    """The seeds that a scenario is played with here; they were fixed before any of them was run."""
    if scenario.seeds == PHASES:
        return range(0, PHASES, 2)  # every other phase of a flapping: a half of them is no sample
    if scenario in SCENARIOS or scenario in REPORTING:
        return range(min(scenario.seeds, FEW))
    if scenario.letters == 1 and scenario.seeds > FEW:
        # Chance is all that a mean of few tells, and one letter costs little.
        return range(scenario.seeds)
    return range(1)


def runs_of(scenario: Scenario) -> list[Run]:
    """All of its runs."""
    return [play(scenario, seed) for seed in seeds_of(scenario)]


def marks_of(scenario: Scenario) -> tuple[pytest.MarkDecorator, ...]:
    """The marks of tests that look at its runs."""
    return () if scenario.name in SAMPLES else (pytest.mark.enumeration,)


def in_(*scenarios: Scenario) -> pytest.MarkDecorator:
    """Parametrizes a test's `run` over all runs of these scenarios."""
    return pytest.mark.parametrize(
        "run",
        [
            pytest.param(
                (scenario, seed),
                id=f"{scenario.name}-seed{seed}",
                marks=marks_of(scenario),
            )
            for scenario in scenarios
            for seed in seeds_of(scenario)
        ],
        indirect=True,
    )
