"""What `redrive status` shows: one snapshot of a DLQ. `gathering` takes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from redrive.core.batch import Judged
from redrive.core.circuit import Circuit, Orders
from redrive.core.queue_facts import QueueFacts
from redrive.settings import Mode
from redrive.targets import Origin, Target
from smart_redriver.oncall.stack.alarms import Alarm
from smart_redriver.oncall.stack.causes import cause_to_json
from smart_redriver.oncall.stack.changes import Change
from smart_redriver.oncall.stack.outlook import fate_unknown, last_canary
from smart_redriver.oncall.stack.passes import EndedPass
from smart_redriver.oncall.stack.schedule import ENABLED
from smart_redriver.oncall.terminal.words import stamp


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceNow:
    """One source queue now, or one target, with its circuit. None is what could not be read.

    A `target` has no `facts`: nobody can ask it what waits there.
    """

    name: str
    target: Target | None = None
    facts: QueueFacts | None = None
    circuit: Circuit | None = None
    next_step: str = ""
    next_at: datetime | None = None
    draining_until: datetime | None = None

    def to_json(self) -> dict[str, Any]:
        circuit = self.circuit
        return {
            "queue": self.name,
            "target": self.target.place if self.target else None,
            "depth": self.facts.depth if self.facts else None,
            "circuit": {
                "state": circuit.state.value,
                "since": stamp(circuit.changed_at),
                "reason": circuit.reason,
                "window": circuit.window,
                "awaiting_verdict": [
                    {
                        "batch": one.id,
                        "letters": one.size,
                        "fate_unknown": fate_unknown(one),
                        "due_at": stamp(one.due_at),
                    }
                    for one in circuit.pending
                ],
            }
            if circuit
            else None,
            "next": {"step": self.next_step, "at": stamp(self.next_at)},
            "last_canary": _judged_to_json(last_canary(circuit)) if circuit else None,
            "draining_until": stamp(self.draining_until),
            "causes": [cause_to_json(one) for one in circuit.causes] if circuit else [],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One DLQ now, with the source queues that share it, the first one first.

    None is what could not be read; `unknown` says why, by what it was.
    """

    at: datetime
    sources: tuple[SourceNow, ...]
    origin: Origin = Origin.SQS
    looks_every: timedelta | None = None
    dlq: QueueFacts | None = None
    parking_lot: QueueFacts | None = None
    oldest: timedelta | None = None
    last_pass: EndedPass | None = None
    last_change: Change | None = None
    mode: Mode | None = None
    schedule: str | None = None
    alarms: list[Alarm] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)

    @property
    def queue(self) -> str:
        """The name of the first source queue."""
        return self.sources[0].name

    @property
    def orders(self) -> Orders:
        """What people ordered for all of them: it is kept with the first one's circuit."""
        first = self.sources[0].circuit
        return first.orders if first else Orders()

    @property
    def is_paused(self) -> bool:
        """Whether people paused it, for now."""
        return self.orders.pauses(self.at)

    @property
    def is_scheduled(self) -> bool:
        """Whether passes run by themselves, as far as that could be read."""
        return self.schedule == ENABLED or "schedule" in self.unknown

    @property
    def least_to_expiry(self) -> timedelta | None:
        """The least time that a letter of the DLQ has left, as the last pass saw it."""
        if self.last_pass is None or (left := self.last_pass.least_to_expiry) is None:
            return None
        return left - (self.at - self.last_pass.at)

    def to_json(self) -> dict[str, Any]:
        """What `--json` shows: `sources` has them all; the fields beside it that are one's are the first one's."""
        first = self.sources[0].to_json()
        depths = {"dead_letters": self.dlq, "parked": self.parking_lot}
        return {
            "queue": self.queue,
            "origin": self.origin.value,
            "at": stamp(self.at),
            "sources": [one.to_json() for one in self.sources],
            "circuit": first["circuit"],
            "next": first["next"],
            "look_again_seconds": _seconds(self.looks_every),
            "paused": self.is_paused,
            "paused_until": stamp(self.orders.paused_until) if self.is_paused else None,
            "mode": self.mode.value if self.mode else None,
            "schedule": self.schedule,
            "draining_until": first["draining_until"],
            "depths": {"source": first["depth"]}
            | {name: facts.depth if facts else None for name, facts in depths.items()},
            "oldest_letter_seconds": _seconds(self.oldest),
            "least_seconds_to_expiry": _seconds(self.least_to_expiry),
            "last_pass": {
                "at": stamp(self.last_pass.at),
                "outcome": self.last_pass.report.get("outcome"),
                "reason": self.last_pass.report.get("reason"),
            }
            if self.last_pass
            else None,
            "last_change": _change_to_json(self.last_change),
            "alarms": [one.name for one in self.alarms],
            "alarm_details": [one.to_json() for one in self.alarms],
            "links": self.links,
            "unknown": self.unknown,
        }


def _judged_to_json(judged: Judged | None) -> dict[str, Any] | None:
    if judged is None:
        return None
    return {
        "batch": judged.id,
        "letters": judged.size,
        "verdict": judged.verdict.value,
        "sent_at": stamp(judged.sent_at),
    }


def _change_to_json(change: Change | None) -> dict[str, Any] | None:
    if change is None:
        return None
    return {
        "at": stamp(change.at),
        "who": change.who,
        "what": change.what,
        "outcome": change.outcome,
        "why": change.why,
    }


def _seconds(duration: timedelta | None) -> int | None:
    return None if duration is None else int(duration.total_seconds())
