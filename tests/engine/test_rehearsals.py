"""A dry run is the same pass without apply: what it says is what a real pass at the same moment does."""

from dataclasses import replace

import pytest

from simulator.limits import Limits
from simulator.scenarios import ROWS, Scenario, named
from simulator.world import hours
from tests.engine.rehearsal import RehearsingPolicy

#: A dry run decides about a thousand letters at most, and a copy of a world of many is slow.
MOST_LETTERS = 1_000

#: What befalls a pass its dry run can't foresee.
PLAYED = [one for one in ROWS if one.letters + one.foreign <= MOST_LETTERS and one.mishaps is None]

#: Among letters of a queue that no one knows.
AMONG_FOREIGN = replace(
    named("39:foreign"), name="39:few-foreign", letters=500, foreign=MOST_LETTERS - 500
)

#: Rows whose queues keep groups of five letters in order.
IN_ORDER = [
    replace(
        named(row),
        name=f"{row} in order",
        conditions=replace(named(row).conditions, fifo=True, groups=named(row).letters // 5),
    )
    for row in ("2", "6", "13")
]


def first_hours(scenario: Scenario) -> RehearsingPolicy:
    short = replace(scenario, until=min(scenario.until, hours(2)), limits=Limits())
    policy = short.played(
        0, lambda world, seed: RehearsingPolicy(world, scenario.settings, seed=seed)
    ).policy
    assert isinstance(policy, RehearsingPolicy)
    return policy


@pytest.mark.parametrize(
    "scenario",
    [
        *(pytest.param(one, marks=pytest.mark.enumeration) for one in PLAYED),
        AMONG_FOREIGN,
        *IN_ORDER,
    ],
    ids=lambda scenario: scenario.name,
)
def test_a_dry_run_says_what_the_pass_does_and_changes_nothing(scenario: Scenario) -> None:
    policy = first_hours(scenario)

    assert len(policy.rehearsed) >= 3
    assert {str(one.at): one.differences for one in policy.rehearsed if one.differences} == {}
    assert {str(one.at): one.changed for one in policy.rehearsed if one.changed} == {}
