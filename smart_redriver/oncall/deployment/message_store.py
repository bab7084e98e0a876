"""The store of a deployment's letters for people: `queues` for SQS, or another backend's.

A pass needs the same of every store (`smart_redriver.engine.passes.ports`). This is what people need beyond that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from smart_redriver.engine.config.targets import TargetKind
from smart_redriver.engine.errors import EntryFault
from smart_redriver.engine.messages.letter import Letter, Unfit
from smart_redriver.engine.messages.queue_facts import QueueFacts
from smart_redriver.engine.passes.ports import DeadLetters, Ledger, ParkingLot, Source
from smart_redriver.engine.triage.ledger import Entry
from smart_redriver.oncall.terminal.exits import Refused

if TYPE_CHECKING:
    from smart_redriver.engine.wiring import Connection


KINDS: Mapping[TargetKind, str] = {
    TargetKind.QUEUE: "an SQS queue",
    TargetKind.FUNCTION: "a Lambda function",
    TargetKind.DELIVERY_STREAM: "a Firehose delivery stream",
    TargetKind.STATE_MACHINE: "a Step Functions state machine",
    TargetKind.TOPIC: "an SNS topic",
    TargetKind.WEB: "an HTTP endpoint",
}
#: Why a letter is not given back.
UNFIT: Mapping[Unfit, str] = {
    Unfit.UNKNOWN_ORIGIN: "it names no listed target or topic as its origin",
    Unfit.INCOMPLETE: "it does not hold what its target was given, or never failed",
}


class Operation(Enum):
    """An operation that some message stores don't offer."""

    REWRITE = "change letters"
    DELETE = "delete letters"
    IMPORT = "put letters of a file back"
    IMPORT_TO_SOURCE = "send letters of a file to their source"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stuck:
    """Letters that failed for one cause; None if the cause is unknown. `since`: when the first was first seen."""

    cause: str | None
    in_dlq: int = 0
    parked: int = 0
    since: datetime | None = None
    parked_since: datetime | None = None
    example: Entry | None = None


class MessageStore(Protocol):
    """The store of letters. Everything raises CallFailed, or Refused if the store is out of reach.

    Attributes:
        dead_letters, parking_lot: for looks, with as much of the bodies as people read.
        sources: where letters go back to.
        connection: for a pass that runs here.
        finds_by_id: finds a letter by its id at once, even a held one, and without changing anything.
        keeps_rows: a letter is a row. Only its body can be edited, and a file restores it as the same row.

    """

    @property
    def dead_letters(self) -> DeadLetters: ...
    @property
    def parking_lot(self) -> ParkingLot: ...
    @property
    def sources(self) -> tuple[Source, ...]: ...
    @property
    def connection(self) -> Connection: ...
    @property
    def finds_by_id(self) -> bool: ...
    @property
    def keeps_rows(self) -> bool: ...

    def letters_in(
        self, *, dlq: bool, ids: Collection[str], whole: bool, contains: str | None
    ) -> DeadLetters:
        """The DLQ or the parking lot. If the store can select, only letters with these ids or this text in the body.

        `whole`: with whole bodies, for a caller that uses them.
        """
        ...

    def ledger(self, out_of: DeadLetters, ledger: Ledger) -> Ledger:
        """The ledger, with what else is known about letters in that queue."""
        ...

    def facts(self, *, dlq: bool, exactly: bool) -> QueueFacts:
        """Return the facts of the DLQ or the parking lot. An exact number of letters may take longer."""
        ...

    def read_anew(self) -> None:
        """Forget what was read: until a command got the lease, others may have taken letters."""
        ...

    def keep(
        self, letters: Sequence[Letter], *, dlq: bool
    ) -> tuple[list[Letter], list[EntryFault]]:
        """Letters with everything that a file needs to bring them back, and faults of those that can't be read.

        Letters that are gone are left out.
        """
        ...

    def remove(self, letters: Sequence[Letter], *, dlq: bool) -> list[EntryFault]:
        """Delete letters. Returns faults for those that are still there."""
        ...

    def still_there(self, letters: Sequence[Letter], *, dlq: bool) -> set[str]:
        """Message ids of the letters that are certainly there, or moved; none if that can't be known."""
        ...

    def nowhere(self, entries: Iterable[Entry]) -> set[str]:
        """Original ids of the letters that certainly no longer exist, regardless of the ledger.

        None of them if that can't be known.
        """
        ...

    def age_of_oldest(self, now: datetime) -> timedelta | None:
        """Return the age of the oldest letter in the DLQ; None if it is unknown."""
        ...

    def stuck(self) -> list[Stuck] | None:
        """Return all letters by cause; None if only the ledger knows causes."""
        ...

    def stack_trace(self, letter: Letter) -> str | None:
        """Return the stack trace that the worker wrote beside the letter."""
        ...

    def beginning(self, typed: str) -> str | None:
        """Return the beginning of an id that a person typed in part; None for a complete id."""
        ...

    def called(self, own_id: str) -> Iterator[str]:
        """Yield ids of letters whose row or job has this id, where letters don't show those ids."""
        ...

    def cost(self, receives: int, seen: int) -> str:
        """The side effects of a look, in words."""
        ...

    def unknown(self, message_id: str, looked_at: int) -> str:
        """The message about a letter that neither the ledger nor a look at `looked_at` letters found."""
        ...

    def refusal(self, operation: Operation) -> str | None:
        """Say why the operation is not possible here, and what is; None if it is possible."""
        ...


def refuse_unless(letter_store: MessageStore, operation: Operation) -> None:
    """Raise Refused if an operation is not possible, and say what can be done instead."""
    if why := letter_store.refusal(operation):
        raise Refused(why)
