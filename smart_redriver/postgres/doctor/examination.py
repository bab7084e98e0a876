"""Whether a database has what the adapters need: tables, columns, the role's rights, TLS. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import LiteralString

from psycopg import sql

from smart_redriver.engine.errors import CallFailed
from smart_redriver.postgres.columns import casts_of, columns_of, quoted
from smart_redriver.postgres.doctor.profile_checks import check_library
from smart_redriver.postgres.doctor.table_checks import (
    IS_VIEW,
    Finding,
    Table,
    check_columns,
    check_tables,
)
from smart_redriver.postgres.engine.database import Database, StatementRefused
from smart_redriver.postgres.engine.place import VERIFIED, JobsDatabase
from smart_redriver.postgres.engine.statements import composed, names_of
from smart_redriver.postgres.migration import REMEDY

_WHEN = "timestamp with time zone"
#: Columns that statements use, with their types, by the table's name in `JobsDatabase`. See `migration`.
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

#: Whether `on conflict` finds a unique index on these columns.
_HAS_KEY = sql.SQL("""
select exists (
  select from pg_index i
  where i.indrelid = to_regclass(%(table)s) and i.indisunique and i.indisvalid and i.indpred is null
    and i.indexprs is null
    and (select array_agg(a.attname::text order by a.attname) from pg_attribute a
         where a.attrelid = i.indrelid and a.attnum = any((i.indkey::int2[])[0:i.indnkeyatts - 1])) = %(columns)s
)
""")


def check_own_tables(database: Database) -> Iterator[Finding]:
    """Yield what is missing in the re-driver's own tables, if all exist. Raises CallFailed."""
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
            advice=(
                f"missing: {'; '.join(lacks)}. An older migration made it, or half of one: add it as `migration` "
                "prints it"
            ),
        )


def _has_key(database: Database, table: str, columns: list[str]) -> bool:
    parameters = {"table": quoted(table), "columns": sorted(columns)}
    ((has_key,),) = database.run("Examine", sql.Composed([_HAS_KEY]), parameters)
    return bool(has_key)


#: Rights that the role needs, by the table's name in `JobsDatabase`: some on the whole table, some on one column.
_NEEDED = {
    "jobs": ("INSERT",),
    "dead_letters": ("SELECT", "DELETE"),
    "parked": ("SELECT", "INSERT", "DELETE"),
    "held": ("SELECT", "INSERT", "UPDATE", "DELETE"),
    "redriven": ("SELECT", "INSERT", "UPDATE", "DELETE"),
    "looks": ("SELECT", "INSERT", "UPDATE"),
}
#: Rights that it should not have: with them, a bug of ours could cost the team a job.
_TOO_MUCH = {"jobs": ("UPDATE", "DELETE", "TRUNCATE"), "dead_letters": ("INSERT", "TRUNCATE")}

#: With this many tried jobs, one should have been seen in hand. Fewer may all be waiting for their next try.
_TRIED = 20

#: None if nothing has that name; otherwise whether it is a table, partitioned or not, or a view.
_IS_TABLE = sql.SQL(
    "select (select c.relkind in ('r', 'p', 'v') from pg_class c where c.oid = to_regclass(%(table)s))"
)
#: Where there is a table with that name that the role does not see, and whether the schema allows the role.
_UNSEEN = sql.SQL("""
select n.nspname::text, has_schema_privilege(n.oid, 'USAGE') from pg_class c join pg_namespace n
  on n.oid = c.relnamespace
where c.relname = %(name)s and c.relkind in ('r', 'p', 'v') and n.nspname !~ '^pg_' order by 2, 1
""")
_MAY = sql.SQL("select has_table_privilege(%(table)s, %(right)s)")
#: Statements that need a right, also on what is below a view. They are planned, and not run.
_USES: Mapping[str, LiteralString] = {
    "SELECT": "explain select from {table}",
    "INSERT": "explain insert into {table} default values",
    "UPDATE": "explain select from {table} for update",
    "DELETE": "explain delete from {table}",
}
_MAY_ON_A_COLUMN = sql.SQL("select has_any_column_privilege(%(table)s, %(right)s)")
_LOOK: LiteralString = "explain select {columns} from {table}"
_MAY_SEE = sql.SQL("select has_column_privilege(%(table)s, %(column)s, 'SELECT')")
_SEQUENCE: LiteralString = """
select to_regclass(s) is not null and has_sequence_privilege(to_regclass(s), 'USAGE, UPDATE')
from cast({sequence} as text) s
"""
#: Whether a column has to be set, and whether it never is even though jobs were tried.
_IN_HAND: LiteralString = """
select a.attnotnull, not exists (select from {jobs} j where {in_hand})
  and exists (select from pg_stats s where s.null_frac = 1 and s.attname = a.attname
              and format('%%I.%%I', s.schemaname, s.tablename)::regclass = a.attrelid)
  and (select count(*) from (select from {jobs} j where {tries_of_the_job} > 0 limit %(tried)s) few) = %(tried)s
from pg_attribute a where a.attrelid = to_regclass(%(table)s) and a.attname = %(column)s
"""
_MAY_WRITE = sql.SQL("select current_setting('transaction_read_only') = 'off'")
_HAS_CHARACTERS = sql.SQL("select current_setting('server_encoding') <> 'SQL_ASCII'")
_TLS = sql.SQL("select ssl from pg_stat_ssl where pid = pg_backend_pid()")


def examine(database: Database) -> list[Finding]:
    """All findings, or only the missing tables or columns if there are any.

    Raises CallFailed if the database can't be asked.
    """
    place = database.place
    if place.library is not None:
        return [*check_library(database, place.library), _may_write(database), _tls(database)]
    tables = list(_tables(database))
    if not all(one.is_well for one in tables):
        return tables
    jobs, dead, parked = (
        Table(place, role, columns_of(database, getattr(place, role)))
        for role in ("jobs", "dead_letters", "parked")
    )
    columns = [
        *tables,
        *check_own_tables(database),
        *check_columns(jobs, dead, parked, casts_of(database)),
    ]
    if jobs.missing or dead.missing or parked.missing:
        return columns
    return [
        *columns,
        _may_write(database),
        *_rights(database),
        *check_tables(database),
        _has_characters(database),
        _tls(database),
    ]


def _tables(database: Database) -> Iterator[Finding]:
    place = database.place
    for table in (*place.tables, place.looks):
        yield _is_table(database, table)


def _is_table(database: Database, table: str) -> Finding:
    place, what = database.place, f"table {table}"
    is_ours = table not in (place.jobs, place.dead_letters)
    try:
        ((is_table,),) = database.run(
            "Examine", sql.Composed([_IS_TABLE]), {"table": quoted(table)}
        )
    except CallFailed as failed:
        if failed.code != "InsufficientPrivilege":
            raise
        return Finding(what=what, is_well=False, advice=f"grant usage of it: {failed.detail}")
    absent = REMEDY if is_ours else "name the table in the configuration"
    advice = "what has this name is no table"
    if is_table is None:
        advice = _unseen(database, table) or absent
    return Finding(what=what, is_well=bool(is_table), advice=advice)


def _unseen(database: Database, table: str) -> str | None:
    """The remedy if the table exists but is not on the role's search path."""
    if "." in table:
        return None
    rows = database.run("Examine", sql.Composed([_UNSEEN]), {"name": table})
    for schema, may_use in rows:
        if not may_use:
            return f'is in schema {schema}, where the role sees nothing: grant usage on schema "{schema}" to the role'
        return (
            f"is in schema {schema}, and not in the role's search path: "
            f"name it {schema}.{table} in the configuration"
        )
    return None


def _rights(database: Database) -> Iterator[Finding]:
    place: JobsDatabase = database.place
    for role, rights in _NEEDED.items():
        table = place.looks if role == "looks" else getattr(place, role)
        for right in rights:
            may = _ask(database, _MAY, table=quoted(table), right=right)
            yield _right(database, table, right, f"{right.lower()} on {table}", may=may)
    for table in (place.dead_letters, place.parked):
        may = _ask(database, _MAY_ON_A_COLUMN, table=quoted(table), right="UPDATE")
        yield _right(database, table, "UPDATE", f"update of the id of {table}", may=may)
    may_look = _may_look(database)
    yield may_look
    if may_look.is_well and not place.in_hand_until:
        yield from _tells_in_hand(database)
    if "jobs.id" not in place.ids:
        yield Finding(
            what=f"the sequence of {place.jobs}.{place.column('jobs.id')}",
            is_well=bool(database.run("Examine", composed(_SEQUENCE, names_of(place)), {})[0][0]),
            advice="a serial or identity column, or for a view its name in `sequence`, and usage of its sequence",
        )
    for role, rights in _TOO_MUCH.items():
        table = getattr(place, role)
        for right in rights:
            may = _ask(database, _MAY, table=quoted(table), right=right)
            what = f"no {right.lower()} on {table}"
            yield Finding(what=what, is_well=not may, advice="revoke it", is_needed=False)


def _right(database: Database, table: str, right: str, what: str, *, may: bool) -> Finding:
    """Whether a right suffices: a view with `security_invoker` needs it on the table below, too."""
    why = _refusal(database, table, _USES[right]) if may else None
    return Finding(
        what=what, is_well=may and why is None, advice=f"grant it{f': {why}' if why else ''}"
    )


def _refusal(
    database: Database, table: str, use: LiteralString, columns: Sequence[str] = ()
) -> str | None:
    """Why Postgres refuses a statement on a view, such as a right below it; None for a table."""
    if not _ask(database, IS_VIEW, table=quoted(table)):
        return None
    names = {
        "table": sql.Identifier(*table.split(".")),
        "columns": sql.SQL(", ").join(sql.Identifier(one.replace("%", "%%")) for one in columns),
    }
    try:
        database.run("Examine", composed(use, names), {})
    except StatementRefused as refused:
        return refused.detail
    return None


def _may_look(database: Database) -> Finding:
    """Whether the role may read the columns that show a job's state."""
    place = database.place
    seen = [place.column(f"jobs.{one}") for one in ("id", "attempts", "run_after")]
    seen.append(place.in_hand_column)
    table = quoted(place.jobs)
    hidden = [one for one in seen if not _ask(database, _MAY_SEE, table=table, column=one)]
    if not hidden and (why := _refusal(database, place.jobs, _LOOK, seen)):
        hidden = [why]
    return Finding(
        what=f"select of {', '.join(seen)} of {place.jobs}",
        is_well=not hidden,
        advice=f"grant it: {', '.join(hidden)}",
    )


def _tells_in_hand(database: Database) -> Iterator[Finding]:
    """Whether jobs in hand can be distinguished from waiting ones, as far as rows and statistics show."""
    place = database.place
    asked = {"table": quoted(place.jobs), "column": place.in_hand_column, "tried": _TRIED}
    question = composed(_IN_HAND, names_of(place))
    try:
        ((is_always, is_never),) = database.run("Examine", question, asked)
    except StatementRefused:
        return  # a type or a right that has a finding of its own
    yield Finding(
        what=f"{place.in_hand_column} of {place.jobs} tells which jobs are in hand",
        is_well=not (is_never or is_always),
        advice=f"it is {'never' if is_never else 'always'} set: set it while a worker has the job, or name in "
        "`in_hand_until` the column of a visibility timeout; "
        + (
            "jobs in hand would be told as failed"
            if is_never
            else "failed tries are heard of only at the end"
        ),
        is_needed=is_never,
    )


def _may_write(database: Database) -> Finding:
    return Finding(
        what="transactions that may write",
        is_well=_ask(database, _MAY_WRITE),
        advice="the server is a replica, or the role or the database has `default_transaction_read_only`: "
        "name the primary, "
        "or set it off for the role",
    )


def _has_characters(database: Database) -> Finding:
    return Finding(
        what="an encoding of characters",
        is_well=_ask(database, _HAS_CHARACTERS),
        advice="SQL_ASCII takes any bytes: one in an error that is no UTF-8 ends each pass that reads it"
        " (CharacterNotInRepertoire); see that workers write UTF-8",
        is_needed=False,
    )


def _tls(database: Database) -> Finding:
    is_on = _ask(database, _TLS)
    return Finding(
        what="TLS, verified",
        is_well=is_on and database.place.sslmode == VERIFIED,
        advice=f"sslmode {VERIFIED}, and sslrootcert with the authorities of the database",
        is_needed=False,
    )


def _ask(database: Database, question: sql.SQL, **parameters: object) -> bool:
    ((answer,),) = database.run("Examine", sql.Composed([question]), parameters)
    return bool(answer)
