"""What `redrive status` shows, gathered: one snapshot of a DLQ. Whatever can't be read is told, not fatal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from redrive.core import breaker
from redrive.core.circuit import Circuit, Orders
from redrive.core.queue_facts import QueueFacts
from redrive.settings import Settings
from smart_redriver.oncall.stack.alarms import ringing_alarms
from smart_redriver.oncall.stack.asking import Answer, Asking
from smart_redriver.oncall.stack.causes import cause_to_json
from smart_redriver.oncall.stack.last_pass import LastPass, last_pass
from smart_redriver.oncall.stack.metrics import age_of_oldest
from smart_redriver.oncall.stack.outlook import looks_every, next_step
from smart_redriver.oncall.stack.session import Session
from smart_redriver.oncall.terminal.words import stamp


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceNow:
    """One source queue now, with its circuit. None is what could not be read."""

    name: str
    facts: QueueFacts | None = None
    circuit: Circuit | None = None
    next_step: str = ""
    next_at: datetime | None = None

    def to_json(self) -> dict[str, Any]:
        circuit = self.circuit
        return {
            "queue": self.name,
            "depth": self.facts.depth if self.facts else None,
            "circuit": {
                "state": circuit.state.value,
                "since": stamp(circuit.changed_at),
                "reason": circuit.reason,
                "window": circuit.window,
                "awaiting_verdict": [
                    {"batch": one.id, "letters": one.size, "due_at": stamp(one.due_at)}
                    for one in circuit.pending
                ],
            }
            if circuit
            else None,
            "next": {"step": self.next_step, "at": stamp(self.next_at)},
            "draining_until": stamp(circuit.orders.drain_until) if circuit else None,
            "causes": [cause_to_json(one) for one in circuit.causes] if circuit else [],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One DLQ now, with the source queues that share it, the first one first.

    None is what could not be read; `unknown` says why, by what it was.
    """

    at: datetime
    sources: tuple[SourceNow, ...]
    looks_every: timedelta | None = None
    dlq: QueueFacts | None = None
    parking_lot: QueueFacts | None = None
    oldest: timedelta | None = None
    last_pass: LastPass | None = None
    alarms: list[str] = field(default_factory=list)
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
            "at": stamp(self.at),
            "sources": [one.to_json() for one in self.sources],
            "circuit": first["circuit"],
            "next": first["next"],
            "look_again_seconds": _seconds(self.looks_every),
            "paused": self.orders.pauses(self.at),
            "paused_until": stamp(self.orders.paused_until),
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
            "alarms": self.alarms,
            "unknown": self.unknown,
        }


def take_snapshot(session: Session) -> Snapshot:
    """Ask for everything at once. Raises CallFailed and Refused only where the stack itself can't be read."""
    _ = session.dead_letters, session.parking_lot, session.store
    # One client after another: botocore builds them slowly, and not at the same time.
    for service in ("dynamodb", "cloudwatch", "logs", "lambda"):
        session.aws.client(service)
    now = session.clock()
    with Asking() as ask:
        asked: dict[str, Callable[[], Answer[Any]]] = {
            "settings": ask(lambda: session.settings),
            "DLQ": ask(session.dead_letters.facts),
            "parking lot": ask(session.parking_lot.facts),
            "oldest letter": ask(lambda: age_of_oldest(session, now)),
            "last pass": ask(lambda: last_pass(session)),
            "alarms": ask(lambda: ringing_alarms(session)),
        }
        for source in session.sources:
            asked[_circuit_of(source.name)] = ask(session.store.of(source.name).load_circuit)
            asked[_queue_of(source.name)] = ask(source.facts)
        answers: dict[str, Answer[Any]] = {what: wait() for what, wait in asked.items()}
    settings, dlq = answers["settings"].value, answers["DLQ"].value
    sources = _sources(session, settings, answers, now)
    circuits = [one.circuit for one in sources if one.circuit]
    return Snapshot(
        at=now,
        sources=sources,
        looks_every=looks_every(settings, circuits, dlq, now) if settings and circuits else None,
        dlq=dlq,
        parking_lot=answers["parking lot"].value,
        oldest=answers["oldest letter"].value,
        last_pass=answers["last pass"].value,
        alarms=answers["alarms"].value or [],
        unknown={what: answer.fault for what, answer in answers.items() if answer.fault},
    )


def _circuit_of(name: str) -> str:
    return f"circuit of {name}"


def _queue_of(name: str) -> str:
    return f"queue {name}"


def _sources(
    session: Session, settings: Settings | None, answers: dict[str, Answer[Any]], now: datetime
) -> tuple[SourceNow, ...]:
    circuits = {
        name: _circuit(name, settings, answers[_circuit_of(name)], now)
        for name in session.place.sources
    }
    first = circuits[session.place.queue]
    orders = first.orders if first else Orders()
    found = []
    for name, circuit in circuits.items():
        step, at = "", None
        if settings and circuit:
            step, at = next_step(settings, circuit, orders, answers["DLQ"].value, now)
        facts = answers[_queue_of(name)].value
        found.append(SourceNow(name=name, facts=facts, circuit=circuit, next_step=step, next_at=at))
    return tuple(found)


def _circuit(
    name: str, settings: Settings | None, answer: Answer[Circuit | None], now: datetime
) -> Circuit | None:
    """The circuit as it stands, or as the first pass will make it; None where that is not known."""
    if answer.fault or answer.value or settings is None:
        return answer.value
    return breaker.new_circuit(name, settings, now)


def _seconds(duration: timedelta | None) -> int | None:
    return None if duration is None else int(duration.total_seconds())
