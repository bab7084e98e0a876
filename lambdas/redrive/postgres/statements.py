"""The statements of the adapters with one deployment's own names in them, quoted by psycopg."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import LiteralString

from psycopg import sql

from redrive.database_names import DEAD_COLUMNS, JOBS_COLUMNS
from redrive.databases import JobsDatabase
from redrive.postgres.look_texts import LOOK_TEXTS
from redrive.postgres.people_texts import PEOPLES_TEXTS
from redrive.postgres.texts import TEXTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Statements:
    """The statements for one database; `texts` and `people_texts` say what each takes and gives."""

    count_dead: sql.Composed
    count_parked: sql.Composed
    count_jobs: sql.Composed
    count_new: sql.Composed
    read_dead: sql.Composed
    read_parked: sql.Composed
    look_dead: sql.Composed
    look_parked: sql.Composed
    find_dead: sql.Composed
    find_parked: sql.Composed
    take_dead: sql.Composed
    take_parked: sql.Composed
    pick_dead: sql.Composed
    pick_parked: sql.Composed
    rows_of_jobs: sql.Composed
    about: sql.Composed
    group_dead: sql.Composed
    group_parked: sql.Composed
    oldest: sql.Composed
    hold: sql.Composed
    forget_holds: sql.Composed
    redrive_dead: sql.Composed
    redrive_parked: sql.Composed
    beside: sql.Composed
    delete_dead: sql.Composed
    delete_parked: sql.Composed
    somewhere: sql.Composed
    try_job: sql.Composed
    others_dead: sql.Composed
    others_parked: sql.Composed
    are_dead: sql.Composed
    are_parked: sql.Composed
    read_outcomes: sql.Composed
    settle: sql.Composed
    forget_settled: sql.Composed
    read_look: sql.Composed
    see_jobs: sql.Composed
    keep_look: sql.Composed

    @classmethod
    def of(cls, database: JobsDatabase) -> Statements:
        """The statements with the names of this database."""
        names, texts = names_of(database), TEXTS | PEOPLES_TEXTS | LOOK_TEXTS
        return cls(**{one.name: composed(texts[one.name], names) for one in fields(cls)})


def names_of(database: JobsDatabase) -> dict[str, sql.Composable]:
    """What stands in braces in the texts: tables, columns, and the lists of carried columns."""
    tables = {
        "jobs": database.jobs,
        "dead": database.dead_letters,
        "parked": database.parked,
        "held": database.held,
        "redriven": database.redriven,
        "looks": database.looks,
    }
    names: dict[str, sql.Composable] = {
        name: sql.Identifier(*table.split(".")) for name, table in tables.items()
    }
    for prefix, table, columns in (("j", "jobs", JOBS_COLUMNS), ("d", "jobs_dlq", DEAD_COLUMNS)):
        for one in columns:
            names[f"{prefix}_{one}"] = sql.Identifier(database.column(f"{table}.{one}"))
    names |= {f"{name}_text": sql.Literal(_quoted(table)) for name, table in tables.items()}
    names["j_id_text"] = sql.Literal(database.column("jobs.id"))
    names["d_id_text"] = sql.Literal(database.column("jobs_dlq.id"))
    for prefix in ("", "d.", "g."):
        columns_of = [sql.SQL(", " + prefix) + sql.Identifier(one) for one in database.carried]
        names[f"{prefix.strip('.')}carried"] = sql.Composed(columns_of)
    most = database.max_attempts
    names["and_max_attempts"] = (
        sql.SQL("") if most is None else sql.SQL(", ") + names["j_max_attempts"]
    )
    names["and_most"] = sql.SQL("") if most is None else sql.SQL(", ") + sql.Literal(most)
    return names


def composed(text: LiteralString, names: dict[str, sql.Composable]) -> sql.Composed:
    """A constant text of this package with the names in it."""
    return sql.SQL(text).format(**names)


def _quoted(table: str) -> str:
    """The name of a table as Postgres reads it in a text: `"app"."jobs"`."""
    return ".".join(f'"{part}"' for part in table.split("."))
