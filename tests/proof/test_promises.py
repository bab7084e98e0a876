"""The checker finds what is wrong on purpose. The large worlds are explored by `make prove`."""

from __future__ import annotations

from functools import reduce
from importlib import import_module

import pytest

from proof.promises import (
    CLAIMS,
    KNOWN_LIMITS,
    LOST,
    PROMISES,
    SEEDED,
    can_always_end,
    explore,
)
from proof.protocol import Kind, Mistake, World

ALL = frozenset(one.name for one in PROMISES)

SMALL = [
    World(name="small: standard", faults=0),
    World(name="small: FIFO", kind=Kind.FIFO, faults=0),
    World(name="small: FIFO, two letters", kind=Kind.FIFO, letters=2, faults=0),
    World(name="small: targets", kind=Kind.TARGETS, faults=0),
    World(name="small: Postgres", kind=Kind.POSTGRES),
]


@pytest.mark.parametrize("world", SMALL, ids=lambda world: world.name)
def test_every_promise_holds_in_every_state_of_a_small_world(world: World) -> None:
    explored = explore(world, ALL)

    assert explored.is_exhaustive
    assert explored.states > 500
    assert explored.broken == {}


@pytest.mark.parametrize(("world", "promise"), SEEDED, ids=lambda one: getattr(one, "mistake", one))
def test_a_mistake_on_purpose_is_found(world: World, promise: str) -> None:
    explored = explore(world, frozenset({promise}), to_the_end=False)

    assert explored.broken[promise]


def test_each_mistake_that_there_is_is_seeded() -> None:
    assert {world.mistake for world, _ in SEEDED} == set(Mistake)


def test_the_way_to_a_lost_letter_is_the_shortest_one() -> None:
    explored = explore(
        World(name="", mistake=Mistake.DELETE_BEFORE_SEND, faults=0),
        frozenset({LOST}),
        to_the_end=False,
    )

    assert explored.broken[LOST] == [
        "pass 0 takes the lease",
        "pass 0 receives m0",
        "pass 0 decides: park m0",
        "pass 0 deletes",
    ]


@pytest.mark.parametrize(
    ("world", "promise", "what"), KNOWN_LIMITS, ids=lambda one: one if isinstance(one, str) else ""
)
def test_what_is_said_not_to_hold_does_not(world: World, promise: str, what: str) -> None:
    """Once it holds, docs/proof.md has one limit less."""
    assert explore(world, frozenset({promise}), to_the_end=False).broken[promise]


@pytest.mark.parametrize(
    "about", [one for promise in PROMISES for one in promise.about], ids=lambda one: one
)
def test_a_promise_names_code_that_is_there(about: str) -> None:
    module, _, name = about.partition(":")

    assert reduce(getattr, name.split("."), import_module(f"smart_redriver.engine.{module}"))


def test_every_world_claims_that_nothing_is_lost() -> None:
    assert all(LOST not in claim.unless for claim in CLAIMS)
    assert {claim.world.kind for claim in CLAIMS} == set(Kind)


def test_a_state_from_which_no_letter_can_end_is_found() -> None:
    way = can_always_end(World(name="", mistake=Mistake.DELETE_BEFORE_SEND, faults=0, redrives=0))

    assert way is not None
    assert "pass 0 deletes" in way
