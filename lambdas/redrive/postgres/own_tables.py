"""Whether our own tables are as the migration makes them: an older one, or half of one, may have left others."""

from __future__ import annotations

from collections.abc import Iterator

from psycopg import sql

from redrive.postgres.columns import columns_of, quoted
from redrive.postgres.database import Database
from redrive.postgres.findings import Finding

_WHEN = "timestamp with time zone"
#: What statements name of each, with its type, by the table's name in `JobsDatabase`. See `migration`.
_COLUMNS = {
    "parked": {"redrive_trail": "text", "parked_at": _WHEN},
    "held": {"is_parked": "boolean", "row_id": "bigint", "until": _WHEN},
    "redriven": {
        "job_id": "bigint",
        "is_parked": "boolean",
        "row_id": "bigint",
        "trail": "text",
        "redriven_at": _WHEN,
        "died_of": "text",
        "died_saying": "text",
        "tries_told": "integer",
        "settled_at": _WHEN,
        "returned_as": "bigint",
        "original_id": "bigint",
    },
    "looks": {"is_latest": "boolean", "at": _WHEN, "state": "text"},
}
_KEYS = {"held": ["is_parked", "row_id"], "redriven": ["job_id"], "looks": ["is_latest"]}

#: Whether `on conflict` finds a unique index of these columns.
_HAS_KEY = sql.SQL("""
select exists (
  select from pg_index i
  where i.indrelid = to_regclass(%(table)s) and i.indisunique and i.indisvalid and i.indpred is null and i.indexprs is null
    and (select array_agg(a.attname::text order by a.attname) from pg_attribute a
         where a.attrelid = i.indrelid and a.attnum = any((i.indkey::int2[])[0:i.indnkeyatts - 1])) = %(columns)s
)
""")


def check_own_tables(database: Database) -> Iterator[Finding]:
    """What they lack, of tables that are all there. Raises CallFailed."""
    place = database.place
    for role, columns in _COLUMNS.items():
        table: str = getattr(place, role)
        there = {one.name: one.kind for one in columns_of(database, table)}
        lacks = [f"column {one} {kind}" for one, kind in columns.items() if there.get(one) != kind]
        key = _KEYS.get(role) or [place.column("jobs_dlq.id")]
        if not _has_key(database, table, key):
            lacks.append(f"primary key ({', '.join(key)})")
        yield Finding(
            what=f"{table} as the migration makes it",
            is_well=not lacks,
            advice=f"missing: {'; '.join(lacks)}. An older migration made it, or half of one: add it as `migration` prints it",
        )


def _has_key(database: Database, table: str, columns: list[str]) -> bool:
    parameters = {"table": quoted(table), "columns": sorted(columns)}
    ((has_key,),) = database.run("Examine", sql.Composed([_HAS_KEY]), parameters)
    return bool(has_key)
