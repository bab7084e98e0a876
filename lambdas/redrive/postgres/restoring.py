"""Rows as a file keeps them, and back into the parking lot as they were: no value changes on the way, and none is left out.

A row is kept as JSON, in which a column of JSON that is null is not there at all, and one that holds JSON's null is null:
`row_to_json` and `json_populate_record` alone would make one of the two. It is `json` and never `jsonb`, for which a text of
the former is another: without its spaces, its order, and the first of two keys that are alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from datetime import datetime
from typing import LiteralString

from psycopg import sql

from redrive.core.letter import Letter
from redrive.core.outgoing import Outgoing
from redrive.errors import CallFailed
from redrive.postgres.columns import Column, columns_of
from redrive.postgres.database import Database
from redrive.postgres.statements import composed, names_of

#: The attribute that a letter of a file has beside those that it is shown by: its whole row, as JSON.
ROW = "Row"

_CALL = "RestoreLetters"
#: Columns that are not as they were, and their values.
_OURS = {
    "redrive_trail": sql.SQL("%(trail)s::text"),
    "parked_at": sql.SQL("%(now)s::timestamptz"),
}

#: A row `d` with all its columns, as JSON. `d.*`, as a column may be called `d`.
_CONTENT: LiteralString = """(select json_object_agg(k.key, k.value)::text from json_each(row_to_json(d.*)) k
        where k.key <> all(array_remove(array[{nulls}]::text[], null)))"""

#: `rows` -> each with its content. What no `jsonb` takes is refused here: the parking lot's column may be one.
_WHOLE = """
select d.{d_id}::bigint, whole.content
from {kept} d cross join lateral (select <content> as content) whole
where d.{d_id} = any(%(rows)s) and whole.content::jsonb is not null
""".replace("<content>", _CONTENT)

#: `rows`, `contents`: what is still as it was kept, and in nobody's hands. What somebody has changed since is in no file.
#: Of a returned job's letter nothing is left to be known.
_DELETE = """
with gone as (
  delete from {kept} where {d_id} in (
    select d.{d_id} from {kept} d join unnest(%(rows)s::bigint[], %(contents)s::text[]) as a(our_row, our_content)
                                    on d.{d_id} = a.our_row
    where <content> = a.our_content
    for update of d skip locked
  )
  returning {d_id} as our_row, {d_original_id} as our_job
)
delete from {redriven} r using gone g where r.job_id = g.our_job and r.returned_as = g.our_row
""".replace("<content>", _CONTENT)

#: `content` (see `_CONTENT`), `trail`, `now`, `known` (the parking lot's columns) -> the row that is parked by this, now or
#: before; the columns that the parking lot lacks: then nothing was done; whether its number was in the DLQ or the parking
#: lot before, where it stays. A trigger that gives it another number divides by zero, see `refusals.SWALLOWED`.
_RESTORE = """
with asked as (
  select (c ->> {d_id_text})::bigint as our_row, c as our_content from cast(%(content)s as json) c
), unknown as (
  select array_agg(k.key order by k.key) as our_columns from asked a, json_each(a.our_content) k
  where json_typeof(k.value) <> 'null' and k.key <> all(%(known)s)
), placed as (
  insert into {parked} ({columns}) overriding system value
  select {values}
  from asked a, json_populate_record(null::{parked}, a.our_content) r
  where (select u.our_columns from unknown u) is null
    and not exists (select 1 from {dead} d where d.{d_id} = a.our_row)
  on conflict ({d_id}) do nothing
  returning {d_id} as our_row
)
select coalesce((select p.our_row / (p.our_row = a.our_row)::int from placed p),
                (select d.{d_id} from {parked} d where d.{d_id} = a.our_row and d.redrive_trail = %(trail)s)),
       (select u.our_columns from unknown u),
       exists (select 1 from {dead} d where d.{d_id} = a.our_row)
       or exists (select 1 from {parked} d where d.{d_id} = a.our_row)
from asked a
"""


class Rows:
    """The rows of one database's letters. Columns of a table are asked for once."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._columns: dict[str, list[Column]] = {}

    def keep(self, rows: Sequence[int], *, is_parked: bool) -> dict[int, str]:
        """The contents of rows, by their numbers; of those alone that are there. Raises CallFailed."""
        statement = self._whole(_WHOLE, is_parked=is_parked)
        return dict(self._database.run("KeepLetters", statement, {"rows": list(rows)}))

    def delete(self, contents: Mapping[int, str], *, is_parked: bool) -> None:
        """Delete rows that are still as they were kept, and in nobody's hands. Raises CallFailed."""
        parameters = {"rows": list(contents), "contents": list(contents.values())}
        self._database.run("DeleteLetters", self._whole(_DELETE, is_parked=is_parked), parameters)

    def restore(self, one: Outgoing, now: datetime) -> int:
        """Put a letter's row into the parking lot; its number. Raises CallFailed, and nothing was done then."""
        content = content_of(one.letter)
        if content is None:
            raise CallFailed(_CALL, "NoRow", "the file has no row of it")
        known = self._of(self._database.place.parked)
        row_has = self._keys(content)
        columns = [column for column in known if _is_written(column, row_has)]
        parameters = {
            "content": content,
            "trail": one.trail.encode(),
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
            detail = "a row of its number is in the DLQ or the parking lot"
            raise CallFailed(_CALL, "StillThere", detail)
        detail = (
            "a trigger keeps it out of the parking lot, or somebody put it there at the same moment"
        )
        raise CallFailed(_CALL, "InsertSwallowed", detail)

    def _keys(self, content: str) -> set[str]:
        """The columns that a row of a file has, as Postgres reads them: however deep it is, and however they are spelt."""
        keys = sql.Composed([sql.SQL("select json_object_keys(cast(%(content)s as json))")])
        return {key for (key,) in self._database.run(_CALL, keys, {"content": content})}

    def _of(self, table: str) -> list[Column]:
        if table not in self._columns:
            self._columns[table] = columns_of(self._database, table)
        return self._columns[table]

    def _whole(self, text: LiteralString, *, is_parked: bool) -> sql.Composed:
        """A text that reads rows of one of the tables whole."""
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
        """What is missing, and the statement that adds it; the DLQ may know of what type."""
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
    """Whether the row has a value for it, which may be none. What is JSON and not there is none, too; what came later has its default."""
    is_of_row = column.is_json or column.name in row_has
    return not column.is_generated and (is_of_row or column.name in _OURS)


def _spelt(column: Column) -> str:
    """As it stands in a statement with parameters."""
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
