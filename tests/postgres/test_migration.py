"""The migration, as a team runs it: on tables of many kinds, and what it alters."""

import psycopg
import pytest

from emulator.postgres import TABLES
from smart_redriver.postgres import migration
from smart_redriver.postgres.engine.dead_letters import ParkingLot
from smart_redriver.postgres.engine.place import JobsDatabase
from tests.postgres.bench import Bench
from tests.postgres.conftest import new_database

#: All that a table is made of, ours aside.
SHAPE = """
select c.relname, a.attname, a.atttypid::regtype::text, a.attnotnull, a.atthasdef
from pg_attribute a join pg_class c on c.oid = a.attrelid
where c.relname in ('jobs', 'jobs_dlq') and a.attnum > 0 order by 1, a.attnum
"""


@pytest.fixture
def fresh(server):
    """A database with the team's tables, and nothing of ours but the role, which is the server's."""
    with new_database(server) as name, Bench(server, name) as one:
        one.owner.execute(TABLES)
        yield one


def migrate(bench, **more):
    made = migration.migration_of(bench.server.place(bench.name, **more))
    for part in (made.tables, made.grants, made.index):
        bench.owner.execute(part)


def test_the_migration_is_printed(capsys):
    told = JobsDatabase.of({"host": "h", "dbname": "d", "user": 'it\'s "me"'}).encode()

    assert migration.main([told]) == 0

    printed = capsys.readouterr().out
    assert 'grant rds_iam to "it\'s ""me""";' in printed
    assert 'create table "jobs_parked"' in printed
    assert "create index concurrently" in printed


def test_the_index_is_made_once_however_often_it_is_asked_for(fresh):
    migrate(fresh)
    fresh.owner.execute(migration.migration_of(fresh.place).index)

    indexes = fresh.rows("select indexname from pg_indexes where tablename = 'jobs_dlq' order by 1")
    assert indexes == [("jobs_dlq_original_id_idx",), ("jobs_dlq_pkey",)]


@pytest.mark.parametrize("argv", [[], ["{}"], ["{}", "{}"]])
def test_who_asks_for_a_migration_of_nothing_is_told_so(argv, capsys):
    assert migration.main(argv) == 2
    assert "\n" in capsys.readouterr().err


def test_the_migration_alters_no_table_of_the_team(fresh):
    fresh.owner.execute("alter table jobs_dlq add column tenant text not null")
    before = fresh.rows(SHAPE)

    migrate(fresh)

    assert fresh.rows(SHAPE) == before


def test_columns_that_must_have_a_value_in_the_dlq_keep_no_letter_from_being_parked(fresh):
    fresh.owner.execute(
        """alter table jobs_dlq add column "Tenant" text not null, add column region text not null default 'eu'"""
    )
    migrate(fresh)
    fresh.owner.execute("""insert into jobs_dlq (payload, "Tenant") values ('"a"', 'blue')""")
    lot = ParkingLot(fresh.database, fresh.clock.now)
    (letter,) = fresh.tools().dead_letters.receive(1, hidden_for=fresh.place.time_to_fail)

    parked = lot.park(fresh.outgoing([letter]))

    assert (parked.new_ids, parked.faults) == ({"dlq-1": "parked-1"}, [])
    assert fresh.rows('select payload, "Tenant" from jobs_parked') == [("a", "blue")]


def test_a_role_that_is_there_serves_a_second_queue_of_the_database(fresh):
    migrate(fresh)
    fresh.owner.execute("create table mails (like jobs including all, id2 int)")
    fresh.owner.execute("alter table mails alter id drop default")
    fresh.owner.execute("alter table mails alter id add generated always as identity")
    fresh.owner.execute("create table mails_dlq (like jobs_dlq)")

    migrate(fresh, jobs="mails", dead_letters="mails_dlq", parked="mp", held="mh", redriven="mr")

    assert fresh.rows("select has_table_privilege('smart_redriver', 'mp', 'INSERT')") == [(True,)]


@pytest.mark.parametrize(
    "harm",
    [
        "alter table jobs alter id drop default; drop sequence jobs_id_seq",
        "alter sequence jobs_id_seq owned by none",
    ],
    ids=["no sequence", "not its own"],
)
def test_jobs_without_a_sequence_are_refused_by_a_sentence_before_anything_is_made(fresh, harm):
    fresh.owner.execute(harm)

    with pytest.raises(psycopg.errors.RaiseException, match=r"jobs\.id has no sequence of its own"):
        migrate(fresh)

    assert fresh.rows("select to_regclass('jobs_parked')") == [(None,)]


def test_the_role_may_use_the_schema_that_the_tables_are_in(fresh):
    fresh.owner.execute("revoke usage on schema public from public")

    migrate(fresh)

    with fresh.server.connect(fresh.name, user=migration.ROLE) as role:
        assert role.execute("select count(*) from jobs_dlq").fetchall() == [(0,)]


def test_what_is_printed_makes_all_but_the_index_in_one_transaction(fresh):
    printed = str(migration.migration_of(fresh.place))
    whole, _, index = printed.partition("commit;\n")
    fresh.owner.execute("create table jobs_redriven_looks (a int)")

    assert whole.startswith("begin;")
    assert "create index concurrently" in index
    with pytest.raises(psycopg.errors.DuplicateTable):
        fresh.owner.execute(whole)
    fresh.owner.execute("commit")
    assert fresh.rows("select to_regclass('jobs_parked')") == [(None,)]


def test_names_with_dollars_are_names(fresh):
    fresh.owner.execute("alter table jobs rename to a$$b")

    migrate(fresh, jobs="a$$b")

    assert fresh.rows("select has_table_privilege('smart_redriver', 'a$$b', 'INSERT')") == [(True,)]


def test_keys_that_are_no_numbers_are_refused_with_what_helps(fresh):
    fresh.owner.execute(
        "alter table jobs alter id drop default, alter id type uuid using gen_random_uuid(),"
        " alter id set default gen_random_uuid()"
    )
    with pytest.raises(psycopg.errors.RaiseException, match=r"jobs\.id is no number") as refused:
        migrate(fresh)
    assert "generated always as identity" in (refused.value.diag.message_hint or "")

    fresh.owner.execute("alter table jobs add number bigint generated always as identity unique")
    migrate(fresh, columns={"jobs.id": "number"})
    place = fresh.server.place(fresh.name, columns={"jobs.id": "number"})
    fresh.database = fresh.open(place=place)
    fresh.die("a")

    assert fresh.run_pass(base_delay_seconds=0).redriven == 1
    assert fresh.rows("select number, payload from jobs") == [(1, "a")]


@pytest.mark.parametrize("at", [0, 1])
def test_the_migration_of_a_partitioned_dlq_ends(fresh, capsys, at):
    fresh.owner.execute(
        "drop table jobs_dlq; create table jobs_dlq (id bigserial, original_id bigint, payload jsonb, attempts int,"
        " error_class text, error_msg text, stacktrace text, failed_by text, failed_at timestamptz)"
        " partition by range (id); create table dlq_1 partition of jobs_dlq default"
    )

    arguments = [fresh.place.encode()]
    arguments.insert(at, migration.PARTITIONED)
    assert migration.main(arguments) == 0
    fresh.owner.execute(capsys.readouterr().out)

    indexes = fresh.rows("select indexname from pg_indexes where tablename = 'jobs_dlq'")
    assert indexes == [("jobs_dlq_original_id_idx",)]
