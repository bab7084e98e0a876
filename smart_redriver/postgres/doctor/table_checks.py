"""The doctor's findings about tables: columns that are missing or have a wrong type, and anything that hides rows,
swallows them, deletes others with them, or is slow. Pure except for what `examination` reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import LiteralString

from psycopg import sql

from smart_redriver.postgres.columns import Column, quoted
from smart_redriver.postgres.engine.database import Database, Row, StatementRefused
from smart_redriver.postgres.engine.place import DEAD_COLUMNS, JOBS_COLUMNS, OF_PARKED, JobsDatabase
from smart_redriver.postgres.engine.statements import composed, names_of

_WHOLE = ("smallint", "integer", "bigint")
_NUMBERS = (*_WHOLE, "numeric")
#: How `numeric(1)` to `numeric(18)` are declared in the catalog.
_SHORT_NUMERIC = re.compile(r"numeric\(([1-9]|1[0-8]),0\)")
#: A `numeric` each of whose numbers is a bigint, as ids have to be.
_SHORT = "numeric of at most 18 digits"
_BIGINTS = (*_WHOLE, _SHORT)
#: A time without a zone is written and read in the session's zone, which may not be the workers'.
_TIMES = ("timestamp with time zone", "timestamp without time zone")
_TEXT = ("text", "character varying")
#: Ids that are not numbers, according to `ids`. Their number is made from the text, so a job's may be kept as text.
_IDS = {"uuid": ("uuid",), "text": _TEXT}
#: Types that columns must have, by their default names: statements compare them with such values, and write such
#: values.
_NEEDED = {
    "id": _BIGINTS,
    "original_id": _BIGINTS,
    "attempts": (*_NUMBERS, "text", "character varying"),
    "run_after": _TIMES,
    "in_hand_until": _TIMES,
    "created_at": _TIMES,
    "failed_at": (*_TIMES, "date"),
}
#: Types that columns should have. Columns with other types are read as well as possible.
_MEANT = {
    "id": _WHOLE,
    "original_id": _WHOLE,
    "attempts": _WHOLE,
    "max_attempts": _WHOLE,
    "run_after": _TIMES[:1],
    "created_at": _TIMES[:1],
    "failed_at": _TIMES[:1],
}
_TEXTS = ("error_class", "error_msg", "stacktrace", "failed_by")
#: Columns that are only read: a job that goes back is in nobody's hands.
_ONLY_READ = ("locked_at", "in_hand_until")


class Table:
    """One of the tables with letters: its existing columns, and those that statements use."""

    def __init__(self, place: JobsDatabase, role: str, columns: Sequence[Column]) -> None:
        self.name: str = getattr(place, role)
        self.columns = {one.name: one for one in columns}
        prefix, known = ("jobs", JOBS_COLUMNS) if role == "jobs" else ("jobs_dlq", DEAD_COLUMNS)
        self.carried = place.carried
        #: The types of ids that are not numbers.
        self.ids: dict[str, Sequence[str]] = {}
        if kind := place.ids.get(f"{prefix}.id"):
            self.ids["id"] = _IDS[kind]
        if prefix == "jobs_dlq" and "jobs.id" in place.ids:
            self.ids["original_id"] = ("uuid", *_TEXT)
        #: The name of each column, by its default name.
        self.called = {
            one: place.column(f"{prefix}.{one}")
            for one in known
            if one != "max_attempts" or place.max_attempts is not None
        }
        if role == "jobs" and place.in_hand_until:
            del self.called["locked_at"]
            self.called["in_hand_until"] = place.in_hand_until
        self.further = OF_PARKED if role == "parked" else ()

    @property
    def wanted(self) -> set[str]:
        """The columns that statements use."""
        return {*self.called.values(), *self.carried, *self.further}

    @property
    def written(self) -> set[str]:
        """The columns that statements write."""
        named = {name for one, name in self.called.items() if one not in _ONLY_READ}
        return {*named, *self.carried, *self.further}

    def kind_of(self, one: str) -> str | None:
        """The type of a column, by its default name; None if there is no such column."""
        return self.columns[self.called[one]].kind if one in self.called else None

    @property
    def missing(self) -> list[str]:
        """Columns that statements use, but that don't exist."""
        return sorted(self.wanted - self.columns.keys())

    @property
    def unwritten(self) -> list[Column]:
        """Columns for which an incoming letter has no value."""
        return [one for name, one in self.columns.items() if name not in self.written]

    @property
    def beside(self) -> list[Column]:
        """Columns that no statement uses."""
        return [one for name, one in self.columns.items() if name not in self.wanted]


def check_columns(
    jobs: Table, dead: Table, parked: Table, casts: Set[tuple[str, str]]
) -> Iterator[Finding]:
    """Yield all findings about columns, or only that some are missing. `casts`: see `columns.casts_of`."""
    tables = (jobs, dead, parked)
    yield from map(_missing, tables)
    if any(one.missing for one in tables):
        return
    for one in tables:
        yield _needed_types(one)
        yield _meant_types(one)
    for source, target in ((dead, jobs), (dead, parked), (parked, jobs)):
        yield _values_fit(source, target, casts)
    yield _nothing_else_needed(
        jobs,
        "a redrive",
        "name them in `carried`, or give them a default (`max_attempts` can be set)",
    )
    drop = "`alter table ... alter column ... drop not null`"
    yield _nothing_else_needed(parked, "parking a letter", drop)
    yield _nothing_generated(jobs, jobs.written)
    yield _nothing_generated(parked, parked.wanted)
    yield from _beside(jobs, dead)
    yield _parked_has_all(dead, parked)


def _missing(table: Table) -> Finding:
    return Finding(
        what=f"columns of {table.name}",
        is_well=not table.missing,
        advice=f"missing: {', '.join(table.missing)}; name them in `columns`, or add them",
    )


def _needed_types(table: Table) -> Finding:
    unfit = _others(table, _NEEDED)
    advice = "; ".join(unfit)
    if any(table.kind_of(one) in ("uuid", *_TEXT) for one in ("id", "original_id")):
        advice += '; say in `ids` which are no numbers: {"jobs.id": "uuid", "jobs_dlq.id": "text"}'
    return Finding(what=f"types of {table.name}", is_well=not unfit, advice=advice)


def _meant_types(table: Table) -> Finding:
    unfit = _others(table, _MEANT)
    unfit += [
        f"{name} is {table.columns[name].kind}, and not text"
        for one, name in table.called.items()
        if one in _TEXTS and not table.columns[name].is_text
    ]
    return Finding(
        what=f"usual types of {table.name}",
        is_well=not unfit,
        advice=(
            f"{'; '.join(unfit)}: read as well as can be; a time without a zone is taken for one of UTC"
        ),
        is_needed=False,
    )


def _others(table: Table, kinds: Mapping[str, Sequence[str]]) -> list[str]:
    kinds = {**kinds, **table.ids}
    return [
        f"{name} is {table.columns[name].kind}, and not {' or '.join(kinds[one])}"
        for one, name in table.called.items()
        if one in kinds and not _fits(table.columns[name], kinds[one])
    ]


def _fits(column: Column, kinds: Sequence[str]) -> bool:
    is_short = _SHORT in kinds and _SHORT_NUMERIC.fullmatch(column.declared) is not None
    return is_short or column.kind in kinds


def _values_fit(source: Table, target: Table, casts: Set[tuple[str, str]]) -> Finding:
    moved = [
        (source.called[one], target.called[one])
        for one in source.called
        if target.further or one == "payload"
    ]
    moved += [(one, one) for one in source.carried]
    unfit = [
        f"{one} is {source.columns[one].kind}, and {other} of {target.name} {target.columns[other].kind}"
        for one, other in moved
        if not target.columns[other].takes(source.columns[one], casts)
    ]
    return Finding(
        what=f"{target.name} takes what {source.name} has",
        is_well=not unfit,
        advice=f"{'; '.join(unfit)}: each letter would be refused",
    )


def _nothing_else_needed(table: Table, what: str, advice: str) -> Finding:
    needed = [one.name for one in table.unwritten if one.has_to_be_given]
    return Finding(
        what=f"no further values needed in {table.name}",
        is_well=not needed,
        advice=f"{', '.join(needed)}: not null without a default, so that {what} would be refused; {advice}",
    )


def _nothing_generated(table: Table, written: Set[str]) -> Finding:
    generated = sorted(one for one in written if table.columns[one].is_generated)
    return Finding(
        what=f"no generated columns to be written in {table.name}",
        is_well=not generated,
        advice=f"{', '.join(generated)}: generated, so that each letter would be refused; "
        "`alter table ... alter column ... drop expression`, or name another in `columns`",
    )


def _beside(jobs: Table, dead: Table) -> Iterator[Finding]:
    if names := sorted(one.name for one in dead.beside):
        yield Finding(
            what=f"no further columns of {dead.name}",
            is_well=False,
            advice=(
                f"not kept of a letter that becomes a job: {', '.join(names)}; name in `carried` what {jobs.name} "
                "has too"
            ),
            is_needed=False,
        )


def _parked_has_all(dead: Table, parked: Table) -> Finding:
    lacks = [one for name, one in dead.columns.items() if name not in parked.columns]
    added = ", ".join(f'add column "{one.name}" {one.declared}' for one in lacks)
    return Finding(
        what=f"{parked.name} has the columns of {dead.name}",
        is_well=not lacks,
        advice=(
            f"`alter table {quoted(parked.name)} {added}`: without, it is lost of a row that is parked, and undo "
            "refuses rows that have a value there"
        ),
        is_needed=False,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was checked. `advice` says what to do if it is not well. `is_needed`: no pass works without it."""

    what: str
    is_well: bool
    advice: str = ""
    is_needed: bool = True


_HIDES_ROWS = sql.SQL("select row_security_active(to_regclass(%(table)s))")

#: Foreign keys that refer to a table: of which table, and what a delete does to its rows.
_REFERS = sql.SQL("""
select distinct c.conrelid::regclass::text, c.confdeltype = 'c', c.confdeltype in ('n', 'd')
from pg_constraint c
where c.contype = 'f' and c.confrelid = to_regclass(%(table)s) and c.conparentid = 0 order by 1
""")

#: Codes in pg_trigger and pg_rewrite. https://www.postgresql.org/docs/current/catalog-pg-rewrite.html
_INSERT, _DELETE = (4, "3"), (8, "4")

#: A plain table, or one whose partitions are tables.
_LEAVES = """
select coalesce(nullif(array(select relid::oid from pg_partition_tree(to_regclass(%(table)s)) where isleaf), '{}'),
                array[to_regclass(%(table)s)::oid])
"""
#: Triggers that may keep a row from being inserted or deleted: those before the row, also in partitions.
_SWALLOWS = sql.SQL(
    """
with tables as (select to_regclass(%(table)s)::oid as one union select unnest((<leaves>)))
select t.tgname from pg_trigger t join tables on t.tgrelid = one
where not t.tgisinternal and t.tgenabled in ('O', 'A') and t.tgtype::int & 3 = 3 and t.tgtype::int & %(events)s <> 0
order by 1
""".replace("<leaves>", _LEAVES)
)
#: Rules of the table itself: our statements are `with` queries, in which Postgres accepts none.
_RULES = sql.SQL("""
select r.rulename from pg_rewrite r where r.ev_class = to_regclass(%(table)s)
and r.ev_enabled in ('O', 'A') and r.ev_type::text = any(%(rules)s) order by 1
""")

IS_VIEW = sql.SQL("select relkind = 'v' from pg_class where oid = to_regclass(%(table)s)")
_IS_PARTITIONED = sql.SQL("select relkind = 'p' from pg_class where oid = to_regclass(%(table)s)")

#: Whether a column is first in a valid index on the table, or on each of its partitions.
_INDEXED = sql.SQL(
    """
with tables as (select to_regclass(%(table)s)::oid as one, unnest((<leaves>)) as leaf),
     indexed as (select i.indrelid as one from pg_index i
                 join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
                 where a.attname = %(column)s and i.indisvalid
                   and (not %(unique)s or i.indisunique and i.indpred is null))
select exists (select from tables t join indexed i on i.one = t.one)
    or not exists (select from tables t where not exists (select from indexed i where i.one = t.leaf))
""".replace("<leaves>", _LEAVES)
)

#: Whether an index on it, or on each partition, begins with the number of an id that is not a number.
_NUMBERED = sql.SQL(
    """
with tables as (select to_regclass(%(table)s)::oid as one, unnest((<leaves>)) as leaf),
     numbered as (select i.indrelid as one from pg_index i
                  cross join pg_get_indexdef(i.indexrelid, 1, false) as def(told)
                  where i.indkey[0] = 0 and i.indisvalid and i.indpred is null
                    and exists (select from (values ('(%%s,'), ('((%%s)::text,')) as of(id)
                                where position(concat('hashtextextended', format(id, quote_ident(%(column)s)))
                                               in told) > 0))
select exists (select from tables t join numbered i on i.one = t.one)
    or not exists (select from tables t where not exists (select from numbered i where i.one = t.leaf))
""".replace("<leaves>", _LEAVES)
)

#: Never analyzed, and with more pages than a quick look needs.
_IS_UNKNOWN = sql.SQL(
    """
select (select reltuples < 0 from pg_class where oid = to_regclass(%(table)s))
   and (select sum(pg_relation_size(leaf)) > 1048576 from unnest((<leaves>)) as leaf)
""".replace("<leaves>", _LEAVES)
)


#: Rows after which no look begins, see `dead_letters.BEFORE_ALL`.
_NEVER_MET: LiteralString = """
select exists (select from {table} d where {d_row} is null or {d_row} = '-9223372036854775808'::bigint)
"""


def check_tables(database: Database) -> Iterator[Finding]:
    """Check the tables, which must all exist. Raises CallFailed."""
    place = database.place
    for table in (*place.tables, place.looks):
        yield _hides_nothing(database, table)
    for table in (place.dead_letters, place.parked):
        yield from _meets_all(database, table)
        yield from _deletes_alone(database, table)
    for table, events in (
        (place.jobs, [_INSERT]),
        (place.dead_letters, [_DELETE]),
        (place.parked, [_INSERT, _DELETE]),
    ):
        yield _swallows_nothing(database, table, sum(bit for bit, _ in events))
        yield _has_no_rules(database, table, [rule for _, rule in events])
    yield from _indexes(database)
    for table in (place.jobs, place.dead_letters, place.parked):
        yield _is_analyzed(database, table)


def _hides_nothing(database: Database, table: str) -> Finding:
    return Finding(
        what=f"all rows of {table}",
        is_well=not _ask(database, _HIDES_ROWS, table),
        advice="row level security keeps rows from the role, and what it can't see looks gone: give it `bypassrls`, or "
        "leave the table without",
    )


def _meets_all(database: Database, table: str) -> Iterator[Finding]:
    place = database.place
    names = {**names_of(place), "table": sql.Identifier(*table.split("."))}
    try:
        ((is_left,),) = database.run("Examine", composed(_NEVER_MET, names), {})
    except StatementRefused:
        return  # a right that has a finding of its own, or a large table without an index
    name = place.column("jobs_dlq.id")
    yield Finding(
        what=f"a usable {name} in each row of {table}",
        is_well=not is_left,
        advice=f"rows whose {name} is null or -9223372036854775808 are never looked at, and stay: "
        "give each an unused number",
    )


def _deletes_alone(database: Database, table: str) -> Iterator[Finding]:
    rows = _run(database, _REFERS, table)
    cascades = [one for one, is_cascade, _ in rows if is_cascade]
    emptied = [one for one, _, is_emptied in rows if is_emptied]
    barred = [one for one, *ways in rows if not any(ways)]
    yield Finding(
        what=f"no rows that are deleted with those of {table}",
        is_well=not cascades,
        advice=f"rows of {', '.join(cascades)} refer to it `on delete cascade`: "
        "each redrive would delete them. Drop that "
        "foreign key",
    )
    if emptied or barred:
        ends = [f"{one} loses what it refers to" for one in emptied]
        ends += [f"what {one} refers to can't leave it" for one in barred]
        yield Finding(
            what=f"no rows that refer to those of {table}",
            is_well=False,
            advice=f"{'; '.join(ends)}: letters leave this table",
            is_needed=False,
        )


def _swallows_nothing(database: Database, table: str, events: int) -> Finding:
    rows = _run(database, _SWALLOWS, table, events=events)
    names = ", ".join(name for (name,) in rows)
    return Finding(
        what=f"no triggers that keep rows of {table}",
        is_well=not rows,
        advice=f"{names}: where it keeps a row, or changes its id, no letter moves, and passes report it",
        is_needed=False,
    )


def _has_no_rules(database: Database, table: str, rules: list[str]) -> Finding:
    names = ", ".join(name for (name,) in _run(database, _RULES, table, rules=rules))
    return Finding(
        what=f"no rules on {table}",
        is_well=not names,
        advice=f"{names}: with it each statement that moves letters is refused; make it a trigger, or drop it",
    )


def _indexes(database: Database) -> Iterator[Finding]:
    place = database.place
    for table, column, is_unique in (
        (place.jobs, place.column("jobs.id"), True),
        (place.dead_letters, place.column("jobs_dlq.id"), True),
        (place.dead_letters, place.column("jobs_dlq.original_id"), False),
        (place.jobs, place.column("jobs.run_after"), False),
    ):
        is_hashed = column == place.column("jobs_dlq.original_id") and "jobs.id" in place.ids
        if is_hashed or _ask(database, IS_VIEW, table):
            continue
        kind = "unique index" if is_unique else "index"
        is_partitioned = _ask(database, _IS_PARTITIONED, table)
        yield Finding(
            what=f"{kind} on {table}.{column}",
            is_well=_ask(database, _INDEXED, table, column=column, unique=is_unique),
            advice=(
                f"{_advice(kind, table, column, is_partitioned=is_partitioned)}; without it every look reads the "
                "whole table"
            ),
            is_needed=False,
        )
    yield from _indexes_of_numbers(database)


def _indexes_of_numbers(database: Database) -> Iterator[Finding]:
    place = database.place
    for table, column, of_ids in (
        (place.jobs, "jobs.id", "jobs.id"),
        (place.dead_letters, "jobs_dlq.id", "jobs_dlq.id"),
        (place.dead_letters, "jobs_dlq.original_id", "jobs.id"),
        (place.parked, "jobs_dlq.id", "jobs_dlq.id"),
        (place.parked, "jobs_dlq.original_id", "jobs.id"),
    ):
        if of_ids in place.ids and not _ask(database, IS_VIEW, table):
            name = place.column(column)
            yield Finding(
                what=f"index on the number of {table}.{name}",
                is_well=_ask(database, _NUMBERED, table, column=name),
                advice="create it as `migration` prints it; without it every look reads the whole table",
                is_needed=False,
            )


def _advice(kind: str, table: str, column: str, *, is_partitioned: bool) -> str:
    """Advise which index to make.

    A partitioned table can't build an index concurrently, and a unique index must include the partition key.
    """
    table, column = quoted(table), quoted(column)
    if not is_partitioned:
        return f"create {kind} concurrently on {table} ({column})"
    each = f"create {kind} concurrently on each partition of {table} ({column})"
    return each if kind != "index" else f"{each}, then create index on {table} ({column})"


def _is_analyzed(database: Database, table: str) -> Finding:
    is_partitioned = _ask(database, _IS_PARTITIONED, table)
    by_hand = " (autovacuum does so with partitions, and never with the whole)" * is_partitioned
    uncounted = ", and more than 10,000 letters can't be estimated" * (not is_partitioned)
    return Finding(
        what=f"statistics of {table}",
        is_well=not _ask(database, _IS_UNKNOWN, table),
        advice=f"analyze {quoted(table)}{by_hand}: nobody has, "
        f"so that plans may read the whole table{uncounted}",
        is_needed=False,
    )


def _ask(database: Database, question: sql.SQL, table: str, **more: object) -> bool:
    ((answer,),) = _run(database, question, table, **more)
    return bool(answer)


def _run(database: Database, question: sql.SQL, table: str, **more: object) -> list[Row]:
    parameters = {"table": quoted(table), **more}
    return database.run("Examine", sql.Composed([question]), parameters)
