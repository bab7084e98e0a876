"""The tables of letters for people, with shortened or whole payloads.

Only `remove` deletes, and only a file restores rows. Everything else is the same as in a pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, LiteralString

from psycopg import sql

from smart_redriver.engine.errors import CallFailed, EntryFault
from smart_redriver.engine.messages.letter import Letter
from smart_redriver.engine.messages.outgoing import Outgoing, Sent
from smart_redriver.engine.messages.queue_facts import QueueFacts
from smart_redriver.postgres.columns import Column, columns_of
from smart_redriver.postgres.engine.database import Database, StatementRefused
from smart_redriver.postgres.engine.dead_letters import (
    COUNTED,
    NOT_THERE,
    DeadLetters,
    Pages,
    ParkingLot,
)
from smart_redriver.postgres.engine.letters import Handle, job_id
from smart_redriver.postgres.engine.source import JobsSource
from smart_redriver.postgres.engine.statements import composed, names_of
from smart_redriver.postgres.engine.texts import EDITED_TEXTS


def by_halves(
    letters: Sequence[Letter], run: Callable[[Sequence[Letter]], list[Letter]]
) -> tuple[list[Letter], list[EntryFault]]:
    """Call `run` by halves. Returns the letters it returned, and those it was refused for. Raises nothing."""
    try:
        return run(letters), []
    except CallFailed as failed:
        if isinstance(failed, StatementRefused) and failed.may_be_one and len(letters) > 1:
            half = len(letters) // 2
            first, second = by_halves(letters[:half], run), by_halves(letters[half:], run)
            return first[0] + second[0], first[1] + second[1]
        return [], [EntryFault.of(failed, one.message_id) for one in letters]


#: The attribute that a letter in a file has in addition to those shown: its whole row as JSON.
ROW = "Row"

_CALL = "RestoreLetters"
#: Postgres's code for more rows than one where there may be only one.
#: https://www.postgresql.org/docs/current/errcodes-appendix.html
_TOO_MANY_ROWS = "21000"
#: Columns whose values have changed, with the values.
_OURS = {
    "redrive_trail": sql.SQL("%(trail)s::text"),
    "parked_at": sql.SQL("%(now)s::timestamptz"),
}

#: A row `d` with all its columns, as JSON. It says `d.*` because a column may be called `d`.
_CONTENT: LiteralString = """(select json_object_agg(k.key, k.value)::text from json_each(row_to_json(d.*)) k
        where k.key <> all(array_remove(array[{nulls}]::text[], null)))"""

#: `rows` -> each with its content. What no `jsonb` takes is refused here: the parking lot's column may be one.
_WHOLE = """
select {d_row}::bigint, whole.content
from {kept} d cross join lateral (select <content> as content) whole
where {d_row} = any(%(rows)s) and whole.content::jsonb is not null
""".replace("<content>", _CONTENT)

#: `rows`, `contents`: what is still as it was kept, and in nobody's hands. What somebody has changed since is in no
#: file, nor is a row that has got the same id since. Of a returned job's letter nothing is left to be known. -> its
#: deleted rows.
_DELETE = """
with locked as materialized (
  select d.{d_id} as our_id, a.our_content
  from {kept} d join unnest(%(rows)s::bigint[], %(contents)s::text[]) as a(our_row, our_content)
                  on {d_row} = a.our_row
  where <content> = a.our_content
  for update of d skip locked
), gone as (
  delete from {kept} d using locked l where d.{d_id} = l.our_id and <content> = l.our_content
  returning {d_row} as our_row, {d_original} as our_job
), forgotten as (
  delete from {redriven} r using gone g where r.job_id = g.our_job and r.returned_as = g.our_row
)
select g.our_row::bigint from gone g
""".replace("<content>", _CONTENT)

#: `rows`, `is_parked` -> those that a pass or a person has sent, or has parked.
_TAKEN: LiteralString = """
select r.row_id from {redriven} r where r.is_parked = %(is_parked)s and r.row_id = any(%(rows)s)
union select {d_row}::bigint from {parked} d where not %(is_parked)s and {d_row} = any(%(rows)s)
"""

#: `content` (see `_CONTENT`), `trail`, `now`, `known` (the parking lot's columns) -> the row that is parked by this,
#: now or before; the columns that the parking lot lacks: then nothing was done; whether its number was in the DLQ or
#: the parking lot before, where it stays. A trigger that gives it another number divides by zero, see
#: `refusals.SWALLOWED`.
_RESTORE = """
with asked as (
  select {c_row}::bigint as our_row, c as our_content from cast(%(content)s as json) c
), unknown as (
  select array_agg(k.key order by k.key) as our_columns from asked a, json_each(a.our_content) k
  where json_typeof(k.value) <> 'null' and k.key <> all(%(known)s)
), placed as (
  insert into {parked} as d ({columns}) overriding system value
  select {values}
  from asked a, json_populate_record(null::{parked}, a.our_content) r
  where (select u.our_columns from unknown u) is null
    and not exists (select 1 from {dead} d where {d_row} = a.our_row)
  on conflict ({d_id}) do nothing
  returning {d_row} as our_row
)
select coalesce((select p.our_row / (p.our_row = a.our_row)::int from placed p),
                (select {d_row} from {parked} d where {d_row} = a.our_row and d.redrive_trail = %(trail)s)),
       (select u.our_columns from unknown u),
       exists (select 1 from {dead} d where {d_row} = a.our_row)
       or exists (select 1 from {parked} d where {d_row} = a.our_row)
from asked a
"""


class Rows:
    """The rows of one database's letters. The columns of a table are read once."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._columns: dict[str, list[Column]] = {}

    def keep(self, rows: Sequence[int], *, is_parked: bool) -> dict[int, str]:
        """The contents of rows that are still there, by number.

        Raises CallFailed, also if two of them have one number: a file would have one, and the other would be lost.
        """
        statement = self._whole(_WHOLE, is_parked=is_parked)
        kept = self._database.run("KeepLetters", statement, {"rows": list(rows)})
        contents: dict[int, str] = dict(kept)
        if len(contents) < len(kept):
            table = self._database.place.parked if is_parked else self._database.place.dead_letters
            detail = f"rows of {table} share its id: give each an id of its own"
            raise StatementRefused(
                "KeepLetters", "IdNotUnique", detail, sqlstate=_TOO_MANY_ROWS, context=""
            )
        return contents

    def delete(self, contents: Mapping[int, str], *, is_parked: bool) -> set[int]:
        """Delete rows that are unchanged since they were kept, and in nobody's hands. Returns them. Raises CallFailed.

        If the answer was lost, they are deleted, and not returned.
        """
        parameters = {"rows": list(contents), "contents": list(contents.values())}
        statement = self._whole(_DELETE, is_parked=is_parked)
        return {row for (row,) in self._database.run("DeleteLetters", statement, parameters)}

    def taken(self, rows: Sequence[int], *, is_parked: bool) -> set[int]:
        """The rows that are not in their table because a pass or a person has moved them. Raises CallFailed."""
        parameters = {"rows": list(rows), "is_parked": is_parked}
        return {
            row
            for (row,) in self._database.run("FindLetters", self._statement(_TAKEN, {}), parameters)
        }

    def restore(self, one: Outgoing, now: datetime) -> int:
        """Put a letter's row into the parking lot, and return its number. If it raises CallFailed, nothing was done."""
        content = content_of(one.letter)
        if content is None:
            raise CallFailed(_CALL, "NoRow", "the file has no row for it")
        known = self._of(self._database.place.parked)
        row_has = self._keys(content)
        columns = [column for column in known if _is_written(column, row_has)]
        parameters = {
            "content": content,
            "trail": one.metadata.encode(),
            "now": now,
            "known": [column.name for column in known],
        }
        names = {
            "columns": sql.SQL(", ").join(_name(column) for column in columns),
            "values": sql.SQL(", ").join(_value(column) for column in columns),
        }
        statement = self._statement(_RESTORE, names)
        ((row, unknown, is_there),) = self._database.run(_CALL, statement, parameters)
        if row is not None:
            return int(row)
        if unknown:
            raise CallFailed(_CALL, "NoSuchColumn", self._advice(unknown))
        if is_there:
            detail = "a row with its number is in the DLQ or the parking lot"
            raise CallFailed(_CALL, "StillThere", detail)
        detail = (
            "a trigger keeps it out of the parking lot, or somebody put it there at the same moment"
        )
        raise CallFailed(_CALL, "InsertSwallowed", detail)

    def _keys(self, content: str) -> set[str]:
        """The columns of a row from a file, as Postgres reads them, at any depth and in any spelling."""
        keys = sql.Composed([sql.SQL("select json_object_keys(cast(%(content)s as json))")])
        return {key for (key,) in self._database.run(_CALL, keys, {"content": content})}

    def _of(self, table: str) -> list[Column]:
        if table not in self._columns:
            self._columns[table] = columns_of(self._database, table)
        return self._columns[table]

    def _whole(self, text: LiteralString, *, is_parked: bool) -> sql.Composed:
        """A statement that reads whole rows of one of the tables."""
        place = self._database.place
        table = place.parked if is_parked else place.dead_letters
        nulls = [
            sql.SQL("case when d.{} is null then {} end").format(_name(one), _spelt(one))
            for one in self._of(table)
            if one.is_json
        ]
        kept = sql.Identifier(*table.split("."))
        return self._statement(text, {"kept": kept, "nulls": sql.SQL(", ").join(nulls)})

    def _statement(self, text: LiteralString, more: Mapping[str, sql.Composable]) -> sql.Composed:
        return composed(text, {**names_of(self._database.place), **more})

    def _advice(self, unknown: Sequence[str]) -> str:
        """Name the missing column, and the statement that adds it. The DLQ may show its type."""
        place = self._database.place
        types = {one.name: one.declared for one in self._of(place.dead_letters)}
        parked = sql.Identifier(*place.parked.split(".")).as_string()
        added = ", ".join(
            f"add column {sql.Identifier(one).as_string()} {types.get(one, '<type>')}"
            for one in unknown
        )
        return f"{place.parked} lacks what the row has: {', '.join(unknown)}; `alter table {parked} {added}`, and again"


def content_of(letter: Letter) -> str | None:
    """The row that a letter was kept with."""
    return letter.attributes.get(ROW, {}).get("StringValue")


def _is_written(column: Column, row_has: Set[str]) -> bool:
    """Whether the row has a value for the column, even null. A JSON column that is not in the row is null, too.

    A column that was added later has its default.
    """
    is_of_row = column.is_json or column.name in row_has
    return not column.is_generated and (is_of_row or column.name in _OURS)


def _spelt(column: Column) -> str:
    """Return a column's name for a statement with parameters."""
    return column.name.replace("%", "%%")


def _name(column: Column) -> sql.Identifier:
    return sql.Identifier(_spelt(column))


def _value(column: Column) -> sql.Composable:
    if column.name in _OURS:
        return _OURS[column.name]
    if not column.is_json:
        return sql.SQL("r.{}").format(_name(column))
    is_null = sql.SQL("json_typeof(a.our_content -> {}) = 'null'").format(_spelt(column))
    return sql.SQL("case when {} then 'null' else r.{} end").format(is_null, _name(column))


class PeoplesSource(JobsSource):
    """The table of jobs. If a person has edited a letter, the edited payload becomes the job."""

    def deliver(self, outgoing: Sequence[Outgoing]) -> Sent:
        """Send letters as a pass does. Edited ones have statements of their own. Raises nothing."""
        sent = Sent()
        for is_edited in (False, True):
            sent.add(super().deliver([one for one in outgoing if bool(one.before) is is_edited]))
        return sent

    def _moved(
        self, some: Sequence[Outgoing], statement: sql.Composed, parameters: dict[str, Any]
    ) -> dict[int, str]:
        befores = [one.before.body for one in some if one.before]
        if befores:
            statement = self._edited(is_parked=Handle.of(some[0].letter).is_parked)
            payloads = [one.letter.body for one in some]
            parameters = {**parameters, "befores": befores, "payloads": payloads}
        return super()._moved(some, statement, parameters)

    def _edited(self, *, is_parked: bool) -> sql.Composed:
        """Compose the statement with the payload's type, because text is not cast to it. Raises CallFailed.

        Text stays text: a cast to a type with a length would cut what an insert refuses.
        """
        place = self._database.place
        columns = {one.name: one for one in columns_of(self._database, place.jobs)}
        payload = columns[place.column("jobs.payload")]
        # The catalog's own name for a type is valid SQL.
        kind = sql.SQL("text" if payload.is_text else payload.declared)
        return composed(EDITED_TEXTS[is_parked], {**names_of(place), "payload_type": kind})


#: Letters that a person agrees to are counted, not estimated.
_COUNTED = 1 << 40


class PeoplesLetters(DeadLetters):
    """The DLQ for people.

    `whole`: with whole payloads, and not only as much as people read. `among`: only these rows, held or not.
    `contains`: only letters with this text in their payloads.
    """

    def __init__(
        self,
        database: Database,
        clock: Callable[[], datetime],
        *,
        whole: bool = False,
        among: Sequence[int] | None = None,
        contains: str | None = None,
    ) -> None:
        self._whole = whole
        self._among = among
        self._contains = contains
        self._rows = Rows(database)
        super().__init__(database, clock)

    def facts(self, *, counted: int = COUNTED) -> QueueFacts:
        """Count letters as a pass does, but all of them if there is no estimate. Raises CallFailed.

        There is none before a table's first ANALYZE, and for views and job libraries.
        """
        known = super().facts(counted=counted)
        return self.exact_facts() if counted in (known.visible, known.in_flight) else known

    def exact_facts(self) -> QueueFacts:
        """Count all letters, which takes seconds for ten million. Raises CallFailed."""
        return self.facts(counted=_COUNTED)

    def receive(self, limit: int, *, hidden_for: timedelta) -> list[Letter]:
        """Receive letters, which are also known by the numbers of their rows. Raises CallFailed."""
        return [_by_row(one) for one in super().receive(limit, hidden_for=hidden_for)]

    def keep(self, letters: Iterable[Letter]) -> tuple[list[Letter], list[EntryFault]]:
        """Return letters that are still there, with their whole rows for a file, and faults of unreadable ones."""
        return by_halves(list(letters), self._with_rows)

    def remove(self, letters: Iterable[Letter]) -> list[EntryFault]:
        """Delete letters that are unchanged since they were kept. Returns faults for those that it did not delete."""
        letters = list(letters)
        deleted, refused = by_halves(letters, self._remove)
        faults = {fault.key: fault for fault in refused}
        tried = [one for one in letters if one.message_id not in faults]
        left = {fault.key: fault for fault in self.delete(tried)}
        faults |= left | self._changed([one for one in tried if one.message_id in left])
        done = faults.keys() | {one.message_id for one in deleted}
        return [
            *faults.values(),
            *self._taken([one for one in letters if one.message_id not in done]),
        ]

    def moved(self, letters: Sequence[Letter]) -> set[str]:
        """Message ids of letters that a pass or a person has taken out of the table. Raises CallFailed."""
        rows = {Handle.of(one).row: one.message_id for one in letters}
        return {rows[row] for row in self._rows.taken(list(rows), is_parked=self._is_parked)}

    def _with_rows(self, letters: Sequence[Letter]) -> list[Letter]:
        if self._database.place.library:  # its row stays there, and no file can restore it
            there = self.still_there(letters)
            return [one for one in letters if one.message_id in there]
        by_row = {Handle.of(one).row: one for one in letters}
        kept = self._rows.keep(list(by_row), is_parked=self._is_parked)
        return [_with_row(by_row[row], content) for row, content in kept.items()]

    def _remove(self, letters: Sequence[Letter]) -> list[Letter]:
        contents = {Handle.of(one).row: content_of(one) or "" for one in letters}
        deleted = self._rows.delete(contents, is_parked=self._is_parked)
        return [one for one in letters if Handle.of(one).row in deleted]

    def _taken(self, letters: Sequence[Letter]) -> list[EntryFault]:
        """Return faults for letters that somebody else has moved between their reading and their delete."""
        if not letters:
            return []
        try:
            moved = self.moved(letters)
        except CallFailed as failed:
            return [EntryFault.of(failed, one.message_id) for one in letters]
        detail = "a pass or a person has moved its row since it was read"
        return [
            EntryFault(call="DeleteLetters", key=one, code=NOT_THERE, detail=detail)
            for one in sorted(moved)
        ]

    def _changed(self, letters: Sequence[Letter]) -> dict[str, EntryFault]:
        """Return faults by id for letters that are there but differ from the kept ones."""
        kept = {one.message_id: content_of(one) for one in letters}
        as_it_is, _ = self.keep(letters) if letters else ([], [])
        return {
            one.message_id: EntryFault(
                call="DeleteLetters",
                key=one.message_id,
                code="ChangedMeanwhile",
                detail="somebody has changed its row since it was read; it is left as it is now",
            )
            for one in as_it_is
            if content_of(one) != kept[one.message_id]
        }

    def _make_pages(self) -> Pages:
        known, table = self._database.statements, "parked" if self._is_parked else "dead"
        of_all, of_some = ("take", "pick") if self._whole else ("look", "find")
        verb = of_all if self._among is None else of_some
        read = getattr(known, f"{verb}_{table}")
        is_parked = self._is_parked
        return Pages(
            self._database,
            read,
            is_parked=is_parked,
            size=None,
            among=self._among,
            contains=self._contains,
        )


class PeoplesLot(PeoplesLetters, ParkingLot):
    """The parking lot. Letters from a file become rows in it as they were."""

    def park(self, outgoing: Sequence[Outgoing]) -> Sent:
        """Move letters here from the DLQ, or restore them from a file. Raises nothing."""
        of_file = [one for one in outgoing if not one.letter.receipt_handle]
        sent = super().park([one for one in outgoing if one.letter.receipt_handle])
        for one in of_file:
            try:
                row = self._rows.restore(one, self._clock())
            except CallFailed as failed:
                sent.faults.append(EntryFault.of(failed, one.letter.message_id))
            else:
                sent.new_ids[one.letter.message_id] = f"parked-{row}"
        return sent


def _by_row(letter: Letter) -> Letter:
    """The letter. One that has a job's id is also known by its row, which people see in the table."""
    row = f"dlq-{Handle.of(letter).row}"
    handle = Handle.of(letter)
    is_job = handle.job is not None and letter.message_id == job_id(handle.job, handle.redrives)
    return replace(letter, request_id=row) if is_job else letter


def _with_row(letter: Letter, content: str) -> Letter:
    row = {"DataType": "String", "StringValue": content}
    return replace(letter, attributes={**letter.attributes, ROW: row})
