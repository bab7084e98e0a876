"""The snapshot of a DLQ that `redrive status` shows. `gathering` takes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from smart_redriver.engine.config.settings import Mode
from smart_redriver.engine.config.targets import Origin, Target
from smart_redriver.engine.headline import Headline, Passes, Seen, headline, worst
from smart_redriver.engine.messages.queue_facts import QueueFacts
from smart_redriver.engine.model.batch import Judged
from smart_redriver.engine.model.circuit import Circuit, Orders
from smart_redriver.oncall.audit.trail import Change
from smart_redriver.oncall.status.alarms import Alarm
from smart_redriver.oncall.status.outlook import cause_to_json, is_known, last_canary
from smart_redriver.oncall.status.passes import EndedPass, is_dry
from smart_redriver.oncall.terminal.words import stamp


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceNow:
    """One source queue now, or one target, with its circuit. A value that could not be read is None.

    A `target` has no `facts`, because it can't be asked what waits there.
    """

    name: str
    target: Target | None = None
    facts: QueueFacts | None = None
    circuit: Circuit | None = None
    seen: Seen | None = None
    next_step: str = ""
    next_at: datetime | None = None
    draining_until: datetime | None = None

    @property
    def headline(self) -> Headline | None:
        """The headline of the queue."""
        return headline(self.seen) if self.seen else None

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
                        "fate_unknown": one.unknown,
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
            "pace": _pace_to_json(self.seen) if self.seen else None,
            "causes": [cause_to_json(one) for one in circuit.causes] if circuit else [],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One DLQ now, with the source queues that share it in their order.

    A value that could not be read is None; `unknown` says why, by its name. `name` is for people. `is_of_process`: a
    process makes the passes, so there is no `schedule` and there are no alarms.
    """

    at: datetime
    name: str
    sources: tuple[SourceNow, ...]
    origin: Origin = Origin.SQS
    looks_every: timedelta | None = None
    dlq: QueueFacts | None = None
    parking_lot: QueueFacts | None = None
    oldest: timedelta | None = None
    last_pass: EndedPass | None = None
    last_change: Change | None = None
    mode: Mode | None = None
    is_of_process: bool = False
    passes: Passes | None = None
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
        """The orders of people for all its source queues. The circuit of the first one keeps them."""
        first = self.sources[0].circuit
        return first.orders if first else Orders()

    @property
    def headline(self) -> Headline | None:
        """The most urgent of its sources' headlines."""
        known = {one.name: one.headline for one in self.sources if one.headline}
        return worst(known) if known else None

    @property
    def was_read(self) -> list[bool]:
        """Whether the DLQ could be read, and each circuit."""
        return [self.dlq is not None, *(one.circuit is not None for one in self.sources)]

    @property
    def is_paused(self) -> bool:
        """Whether people have paused it now."""
        return self.orders.pauses(self.at)

    @property
    def age_of_oldest(self) -> timedelta | None:
        """The age of the oldest letter.

        In a dry run, its last pass gives the age: SQS's metric leaves out letters that were received three times.
        """
        ended = self.last_pass
        if ended is None or not is_dry(ended.report) or ended.age_of_oldest is None:
            return self.oldest
        return max(self.oldest or timedelta(), ended.age_of_oldest + (self.at - ended.at))

    @property
    def least_to_expiry(self) -> timedelta | None:
        """The shortest time that any letter of the DLQ has left, as the last pass saw it."""
        if self.last_pass is None or (left := self.last_pass.least_to_expiry) is None:
            return None
        return left - (self.at - self.last_pass.at)

    def to_json(self) -> dict[str, Any]:
        """The object for `--json`. `sources` has all sources; source fields beside it belong to the first one."""
        first = self.sources[0].to_json()
        depths = {"dead_letters": self.dlq, "parked": self.parking_lot}
        return {
            "queue": self.queue,
            "origin": self.origin.value,
            "at": stamp(self.at),
            "headline": self.headline.to_json(self.at) if self.headline else None,
            "sources": [one.to_json() for one in self.sources],
            "circuit": first["circuit"],
            "next": first["next"],
            "look_again_seconds": _seconds(self.looks_every),
            "paused": self.is_paused,
            "paused_until": stamp(self.orders.paused_until) if self.is_paused else None,
            "mode": self.mode.value if self.mode else None,
            "passes": self.passes.value if self.passes else None,
            "schedule": self.schedule,
            "draining_until": first["draining_until"],
            "depths": {"source": first["depth"]}
            | {name: facts.depth if facts else None for name, facts in depths.items()},
            "oldest_letter_seconds": _seconds(self.age_of_oldest),
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


def _pace_to_json(seen: Seen) -> dict[str, Any]:
    """The flow of letters back: how many are out, the rate, and when it empties the DLQ."""
    return {
        "out": seen.out,
        "letters_per_second": seen.rate_per_second,
        "drained_by": stamp(seen.drained_by),
    }


def _judged_to_json(judged: Judged | None) -> dict[str, Any] | None:
    if judged is None:
        return None
    return {
        "batch": judged.id,
        "letters": judged.size if is_known(judged) else None,
        "verdict": judged.verdict.value,
        "sent_at": stamp(judged.sent_at) if is_known(judged) else None,
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
