"""The SQL that a team runs once: four tables of ours, a role that may do just this, an index for what is asked often.

Nothing here runs it. `python -m redrive.postgres.migration` prints it, and so does the command.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from psycopg import sql

from redrive.databases import JobsDatabase
from redrive.errors import SettingsError
from redrive.postgres.statements import composed, names_of

#: What the role is called where the configuration leaves its name to the secret.
ROLE = "smart_redriver"

#: The tables that it is to see, as the texts name them.
_WITH_GRANTS = ("jobs", "dead", "parked", "held", "redriven", "looks")

_TABLES = """\
-- The re-driver takes the ids of its jobs from the sequence of yours.
do $redriver$ begin
  if pg_get_serial_sequence({jobs_text}, {j_id_text}) is null then
    raise exception '% has no sequence of its own', {j_id_named}
    using hint = 'make the column serial or identity; one that takes its default from a sequence: alter sequence ... owned by ...';
  end if;
end $redriver$;
-- Four tables of the re-driver's own. Nothing of yours is altered.
create table {parked} (
  like {dead},
  redrive_trail text,
  parked_at timestamptz not null,
  primary key ({d_id})
);
create index on {parked} ({d_original_id});
-- No row has to have a value here that it did not have there.
do $redriver$ declare needed name; begin
  for needed in select attname from pg_attribute where attrelid = {parked_text}::regclass and attnum > 0 and attnotnull
                and attname not in ({d_id_text}, 'parked_at')
  loop
    execute format('alter table %s alter column %I drop not null', {parked_text}::regclass, needed);
  end loop;
end $redriver$;
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
create index on {redriven} (settled_at) where returned_as is null;
create index on {redriven} (original_id);
create table {looks} (
  is_latest boolean primary key check (is_latest),
  at timestamptz not null,
  state text not null
);
"""

_GRANTS = """\
-- What the re-driver's role may do: it adds jobs and moves letters. It changes and deletes no job, and reads no payload of one.
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
grant select ({j_id}, {j_attempts}, {j_run_after}, {j_locked_at}), insert on {jobs} to {role};
do $redriver$ begin
  execute format('grant usage on sequence %s to %I', pg_get_serial_sequence({jobs_text}, {j_id_text}), {role_text});
end $redriver$;
-- "for update" asks for the right to update one column; no statement does.
grant select, delete, update ({d_id}) on {dead} to {role};
grant select, insert, delete, update ({d_id}) on {parked} to {role};
grant select, insert, update, delete on {held}, {redriven} to {role};
grant select, insert, update on {looks} to {role};
"""

_IAM = """\
-- It proves who it is by IAM.
grant rds_iam to {role};
"""

_INDEX = """\
-- Advice, for your own table: by this a returned job is found at once, however many letters there are. Building it
-- locks out nobody; it can't be run within a transaction, nor on a partitioned table: there build it so on each partition
-- first, and then without "concurrently" on the whole. One of this name that is there is left as it is.
create index concurrently if not exists {returns} on {dead} ({d_original_id});
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """The parts, to be run in this order by whoever owns the tables; what is printed makes all of the first two, or nothing."""

    tables: str
    grants: str
    index: str

    def __str__(self) -> str:
        """All of it, to be read before it is run."""
        return f"begin;\n{self.tables}\n{self.grants}commit;\n\n{self.index}"


def migration_of(database: JobsDatabase) -> Migration:
    """The migration for one database."""
    role = database.user or ROLE
    names = names_of(database)
    tables = [names[f"{one}_text"] for one in _WITH_GRANTS]
    names |= {
        "role": sql.Identifier(role),
        "role_text": sql.Literal(role),
        "returns": sql.Identifier(_index_name(database)),
        "j_id_named": sql.Literal(f"{database.jobs}.{database.column('jobs.id')}"),
        "regclasses": sql.SQL(", ").join(sql.SQL("{}::regclass").format(one) for one in tables),
    }
    by_iam = database.sslmode != "disable" and not database.secret
    return Migration(
        tables=composed(_TABLES, names).as_string(),
        grants=composed(_GRANTS + (_IAM if by_iam else ""), names).as_string(),
        index=composed(_INDEX, names).as_string(),
    )


def _index_name(database: JobsDatabase) -> str:
    """As Postgres itself would call it, so that one that was made without a name is found."""
    table = database.dead_letters.rpartition(".")[2]
    return f"{table}_{database.column('jobs_dlq.original_id')}_idx"


def main(argv: Sequence[str] | None = None) -> int:
    """Print the migration for a configuration of JSON: `python -m redrive.postgres.migration '{"host": ...}'`."""
    given = sys.argv[1:] if argv is None else list(argv)
    if len(given) != 1:
        sys.stderr.write("one argument is needed: the database's configuration, as JSON\n")
        return 2
    try:
        database = JobsDatabase.parse(given[0])
    except SettingsError as refused:
        sys.stderr.write(f"{refused}\n")
        return 2
    sys.stdout.write(f"{migration_of(database)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
