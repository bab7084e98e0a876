"""What the doctor says of tables beside their columns: what hides rows, swallows them, deletes more than them, or is slow."""

from __future__ import annotations

from collections.abc import Iterator

from psycopg import sql

from redrive.postgres.columns import quoted
from redrive.postgres.database import Database, Row
from redrive.postgres.findings import Finding

_HIDES_ROWS = sql.SQL("select row_security_active(to_regclass(%(table)s))")

#: Foreign keys that refer to a table: of which table, and what a delete does to its rows.
_REFERS = sql.SQL("""
select distinct c.conrelid::regclass::text, c.confdeltype = 'c', c.confdeltype in ('n', 'd')
from pg_constraint c
where c.contype = 'f' and c.confrelid = to_regclass(%(table)s) and c.conparentid = 0 order by 1
""")

#: As pg_trigger and pg_rewrite have them. https://www.postgresql.org/docs/current/catalog-pg-rewrite.html
_INSERT, _DELETE = (4, "3"), (8, "4")

#: A table by itself, or in partitions that are tables.
_LEAVES = """
select coalesce(nullif(array(select relid::oid from pg_partition_tree(to_regclass(%(table)s)) where isleaf), '{}'),
                array[to_regclass(%(table)s)::oid])
"""
#: What may keep a row from being inserted or deleted: triggers before the row, of partitions too.
_SWALLOWS = sql.SQL(
    """
with tables as (select to_regclass(%(table)s)::oid as one union select unnest((<leaves>)))
select t.tgname from pg_trigger t join tables on t.tgrelid = one
where not t.tgisinternal and t.tgenabled in ('O', 'A') and t.tgtype::int & 3 = 3 and t.tgtype::int & %(events)s <> 0
order by 1
""".replace("<leaves>", _LEAVES)
)
#: Rules of the table itself: a statement of ours is a `with`, where Postgres takes none.
_RULES = sql.SQL("""
select r.rulename from pg_rewrite r where r.ev_class = to_regclass(%(table)s)
and r.ev_enabled in ('O', 'A') and r.ev_type::text = any(%(rules)s) order by 1
""")

_IS_PARTITIONED = sql.SQL("select relkind = 'p' from pg_class where oid = to_regclass(%(table)s)")

#: Whether a column is first in a valid index of the table, or of each of its partitions.
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

#: Never analyzed, and with more pages than a glance needs.
_IS_UNKNOWN = sql.SQL(
    """
select (select reltuples < 0 from pg_class where oid = to_regclass(%(table)s))
   and (select sum(pg_relation_size(leaf)) > 1048576 from unnest((<leaves>)) as leaf)
""".replace("<leaves>", _LEAVES)
)


def check_tables(database: Database) -> Iterator[Finding]:
    """What there is to say of tables that are all there. Raises CallFailed."""
    place = database.place
    for table in (*place.tables, place.looks):
        yield _hides_nothing(database, table)
    for table in (place.dead_letters, place.parked):
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


def _deletes_alone(database: Database, table: str) -> Iterator[Finding]:
    rows = _run(database, _REFERS, table)
    cascades = [one for one, is_cascade, _ in rows if is_cascade]
    emptied = [one for one, _, is_emptied in rows if is_emptied]
    barred = [one for one, *ways in rows if not any(ways)]
    yield Finding(
        what=f"no rows that are deleted with those of {table}",
        is_well=not cascades,
        advice=f"rows of {', '.join(cascades)} refer to it `on delete cascade`: each redrive would delete them. Drop that "
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
        kind = "unique index" if is_unique else "index"
        is_partitioned = _ask(database, _IS_PARTITIONED, table)
        yield Finding(
            what=f"{kind} on {table}.{column}",
            is_well=_ask(database, _INDEXED, table, column=column, unique=is_unique),
            advice=f"{_advice(kind, table, column, is_partitioned=is_partitioned)}; without it every look reads the whole table",
            is_needed=False,
        )


def _advice(kind: str, table: str, column: str, *, is_partitioned: bool) -> str:
    """A partitioned table has no index that is built concurrently, and none that is unique without what it is parted by."""
    table, column = quoted(table), quoted(column)
    if not is_partitioned:
        return f"create {kind} concurrently on {table} ({column})"
    each = f"create {kind} concurrently on each partition of {table} ({column})"
    return each if kind != "index" else f"{each}, then create index on {table} ({column})"


def _is_analyzed(database: Database, table: str) -> Finding:
    by_hand = " (autovacuum does so with partitions, and never with the whole)"
    is_partitioned = _ask(database, _IS_PARTITIONED, table)
    return Finding(
        what=f"statistics of {table}",
        is_well=not _ask(database, _IS_UNKNOWN, table),
        advice=f"analyze {quoted(table)}{by_hand if is_partitioned else ''}: nobody has, so that plans may read the whole table, and"
        " more than 10,000 letters can't be estimated",
        is_needed=False,
    )


def _ask(database: Database, question: sql.SQL, table: str, **more: object) -> bool:
    ((answer,),) = _run(database, question, table, **more)
    return bool(answer)


def _run(database: Database, question: sql.SQL, table: str, **more: object) -> list[Row]:
    parameters = {"table": quoted(table), **more}
    return database.run("Examine", sql.Composed([question]), parameters)
