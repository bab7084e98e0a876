"""Each run of a scenario is played once, however many tests look at it: a run changes nothing any more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import cache

import pytest

from redrive.core.ledger import Entry
from redrive.core.letter import TRAIL_ATTRIBUTE, Trail
from redrive.core.report import Report
from simulator.measures import Measures, measure
from simulator.scenarios import Scenario
from simulator.smart_policy import SmartRedriver
from simulator.world import PARKING_LOT, World


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A scenario that our re-driver has played to its end."""

    world: World
    policy: SmartRedriver
    measures: Measures

    @property
    def passes(self) -> Iterator[tuple[timedelta, Report]]:
        """Every pass with its time."""
        return zip(self.policy.times, self.policy.reports, strict=True)

    @property
    def states(self) -> set[str]:
        """The states that a pass left the circuit in."""
        return {state for _, state in self.policy.states}

    def redriven_before(self, moment: timedelta) -> int:
        """Letters redriven by the passes before `moment`."""
        return sum(report.redriven for at, report in self.passes if at < moment)

    def first_in(self, state: str, *, since: timedelta = timedelta()) -> timedelta:
        """When a pass first left the circuit in this state."""
        return next(at for at, seen in self.policy.states if seen == state and at >= since)

    def ledger_of_parked(self) -> list[Entry]:
        """What the ledger knows of every letter in the parking lot."""
        trails = [
            Trail.decode(message.attributes[TRAIL_ATTRIBUTE]["StringValue"])
            for message in self.world.sqs.inspect.messages(PARKING_LOT)
        ]
        return list(
            self.policy.store.read_ledger(trail.original_id for trail in trails).entries.values()
        )


@cache
def play(scenario: Scenario, seed: int) -> Run:
    """Our re-driver in this scenario."""
    world = scenario.world(seed)
    policy = SmartRedriver(world, seed=seed)
    scenario.play(world, policy)
    return Run(world=world, policy=policy, measures=measure(world, scenario))


def in_(*scenarios: Scenario) -> pytest.MarkDecorator:
    """Parametrizes a test's `run` over all runs of these scenarios."""
    return pytest.mark.parametrize(
        "run",
        [
            pytest.param((scenario, seed), id=f"{scenario.name}-seed{seed}")
            for scenario in scenarios
            for seed in range(scenario.seeds)
        ],
        indirect=True,
    )
