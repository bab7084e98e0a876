"""Stuck letters by their cause: what consumers reported, counted from the ledger alone. Nothing is received for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from smart_redriver.engine.counts import letters
from smart_redriver.engine.headline import Headline, worst
from smart_redriver.engine.model.causes import CauseCircuit
from smart_redriver.engine.model.circuit import Circuit
from smart_redriver.engine.triage.ledger import Entry, Status
from smart_redriver.oncall.deployment.message_store import Stuck
from smart_redriver.oncall.letters.presentation import NO_CAUSE
from smart_redriver.oncall.status.outlook import cause_to_json, held_in_words, since_when
from smart_redriver.oncall.terminal.words import stamp

NOT_LOOKED_AT = "which no pass has looked at yet"
_LOOKED_AT_NEXT = "the next pass looks at them"
_LOOKED_AT_BUT_BLOCKED = (
    "the next pass looks at those that are not behind a letter that blocks its message group"
)


@dataclass(slots=True, kw_only=True)
class CauseGroup:
    """The stuck letters of one source queue that failed for one cause.

    Attributes:
        queue: None for letters that are in no ledger, which can belong to any source.
        cause: the class of the error; None if no consumer reported one.
        in_dlq, parked: counts of letters. `unlisted`: how many of them the ledger does not know.
        since: when the first of them was first seen. `parked_since`: when the first of them was parked.
        example: the letter that was seen last.
        circuit: what the re-driver remembers about the cause, if anything.
        waits_with_all: the headline of the whole queue, if it keeps letters from flowing.
        has_blocked: whether poison blocks message groups of the DLQ until a person acts.

    """

    queue: str | None
    cause: str | None
    in_dlq: int = 0
    parked: int = 0
    unlisted: int = 0
    since: datetime | None = None
    parked_since: datetime | None = None
    example: Entry | None = None
    circuit: CauseCircuit | None = None
    waits_with_all: Headline | None = None
    has_blocked: bool = False

    @classmethod
    def of(cls, queue: str, counted: Stuck) -> CauseGroup:
        """A group of letters that were counted in place, without asking the ledger about them."""
        return cls(
            queue=queue,
            cause=counted.cause,
            in_dlq=counted.in_dlq,
            parked=counted.parked,
            since=counted.since,
            parked_since=counted.parked_since,
            example=counted.example,
        )

    @property
    def letters(self) -> int:
        """The number of letters in the group."""
        return self.in_dlq + self.parked

    @property
    def is_unlisted(self) -> bool:
        """Whether the ledger knows none of the letters, for example because no pass has looked at them."""
        return self.letters > 0 and self.unlisted == self.letters

    @property
    def name(self) -> str:
        """The cause of their failure, or why it is not known."""
        return self.cause or (NOT_LOOKED_AT if self.is_unlisted else NO_CAUSE)

    def add(self, entry: Entry) -> None:
        """Count one more."""
        if entry.status is Status.PARKED:
            self.parked += 1
            parked_at = entry.parked_at or entry.first_seen
            self.parked_since = min(self.parked_since or parked_at, parked_at)
        else:
            self.in_dlq += 1
        self.since = min(self.since or entry.first_seen, entry.first_seen)
        if self.example is None or _seen(entry) > _seen(self.example):
            self.example = entry

    def state(self) -> str:
        """`parked`, `held` by their cause, `waiting` with all letters of the queue, or `flowing`."""
        if self.parked and not self.in_dlq:
            return "parked"
        if self.circuit is not None and self.circuit.is_held:
            return "held"
        return "flowing" if self.waits_with_all is None else "waiting"

    def state_in_words(self, now: datetime) -> str:
        """The state of the group."""
        state = self.state()
        if state == "held" and self.circuit is not None:
            return held_in_words(self.circuit, now)
        if state == "parked" and self.parked_since is not None:
            return f"parked {since_when(self.parked_since, now)}"
        if self.waits_with_all is not None:
            return f"waiting with all others: {self.waits_with_all.topic.value}"
        if not self.is_unlisted:
            return state
        return _LOOKED_AT_BUT_BLOCKED if self.has_blocked else _LOOKED_AT_NEXT

    def line(self, now: datetime) -> str:
        """The group in one line for the person on call: "212 letters, PaymentDeclined, since 03:12"."""
        since = since_when(self.since, now) if self.since else ""
        return ", ".join(part for part in (letters(self.letters), self.name, since) if part)

    def to_json(self, now: datetime) -> dict[str, Any]:
        """The group as `--json` shows it."""
        circuit = self.circuit or CauseCircuit(cause=self.cause or "")
        example = self.example
        return {
            "queue": self.queue,
            **cause_to_json(circuit),
            "cause": self.cause,
            "letters": self.letters,
            "in_dlq": self.in_dlq,
            "parked": self.parked,
            "not_in_ledger": self.unlisted,
            "since": stamp(self.since),
            "parked_since": stamp(self.parked_since),
            "state": self.state(),
            "example": example
            and {"original_id": example.original_id, "first_line": first_line(example)},
            "line": self.line(now),
        }


@dataclass(slots=True)
class ByCause:
    """Groups, and how many letters the ledger knows in the DLQ and in the parking lot."""

    groups: dict[tuple[str | None, str | None], CauseGroup] = field(default_factory=dict)
    in_dlq: int = 0
    parked: int = 0

    def add(self, entry: Entry) -> None:
        """Count a stuck letter."""
        queue = entry.queue if entry.cause is not None else None
        self._group(queue, entry.cause).add(entry)
        if entry.status is Status.PARKED:
            self.parked += 1
        else:
            self.in_dlq += 1

    def add_unlisted(self, *, dead: int, parked: int) -> None:
        """Count what the queues hold beyond what the ledger knows: `dead` and `parked` are their depths."""
        dead, parked = max(0, dead - self.in_dlq), max(0, parked - self.parked)
        if dead or parked:
            group = self._group(None, None)
            group.in_dlq += dead
            group.parked += parked
            group.unlisted += dead + parked

    def ranked(self) -> list[CauseGroup]:
        """The largest group first."""
        return sorted(
            self.groups.values(),
            key=lambda one: (-one.letters, one.cause is None, one.cause or "", one.queue or ""),
        )

    def know_circuits(
        self, circuits: Mapping[str, Circuit | None], headlines: Mapping[str, Headline]
    ) -> None:
        """Add to each group the circuit of its cause, and whether the letters of its queue flow.

        A held cause has a group even while its letters are out.
        """
        for queue, circuit in circuits.items():
            if circuit is not None:
                self._know_causes(queue, circuit)
        waiting = {queue: one for queue, one in headlines.items() if not one.lets_flow}
        # A letter of no known queue may belong to any: it waits if none of them lets letters flow.
        any_of = worst(waiting) if waiting and len(waiting) == len(headlines) else None
        has_blocked = any(one.blocking for one in circuits.values() if one is not None)
        for group in self.groups.values():
            group.waits_with_all = waiting.get(group.queue) if group.queue else any_of
            group.has_blocked = has_blocked

    def _know_causes(self, queue: str, circuit: Circuit) -> None:
        for one in circuit.causes:
            if one.holds_letters or (queue, one.cause) in self.groups:
                group = self._group(queue, one.cause)
                group.circuit = one
                group.since = group.since or one.held_since

    def _group(self, queue: str | None, cause: str | None) -> CauseGroup:
        return self.groups.setdefault((queue, cause), CauseGroup(queue=queue, cause=cause))


def as_counted(queue: str, stuck: Iterable[Stuck]) -> ByCause:
    """Group letters by cause, as they were counted in place."""
    groups: dict[tuple[str | None, str | None], CauseGroup] = {
        (queue, one.cause): CauseGroup.of(queue, one) for one in stuck
    }
    in_dlq = sum(one.in_dlq for one in groups.values())
    return ByCause(groups=groups, in_dlq=in_dlq, parked=sum(one.parked for one in groups.values()))


def by_cause(entries: Iterable[Entry]) -> ByCause:
    """Group stuck letters by cause."""
    found = ByCause()
    for entry in entries:
        found.add(entry)
    return found


def first_line(entry: Entry) -> str | None:
    """The first line of the consumer's error message, as far as the ledger keeps it."""
    error = entry.error or ""
    if entry.cause is not None:  # reported: the error's class comes first
        error = error.partition(": ")[2] or error
    return error or None


def _seen(entry: Entry) -> tuple[datetime, str]:
    return entry.parked_at or entry.last_redrive or entry.first_seen, entry.original_id
