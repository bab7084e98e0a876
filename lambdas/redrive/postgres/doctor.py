"""Whether a database is as the adapters need it: tables, columns, indexes, the role's rights, TLS. Nothing is changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from psycopg import sql

from redrive.database_names import COLUMNS
from redrive.databases import VERIFIED, JobsDatabase
from redrive.postgres.database import Database

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

_EXISTS = sql.SQL("select to_regclass(%(table)s) is not null")
_COLUMN_NAMES = sql.SQL(
    "select attname from pg_attribute where attrelid = %(table)s::regclass and attnum > 0 and not attisdropped"
)
_MAY = sql.SQL("select has_table_privilege(%(table)s, %(right)s)")
_MAY_ON_A_COLUMN = sql.SQL("select has_any_column_privilege(%(table)s, %(right)s)")
_MAY_SEE = sql.SQL("select has_column_privilege(%(table)s, %(column)s, 'SELECT')")
_INDEXED = sql.SQL(
    "select exists (select 1 from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]"
    " where i.indrelid = %(table)s::regclass and a.attname = %(column)s and i.indisvalid"
    " and (i.indisunique or not %(unique)s) and (i.indpred is null or not %(unique)s))"
)
_SEQUENCE = sql.SQL(
    "select s is not null and has_sequence_privilege(s, 'USAGE') from pg_get_serial_sequence(%(table)s, %(column)s) s"
)
_TLS = sql.SQL("select ssl from pg_stat_ssl where pid = pg_backend_pid()")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at; `advice` says what to do where it is not well. `is_needed`: no pass works without."""

    what: str
    is_well: bool
    advice: str = ""
    is_needed: bool = True


def examine(database: Database) -> list[Finding]:
    """Everything that there is to say. Raises CallFailed where the database can't be asked."""
    tables = list(_tables(database))
    if not all(one.is_well for one in tables):
        return tables
    return [
        *tables,
        *_rights(database),
        *_indexes(database),
        _tls(database),
    ]


def _tables(database: Database) -> Iterator[Finding]:
    place = database.place
    looks = place.looks
    ours = (place.parked, place.held, place.redriven, looks)
    for table in (*place.tables, looks):
        is_there = _ask(database, _EXISTS, table=quoted(table))
        advice = "run the migration" if table in ours else "name the table in the configuration"
        yield Finding(what=f"table {table}", is_well=is_there, advice=advice)
        if is_there:
            yield from _columns(database, table)


def _columns(database: Database, table: str) -> Iterator[Finding]:
    place = database.place
    known = {place.jobs: "jobs", place.dead_letters: "jobs_dlq", place.parked: "jobs_dlq"}
    if table not in known:
        return
    of_table = [one for one in COLUMNS if one.startswith(f"{known[table]}.")]
    wanted = {*(place.column(one) for one in of_table), *place.carried}
    rows = database.run("Examine", sql.Composed([_COLUMN_NAMES]), {"table": quoted(table)})
    there = {name for (name,) in rows}
    missing, further = sorted(wanted - there), sorted(there - wanted)
    yield Finding(
        what=f"columns of {table}",
        is_well=not missing,
        advice=f"missing: {', '.join(missing)}; name them in `columns`, or add them",
    )
    if table == place.dead_letters and further:
        yield Finding(
            what=f"no further columns of {table}",
            is_well=False,
            advice=f"not kept of a letter that leaves it: {', '.join(further)}; name in `carried` what {place.jobs} has too",
            is_needed=False,
        )


def _rights(database: Database) -> Iterator[Finding]:
    place: JobsDatabase = database.place
    for role, rights in _NEEDED.items():
        table = place.looks if role == "looks" else getattr(place, role)
        for right in rights:
            may = _ask(database, _MAY, table=quoted(table), right=right)
            yield Finding(what=f"{right.lower()} on {table}", is_well=may, advice="grant it")
    dead = place.dead_letters
    may = _ask(database, _MAY_ON_A_COLUMN, table=quoted(dead), right="UPDATE")
    yield Finding(what=f"update of the id of {dead}", is_well=may, advice="grant it")
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


def _indexes(database: Database) -> Iterator[Finding]:
    place = database.place
    for table, column, is_unique in (
        (place.jobs, place.column("jobs.id"), True),
        (place.dead_letters, place.column("jobs_dlq.id"), True),
        (place.dead_letters, place.column("jobs_dlq.original_id"), False),
        (place.jobs, place.column("jobs.run_after"), False),
    ):
        is_there = _ask(database, _INDEXED, table=quoted(table), column=column, unique=is_unique)
        kind = "unique index" if is_unique else "index"
        yield Finding(
            what=f"{kind} on {table}.{column}",
            is_well=is_there,
            advice=f"create {kind.replace(' index', ' index concurrently') if is_unique else 'index concurrently'}"
            f" on {table} ({column}); without it every look reads the whole table",
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


def quoted(table: str) -> str:
    """The name of a table as Postgres reads it in a text."""
    return ".".join(f'"{part}"' for part in table.split("."))


def _ask(database: Database, question: sql.SQL, **parameters: object) -> bool:
    ((answer,),) = database.run("Examine", sql.Composed([question]), parameters)
    return bool(answer)
