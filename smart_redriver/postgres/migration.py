"""The SQL that a team runs once: our four tables, a role with only the rights it needs, an index for frequent queries.

Nothing here runs it. `python -m smart_redriver.postgres.migration` prints it, and so does the command.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import LiteralString

from psycopg import sql

from smart_redriver.engine.errors import SettingsError
from smart_redriver.postgres.engine.by_state import names_by_state
from smart_redriver.postgres.engine.place import JobsDatabase
from smart_redriver.postgres.engine.profiles import Profile
from smart_redriver.postgres.engine.statements import composed, names_of

#: The name of the role if the configuration leaves it to the secret.
ROLE = "smart_redriver"

#: The tables that the role may see, as named in the texts.
_WITH_GRANTS = ("jobs", "dead", "parked", "held", "redriven", "looks")

_SEQUENCE: LiteralString = """\
-- The re-driver takes the ids of its jobs from the sequence of yours.
do $redriver$ begin
  if (select t.typcategory <> 'N' from pg_attribute a join pg_type t on t.oid = a.atttypid
      where a.attrelid = {jobs_text}::regclass and a.attname = {j_id_text}) then
    raise exception '% is no number', {j_id_named}
    using hint = 'say in `ids` whether it is uuid or text; beside another type add a column of numbers (alter table '
      '... add number bigint generated always as identity unique), name it in `columns`, and let workers write it as '
      'original_id';
  end if;
  if {sequence} is null then
    raise exception '% has no sequence of its own', {j_id_named}
    using hint = 'make the column serial or identity; '
      'one that takes its default from a sequence: alter sequence ... owned by ...; '
      'of a view: name the sequence in the configuration';
  end if;
end $redriver$;
"""

_TABLES: LiteralString = """\
-- Four tables of the re-driver's own. Nothing of yours is altered.
create table {parked} (
  like {dead},
  redrive_trail text,
  parked_at timestamptz not null,
  primary key ({d_id})
);
create index on {parked} ({own_original});
-- No row has to have a value here that it did not have there.
do $redriver$ declare needed name; begin
  for needed in select attname from pg_attribute where attrelid = {parked_text}::regclass and attnum > 0 and attnotnull
                and attname not in ({d_id_text}, 'parked_at')
  loop
    execute format('alter table %s alter column %I drop not null', {parked_text}::regclass, needed);
  end loop;
end $redriver$;
"""

#: An index to find rows of the parking lot by number.
_INDEX_OF_LOT: LiteralString = """\
create index on {parked} ({own_row});
"""

_OURS: LiteralString = """\
create table {held} (
  is_parked boolean not null,
  row_id bigint not null,
  until timestamptz not null,
  primary key (is_parked, row_id)
);
create index on {held} (until);
create table {redriven} (
  job_id bigint primary key,
  is_parked boolean not null,
  row_id bigint not null,
  trail text not null,
  redriven_at timestamptz not null,
  died_of text,
  died_saying text,
  tries_told int not null default 0,
  settled_at timestamptz,
  returned_as bigint,
  original_id bigint
);
create index on {redriven} (job_id) where settled_at is null;
create index on {redriven} (row_id);
create index on {redriven} (settled_at) where settled_at is not null and returned_as is null;
create index on {redriven} (original_id);
create table {looks} (
  is_latest boolean primary key check (is_latest),
  at timestamptz not null,
  state text not null
);
"""

#: The parking lot for a library's table: letters stay in that table.
_LOT: LiteralString = """\
-- Four tables of the re-driver's own. Nothing of the library's is altered.
create table {lot} (
  id bigint primary key,
  redrive_trail text,
  parked_at timestamptz not null
);
"""

#: For a library whose ids are not numbers.
_KEYS: LiteralString = """\
-- The number that the re-driver knows a dead job by.
create table {keys} (
  number bigint generated always as identity primary key,
  key {key_type} not null unique
);
"""

_GRANTS_OF_KEYS: LiteralString = """\
grant select, insert, delete on {keys} to {role};
"""

_ROLE: LiteralString = """\
do $redriver$ begin
  if not exists (select from pg_roles where rolname = {role_text}) then
    create role {role} login;
  end if;
end $redriver$;
-- It sees tables of a schema that it may use.
do $redriver$ declare place text; begin
  for place in select distinct relnamespace::regnamespace::text from pg_class
               where oid in ({regclasses}) and not has_schema_privilege({role_text}, relnamespace, 'USAGE')
  loop
    execute format('grant usage on schema %s to %I', place, {role_text});
  end loop;
end $redriver$;
"""

_GRANTS: LiteralString = """\
-- What the re-driver's role may do: it adds jobs and moves letters.
-- It changes and deletes no job, and reads no payload of one.
grant select ({j_id}, {j_attempts}, {j_run_after}, {in_hand_column}), insert on {jobs} to {role};
-- "for update" asks for the right to update one column; no statement does.
grant select, delete, update ({d_id}) on {dead} to {role};
grant select, insert, delete, update ({d_id}) on {parked} to {role};
"""

_GRANT_OF_SEQUENCE: LiteralString = """\
do $redriver$ begin
  execute format('grant usage on sequence %s to %I', {sequence}, {role_text});
end $redriver$;
"""

_GRANTS_BY_STATE: LiteralString = """\
-- What the re-driver's role may do: it makes dead jobs due again, and adds and deletes none.
grant select ({reads}), update ({writes}) on {table} to {role};
grant select, insert, delete on {lot} to {role};
"""

_GRANTS_OF_OURS: LiteralString = """\
grant select, insert, update, delete on {held}, {redriven} to {role};
grant select, insert, update on {looks} to {role};
"""

_IAM: LiteralString = """\
-- It proves who it is by IAM.
grant rds_iam to {role};
"""

_INDEX: LiteralString = """\
-- Advice, for your own table: by this a returned job is found at once, however many letters there are. Building it
-- locks out nobody; it can't be run within a transaction, nor on a partitioned table (`--partitioned` prints another).
-- One of this name that is there is left as it is.
create index concurrently if not exists {returns} on {dead} ({own_original});
"""


#: An index to find ids that are not numbers by their numbers.
_INDEX_OF_IDS: LiteralString = """\
-- By this a row is found by the number that the re-driver knows it by.
create {index} if not exists {name} on {table} ({number});
"""

#: The same for a partitioned table, on which no index can be built concurrently.
_INDEX_OF_PARTITIONS: LiteralString = """\
-- Advice, for your own table: by this a returned job is found at once, however many letters there are. It locks out
-- who writes while it is built; to avoid that, build it concurrently on each partition before.
create index if not exists {returns} on {dead} ({own_original});
"""

#: A condition with the clock or another table can't have an index, and `good_job` has its own.
_UNFIT_FOR_AN_INDEX = ("clock_timestamp", "select")

#: An index to find dead jobs quickly among those that are done.
_INDEX_BY_STATE: LiteralString = """\
-- Advice, for the library's table: by this dead jobs are found at once. It can't be run within a transaction.
create index concurrently if not exists {returns} on {table} ({id_column}) where {dead_column};
"""

#: Says that the table of dead letters is partitioned.
PARTITIONED = "--partitioned"


#: The remedy for a table of ours that is missing.
REMEDY = (
    "run the migration; where others of its tables are there already, it refuses to run, because they may be another "
    "queue's: run only its statements about this table"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """The parts, in the order in which the tables' owner runs them. The SQL makes all of the first two or nothing."""

    tables: str
    grants: str
    index: str

    def __str__(self) -> str:
        """The whole migration, to be read before it is run."""
        return f"begin;\n{self.tables}\n{self.grants}commit;\n\n{self.index}"


def migration_of(database: JobsDatabase, *, is_partitioned: bool = False) -> Migration:
    """The migration for one database. `is_partitioned`: its table of dead letters is partitioned."""
    names, library = _all_names(database), database.library
    by_iam = _IAM if database.sslmode != "disable" and not database.secret else ""
    if library is not None:
        return _of_library(database, library, names, by_iam)
    has_sequence = "jobs.id" not in database.ids
    tables = (_SEQUENCE if has_sequence else "") + _TABLES + _OURS
    grants = _ROLE + _GRANTS + (_GRANT_OF_SEQUENCE if has_sequence else "") + _GRANTS_OF_OURS
    if "jobs_dlq.id" in database.ids:
        tables += _INDEX_OF_LOT
    index = composed(_INDEX_OF_PARTITIONS if is_partitioned else _INDEX, names).as_string()
    return Migration(
        tables=composed(tables, names).as_string(),
        grants=composed(grants + by_iam, names).as_string(),
        index=index + "".join(_indexes_of_ids(database, names, is_partitioned=is_partitioned)),
    )


def _all_names(database: JobsDatabase) -> dict[str, sql.Composable]:
    """The names in statements: tables, columns, the role, and the tables whose grants are looked up."""
    role, names = database.user or ROLE, names_of(database)
    seen = [
        names[f"{one}_text"] for one in _WITH_GRANTS if not (database.library and one == "dead")
    ]
    return names | {
        "role": sql.Identifier(role),
        "role_text": sql.Literal(role),
        "returns": sql.Identifier(_index_name(database)),
        "j_id_named": sql.Literal(f"{database.jobs}.{database.column('jobs.id')}"),
        "regclasses": sql.SQL(", ").join(sql.SQL("{}::regclass").format(one) for one in seen),
    }


def _indexes_of_ids(
    database: JobsDatabase, names: dict[str, sql.Composable], *, is_partitioned: bool
) -> Iterator[str]:
    """Advice for tables with ids that are not numbers. `is_partitioned`: the table of dead letters is partitioned."""
    for column, called, table, number, is_plain in (
        ("jobs.id", database.jobs, "jobs", "own_job", False),
        ("jobs_dlq.id", database.dead_letters, "dead", "own_row", is_partitioned),
    ):
        if column in database.ids:
            told = {
                "index": sql.SQL("index" if is_plain else "index concurrently"),
                "name": sql.Identifier(f"{called.rpartition('.')[2]}_number_idx"),
                "table": names[table],
                "number": names[number],
            }
            yield composed(_INDEX_OF_IDS, told).as_string()


def _of_library(
    database: JobsDatabase,
    library: Profile,
    names: dict[str, sql.Composable],
    by_iam: LiteralString,
) -> Migration:
    """Write the migration for a library's one table."""
    names = names_by_state(database, library, names)
    names |= {
        "reads": sql.SQL(", ").join(map(sql.Identifier, library.reads)),
        "writes": sql.SQL(", ").join(map(sql.Identifier, library.writes)),
        "id_column": sql.SQL(library.id.replace("t.", "")),
        "dead_column": composed(library.dead.replace("t.", ""), names),
        "key_type": sql.SQL(library.key),
    }
    grants = _ROLE + _GRANTS_BY_STATE + _GRANTS_OF_OURS + by_iam
    for one in library.grants:
        grants += one + ";\n"
    if library.key:
        grants += _GRANTS_OF_KEYS
    has_index = not library.key and not any(one in library.dead for one in _UNFIT_FOR_AN_INDEX)
    return Migration(
        tables=composed(_LOT + _OURS + (_KEYS if library.key else ""), names).as_string(),
        grants=composed(grants, names).as_string(),
        index=composed(_INDEX_BY_STATE, names).as_string() if has_index else "",
    )


def _index_name(database: JobsDatabase) -> str:
    """Return the name that Postgres itself would give, so that an index made without a name is found."""
    if database.library:
        return f"{database.jobs.rpartition('.')[2]}_dead_idx"
    table = database.dead_letters.rpartition(".")[2]
    hashed = "_number" if "jobs.id" in database.ids else ""
    return f"{table}_{database.column('jobs_dlq.original_id')}{hashed}_idx"


def main(argv: Sequence[str] | None = None) -> int:
    """Print the migration for a JSON configuration: `python -m smart_redriver.postgres.migration '{"host": ...}'`.

    Put `--partitioned` before or after it if `dead_letters` is partitioned.
    """
    arguments = sys.argv[1:] if argv is None else list(argv)
    given = [one for one in arguments if one != PARTITIONED]
    is_partitioned = len(given) < len(arguments)
    if len(given) != 1:
        sys.stderr.write(
            f"one argument is needed, besides {PARTITIONED}: the database's configuration, as JSON\n"
        )
        return 2
    try:
        database = JobsDatabase.parse(given[0])
    except SettingsError as refused:
        sys.stderr.write(f"{refused}\n")
        return 2
    sys.stdout.write(f"{migration_of(database, is_partitioned=is_partitioned)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
