"""The one report of a pass: what it saw, what it did, and what it was refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from smart_redriver.engine.config.settings import Mode
from smart_redriver.engine.model.circuit import State


class Outcome(str, Enum):
    """The end of a pass."""

    IDLE = "IDLE"  # nothing in the DLQ, no verdict awaited
    WAITING = "WAITING"  # the circuit lets nothing through, and no verdict is due
    DONE = "DONE"  # the pass did all that it was allowed to
    OUT_OF_TIME = "OUT_OF_TIME"  # it stopped itself; the next one goes on
    PAUSED = "PAUSED"
    DRY_RUN = "DRY_RUN"
    LEASE_HELD = "LEASE_HELD"  # another pass is at work on this queue
    LOST_RACE = "LOST_RACE"  # somebody else has changed the circuit meanwhile
    MOVE_TASK_RUNNING = "MOVE_TASK_RUNNING"  # a native redrive is emptying the DLQ
    REFUSED = "REFUSED"  # the destination refused sends
    FAILED = "FAILED"  # an AWS call failed that the pass could not do without


@dataclass(slots=True)
class Report:
    """Counts of letters unless said otherwise. `faults` counts by "Call:Code".

    Attributes:
        headline: what is seen and awaited, in words.
        circuit_before, circuit_after, window: of the first source queue's circuit.
        circuits: the same for every source queue of the DLQ, with all states that each went through, in order.
        redriven: letters that their target accepted. `bounced`: letters that it took or examined, and refused: they
            stay.
        held: letters that stay in the DLQ, by reason.
        heard: outcomes that consumers reported, by result, or by the reason for leaving them out.
        oldest_waiting_seconds: how long the oldest letter that waits without a known end has been waiting.
        suspects_waiting: letters that wait for their last chance.
        look_again_seconds: when the next look is worth its cost.

    """

    queue: str
    mode: str
    outcome: Outcome = Outcome.DONE
    reason: str = ""
    headline: str = ""
    circuit_before: str | None = None
    circuit_after: str | None = None
    circuits: list[dict[str, Any]] = field(default_factory=list)
    window: int | None = None
    depth: int | None = None
    parked_depth: int | None = None
    examined: int = 0
    redriven: int = 0
    bounced: int = 0
    returned: int = 0
    discarded: int = 0
    renewed: int = 0
    failed: int = 0
    parked: Counter[str] = field(default_factory=Counter)
    held: Counter[str] = field(default_factory=Counter)
    heard: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    verdicts: list[dict[str, Any]] = field(default_factory=list)
    decisions: list[dict[str, Any]] = field(default_factory=list)
    least_seconds_to_expiry: int | None = None
    least_percent_left: float | None = None
    oldest_letter_seconds: int | None = None
    oldest_waiting_seconds: int | None = None
    suspects_waiting: int = 0
    look_again_seconds: int = 0
    duration_seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """The report as a JSON object; nothing in it comes from a message's body or attributes.

        A dry run has done nothing: its acts are zero, and `would` has what a real pass would have done.
        """
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        values |= {
            "outcome": self.outcome.value,
            "parked": dict(self.parked),
            "held": dict(self.held),
            "heard": dict(self.heard),
            "faults": dict(self.faults),
        }
        if not self.is_dry:
            return values
        would = {name: values[name] for name in _ACTS}
        return values | {name: type(value)() for name, value in would.items()} | {"would": would}

    @property
    def closed_queues(self) -> list[str]:
        """The source queues whose circuits this pass has closed."""
        closed = State.CLOSED.value
        return [
            one["queue"]
            for one in self.circuits
            if one["before"] != closed and one["after"] == closed and not self.is_dry
        ]

    @property
    def is_dry(self) -> bool:
        """Whether it reports a dry run, which acts on no letter."""
        return self.mode == Mode.DRY_RUN.value


def report_of_invocation(reports: Sequence[Report]) -> Report:
    """One report on consecutive passes: the sum of what they did, and the state that the last one found."""
    whole = replace(reports[-1])
    whole.circuit_before = next((one.circuit_before for one in reports if one.circuit_before), None)
    whole.circuits = [_circuit_of(one["queue"], reports) for one in whole.circuits]
    for name in _ADDED_UP:
        values = [getattr(one, name) for one in reports]
        setattr(whole, name, sum(values[1:], start=values[0]))
    return whole


def _circuit_of(queue: str, reports: Sequence[Report]) -> dict[str, Any]:
    """A source queue's circuit over consecutive passes."""
    told = [one for report in reports for one in report.circuits if one["queue"] == queue]
    states = [state for one in told for state in one["states"]]
    changes = [
        state for state, before in zip(states, [None, *states], strict=False) if state != before
    ]
    return told[-1] | {"before": told[0]["before"], "states": changes}


#: Counts of what a pass does to letters.
_ACTS = ("redriven", "discarded", "renewed", "parked")

#: Fields that count what passes do. All other fields of a report are states.
_ADDED_UP = (
    "examined",
    "redriven",
    "bounced",
    "returned",
    "discarded",
    "renewed",
    "failed",
    "parked",
    "heard",
    "faults",
    "verdicts",
    "decisions",
    "duration_seconds",
)
