"""The promises, each with the code that it is about, and the worlds in which the checker shows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import minicheck

from proof import protocol
from proof.protocol import OVERTAKEN, REPEATED, UNACCOUNTED, Kind, Mistake, State, Trick, World

LOST = "nothing is lost"
TOGETHER = "one at a time"

#: Many times the size of the largest world, so that a world that grew is reported and not silently cut off.
MOST_STATES = 5_000_000

#: The values of a state, by the names of its fields.
Fields = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Promise:
    """Something that holds in every state that can be reached.

    Attributes:
        about: the code that keeps it, each `module:name` below `smart_redriver.engine`.

    """

    name: str
    says: str
    about: tuple[str, ...]
    holds: Callable[[Fields], bool]


def _is_nothing_lost(s: Fields) -> bool:
    messages = s["messages"]
    somewhere = {messages[one].letter for queue in ("dlq", "source", "lot") for one in s[queue]}
    return all(letter in somewhere or letter in s["done"] for letter, _ in messages)


def _is_one_at_work(s: Fields) -> bool:
    return any(worker.doing == "off" for worker in s["workers"])


def _unbroken(promise: str) -> Callable[[Fields], bool]:
    return lambda s: promise not in s["broken"]


PROMISES = (
    Promise(
        name=LOST,
        says="Every letter is in the DLQ, on its way, in the parking lot, or its consumer was done with it.",
        about=(
            "passes.send_back:_Forwarder.run",
            "passes.apply:LiveExecutor.carry_out",
            "passes.assess:discard_copies",
            "triage.ordered:known_fate",
        ),
        holds=_is_nothing_lost,
    ),
    Promise(
        name=TOGETHER,
        says="Of two passes, or a pass and a person, one at most is at work on a queue.",
        about=(
            "aws.state_table:StateStore.acquire_lease",
            "aws.state_table:StateStore.release_lease",
            "passes.circuit_keeper:LeaseKeeper",
            "passes.redrive_pass:STOPPING_TIME",
            "passes.pass_state:PassState.is_over",
        ),
        holds=_is_one_at_work,
    ),
    Promise(
        name=REPEATED,
        says="No message is sent on that the ledger says was sent on.",
        about=("triage.ledger:Entry.has_replaced", "triage.case:Case.is_replaced"),
        holds=_unbroken(REPEATED),
    ),
    Promise(
        name=OVERTAKEN,
        says="In a FIFO group no letter is redriven while an earlier one stands before it in the DLQ.",
        about=("triage.ordered:in_order", "passes.apply:LiveExecutor.carry_out"),
        holds=_unbroken(OVERTAKEN),
    ),
    Promise(
        name=UNACCOUNTED,
        says="Each deleted message is accounted for: in the ledger, or in the log where the record was refused.",
        about=("passes.send_back:_Forwarder._record_some", "triage.ledger:Entry.deleted"),
        holds=_unbroken(UNACCOUNTED),
    ),
)

#: Promises that can't be kept with a lost or an old table. Nothing else depends on the table: it may be lost.
_NEEDS_TABLE = frozenset({UNACCOUNTED})


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A world, and the promises that are not made for it."""

    world: World
    unless: frozenset[str] = frozenset()


_PERSON = ("pass", "person")

CLAIMS = (
    Claim(world=World(name="standard: two passes", messages=4)),
    Claim(world=World(name="standard: two letters", letters=2, messages=4, redrives=1, faults=0)),
    Claim(world=World(name="standard: no room for metadata", carries_metadata=False)),
    Claim(world=World(name="standard: a pass and a person", workers=_PERSON, redrives=1)),
    Claim(
        world=World(
            name="standard: lost table, reports",
            faults=2,
            tricks=frozenset({Trick.LOST_TABLE, Trick.REPORTS}),
        ),
        unless=_NEEDS_TABLE,
    ),
    Claim(
        world=World(name="standard: old table", faults=3, tricks=frozenset({Trick.OLD_TABLE})),
        unless=_NEEDS_TABLE,
    ),
    Claim(
        world=World(name="standard: late calls", tricks=frozenset({Trick.LATE_CALL}), faults=2),
        unless=frozenset({REPEATED, UNACCOUNTED}),
    ),
    Claim(
        world=World(
            name="standard: a suspended person",
            workers=_PERSON,
            redrives=1,
            tricks=frozenset({Trick.SLEEP}),
        ),
        unless=frozenset({TOGETHER, REPEATED, UNACCOUNTED}),
    ),
    Claim(world=World(name="FIFO: two letters of a group", kind=Kind.FIFO, letters=2, messages=4)),
    Claim(
        world=World(name="FIFO: lost table", kind=Kind.FIFO, tricks=frozenset({Trick.LOST_TABLE})),
        unless=_NEEDS_TABLE,
    ),
    Claim(world=World(name="FIFO: reports", kind=Kind.FIFO, tricks=frozenset({Trick.REPORTS}))),
    Claim(world=World(name="targets", kind=Kind.TARGETS, messages=4)),
    Claim(
        world=World(
            name="targets: lost table",
            kind=Kind.TARGETS,
            faults=2,
            tricks=frozenset({Trick.LOST_TABLE}),
        ),
        unless=_NEEDS_TABLE,
    ),
    Claim(world=World(name="Postgres", kind=Kind.POSTGRES, messages=4, faults=2)),
    Claim(
        world=World(
            name="Postgres: rows restored",
            kind=Kind.POSTGRES,
            messages=4,
            faults=2,
            tricks=frozenset({Trick.OLD_ROW}),
        )
    ),
)

#: Protocols that are wrong on purpose, each with the promise that the checker has to find broken.
SEEDED = (
    (World(name="", mistake=Mistake.DELETE_BEFORE_SEND, faults=0), LOST),
    (World(name="", mistake=Mistake.DELETE_BEFORE_RECORD, faults=0), UNACCOUNTED),
    (World(name="", mistake=Mistake.SHORT_LEASE, faults=0), TOGETHER),
    (
        World(name="", mistake=Mistake.ANYBODY_GIVES_BACK, tricks=frozenset({Trick.LATE_CALL})),
        TOGETHER,
    ),
    (
        World(
            name="",
            kind=Kind.FIFO,
            mistake=Mistake.NO_SALT,
            tricks=frozenset({Trick.LOST_TABLE}),
        ),
        LOST,
    ),
    (World(name="", kind=Kind.FIFO, mistake=Mistake.DISCARD_BEFORE_MARK, faults=0), LOST),
    (
        World(name="", kind=Kind.FIFO, letters=2, mistake=Mistake.REDRIVE_BEFORE_PARK, faults=0),
        OVERTAKEN,
    ),
)

#: Promises that the checker found broken, as docs/proof.md says.
KNOWN_LIMITS = (
    (
        World(name="", kind=Kind.FIFO, faults=3, tricks=frozenset({Trick.OLD_TABLE})),
        LOST,
        "an old table in place of a lost one, under a FIFO queue",
    ),
    (
        World(name="", workers=_PERSON, tricks=frozenset({Trick.SLEEP})),
        REPEATED,
        "a person's machine that sleeps in the middle of a shift and goes on after it",
    ),
)


@dataclass(frozen=True, kw_only=True)
class Explored:
    """What the checker found in a world: the shortest way to each broken promise, step by step."""

    states: int
    is_exhaustive: bool
    broken: Mapping[str, list[str]]


def explore(world: World, promises: frozenset[str], *, to_the_end: bool = True) -> Explored:
    """Look at every state of a world, or only until a promise is broken if not `to_the_end`."""
    is_over = False

    def holds(promise: Promise, state: Fields) -> bool:
        nonlocal is_over
        is_kept = promise.holds(state)
        is_over = is_over or not (is_kept or to_the_end)
        return is_kept

    def transitions(state: State) -> list[tuple[str, State]]:
        return [] if is_over else protocol.steps(world, state)

    model = minicheck.Protocol(
        name=world.name,
        candidate=False,
        fields=State._fields,
        initial=protocol.initial(world),
        transitions=transitions,
        invariants={one.name: partial(holds, one) for one in PROMISES if one.name in promises},
    )
    found = minicheck.check_safety(model, max_states=MOST_STATES)
    ways = {name: one["counterexample"] for name, one in found["properties"].items()}
    return Explored(
        states=found["reachable_states"],
        is_exhaustive=found["exhaustive"] and not is_over,
        broken={name: [step["label"] for step in way[1:]] for name, way in ways.items() if way},
    )


def can_always_end(world: World) -> list[str] | None:
    """A way to a state from which some letter can never be done or parked any more; None if there is no such state.

    A state in which all the messages of the world are used up counts as an end.
    """
    model = minicheck.Protocol(
        name=world.name,
        candidate=False,
        fields=State._fields,
        initial=protocol.initial(world),
        transitions=lambda state: protocol.steps(world, state),
        invariants={},
        goal=lambda s: (
            len(s["messages"]) >= world.messages
            or all(
                letter in s["done"] or letter in {s["messages"][one].letter for one in s["lot"]}
                for letter in range(world.letters)
            )
        ),
    )
    found = minicheck.check_liveness(model)
    if found["holds"] is None:
        raise ValueError(f"{world.name}: {found['note']}")
    return None if found["holds"] else [step["label"] for step in found["counterexample"][1:]]


#: Worlds in which the checker shows that every state can still end well. It takes up to 200,000 states for that.
PROGRESS = (
    World(name="progress: standard"),
    World(name="progress: FIFO", kind=Kind.FIFO, faults=0, letters=2, messages=4),
    World(name="progress: targets", kind=Kind.TARGETS, faults=0),
)
