"""The columns of tables, from the database's catalog, which any role may read."""

from __future__ import annotations

from collections.abc import Set
from typing import NamedTuple

from psycopg import sql

from smart_redriver.postgres.engine.database import Database

_COLUMNS = sql.SQL("""
select a.attname, format_type(a.atttypid, a.atttypmod), format_type(coalesce(nullif(t.typbasetype, 0), t.oid), null),
       t.typcategory = 'S',
       (a.attnotnull or t.typnotnull) and not a.atthasdef and a.attidentity = '' and t.typdefault is null,
       a.attgenerated <> ''
from pg_attribute a join pg_type t on t.oid = a.atttypid
where a.attrelid = to_regclass(%(table)s) and a.attnum > 0 and not a.attisdropped
order by a.attnum
""")
_CASTS = sql.SQL(
    "select format_type(castsource, null), format_type(casttarget, null) from pg_cast where castcontext in ('a', 'i')"
)


class Column(NamedTuple):
    """One column.

    `declared` is its type as in DDL. `kind` is its type, or a domain's base type, without length or precision.
    `has_to_be_given`: an insert without it is refused. `is_generated`: an insert with it is refused.
    """

    name: str
    declared: str
    kind: str
    is_text: bool
    has_to_be_given: bool
    is_generated: bool

    @property
    def is_json(self) -> bool:
        """Whether it can hold JSON's null, which is not SQL's null."""
        return self.kind in ("json", "jsonb")

    def takes(self, other: Column, casts: Set[tuple[str, str]]) -> bool:
        """Whether an insert may put the other's values here. `casts` are from `casts_of`. Any value can become text."""
        return self.is_text or self.kind == other.kind or (other.kind, self.kind) in casts


def columns_of(database: Database, table: str) -> list[Column]:
    """Read a table's columns in order; none if there is no such table. Raises CallFailed."""
    rows = database.run("ReadColumns", sql.Composed([_COLUMNS]), {"table": quoted(table)})
    return [Column(*row) for row in rows]


def casts_of(database: Database) -> Set[tuple[str, str]]:
    """Read the pairs of types between which an insert casts automatically. Raises CallFailed."""
    return {(one, other) for one, other in database.run("ReadCasts", sql.Composed([_CASTS]), {})}


def quoted(name: str) -> str:
    """The name of a table or column, quoted so that any name works, such as `order`."""
    return ".".join(f'"{part}"' for part in name.split("."))
