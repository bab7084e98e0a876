"""The doctor's checks of a library's one table: whether it is that table, and whether the role may redrive.

The migration has the role's grants, see `granted`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from psycopg import sql

from smart_redriver.engine.errors import CallFailed
from smart_redriver.postgres.columns import columns_of, quoted
from smart_redriver.postgres.doctor.table_checks import Finding
from smart_redriver.postgres.engine.database import Database
from smart_redriver.postgres.engine.place import JobsDatabase
from smart_redriver.postgres.engine.profiles import Profile
from smart_redriver.postgres.migration import REMEDY, ROLE, migration_of

_MAY = sql.SQL("select has_column_privilege(%(table)s, %(column)s, %(right)s)")
_TOO_MUCH = sql.SQL("select has_table_privilege(%(table)s, 'DELETE')")
_OURS = ("parked", "held", "redriven", "looks")
_IS_THERE = sql.SQL("select to_regclass(%(table)s) is not null")
_HIDES_ROWS = sql.SQL(
    "select row_security_active(to_regclass(%(table)s)) and not"
    " (select rolbypassrls from pg_roles where rolname = current_user)"
)


def check_library(database: Database, library: Profile) -> Iterator[Finding]:
    """Yield all findings, or only that a table or columns are missing. Raises CallFailed."""
    place = database.place
    lacks = {*library.reads, *library.writes} - {
        one.name for one in columns_of(database, place.jobs)
    }
    yield Finding(
        what=f"{place.jobs} as {place.profile} makes it",
        is_well=not lacks,
        advice=f"missing: {', '.join(sorted(lacks))}; name its table in `jobs`, with its schema",
    )
    if lacks:
        return
    ours = [*_OURS, "keys"] if library.key else _OURS
    absent = [one for one in ours if not _ask(database, _IS_THERE, getattr(place, one))]
    yield Finding(
        what="the tables of the re-driver",
        is_well=not absent,
        advice=f"missing: {', '.join(getattr(place, one) for one in absent)}; {REMEDY}",
    )
    yield from _rights(database, library)
    yield Finding(
        what=f"all rows of {place.jobs}",
        is_well=not _ask(database, _HIDES_ROWS, place.jobs),
        advice="row level security keeps rows from the role, and what it can't see looks gone: give it `bypassrls`",
    )
    yield Finding(
        what=f"no delete on {place.jobs}",
        is_well=not _ask(database, _TOO_MUCH, place.jobs),
        advice="revoke it",
        is_needed=False,
    )
    if not absent:
        yield _statements_work(database)


def granted(place: JobsDatabase) -> list[str]:
    """The grants of the migration, one on each line."""
    lines = migration_of(place).grants.splitlines()
    return [one for one in lines if one.startswith(("grant ", "alter role "))]


def _rights(database: Database, library: Profile) -> Iterator[Finding]:
    place = database.place
    for right, columns in (("SELECT", library.reads), ("UPDATE", library.writes)):
        lacks = [
            one for one in columns if not _ask(database, _MAY, place.jobs, column=one, right=right)
        ]
        yield Finding(
            what=f"{right.lower()} of {', '.join(columns)} of {place.jobs}",
            is_well=not lacks,
            advice=f"grant it: {', '.join(lacks)}: "
            f"grant {right.lower()} ({', '.join(lacks)}) on {place.jobs} to {place.user or ROLE}",
        )


def _statements_work(database: Database) -> Finding:
    """Whether the role can run a redrive of no letter, and read letters."""
    known = database.statements
    now: dict[str, Any] = {"now": "2000-01-01T00:00:00Z"}
    what = "the statements of a pass"
    try:
        database.rehearse("Examine", known.redrive_dead, _NOBODY | now)
        database.rehearse("Examine", known.read_dead, {"after": 0, "limit": 1, **now})
        database.rehearse("Examine", known.see_jobs, _LOOK | now)
    except CallFailed as refused:
        return Finding(what=what, is_well=False, advice=f"{refused.code}: {refused.detail}")
    return Finding(what=what, is_well=True)


_NOBODY: dict[str, Any] = {"rows": [], "run_after": [], "trails": [], "left_jobs": []}
_LOOK: dict[str, Any] = {"seen": [], "after": 0, "most": 1, "few": 1}


def _ask(database: Database, question: sql.SQL, table: str, **more: object) -> bool:
    asked = {"table": quoted(table), **more}
    ((answer,),) = database.run("Examine", sql.Composed([question]), asked)
    return bool(answer)
