"""The one report of a pass: what it saw, what it did, and what it was refused."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from redrive.core.breaker import Ruling
from redrive.core.circuit import Circuit
from redrive.errors import CallFailed, EntryFault


class Outcome(str, Enum):
    """How a pass ended."""

    IDLE = "IDLE"  # nothing in the DLQ, no verdict awaited
    WAITING = "WAITING"  # the circuit lets nothing through, and no verdict is due
    DONE = "DONE"  # the pass did all that it was allowed to
    OUT_OF_TIME = "OUT_OF_TIME"  # it stopped itself; the next one goes on
    PAUSED = "PAUSED"
    DRY_RUN = "DRY_RUN"
    LEASE_HELD = "LEASE_HELD"  # another pass is at work on this queue
    LOST_RACE = "LOST_RACE"  # the circuit was changed by somebody else meanwhile
    MOVE_TASK_RUNNING = "MOVE_TASK_RUNNING"  # a native redrive is emptying the DLQ
    REFUSED = "REFUSED"  # the destination refused sends
    FAILED = "FAILED"  # an AWS call failed that the pass could not do without


#: What rounds that run side by side count each for itself, so that the pass can add it up.
COUNTS = ("examined", "redriven", "returned", "discarded", "renewed", "failed")


@dataclass(slots=True)
class Report:
    """Counts of letters unless said otherwise. `faults` counts by "Call:Code".

    `circuit_states` has the state before and one more for each change, in order.
    """

    queue: str
    mode: str
    outcome: Outcome = Outcome.DONE
    reason: str = ""
    circuit_before: str | None = None
    circuit_after: str | None = None
    circuit_states: list[str] = field(default_factory=list)
    window: int | None = None
    depth: int | None = None
    parked_depth: int | None = None
    examined: int = 0
    redriven: int = 0
    returned: int = 0
    discarded: int = 0
    renewed: int = 0
    failed: int = 0
    parked: Counter[str] = field(default_factory=Counter)
    held: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    verdicts: list[dict[str, Any]] = field(default_factory=list)
    decisions: list[dict[str, Any]] = field(default_factory=list)
    least_seconds_to_expiry: int | None = None
    oldest_letter_seconds: int | None = None
    oldest_waiting_seconds: int | None = None
    suspects_waiting: int | None = None
    duration_seconds: float = 0.0

    def absorb(self, part: Report) -> None:
        """Add the counts of a report that covers a part of the same pass."""
        for name in COUNTS:
            setattr(self, name, getattr(self, name) + getattr(part, name))
        for counter in ("parked", "held", "faults"):
            getattr(self, counter).update(getattr(part, counter))

    def saw_circuit(self, circuit: Circuit) -> None:
        """Note the circuit's state now; the first time it is also the state before."""
        self.circuit_before = self.circuit_before or circuit.state.value
        if circuit.state.value != self.circuit_after:
            self.circuit_states.append(circuit.state.value)
        self.circuit_after = circuit.state.value
        self.window = circuit.window

    def saw_fault(self, fault: EntryFault | CallFailed) -> None:
        """Count a call, or an entry of one, that AWS did not accept."""
        self.faults[f"{fault.call}:{fault.code}"] += 1
        if isinstance(fault, EntryFault):
            self.failed += 1

    def saw_letter(self, sent_at: datetime, retention: timedelta, now: datetime) -> None:
        """Note how old a letter of the DLQ is, and how long it still has to live."""
        age = int((now - sent_at).total_seconds())
        if self.oldest_letter_seconds is None or age > self.oldest_letter_seconds:
            self.oldest_letter_seconds = age
            self.least_seconds_to_expiry = int(retention.total_seconds()) - age

    def saw_ruling(self, ruling: Ruling) -> None:
        """Note a verdict that was reached."""
        if ruling.judgement.verdict is not None:
            self.verdicts.append(
                {
                    "batch": ruling.batch.id,
                    "size": ruling.batch.size,
                    "returned": ruling.batch.returned + ruling.batch.suspects_returned,
                    "verdict": ruling.judgement.verdict.value,
                    "reason": ruling.judgement.reason,
                }
            )

    def to_json(self) -> dict[str, Any]:
        """The report as a JSON object; nothing in it comes from a message's body or attributes."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return values | {
            "outcome": self.outcome.value,
            "parked": dict(self.parked),
            "held": dict(self.held),
            "faults": dict(self.faults),
        }
