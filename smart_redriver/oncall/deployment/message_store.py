"""The store of a deployment's letters for people: `queues` of SQS, or that of another backend.

What a pass needs of either is the same (`smart_redriver.engine.passes.ports`). This is what people ask for beyond that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
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
#: Why a letter is given back to nobody.
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
    """Letters that died of one cause; None where nobody said of what. `since`:
    when the first of them was first seen.
    """

    cause: str | None
    in_dlq: int = 0
    parked: int = 0
    since: datetime | None = None
    parked_since: datetime | None = None
    example: Entry | None = None


class MessageStore(Protocol):
    """The store of letters, and its differences. Everything raises CallFailed, or Refused if the store is out of reach.

    Attributes:
        dead_letters, parking_lot: for looks, with bodies as far as people read them.
        sources: what letters go back to.
        connection: what a pass made here works with.
        finds_by_id: a letter is found by its id at once, held or not, and looking for it changes nothing.
        keeps_rows: a letter is a row: its body alone can be edited, and a file brings it back as the row that it was.

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
        """The DLQ or the parking lot, or where that can be had of it the letters of these ids, or with this text in
        their bodies, alone.

        `whole`: with whole bodies, for whoever does something with them.
        """
        ...

    def ledger(self, out_of: DeadLetters, ledger: Ledger) -> Ledger:
        """The ledger, with what else is known of letters out of there."""
        ...

    def facts(self, *, dlq: bool, exactly: bool) -> QueueFacts:
        """Return the facts of DLQ or parking lot; an exact number of letters may take longer."""
        ...

    def keep(
        self, letters: Sequence[Letter], *, dlq: bool
    ) -> tuple[list[Letter], list[EntryFault]]:
        """Letters with all that a file has to hold to bring them back, and those of which that can't be read.

        Those that are gone are left out.
        """
        ...

    def remove(self, letters: Sequence[Letter], *, dlq: bool) -> list[EntryFault]:
        """Delete letters; what comes back is still there."""
        ...

    def still_there(self, letters: Sequence[Letter], *, dlq: bool) -> set[str]:
        """MessageIds of the letters that are there for certain; none where nobody can know."""
        ...

    def nowhere(self, entries: Iterable[Entry]) -> set[str]:
        """Original ids of the letters that are nowhere any more for certain, whatever the ledger says;
        none where nobody can know.
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
        """Return the beginning of the id that a person means by a part of it; None for a whole id."""
        ...

    def cost(self, receives: int, seen: int) -> str:
        """The side effects of a look, in words."""
        ...

    def unknown(self, message_id: str, looked_at: int) -> str:
        """The message about a letter that the ledger does not know, and that a look at so many letters did not find."""
        ...

    def refusal(self, operation: Operation) -> str | None:
        """Say why that can't be done here, and what can; None if it can."""
        ...


def refuse_unless(letter_store: MessageStore, operation: Operation) -> None:
    """Raise Refused, saying what can be done instead, where an operation is not possible."""
    if why := letter_store.refusal(operation):
        raise Refused(why)
