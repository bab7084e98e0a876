"""What `redrive status` shows, gathered: one snapshot of a queue. Whatever can't be read is told, not fatal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from redrive.core import breaker
from redrive.core.circuit import Circuit, State
from redrive.core.queue_facts import QueueFacts
from redrive.settings import Settings
from smart_redriver.oncall.stack.alarms import ringing_alarms
from smart_redriver.oncall.stack.asking import Answer, Asking
from smart_redriver.oncall.stack.last_pass import LastPass, last_pass
from smart_redriver.oncall.stack.session import Session
from smart_redriver.oncall.terminal.words import letters, stamp

_AGE = "ApproximateAgeOfOldestMessage"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One queue now. None is what could not be read; `unknown` says why, by what it was."""

    queue: str
    at: datetime
    circuit: Circuit | None = None
    next_step: str = ""
    next_at: datetime | None = None
    source: QueueFacts | None = None
    dlq: QueueFacts | None = None
    parking_lot: QueueFacts | None = None
    oldest: timedelta | None = None
    last_pass: LastPass | None = None
    alarms: list[str] = field(default_factory=list)
    unknown: dict[str, str] = field(default_factory=dict)

    @property
    def least_to_expiry(self) -> timedelta | None:
        """The least time that a letter of the DLQ has left, as the last pass saw it."""
        if self.last_pass is None or (left := self.last_pass.least_to_expiry) is None:
            return None
        return left - (self.at - self.last_pass.at)

    def to_json(self) -> dict[str, Any]:
        circuit, orders = self.circuit, self.circuit.orders if self.circuit else None
        return {
            "queue": self.queue,
            "at": stamp(self.at),
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
            "paused": bool(orders and orders.pauses(self.at)),
            "paused_until": stamp(orders.paused_until) if orders else None,
            "draining_until": stamp(orders.drain_until) if orders else None,
            "depths": {
                name: facts.depth if facts else None
                for name, facts in (
                    ("source", self.source),
                    ("dead_letters", self.dlq),
                    ("parked", self.parking_lot),
                )
            },
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
    _ = session.place, session.queues, session.store
    # One client after another: botocore builds them slowly, and not at the same time.
    for service in ("dynamodb", "cloudwatch", "logs", "lambda"):
        session.aws.client(service)
    now = session.clock()
    with Asking() as ask:
        asked: dict[str, Callable[[], Answer[Any]]] = {
            "settings": ask(lambda: session.settings),
            "circuit": ask(session.store.load_circuit),
            "source queue": ask(lambda: session.queues.source_queues().each[0]),
            "DLQ": ask(session.queues.dead_letter_queue),
            "parking lot": ask(session.queues.parking_lot),
            "oldest letter": ask(lambda: _oldest(session, now)),
            "last pass": ask(lambda: last_pass(session)),
            "alarms": ask(lambda: ringing_alarms(session)),
        }
        answers: dict[str, Answer[Any]] = {what: wait() for what, wait in asked.items()}
    unknown = {what: answer.fault for what, answer in answers.items() if answer.fault}
    circuit = answers["circuit"].value
    settings, dlq = answers["settings"].value, answers["DLQ"].value
    step, at = "", None
    if settings:
        if circuit is None and "circuit" not in unknown:
            circuit = breaker.new_circuit(session.place.queue, settings, now)
        if circuit:
            step, at = next_step(settings, circuit, dlq, now)
    return Snapshot(
        queue=session.place.queue,
        at=now,
        circuit=circuit,
        next_step=step,
        next_at=at,
        source=answers["source queue"].value,
        dlq=dlq,
        parking_lot=answers["parking lot"].value,
        oldest=answers["oldest letter"].value,
        last_pass=answers["last pass"].value,
        alarms=answers["alarms"].value or [],
        unknown=unknown,
    )


def next_step(
    settings: Settings, circuit: Circuit, dlq: QueueFacts | None, now: datetime
) -> tuple[str, datetime | None]:
    """What the re-driver will do next, and from when on."""
    orders = circuit.orders
    if settings.mode.value != "automatic":
        return f"nothing: the setting `mode` is {settings.mode.value}", None
    if orders.pauses(now):
        return (
            "paused; goes on by itself" if orders.paused_until else "paused until `redrive resume`",
            (orders.paused_until),
        )
    if circuit.state is State.OPEN:
        return "a canary, once the cool-down is over", (
            circuit.changed_at + breaker.cool_down(circuit, settings)
        )
    if circuit.pending:
        first = min(circuit.pending, key=lambda one: one.due_at)
        return f"the verdict on batch {first.id} ({letters(first.size)})", first.due_at
    if dlq is not None and not dlq.depth:
        return "nothing: the DLQ is empty", None
    permit = breaker.allow(circuit, settings, now)
    return f"redrive up to {letters(permit.limit)} ({permit.reason}) with the next pass", None


def _oldest(session: Session, now: datetime) -> timedelta | None:
    """The age of the DLQ's oldest letter, since it came there."""
    name = session.place.deployment.dlq_url.rpartition("/")[2]
    query = {
        "Id": "oldest",
        "MetricStat": {
            "Metric": {
                "Namespace": "AWS/SQS",
                "MetricName": _AGE,
                "Dimensions": [{"Name": "QueueName", "Value": name}],
            },
            "Period": 60,
            "Stat": "Maximum",
        },
    }
    answer = session.aws.client("cloudwatch").get_metric_data(
        StartTime=now - timedelta(minutes=15),
        EndTime=now + timedelta(minutes=1),
        ScanBy="TimestampDescending",
        MetricDataQueries=[query],
    )
    values = [value for one in answer["MetricDataResults"] for value in one["Values"]]
    return timedelta(seconds=values[0]) if values else None


def _seconds(duration: timedelta | None) -> int | None:
    return None if duration is None else int(duration.total_seconds())
