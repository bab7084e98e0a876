"""Many queues at a glance, by few calls: what AWS tells of many at once is asked once, the rest side by side.

What only Lambda's API and the log know, each of which AWS lets one ask some fifteen times a second, is left to the status of one queue.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from redrive.aws import items
from redrive.aws.table_batches import TableBatches
from redrive.core.circuit import Circuit, State
from redrive.core.queue_facts import QueueFacts
from redrive.settings import Mode
from smart_redriver.oncall.stack.asking import Answer, Asking
from smart_redriver.oncall.stack.session import Session
from smart_redriver.oncall.terminal.words import stamp

#: As many as a client has connections.
_WIDTH = 32
_UNREADABLE = "UnreadableCircuit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Glance:
    """One DLQ now. `circuits` are its sources' that could be read, by name, None where no pass wrote one yet.

    `unknown` says why something is not known.
    """

    queue: str
    at: datetime
    circuits: Mapping[str, Circuit | None] = field(default_factory=dict)
    dlq: QueueFacts | None = None
    parking_lot: QueueFacts | None = None
    mode: str | None = None
    alarms: tuple[str, ...] = ()
    unknown: Mapping[str, str] = field(default_factory=dict)

    @property
    def opened(self) -> list[Circuit]:
        """The circuits that are not CLOSED."""
        return [one for one in self.circuits.values() if one and one.state is not State.CLOSED]

    @property
    def is_paused(self) -> bool:
        """Whether people paused it, for now: that is kept with the first source's circuit."""
        first = self.circuits.get(self.queue)
        return first is not None and first.orders.pauses(self.at)

    @property
    def is_quiet(self) -> bool:
        """Whether there is nothing about it that a person would want to know."""
        depths = [facts.depth if facts else 0 for facts in (self.dlq, self.parking_lot)]
        acts = self.mode in (None, Mode.AUTOMATIC.value)
        return acts and not (
            self.opened or self.is_paused or self.alarms or self.unknown or any(depths)
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "queue": self.queue,
            "circuits": [
                {
                    "queue": name,
                    "state": (one.state if one else State.CLOSED).value,
                    "since": stamp(one.changed_at) if one else None,
                }
                for name, one in self.circuits.items()
            ],
            "depths": {
                "dead_letters": self.dlq.depth if self.dlq else None,
                "parked": self.parking_lot.depth if self.parking_lot else None,
            },
            "paused": self.is_paused,
            "mode": self.mode,
            "alarms": list(self.alarms),
            "quiet": self.is_quiet,
            "unknown": dict(self.unknown),
        }


def take_glances(sessions: Sequence[Session]) -> list[Glance]:
    """Look at the queues of these sessions, which share their clients. What can't be read is told, not fatal; raises CallFailed for clients."""
    first = sessions[0]
    for service in ("sqs", "dynamodb", "cloudwatch"):  # botocore builds them one after another
        first.aws.client(service)
    with Asking(_WIDTH) as ask:
        ringing = ask(partial(_ringing, first))
        circuits = [ask(partial(_circuits, *one)) for one in _by_table(sessions)]
        depths = [
            (ask(partial(_depth, one, dlq=True)), ask(partial(_depth, one, dlq=False)))
            for one in sessions
        ]
        known = _Known(ringing(), [wait() for wait in circuits])
        now = first.clock()
        return [
            known.glance(one, now, dlq(), lot())
            for one, (dlq, lot) in zip(sessions, depths, strict=True)
        ]


def _depth(session: Session, *, dlq: bool) -> QueueFacts:
    return (session.dead_letters if dlq else session.parking_lot).facts()


def _by_table(sessions: Iterable[Session]) -> Iterable[tuple[Session, str, list[str]]]:
    """Any session, a state table, and the source queues whose circuits are in it."""
    queues: defaultdict[str, list[str]] = defaultdict(list)
    of: dict[str, Session] = {}
    for one in sessions:
        table = one.place.deployment.table_name
        of.setdefault(table, one)
        queues[table] += one.place.sources
    return [(of[table], table, names) for table, names in queues.items()]


def _circuits(session: Session, table: str, names: Sequence[str]) -> dict[str, Circuit | str]:
    """The circuits that there are by their queues' names, or why one can't be read. Raises CallFailed."""
    found: dict[str, Circuit | str] = {}
    keys = {items.circuit_key(name)["PK"]["S"]: name for name in names}
    batches = TableBatches(session.aws.dynamodb, table, pause=session.sleep)
    for item in batches.get([{"PK": {"S": key}} for key in keys]):
        name = keys[item["PK"]["S"]]
        try:
            found[name] = items.circuit_from_item(name, item)
        except (KeyError, ValueError, TypeError):
            found[name] = _UNREADABLE
    return found


def _ringing(session: Session) -> dict[str, list[str]]:
    """Short names of the alarms of this account and Region that are in ALARM, by what comes before. Raises CallFailed."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    request = {"StateValue": "ALARM", "AlarmTypes": ["MetricAlarm", "CompositeAlarm"]}
    token: str | None = ""
    while token is not None:
        more = {"NextToken": token} if token else {}
        page = session.aws.client("cloudwatch").describe_alarms(**request, **more)
        for one in (*page.get("MetricAlarms", ()), *page.get("CompositeAlarms", ())):
            known_as, _, short = one["AlarmName"].rpartition(" ")
            found[known_as].append(short)
        token = page.get("NextToken")
    return found


class _Known:
    """What was asked for all queues at once."""

    def __init__(
        self, ringing: Answer[dict[str, list[str]]], tables: list[Answer[dict[str, Circuit | str]]]
    ) -> None:
        self._ringing = ringing.value or {}
        self._not_heard = ringing.fault
        self._circuits = {name: one for each in tables for name, one in (each.value or {}).items()}
        self._not_read = next((one.fault for one in tables if one.fault), None)

    def glance(
        self, session: Session, now: datetime, dlq: Answer[QueueFacts], lot: Answer[QueueFacts]
    ) -> Glance:
        place = session.place
        read = {name: self._circuits.get(name, self._not_read) for name in place.sources}
        unread = {f"circuit of {name}": one for name, one in read.items() if isinstance(one, str)}
        others = {"DLQ": dlq.fault, "parking lot": lot.fault, "alarms": self._not_heard}
        return Glance(
            queue=place.queue,
            at=now,
            circuits={name: one for name, one in read.items() if not isinstance(one, str)},
            dlq=dlq.value,
            parking_lot=lot.value,
            mode=place.mode,
            alarms=tuple(
                short for name in place.alarms_known_as for short in self._ringing.get(name, ())
            ),
            unknown=unread | {what: why for what, why in others.items() if why},
        )
