"""The columns of a table, as the database's catalog has them: any role may read it."""

from __future__ import annotations

from typing import NamedTuple

from psycopg import sql

from redrive.postgres.database import Database

_COLUMNS = sql.SQL("""
select a.attname, format_type(a.atttypid, a.atttypmod), format_type(coalesce(nullif(t.typbasetype, 0), t.oid), null)
from pg_attribute a join pg_type t on t.oid = a.atttypid
where a.attrelid = to_regclass(%(table)s) and a.attnum > 0 and not a.attisdropped
order by a.attnum
""")


class Column(NamedTuple):
    """One column: its type as DDL has it, and the type that a domain is of, without length or precision."""

    name: str
    declared: str
    kind: str

    @property
    def is_json(self) -> bool:
        """Whether JSON's null is a value of it, which is not null."""
        return self.kind in ("json", "jsonb")


def columns_of(database: Database, table: str) -> list[Column]:
    """All of a table's, in their order; none of a table that is not there. Raises CallFailed."""
    rows = database.run("ReadColumns", sql.Composed([_COLUMNS]), {"table": quoted(table)})
    return [Column(*row) for row in rows]


def quoted(table: str) -> str:
    """The name of a table as Postgres reads it in a text."""
    return ".".join(f'"{part}"' for part in table.split("."))
