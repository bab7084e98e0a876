"""Our policy that rehearses some of its passes: a dry run in a copy of the world, then the real pass in the world."""

from __future__ import annotations

import io
import pickle
from dataclasses import dataclass, field, replace
from datetime import timedelta
from threading import Lock
from types import BuiltinFunctionType, FunctionType
from typing import Any, TypeVar

from simulator.smart_policy import SmartPolicy
from simulator.world import DLQ, PARKING_LOT, TABLE, World
from smart_redriver.engine.config.settings import Mode, Settings
from smart_redriver.engine.report import Report

#: Which of the passes are rehearsed: most of the first ones, and then ever fewer.
REHEARSED = (1, 2, 3, 4, 5, 7, 9, 12, 15, 20, 26, 34, 44, 57, 74)

#: What a report says of letters and circuits. A dry run renews nothing and fails at nothing.
COMPARED = (
    "circuit_before",
    "circuit_after",
    "circuits",
    "window",
    "verdicts",
    "examined",
    "redriven",
    "returned",
    "discarded",
    "parked",
    "held",
    "suspects_waiting",
    "oldest_waiting_seconds",
)

T = TypeVar("T")

_PLAIN = frozenset({str, int, float, bytes, bool, type(None), list, dict, tuple, set})
#: The lock is that of the kit's wire, over which a simulated kit sends nothing.
_NEVER_CHANGED = (type, FunctionType, BuiltinFunctionType, type(Lock()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsed:
    """One pass, what the dry run just before it said of it, and what the dry run changed."""

    at: timedelta
    said: Report
    did: Report
    changed: list[str] = field(default_factory=list)

    @property
    def differences(self) -> dict[str, tuple[Any, Any]]:
        """What the dry run said and the pass did not do, by the report's field."""
        said, did = compared(self.said), compared(self.did)
        both = said.keys() & did.keys()
        return {name: (said[name], did[name]) for name in both if said[name] != did[name]}


#: What is out, which a control that stays makes one less.
AFTER_SENDING = ("awaiting_verdict", "outcome_unknown")


def compared(report: Report) -> dict[str, Any]:
    """What two reports have to agree in.

    Which letters a pass meets that does not come to all of them is SQS's own choice, and the fake draws it anew once
    something was sent: how many suspects, letters of held causes, or of other sources, before the permit's are
    found. So is which of
    a source's last letters come in one round, of which some may stay as controls; at a rate, too, rounds end early.
    """
    values = {name: getattr(report, name) for name in COMPARED}
    held = values["held"] = dict(report.held)
    if report.examined < report.depth:  # type: ignore[operator]
        del values["examined"], values["suspects_waiting"]
        held.pop("LAST_CHANCE", None)
        held.pop("CAUSE", None)
    has_rate = any(circuit["letters_per_second"] for circuit in report.circuits)
    if has_rate and report.examined < report.depth:  # type: ignore[operator]
        del values["returned"]  # of letters that came back it meets some, too,
        held.pop("AWAITING_VERDICT", None)  # and of these, some whose batch is not judged yet
    if len(report.circuits) > 1 or has_rate:
        values.pop("examined", None)
        held.pop("NO_PERMIT", None)
        values["redriven"] += held.pop("CONTROL", 0)
        values["circuits"] = [
            {name: value for name, value in circuit.items() if name not in AFTER_SENDING}
            for circuit in report.circuits
        ]
    return values


class RehearsingPolicy(SmartPolicy):
    """Ours; `rehearsed` has the passes that were compared."""

    def __init__(self, world: World, settings: Settings, *, seed: int) -> None:
        super().__init__(world, settings, seed=seed)
        self.rehearsed: list[Rehearsed] = []

    def tick(self) -> None:
        """As the schedule's, until nothing more is to be rehearsed."""
        if len(self.reports) < REHEARSED[-1]:
            super().tick()

    def run_pass(self, sqs: Any, dynamodb: Any, **more: Any) -> Report:
        """The pass, and before it perhaps its dry run, elsewhere and with the same rolls."""
        if more or len(self.reports) + 1 not in REHEARSED:
            return super().run_pass(sqs, dynamodb, **more)
        there = self._copied()
        before = contents(there)
        dry = replace(self.settings, mode=Mode.DRY_RUN)
        said = there.run_pass(there.world.sqs, there.world.dynamodb, settings=dry)
        after = contents(there)
        did = super().run_pass(sqs, dynamodb)
        changed = [what for what in before if before[what] != after[what]]
        self.rehearsed.append(Rehearsed(at=self.world.elapsed, said=said, did=did, changed=changed))
        return did

    @property
    def world(self) -> World:
        return self._world

    def _copied(self) -> RehearsingPolicy:
        """Policy and world with all that is in them."""
        return copied(self)


def copied(thing: T) -> T:
    """As `deepcopy`, in a third of the time: what nobody can change is shared, functions and botocore's models too."""
    shared: list[Any] = []
    written = io.BytesIO()
    _Writer(written, shared).dump(thing)
    reader = _Reader(io.BytesIO(written.getbuffer()), shared)
    copy: T = reader.load()
    return copy


class _Writer(pickle.Pickler):
    def __init__(self, file: io.BytesIO, shared: list[Any]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._shared = shared

    def persistent_id(self, thing: Any) -> int | None:
        kind = type(thing)
        if kind in _PLAIN or not (
            issubclass(kind, _NEVER_CHANGED) or kind.__module__.startswith("botocore.")
        ):
            return None
        self._shared.append(thing)
        return len(self._shared) - 1


class _Reader(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, shared: list[Any]) -> None:
        super().__init__(file)
        self._shared = shared

    def persistent_load(self, number: int) -> Any:
        return self._shared[number]


def contents(policy: RehearsingPolicy) -> dict[str, Any]:
    """All that a pass may change: the state table, and each queue's messages with their state."""
    world = policy.world
    items = world.dynamodb.scan(TableName=TABLE, ConsistentRead=True)["Items"]
    queues = {
        queue: {
            one.message_id: one.rest for one in world.sqs.inspect.messages(world.queue_name(queue))
        }
        for queue in (*world.source_names, DLQ, PARKING_LOT)
    }
    return {"table": {item["PK"]["S"]: item for item in items}} | queues
