"""The adapters' statements with one deployment's own names, quoted by psycopg."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import LiteralString

from psycopg import sql

from smart_redriver.postgres.engine.by_state import names_by_state, texts_by_state
from smart_redriver.postgres.engine.place import DEAD_COLUMNS, JOBS_COLUMNS, JobsDatabase
from smart_redriver.postgres.engine.texts import LOOK_TEXTS, PEOPLES_TEXTS, TEXTS, as_read


@dataclass(frozen=True, slots=True, kw_only=True)
class Statements:
    """The statements for one database. `texts` and `people_texts` describe the parameters and results of each."""

    count_dead: sql.Composed
    count_parked: sql.Composed
    count_jobs: sql.Composed
    count_new: sql.Composed
    count_sent: sql.Composed
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
    number_of: sql.Composed
    about: sql.Composed
    group_dead: sql.Composed
    group_parked: sql.Composed
    oldest: sql.Composed
    hold: sql.Composed
    forget_holds: sql.Composed
    redrive_dead: sql.Composed
    redrive_parked: sql.Composed
    park: sql.Composed
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
    number: sql.Composed | None
    forget_settled: sql.Composed
    read_look: sql.Composed
    see_jobs: sql.Composed
    keep_look: sql.Composed

    @classmethod
    def of(cls, database: JobsDatabase) -> Statements:
        """The statements with the names of this database."""
        names, texts = names_of(database), TEXTS | PEOPLES_TEXTS | LOOK_TEXTS
        if profile := database.library:
            names, texts = (
                names_by_state(database, profile, names),
                {**texts, **texts_by_state(profile)},
            )
        known = {name: composed(text, names) for name, text in texts.items()}
        return cls(**{one.name: known.get(one.name) for one in fields(cls)})  # type: ignore[arg-type]  # number alone


def names_of(database: JobsDatabase) -> dict[str, sql.Composable]:
    """The values for the braces in the texts: tables, columns, and the lists of carried columns."""
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
    names["in_hand_column"] = sql.Identifier(database.in_hand_column)
    names["tries_of_the_job"] = composed(as_read("<tries of the job>"), names)
    has_time: LiteralString = "j.{in_hand_column} > %(now)s and {tries_of_the_job} > 0"
    is_set: LiteralString = "j.{in_hand_column} is not null"
    names["in_hand"] = composed(has_time if database.in_hand_until else is_set, names)
    names |= _numbers(database, names)
    names["j_id_text"] = sql.Literal(database.column("jobs.id"))
    names["d_id_text"] = sql.Literal(database.column("jobs_dlq.id"))
    in_content: LiteralString = "(c ->> {d_id_text})"
    names["c_row"] = _number_of(composed(in_content, names), database.ids.get("jobs_dlq.id"))
    of_column: LiteralString = "pg_get_serial_sequence({jobs_text}, {j_id_text})"
    given: LiteralString = "%(id)s"
    names["given_number"] = composed(_HASH, {"id": sql.SQL(given)})
    names["sequence"] = (
        sql.Literal(_quoted(database.sequence)) if database.sequence else composed(of_column, names)
    )
    names["new_id"] = composed(_NEW_IDS[database.ids.get("jobs.id")], names)
    names["counts_tell"] = sql.SQL("true")
    names |= dict.fromkeys(("beside", "dbeside", "gbeside"), sql.SQL(""))
    for prefix in ("", "d.", "g."):
        columns_of = [sql.SQL(", " + prefix) + sql.Identifier(one) for one in database.carried]
        names[f"{prefix.strip('.')}carried"] = sql.Composed(columns_of)
    most = database.max_attempts
    names["and_max_attempts"] = (
        sql.SQL("") if most is None else sql.SQL(", ") + names["j_max_attempts"]
    )
    names["and_most"] = sql.SQL("") if most is None else sql.SQL(", ") + sql.Literal(most)
    return names


#: The expression that makes a job's id, by the type of ids.
_NEW_IDS: dict[str | None, LiteralString] = {
    None: "nextval({sequence})",
    "uuid": "gen_random_uuid()",
    "text": "gen_random_uuid()::text",
}


#: No release can change this hash, because Postgres itself partitions by it. Its result here is never negative.
_HASH: LiteralString = "(hashtextextended({id}::text, 0) & 9223372036854775807)"


def _number_of(value: sql.Composable, kind: str | None) -> sql.Composable:
    """The number of a row with this id: the id itself or, for a type in `place.ID_TYPES`, a hash of it."""
    return composed(_HASH, {"id": value}) if kind else value


def _numbers(
    database: JobsDatabase, names: Mapping[str, sql.Composable]
) -> dict[str, sql.Composable]:
    """Numbers of rows and of their former jobs, and the order in which letters came."""
    of_rows, of_jobs = database.ids.get("jobs_dlq.id"), database.ids.get("jobs.id")
    told = {"own_row": _number_of(names["d_id"], of_rows)}
    told["own_job"] = _number_of(names["j_id"], of_jobs)
    told["own_original"] = _number_of(names["d_original_id"], of_jobs)
    for alias in ("d", "e"):
        beside = sql.SQL(f"{alias}.")
        told[f"{alias}_row"] = _number_of(beside + names["d_id"], of_rows)
        told[f"{alias}_original"] = _number_of(beside + names["d_original_id"], of_jobs)
    told["j_job"] = _number_of(sql.SQL("j.") + names["j_id"], of_jobs)
    told["k_job"] = _number_of(sql.SQL("k.our_id"), of_jobs)
    by_row: LiteralString = "{d_row}"
    by_death: LiteralString = "d.{d_failed_at}"
    line = composed(by_death if of_rows else by_row, {**names, **told})
    told["d_oldest"] = line
    told["d_latest"] = line + sql.SQL(" desc nulls last" if of_rows else " desc")
    # A look takes the latest jobs, and those since a number, but hashes are in no order.
    told["jobs_tell"] = sql.SQL("false" if of_jobs else "true")
    return told


def composed(text: LiteralString, names: Mapping[str, sql.Composable]) -> sql.Composed:
    """A constant text of this package with the names inserted."""
    return sql.SQL(text).format(**names)


def _quoted(table: str) -> str:
    """The name of a table as Postgres reads it in a text: `"app"."jobs"`."""
    return ".".join(f'"{part}"' for part in table.split("."))
