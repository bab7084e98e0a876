"""Rows as a file keeps them, and back into the parking lot as they were: no value changes on the way, and none is left out.

A row is kept as JSON, in which a column of JSON that is null is not there at all, and one that holds JSON's null is null:
`to_jsonb` and `jsonb_populate_record` alone would make one of the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from datetime import datetime
from typing import LiteralString

from psycopg import sql

from redrive.core.outgoing import Outgoing
from redrive.errors import CallFailed
from redrive.postgres.columns import Column, columns_of
from redrive.postgres.database import Database
from redrive.postgres.statements import composed, names_of

#: The attribute that a letter of a file has beside those that it is shown by: its whole row, as JSON.
ROW = "Row"

_CALL = "RestoreLetters"
_TRAIL, _PARKED_AT = "redrive_trail", "parked_at"

#: `rows` -> each with all its columns, as JSON. `d.*`, as a column may be called `d`.
_WHOLE = """
select d.{d_id}::bigint, (to_jsonb(d.*) - array_remove(array[{nulls}]::text[], null))::text
from {kept} d where d.{d_id} = any(%(rows)s)
"""

#: `content` (see `_WHOLE`), `trail`, `now`, `known` (the parking lot's columns) -> the row that is parked by this, now or
#: before; the columns that the parking lot lacks: then nothing was done; whether its number was in the DLQ or the parking
#: lot before, where it stays. A trigger that gives it another number divides by zero, see `refusals.SWALLOWED`.
_RESTORE = """
with asked as (
  select (c ->> {d_id_text})::bigint as our_row, c as our_content from cast(%(content)s as jsonb) c
), unknown as (
  select array_agg(k.key order by k.key) as our_columns from asked a, jsonb_each(a.our_content) k
  where k.value <> 'null' and k.key <> all(%(known)s)
), placed as (
  insert into {parked} ({columns}) overriding system value
  select {values}
  from asked a, jsonb_populate_record(null::{parked}, a.our_content
                  || jsonb_build_object('redrive_trail', %(trail)s::text, 'parked_at', %(now)s::timestamptz)) r
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
        place = self._database.place
        table = place.parked if is_parked else place.dead_letters
        nulls = [
            sql.SQL("case when d.{} is null then {} end").format(_name(one), _spelt(one))
            for one in self._of(table)
            if one.is_json
        ]
        names = {
            "kept": sql.Identifier(*table.split(".")),
            "nulls": sql.SQL(", ").join(nulls),
        }
        statement = self._statement(_WHOLE, names)
        return dict(self._database.run("KeepLetters", statement, {"rows": list(rows)}))

    def restore(self, one: Outgoing, now: datetime) -> int:
        """Put a letter's row into the parking lot; its number. Raises CallFailed, and nothing was done then."""
        content = one.letter.attributes.get(ROW, {}).get("StringValue")
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
        keys = sql.Composed([sql.SQL("select jsonb_object_keys(cast(%(content)s as jsonb))")])
        return {key for (key,) in self._database.run(_CALL, keys, {"content": content})}

    def _of(self, table: str) -> list[Column]:
        if table not in self._columns:
            self._columns[table] = columns_of(self._database, table)
        return self._columns[table]

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


def _is_written(column: Column, row_has: Set[str]) -> bool:
    """Whether the row has a value for it, which may be none. What is JSON and not there is none, too; what came later has its default."""
    is_of_row = column.is_json or column.name in row_has
    return not column.is_generated and (is_of_row or column.name in (_TRAIL, _PARKED_AT))


def _spelt(column: Column) -> str:
    """As it stands in a statement with parameters."""
    return column.name.replace("%", "%%")


def _name(column: Column) -> sql.Identifier:
    return sql.Identifier(_spelt(column))


def _value(column: Column) -> sql.Composed:
    if not column.is_json or column.name in (_TRAIL, _PARKED_AT):
        return sql.SQL("r.{}").format(_name(column))
    return sql.SQL("case when a.our_content -> {} = 'null' then 'null' else r.{} end").format(
        _spelt(column), _name(column)
    )
