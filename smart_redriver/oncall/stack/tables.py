"""Letters in a table of Postgres: see `Lodging`. psycopg is asked for when a letter is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from redrive.core.ledger import Entry, Status
from redrive.core.letter import Letter
from redrive.core.queue_facts import QueueFacts
from redrive.deployment import Deployment
from redrive.errors import EntryFault
from redrive.passes.ports import DeadLetters, Ledger, Source
from smart_redriver.oncall.stack.lodging import Deed, Stuck
from smart_redriver.oncall.terminal.words import letters

if TYPE_CHECKING:
    from redrive.postgres.by_cause import Counted
    from redrive.postgres.database import Database
    from redrive.postgres.people import PeoplesLetters, PeoplesLot

#: Causes that are told with an example.
_WITH_EXAMPLE = 50

#: What the ledger says of letters of the DLQ and of the parking lot. Those that were sent are gone where they are done.
_IN_A_TABLE = (Status.RETURNED, Status.FAILED, Status.PARKED)

_REFUSALS = {
    Deed.REWRITE: "A payload in a table is changed where it is: park the letter, `update` its row of {parked} in your "
    "database, then `redrive replay` it. Nothing was changed.",
    Deed.IMPORT_TO_SOURCE: "Rows of a file go to the parking lot, as they were: leave --to out, and `redrive replay` them from "
    "there. Nothing was changed.",
}


class Tables:
    """The tables of one worker queue. `open_database` raises Refused where that can't be; `ledger` is read for current ids."""

    finds_by_id = True

    def __init__(
        self,
        deployment: Deployment,
        open_database: Callable[[], Database],
        clock: Callable[[], datetime],
        ledger: Callable[[], Ledger],
    ) -> None:
        self._queue = deployment.queue_name
        self._open_database = open_database
        self._clock = clock
        self._ledger = ledger

    @cached_property
    def database(self) -> Database:
        """The database, of which nothing has been asked yet. Opened first everywhere: that says where psycopg is missing."""
        return self._open_database()

    @cached_property
    def dead_letters(self) -> PeoplesLetters:
        """The DLQ."""
        return self._table(dlq=True)

    @cached_property
    def parking_lot(self) -> PeoplesLot:
        """The parking lot."""
        database = self.database
        from redrive.postgres.people import PeoplesLot

        return PeoplesLot(database, self._clock)

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """The table of jobs."""
        database = self.database
        from redrive.postgres.source import JobsSource

        return (JobsSource(database, self._queue, self._clock),)

    def letters_in(self, *, dlq: bool, ids: Collection[str], whole: bool) -> PeoplesLetters:
        """A reading of its own: of the rows that letters of these ids may be in, or of the whole table."""
        return self._table(dlq=dlq, whole=whole, among=self._rows(ids, dlq=dlq) if ids else None)

    def ledger(self, out_of: DeadLetters, ledger: Ledger) -> Ledger:
        """The ledger, with what workers wrote beside their letters."""
        from redrive.postgres.ledger import PeoplesLedger
        from redrive.postgres.people import PeoplesLetters

        assert isinstance(out_of, PeoplesLetters), "letters of a table"  # noqa: S101 - a mistake of ours
        return PeoplesLedger(ledger, out_of, self._queue, self.database.place.permanent)

    def facts(self, *, dlq: bool, exactly: bool) -> QueueFacts:
        """All of them counted, or an estimate where there are many."""
        table = self._table(dlq=dlq)
        return table.exact_facts() if exactly else table.facts()

    def keep(
        self, letters: Sequence[Letter], *, dlq: bool
    ) -> tuple[list[Letter], list[EntryFault]]:
        """With their whole rows."""
        return self._table(dlq=dlq).keep(letters)

    def remove(self, letters: Sequence[Letter], *, dlq: bool) -> list[EntryFault]:
        """Delete rows."""
        return self._table(dlq=dlq).remove(letters)

    def still_there(self, letters: Sequence[Letter], *, dlq: bool) -> set[str]:
        """Those whose rows are in the table."""
        return self._table(dlq=dlq).still_there(letters)

    def nowhere(self, entries: Iterable[Entry]) -> set[str]:
        """Those of which no table has a row: somebody has deleted it who tells the ledger nothing."""
        held = {one.current_id: one for one in entries if one.status in _IN_A_TABLE}
        if not held:
            return set()
        database = self.database
        from redrive.postgres.by_id import about

        return {held[one].original_id for one in held.keys() - about(database, held)}

    def age_of_oldest(self, now: datetime) -> timedelta | None:
        """Since the letter died that is first in line."""
        database = self.database
        from redrive.postgres.by_cause import oldest_death

        died_at = oldest_death(database)
        return None if died_at is None else max(now - died_at, timedelta())

    def stuck(self) -> list[Stuck] | None:
        """As the database counts them."""
        database = self.database
        from redrive.postgres.by_cause import count_by_cause

        dead, parked = (
            {one.cause: one for one in count_by_cause(database, is_parked=is_parked)}
            for is_parked in (False, True)
        )
        examples = self._examples(dead, dlq=True) | self._examples(parked, dlq=False)
        return [
            _stuck(cause, dead.get(cause), parked.get(cause), examples.get(cause))
            for cause in dead | parked
        ]

    def stack_trace(self, letter: Letter) -> str | None:
        """As its worker wrote it into the row."""
        from redrive.postgres.letters import STACK_TRACE

        value: str | None = letter.attributes.get(STACK_TRACE, {}).get("StringValue")
        return value

    def cost(self, receives: int, seen: int) -> str:  # noqa: ARG002
        """A look is a `select`."""
        return f"This look read {letters(seen)} and changed nothing."

    def refusal(self, deed: Deed) -> str | None:
        """What the re-driver's role may not do, or nobody needs."""
        return _REFUSALS[deed].format(parked=self.database.place.parked)

    def _table(
        self, *, dlq: bool, whole: bool = False, among: Sequence[int] | None = None
    ) -> PeoplesLetters:
        database = self.database
        from redrive.postgres.people import PeoplesLetters, PeoplesLot

        kind = PeoplesLetters if dlq else PeoplesLot
        return kind(database, self._clock, whole=whole, among=among)

    def _rows(self, ids: Collection[str], *, dlq: bool) -> list[int]:
        """Also of letters that are named by the id that they had first."""
        database = self.database
        from redrive.postgres.by_id import rows_named

        entries = self._ledger().read_ledger(ids).entries.values()
        named = {*ids, *(one.current_id for one in entries)}
        return rows_named(database, named, is_parked=not dlq)

    def _examples(self, groups: dict[str | None, Counted], *, dlq: bool) -> dict[str | None, Entry]:
        """The last letter of each of the larger groups, as its row tells of it."""
        from redrive.postgres.ledger import entry_of
        from redrive.postgres.letters import Handle

        rows = {one.row: cause for cause, one in list(groups.items())[:_WITH_EXAMPLE]}
        found = self._table(dlq=dlq, among=list(rows)).receive(len(rows), hidden_for=timedelta())
        permanent = self.database.place.permanent
        return {
            rows[Handle.of(one).row]: replace(
                entry_of(one, self._queue, permanent), original_id=one.original_id
            )
            for one in found
        }


def _stuck(
    cause: str | None, dead: Counted | None, parked: Counted | None, example: Entry | None
) -> Stuck:
    moments = [one.since for one in (dead, parked) if one and one.since]
    return Stuck(
        cause=cause,
        in_dlq=dead.letters if dead else 0,
        parked=parked.letters if parked else 0,
        since=min(moments, default=None),
        parked_since=parked.since if parked else None,
        example=example,
    )
