"""Letters in a Postgres table: see `MessageStore`. psycopg is not needed before a letter is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self

from smart_redriver.engine.config.deployment import Deployment
from smart_redriver.engine.counts import letters
from smart_redriver.engine.errors import EntryFault
from smart_redriver.engine.messages.letter import Letter
from smart_redriver.engine.messages.queue_facts import QueueFacts
from smart_redriver.engine.passes.ports import DeadLetters, Ledger, Source
from smart_redriver.engine.triage.ledger import Entry, Status
from smart_redriver.oncall.deployment.message_store import Operation, Stuck
from smart_redriver.postgres.engine.letters import (
    AGAIN,
    GENERIC,
    STACK_TRACE,
    Handle,
    cause_of,
    job_id,
    moment_of,
)
from smart_redriver.postgres.engine.place import JobsDatabase
from smart_redriver.postgres.oncall.databases import Databases

if TYPE_CHECKING:
    from smart_redriver.engine.wiring import Connection
    from smart_redriver.oncall.deployment.session import Session
    from smart_redriver.postgres.engine.database import Database
    from smart_redriver.postgres.oncall.people import PeoplesLetters, PeoplesLot

#: In a larger table, this many latest letters show enough.
LATEST = 100_000


@dataclass(slots=True, kw_only=True)
class Counted:
    """Letters in one table that failed for one cause; None if the table does not show the cause.

    `since`: when the first of them came there. `row`: the row of the last one.
    """

    cause: str | None
    letters: int = 0
    since: datetime | None = None
    row: int = 0


def count_by_cause(database: Database, *, is_parked: bool) -> list[Counted]:
    """The latest letters in a table by cause, the most frequent first. Raises CallFailed."""
    known = database.statements
    statement = known.group_parked if is_parked else known.group_dead
    parameters = {"latest": LATEST, "generic": sorted(GENERIC)}
    found: dict[str | None, Counted] = {}
    for error_class, message, *counts in database.run("GroupLetters", statement, parameters):
        cause = cause_of(error_class, message)
        _add(found.setdefault(cause, Counted(cause=cause)), *counts)
    return sorted(found.values(), key=lambda one: (-one.letters, one.cause or ""))


def oldest_death(database: Database) -> datetime | None:
    """Return the time of death of the letter that is first in line; None if there is none. Raises CallFailed."""
    rows = database.run("ReadOldest", database.statements.oldest, {})
    return next((moment_of(at) for (at,) in rows), None)


def _add(group: Counted, letters: int, since: Any, row: int) -> None:
    group.letters += letters
    if (since := moment_of(since)) is not None:
        group.since = min(group.since or since, since)
    group.row = max(group.row, row)


#: The range of a bigint. https://www.postgresql.org/docs/current/datatype-numeric.html
_NUMBERS = range(-(1 << 63), 1 << 63)
_MOST_DIGITS = 19


@dataclass(frozen=True, slots=True)
class _Numbers:
    """The numbers in ids: rows of the DLQ, rows of the parking lot, jobs."""

    dead: frozenset[int]
    parked: frozenset[int]
    jobs: frozenset[int]

    @classmethod
    def of(cls, ids: Iterable[str]) -> Self:
        numbers = {"dlq": set[int](), "parked": set[int](), "job": set[int]()}
        for one in ids:
            table, _, number = one.partition("-")
            number = number.partition(AGAIN)[0]
            digits = number.removeprefix("-")
            is_number = digits.isascii() and digits.isdecimal() and len(digits) <= _MOST_DIGITS
            if table in numbers and is_number and int(number) in _NUMBERS:
                numbers[table].add(int(number))
        return cls(*map(frozenset, numbers.values()))

    @property
    def rows(self) -> frozenset[int]:
        """Numbers of rows. A parked row keeps its number, so that `dlq-17` is 17 in the parking lot, too."""
        return self.dead | self.parked


def rows_named(database: Database, ids: Iterable[str], *, is_parked: bool) -> list[int]:
    """The numbers of rows that may have letters with these ids. Raises CallFailed."""
    numbers = _Numbers.of(ids)
    if is_parked:
        return sorted(numbers.rows)
    rows = set(numbers.dead)
    if numbers.jobs:
        parameters = {"jobs": sorted(numbers.jobs)}
        statement = database.statements.rows_of_jobs
        rows |= {row for (row,) in database.run("FindLetters", statement, parameters)}
    return sorted(rows)


def about(database: Database, ids: Iterable[str]) -> set[str]:
    """Return the ids with something left: a row in the DLQ or the parking lot, a job, or a note that it was sent.

    Ids of another kind are included, because that can't be known. Raises CallFailed.
    """
    ids = set(ids)
    numbers = _Numbers.of(ids)
    parameters = {"rows": sorted(numbers.rows), "jobs": sorted(numbers.jobs)}
    found = database.run("FindLetters", database.statements.about, parameters)
    rows = {number for is_job, number in found if not is_job}
    there = {f"{table}-{row}" for row in rows for table in ("dlq", "parked")}
    there |= {job_id(number) for is_job, number in found if is_job}
    known = {f"dlq-{row}" for row in numbers.dead} | {f"parked-{row}" for row in numbers.parked}
    known |= {job_id(job) for job in numbers.jobs}
    return ids - (known - there)


#: How many causes get an example.
_WITH_EXAMPLE = 50

#: Statuses of letters in the DLQ and in the parking lot. A letter that was sent is gone when it is done.
_IN_A_TABLE = (Status.RETURNED, Status.FAILED, Status.PARKED)

_NONE_TO_PUT_BACK = (
    "The jobs of {jobs} are {library}'s, and only {library} adds some: enqueue them there. `redrive park` moves no "
    "row, so there is none to put back. Nothing was changed."
)
#: Operations that are refused on a library's own table.
_OF_LIBRARIES = {
    Operation.REWRITE: "The jobs of {jobs} are {library}'s: change one with {library}, or `update` its row, and then "
    "`redrive replay` it. Nothing was changed.",
    Operation.DELETE: "The jobs of {jobs} are {library}'s: delete them with {library}. `redrive park` keeps passes "
    "from them. Nothing was changed.",
    Operation.IMPORT: _NONE_TO_PUT_BACK,
    Operation.IMPORT_TO_SOURCE: _NONE_TO_PUT_BACK,
}
_REFUSALS = {
    Operation.IMPORT_TO_SOURCE: "Rows of a file go to the parking lot, as they were: leave --to out, "
    "and `redrive replay` them from "
    "there. Nothing was changed.",
}


def tables_of(session: Session) -> Tables:
    """Return the tables of a session, with the caller's own credentials."""
    deployment = session.place.deployment
    place = deployment.location
    assert isinstance(place, JobsDatabase), "read by this backend"  # noqa: S101 - a mistake of ours
    known = session.connections.of(Databases)
    opened = partial(known.of, place, session.aws.client)
    return Tables(deployment, opened, session.clock, lambda: session.store)


class Tables:
    """The tables of one worker queue. `open_database` raises Refused if it fails. `ledger` is read for current ids."""

    finds_by_id = True
    keeps_rows = True

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
        """The database, before its first query. Everything opens it first, which reports a missing psycopg."""
        return self._open_database()

    @property
    def connection(self) -> Connection:
        """The same tables, for a pass."""
        database = self.database
        from smart_redriver.postgres.engine.connection import WorkerQueue

        return WorkerQueue(database, self._queue)

    @cached_property
    def dead_letters(self) -> PeoplesLetters:
        """The DLQ."""
        return self._table(dlq=True)

    @cached_property
    def parking_lot(self) -> PeoplesLot:
        """The parking lot."""
        database = self.database
        from smart_redriver.postgres.oncall.people import PeoplesLot

        return PeoplesLot(database, self._clock)

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """The table of jobs."""
        database = self.database
        from smart_redriver.postgres.oncall.people import PeoplesSource

        return (PeoplesSource(database, self._queue, self._clock),)

    def letters_in(
        self, *, dlq: bool, ids: Collection[str], whole: bool, contains: str | None
    ) -> PeoplesLetters:
        """A separate reading: of the rows that may have letters with these ids, or of the whole table."""
        among = self._rows(ids, dlq=dlq) if ids else None
        return self._table(dlq=dlq, whole=whole, among=among, contains=contains)

    def ledger(self, out_of: DeadLetters, ledger: Ledger) -> Ledger:
        """The ledger, with what workers wrote into the rows of letters."""
        from smart_redriver.postgres.engine.connection import PeoplesLedger
        from smart_redriver.postgres.oncall.people import PeoplesLetters

        assert isinstance(out_of, PeoplesLetters), "letters of a table"  # noqa: S101 - a mistake of ours
        return PeoplesLedger(ledger, out_of, self._queue, self.database.place.permanent)

    def facts(self, *, dlq: bool, exactly: bool) -> QueueFacts:
        """Return an exact count of the letters, or an estimate if there are many."""
        table = self._table(dlq=dlq)
        return table.exact_facts() if exactly else table.facts()

    def keep(
        self, letters: Sequence[Letter], *, dlq: bool
    ) -> tuple[list[Letter], list[EntryFault]]:
        """Return letters with their whole rows."""
        return self._table(dlq=dlq).keep(letters)

    def read_anew(self) -> None:
        """Do nothing: each receive asks the table."""

    def remove(self, letters: Sequence[Letter], *, dlq: bool) -> list[EntryFault]:
        """Delete rows."""
        return self._table(dlq=dlq).remove(letters)

    def still_there(self, letters: Sequence[Letter], *, dlq: bool) -> set[str]:
        """Return the letters that still have a row in the table, or whose row somebody has moved from there."""
        table = self._table(dlq=dlq)
        return table.still_there(letters) | table.moved(letters)

    def nowhere(self, entries: Iterable[Entry]) -> set[str]:
        """Return entries without a row in any table: it was deleted without the ledger."""
        held = {one.current_id: one for one in entries if one.status in _IN_A_TABLE}
        if not held:
            return set()
        database = self.database
        from smart_redriver.postgres.oncall.tables import about

        return {held[one].original_id for one in held.keys() - about(database, held)}

    def age_of_oldest(self, now: datetime) -> timedelta | None:
        """Return the time since the death of the letter that is first in line."""
        database = self.database
        from smart_redriver.postgres.oncall.tables import oldest_death

        died_at = oldest_death(database)
        return None if died_at is None else max(now - died_at, timedelta())

    def stuck(self) -> list[Stuck] | None:
        """Return the stuck letters as the database counts them."""
        database = self.database
        from smart_redriver.postgres.oncall.tables import count_by_cause

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
        """Return the stack trace that the worker wrote into the row."""
        value: str | None = letter.attributes.get(STACK_TRACE, {}).get("StringValue")
        return value

    def beginning(self, typed: str) -> str | None:  # noqa: ARG002
        """Return none: a row's number is short, and people type all of it."""
        return None

    def called(self, own_id: str) -> Iterator[str]:
        """Yield the ids with the hash of it, if ids are hashed."""
        database = self.database
        if hashed := database.place.ids:
            asked = {"id": own_id}
            ((number,),) = database.run("FindLetters", database.statements.number_of, asked)
            if "jobs_dlq.id" in hashed:
                yield from (f"dlq-{number}", f"parked-{number}")
            if "jobs.id" in hashed:
                yield job_id(number)

    def cost(self, receives: int, seen: int) -> str:  # noqa: ARG002
        """Say that a look is only a `select`."""
        return f"This look read {letters(seen)} and changed nothing."

    def unknown(self, message_id: str, looked_at: int) -> str:  # noqa: ARG002
        """Say that it is not in the tables, and what an id is."""
        number = "number, or the hash of its id," if self.database.place.ids else "number"
        return (
            f"{message_id} was not found: it is in neither table, nor in the ledger. "
            f"An id is a row's {number} with dlq- or parked- before it, or a job's with job-."
        )

    def refusal(self, operation: Operation) -> str | None:
        """The reason to refuse an operation that the re-driver's role may not do, or that has no use."""
        place = self.database.place
        told = _OF_LIBRARIES if place.library else _REFUSALS
        sentence = told.get(operation)
        return sentence and sentence.format(
            parked=place.parked, jobs=place.jobs, library=place.profile
        )

    def _table(
        self,
        *,
        dlq: bool,
        whole: bool = False,
        among: Sequence[int] | None = None,
        contains: str | None = None,
    ) -> PeoplesLetters:
        database = self.database
        from smart_redriver.postgres.oncall.people import PeoplesLetters, PeoplesLot

        kind = PeoplesLetters if dlq else PeoplesLot
        return kind(database, self._clock, whole=whole, among=among, contains=contains)

    def _rows(self, ids: Collection[str], *, dlq: bool) -> list[int]:
        """The numbers of rows, also for letters named by their original id."""
        database = self.database
        from smart_redriver.postgres.oncall.tables import rows_named

        entries = self._ledger().read_ledger(ids).entries.values()
        named = {*ids, *(one.current_id for one in entries)}
        return rows_named(database, named, is_parked=not dlq)

    def _examples(self, groups: dict[str | None, Counted], *, dlq: bool) -> dict[str | None, Entry]:
        """The last letter of each of the larger groups, from its row."""
        from smart_redriver.postgres.engine.connection import entry_of

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
