"""Whether a database is as the adapters need it: tables, columns, the role's rights, TLS. Nothing is changed."""

from __future__ import annotations

from collections.abc import Iterator

from psycopg import sql

from redrive.databases import VERIFIED, JobsDatabase
from redrive.errors import CallFailed
from redrive.postgres.column_checks import Table, check_columns
from redrive.postgres.columns import casts_of, columns_of, quoted
from redrive.postgres.database import Database
from redrive.postgres.findings import Finding
from redrive.postgres.own_tables import check_own_tables
from redrive.postgres.table_checks import check_tables

#: What the role needs, by the table's name in `JobsDatabase`; some of it on the whole table, some on one column.
_NEEDED = {
    "jobs": ("INSERT",),
    "dead_letters": ("SELECT", "DELETE"),
    "parked": ("SELECT", "INSERT", "DELETE"),
    "held": ("SELECT", "INSERT", "UPDATE", "DELETE"),
    "redriven": ("SELECT", "INSERT", "UPDATE", "DELETE"),
    "looks": ("SELECT", "INSERT", "UPDATE"),
}
#: What it should not have: with it a fault of ours could cost the team a job.
_TOO_MUCH = {"jobs": ("UPDATE", "DELETE", "TRUNCATE"), "dead_letters": ("INSERT", "TRUNCATE")}

#: None where there is nothing of that name; else whether it is a table, partitioned or not.
_IS_TABLE = sql.SQL(
    "select (select c.relkind in ('r', 'p') from pg_class c where c.oid = to_regclass(%(table)s))"
)
#: Where a table of that name is that the role does not see, and whether the schema lets it in.
_UNSEEN = sql.SQL("""
select n.nspname::text, has_schema_privilege(n.oid, 'USAGE') from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relname = %(name)s and c.relkind in ('r', 'p') and n.nspname !~ '^pg_' order by 2, 1
""")
_MAY = sql.SQL("select has_table_privilege(%(table)s, %(right)s)")
_MAY_ON_A_COLUMN = sql.SQL("select has_any_column_privilege(%(table)s, %(right)s)")
_MAY_SEE = sql.SQL("select has_column_privilege(%(table)s, %(column)s, 'SELECT')")
_SEQUENCE = sql.SQL(
    "select s is not null and has_sequence_privilege(s, 'USAGE, UPDATE') from pg_get_serial_sequence(%(table)s, %(column)s) s"
)
_MAY_WRITE = sql.SQL("select current_setting('transaction_read_only') = 'off'")
_HAS_CHARACTERS = sql.SQL("select current_setting('server_encoding') <> 'SQL_ASCII'")
_TLS = sql.SQL("select ssl from pg_stat_ssl where pid = pg_backend_pid()")


def examine(database: Database) -> list[Finding]:
    """Everything that there is to say; of tables or columns that are missing, only that. Raises CallFailed where the database can't be asked."""
    place, tables = database.place, list(_tables(database))
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
    absent = "run the migration" if is_ours else "name the table in the configuration"
    advice = "what has this name is no table"
    if is_table is None:
        advice = _unseen(database, table) or absent
    return Finding(what=what, is_well=bool(is_table), advice=advice)


def _unseen(database: Database, table: str) -> str | None:
    """What to do where it is there, and the role's search path does not lead to it."""
    if "." in table:
        return None
    rows = database.run("Examine", sql.Composed([_UNSEEN]), {"name": table})
    for schema, may_use in rows:
        if not may_use:
            return f'is in schema {schema}, where the role sees nothing: grant usage on schema "{schema}" to the role'
        return f"is in schema {schema}, and not in the role's search path: name it {schema}.{table} in the configuration"
    return None


def _rights(database: Database) -> Iterator[Finding]:
    place: JobsDatabase = database.place
    for role, rights in _NEEDED.items():
        table = place.looks if role == "looks" else getattr(place, role)
        for right in rights:
            may = _ask(database, _MAY, table=quoted(table), right=right)
            yield Finding(what=f"{right.lower()} on {table}", is_well=may, advice="grant it")
    for table in (place.dead_letters, place.parked):
        may = _ask(database, _MAY_ON_A_COLUMN, table=quoted(table), right="UPDATE")
        yield Finding(what=f"update of the id of {table}", is_well=may, advice="grant it")
    yield _may_look(database)
    column = place.column("jobs.id")
    yield Finding(
        what=f"the sequence of {place.jobs}.{column}",
        is_well=_ask(database, _SEQUENCE, table=quoted(place.jobs), column=column),
        advice="a serial or identity column, and usage of its sequence",
    )
    for role, rights in _TOO_MUCH.items():
        table = getattr(place, role)
        for right in rights:
            may = _ask(database, _MAY, table=quoted(table), right=right)
            what = f"no {right.lower()} on {table}"
            yield Finding(what=what, is_well=not may, advice="revoke it", is_needed=False)


def _may_look(database: Database) -> Finding:
    """Whether it may see of a job what says how it stands."""
    place = database.place
    seen = [place.column(f"jobs.{one}") for one in ("id", "attempts", "run_after", "locked_at")]
    table = quoted(place.jobs)
    hidden = [one for one in seen if not _ask(database, _MAY_SEE, table=table, column=one)]
    return Finding(
        what=f"select of {', '.join(seen)} of {place.jobs}",
        is_well=not hidden,
        advice=f"grant it: {', '.join(hidden)}",
    )


def _may_write(database: Database) -> Finding:
    return Finding(
        what="transactions that may write",
        is_well=_ask(database, _MAY_WRITE),
        advice="the server is a replica, or the role or the database has `default_transaction_read_only`: name the primary, "
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
