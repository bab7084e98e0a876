"""What the doctor says of a database, and that it is so: what it finds wrong is refused, or lost, by a statement."""

import pytest

from smart_redriver.engine.errors import CallFailed
from smart_redriver.postgres.doctor.examination import examine
from smart_redriver.postgres.engine.dead_letters import DeadLetters, ParkingLot
from smart_redriver.postgres.engine.source import JobsSource


def ills(bench, **more) -> dict[str, tuple[str, bool]]:
    """What is not well: its advice, and whether passes can't work so. Tests have no TLS."""
    database = bench.open(place=bench.server.place(bench.name, **more))
    found = {one.what: (one.advice, one.is_needed) for one in examine(database) if not one.is_well}
    del found["TLS, verified"]
    return found


PARTITIONED = """
drop table jobs cascade;
create table jobs (
  id bigserial, payload jsonb not null, attempts int not null default 0, max_attempts int not null default 3,
  run_after timestamptz not null default now(), locked_at timestamptz, locked_by text,
  created_at timestamptz not null default now()
) partition by range (created_at);
create table jobs_old partition of jobs for values from (minvalue) to ('2020-01-01');
create table jobs_new partition of jobs for values from ('2020-01-01') to (maxvalue);
grant select, insert on jobs to smart_redriver;
grant usage on sequence jobs_id_seq to smart_redriver;
"""
SWALLOW = """
create function swallow() returns trigger language plpgsql as 'begin return null; end';
create trigger swallow before {event} on {table} for each row execute function swallow();
"""


def test_a_prepared_database_is_well(bench):
    assert ills(bench) == {}


@pytest.mark.parametrize(
    ("harm", "what", "advice", "is_needed"),
    [
        (
            "alter table jobs_dlq alter id type numeric",
            "types of jobs_dlq",
            "id is numeric, and not smallint or integer or bigint or numeric of at most 18 digits",
            True,
        ),
        (
            "alter table jobs_dlq alter original_id type numeric(19)",
            "types of jobs_dlq",
            "original_id is numeric, and not smallint or integer or bigint or numeric of at most 18 digits",
            True,
        ),
        (
            "alter table jobs alter id drop default, alter id type numeric(18)",
            "usual types of jobs",
            "id is numeric, and not smallint or integer or bigint: read as well as can be",
            False,
        ),
        (
            "alter table jobs alter attempts type numeric",
            "usual types of jobs",
            "attempts is numeric, and not smallint or integer or bigint: read as well as can be",
            False,
        ),
        (
            "alter table jobs_dlq alter original_id type text",
            "types of jobs_dlq",
            "original_id is text, and not smallint or integer or bigint",
            True,
        ),
        (
            "alter table jobs alter id drop default; alter table jobs alter id type uuid using gen_random_uuid()",
            "types of jobs",
            "id is uuid, and not smallint or integer or bigint",
            True,
        ),
        (
            "alter table jobs alter run_after drop default, alter run_after type text",
            "types of jobs",
            "run_after is text, and not timestamp with time zone or timestamp without time zone",
            True,
        ),
        (
            "alter table jobs_dlq alter failed_at drop default, alter failed_at type bigint using 1",
            "types of jobs_dlq",
            "failed_at is bigint, and not timestamp with time zone",
            True,
        ),
        (
            "alter table jobs alter attempts drop default, alter attempts type boolean using false",
            "types of jobs",
            "attempts is boolean, and not smallint or integer or bigint or numeric",
            True,
        ),
        (
            "alter table jobs_dlq alter error_msg type jsonb using null",
            "usual types of jobs_dlq",
            "error_msg is jsonb, and not text",
            False,
        ),
        (
            "alter table jobs_dlq alter failed_at type timestamp",
            "usual types of jobs_dlq",
            "failed_at is timestamp without time zone, and not timestamp with time zone",
            False,
        ),
        (
            "alter table jobs alter run_after type timestamp",
            "usual types of jobs",
            "run_after is timestamp without time zone",
            False,
        ),
        (
            "alter table jobs_dlq alter payload type text",
            "jobs takes what jobs_dlq has",
            "payload is text, and payload of jobs jsonb: each letter would be refused",
            True,
        ),
        (
            "alter table jobs_parked alter attempts type bigint using 1, alter payload type xml using null",
            "jobs_parked takes what jobs_dlq has",
            "payload is jsonb, and payload of jobs_parked xml",
            True,
        ),
        (
            "alter table jobs add tenant text not null",
            "no further values needed in jobs",
            "tenant: not null without a default, so that a redrive would be refused",
            True,
        ),
        (
            "alter table jobs alter locked_at set not null",
            "no further values needed in jobs",
            "locked_at: not null",
            True,
        ),
        (
            "alter table jobs alter max_attempts drop default",
            "no further values needed in jobs",
            "max_attempts: not null",
            True,
        ),
        (
            "alter table jobs_parked add tenant text not null",
            "no further values needed in jobs_parked",
            "tenant: not null without a default, so that parking a letter would be refused",
            True,
        ),
        (
            "alter table jobs_dlq add host varchar(9)",
            "jobs_parked has the columns of jobs_dlq",
            '`alter table "jobs_parked" add column "host" character varying(9)`',
            False,
        ),
        ("alter table jobs_parked drop failed_by", "columns of jobs_parked", "missing: ", True),
        ("alter table jobs drop run_after", "columns of jobs", "missing: run_after", True),
        (
            "alter table jobs_dlq enable row level security",
            "all rows of jobs_dlq",
            "row level security keeps rows from the role",
            True,
        ),
        (
            "create table notes (letter bigint references jobs_dlq on delete cascade)",
            "no rows that are deleted with those of jobs_dlq",
            "rows of notes refer to it `on delete cascade`",
            True,
        ),
        (
            "create table notes (letter bigint references jobs_parked)",
            "no rows that refer to those of jobs_parked",
            "what notes refers to can't leave it",
            False,
        ),
        (
            "create table notes (letter bigint references jobs_dlq on delete set null)",
            "no rows that refer to those of jobs_dlq",
            "notes loses what it refers to",
            False,
        ),
        (
            SWALLOW.format(event="insert", table="jobs"),
            "no triggers that keep rows of jobs",
            "swallow: where it keeps a row",
            False,
        ),
        (
            SWALLOW.format(event="update or delete", table="jobs_dlq"),
            "no triggers that keep rows of jobs_dlq",
            "swallow",
            False,
        ),
        (
            "create rule kept as on delete to jobs_parked do instead nothing",
            "no rules on jobs_parked",
            "kept: with it each statement",
            True,
        ),
        (
            "create rule noted as on insert to jobs do also notify jobs",
            "no rules on jobs",
            "noted: with it each statement",
            True,
        ),
        (
            "alter role smart_redriver in database {name} set default_transaction_read_only = on",
            "transactions that may write",
            "`default_transaction_read_only`",
            True,
        ),
        (
            "alter table jobs_redriven drop original_id, drop constraint jobs_redriven_pkey",
            "jobs_redriven as the migration makes it",
            "missing: column original_id bigint; primary key (job_id).",
            True,
        ),
        (
            "alter table jobs_held drop constraint jobs_held_pkey",
            "jobs_held as the migration makes it",
            "primary key (is_parked, row_id)",
            True,
        ),
        (
            "alter table jobs_redriven_looks alter state type bytea using null",
            "jobs_redriven_looks as the migration makes it",
            "column state text",
            True,
        ),
        (
            "alter table jobs_parked alter redrive_trail type bytea using null, drop constraint jobs_parked_pkey",
            "jobs_parked as the migration makes it",
            "column redrive_trail text; primary key (id)",
            True,
        ),
        (
            "alter table jobs drop created_at; "
            "alter table jobs add created_at timestamptz generated always as (run_after) stored",
            "no generated columns to be written in jobs",
            "created_at: generated",
            True,
        ),
        (
            "insert into jobs_dlq (payload) select to_jsonb(repeat('x', 200)) from generate_series(1, 9000)",
            "statistics of jobs_dlq",
            'analyze "jobs_dlq": nobody has',
            False,
        ),
        ("drop table jobs; create materialized view jobs as select 1", "table jobs", "is no table", True),
        (
            "alter table jobs_dlq drop constraint jobs_dlq_pkey, alter id drop not null, alter id drop default; "
            "insert into jobs_dlq (payload) values ('1')",
            "a usable id in each row of jobs_dlq",
            "never looked at",
            True,
        ),
        (
            "insert into jobs_parked (id, payload, parked_at) values (-9223372036854775808, '1', now())",
            "a usable id in each row of jobs_parked",
            "never looked at",
            True,
        ),
        ("revoke update (id) on jobs_parked from smart_redriver", "update of the id of jobs_parked", "", True),
    ],
)  # fmt: skip
def test_what_is_not_well_is_named_with_what_to_do(bench, harm, what, advice, is_needed):
    bench.owner.execute(harm.replace("{name}", bench.name))
    database = bench.open()

    found = {one.what: one for one in examine(database) if not one.is_well}

    assert advice in found[what].advice, found
    assert found[what].is_needed is is_needed
    others = {one for one in found if found[one].is_needed} - {what}
    assert all(" takes what " in one for one in others)


@pytest.mark.parametrize(
    "change",
    [
        "alter table jobs alter id type int; alter table jobs_dlq alter original_id type int, alter id type int",
        "alter table jobs alter attempts type smallint",
        "alter table jobs alter id type smallint; alter table jobs_dlq alter original_id type smallint, alter id "
        "type smallint",
        "revoke usage on sequence jobs_id_seq from smart_redriver; grant update on sequence jobs_id_seq to "
        "smart_redriver",
        "alter table jobs_dlq alter failed_at type timestamptz(3), alter error_class type varchar(80)",
        "create domain whole as bigint check (value > 0); alter table jobs_dlq alter original_id type whole",
        "alter table jobs alter payload type json; alter table jobs_dlq alter payload type json; "
        "alter table jobs_parked alter payload type json",
        "alter table jobs add tenant text not null default 'blue', add n int generated always as identity",
        "alter table jobs add tenant text",
        SWALLOW.format(event="update", table="jobs"),
        SWALLOW.format(event="insert", table="jobs_dlq"),
        "create function f() returns trigger language plpgsql as 'begin return null; end';"
        "create trigger after_it after insert on jobs for each row execute function f()",
        SWALLOW.format(event="insert", table="jobs") + "alter table jobs disable trigger swallow",
        "insert into jobs_dlq (payload) select '1' from generate_series(1, 50000); analyze",
        "alter table jobs_dlq drop constraint jobs_dlq_pkey; create unique index on jobs_dlq (id, attempts)",
    ],
)
def test_what_works_is_well(bench, change):
    bench.owner.execute(change)

    assert ills(bench) == {}


def test_a_column_that_is_carried_is_looked_at_in_all_three_tables(bench):
    bench.owner.execute(
        "alter table jobs add tenant int not null; alter table jobs_dlq add tenant text"
    )

    missing = ills_of_columns(bench)
    bench.owner.execute("alter table jobs_parked add tenant text")
    unfit = ills_of_columns(bench)
    for one in ("jobs_dlq", "jobs_parked"):
        bench.owner.execute(f"alter table {one} alter tenant type int using 1")

    assert missing == {"columns of jobs_parked"}
    assert unfit == {"jobs takes what jobs_dlq has", "jobs takes what jobs_parked has"}
    assert ills_of_columns(bench) == set()


def ills_of_columns(bench) -> set[str]:
    place = bench.server.place(bench.name, carried=["tenant"])
    found = {one.what for one in examine(bench.open(place=place)) if not one.is_well}
    return found - {"TLS, verified"}


def test_max_attempts_is_needed_where_it_is_set(bench):
    bench.owner.execute("alter table jobs drop max_attempts")

    place = bench.server.place(bench.name, max_attempts=3)
    asked = [one.what for one in examine(bench.open(place=place)) if not one.is_well]

    assert ills(bench) == {}
    assert asked == ["columns of jobs"]


def test_an_index_is_advised_as_a_partitioned_table_can_have_it(bench):
    bench.owner.execute(PARTITIONED)

    none = ills(bench)
    bench.owner.execute(
        "create unique index on jobs_old (id); create unique index on jobs_new (id)"
    )
    bench.owner.execute("create index on jobs_old (run_after); create index on jobs (run_after)")

    assert none["index on jobs.run_after"][0].startswith(
        'create index concurrently on each partition of "jobs" ("run_after"), '
        'then create index on "jobs" ("run_after");'
    )
    assert none["unique index on jobs.id"][0].startswith(
        'create unique index concurrently on each partition of "jobs" ("id");'
    )
    assert ills(bench) == {}
    bench.owner.execute("drop index jobs_new_id_idx")
    assert set(ills(bench)) == {"unique index on jobs.id"}


def test_a_partition_s_own_trigger_is_found_and_the_whole_is_to_be_analyzed_by_hand(bench):
    bench.owner.execute(PARTITIONED + SWALLOW.format(event="insert", table="jobs_new"))
    bench.owner.execute(
        "insert into jobs (payload) select to_jsonb(repeat('x', 200)) from generate_series(1, 9000); "
        "alter table jobs_new disable trigger swallow"
    )
    bench.owner.execute("insert into jobs_new (payload) select payload from jobs")
    bench.owner.execute(
        "insert into jobs_new (payload) select to_jsonb(repeat('x', 200)) from generate_series(1, 9000); "
        "alter table jobs_new enable trigger swallow"
    )

    found = ills(bench)

    assert found["no triggers that keep rows of jobs"][0].startswith("swallow:")
    assert "never with the whole" in found["statistics of jobs"][0]


@pytest.mark.parametrize(
    "harm",
    [
        "revoke all on all tables in schema public from smart_redriver; "
        "revoke all on all sequences in schema public from smart_redriver",
        "drop table jobs, jobs_dlq, jobs_parked, jobs_held, jobs_redriven, jobs_redriven_looks",
        "alter table jobs drop id, drop payload, drop attempts",
        "alter sequence jobs_id_seq owned by none",
        "revoke usage on schema public from public",
        "alter table jobs_dlq drop id cascade",
    ],
)
def test_whatever_is_missing_is_told_and_nothing_is_raised(bench, harm):
    bench.owner.execute(harm)

    found = [one for one in examine(bench.open()) if not one.is_well]

    assert [one for one in found if one.is_needed and one.advice]


def test_a_schema_that_the_role_may_not_look_into_is_named(bench):
    bench.owner.execute("create schema work; create table work.jobs (like jobs)")
    place = bench.server.place(bench.name, jobs="work.jobs")

    (found,) = [one for one in examine(bench.open(place=place)) if not one.is_well]

    assert (found.what, found.advice) == (
        "table work.jobs",
        "grant usage of it: permission denied for schema work",
    )


def test_a_table_that_is_there_and_not_seen_is_told_from_one_that_is_absent(bench):
    bench.owner.execute(
        "drop table jobs_held; create schema work; alter table jobs_dlq set schema work"
    )
    bench.owner.execute(
        "grant usage on schema work to smart_redriver; revoke usage on schema public from public"
    )

    found = {one.what: one.advice for one in examine(bench.open())}

    assert 'grant usage on schema "public" to' in found["table jobs"]
    assert "name it work.jobs_dlq" in found["table jobs_dlq"]
    assert found["table jobs_held"] == (
        "run the migration; where others of its tables are there already, it refuses to run, because they may be "
        "another queue's: run only its statements about this table"
    )


def test_advice_can_be_pasted_whatever_the_case_of_names(bench):
    bench.owner.execute(
        'create schema "MyApp"; grant usage on schema "MyApp" to smart_redriver;'
        'alter table jobs set schema "MyApp"; alter table "MyApp".jobs rename to "JobsQ";'
        'alter table "MyApp"."JobsQ" rename run_after to "runAfter"; drop index if exists "MyApp".jobs_run_after_idx;'
        'alter table "MyApp"."JobsQ" drop constraint jobs_pkey'
    )

    found = ills(bench, jobs="MyApp.JobsQ", columns={"jobs.run_after": "runAfter"})

    advice = found["unique index on MyApp.JobsQ.id"][0].partition(";")[0]
    assert advice == 'create unique index concurrently on "MyApp"."JobsQ" ("id")'
    bench.owner.execute(advice)
    assert "unique index on MyApp.JobsQ.id" not in ills(
        bench, jobs="MyApp.JobsQ", columns={"jobs.run_after": "runAfter"}
    )


# What it says is so.


def redriven(bench):
    dlq = DeadLetters(bench.database, bench.clock.now)
    letters = dlq.receive(10, hidden_for=bench.place.time_to_fail)
    source = JobsSource(bench.database, "orders", bench.clock.now)
    return source.deliver(bench.outgoing(letters))


@pytest.mark.parametrize(
    "harm",
    [
        "alter table jobs_dlq alter payload type text",
        "alter table jobs add tenant text not null",
        SWALLOW.format(event="insert", table="jobs"),
        "create rule noted as on insert to jobs do also notify jobs",
        "alter table jobs drop created_at; "
        "alter table jobs add created_at timestamptz generated always as (run_after) stored",
    ],
)
def test_what_it_names_moves_no_letter(bench, harm):
    bench.die("a")
    bench.owner.execute(harm)

    assert ills(bench)
    assert not redriven(bench).new_ids
    assert bench.rows("select count(*) from jobs_dlq") == [(1,)]


def test_rows_of_the_teams_would_go_with_a_letter(bench):
    bench.die("a")
    bench.owner.execute(
        "create table notes (letter bigint references jobs_dlq on delete cascade); insert into notes values (1)"
    )

    assert redriven(bench).new_ids
    assert bench.rows("select * from notes") == []


def test_a_letter_can_t_be_parked_where_more_is_needed(bench):
    bench.die("a")
    bench.owner.execute("alter table jobs_parked add tenant text not null")
    (letter,) = DeadLetters(bench.database, bench.clock.now).receive(
        1, hidden_for=bench.place.time_to_fail
    )

    parked = ParkingLot(bench.database, bench.clock.now).park(bench.outgoing([letter]))

    assert not parked.new_ids


def test_a_database_that_can_t_be_asked_is_an_error(bench):
    bench.owner.execute("alter role smart_redriver nologin")
    try:
        with pytest.raises(CallFailed):
            examine(bench.open())
    finally:
        bench.owner.execute("alter role smart_redriver login")


TRIED = "insert into jobs (payload, attempts{columns}) select '1', 1{values} from generate_series(1, 20); analyze jobs"


def test_a_lock_that_no_worker_sets_is_told(bench):
    """Jobs in hand would be told as failed, as in a queue with a visibility timeout."""
    what = "locked_at of jobs tells which jobs are in hand"
    bench.owner.execute(TRIED.format(columns="", values=""))

    advice, is_needed = ills(bench)[what]
    assert "never set" in advice
    assert is_needed

    bench.owner.execute("update jobs set locked_at = now() where id = 1")
    assert what not in ills(bench)


def test_a_visibility_timeout_tells_which_jobs_are_in_hand(bench):
    bench.owner.execute(
        "alter table jobs drop locked_at, add vt timestamptz not null default now()"
    )
    bench.owner.execute(
        "create index on jobs (run_after); grant select (vt) on jobs to smart_redriver"
    )
    bench.owner.execute(TRIED.format(columns=", vt", values=", now() + interval '1 minute'"))

    assert ills(bench, in_hand_until="vt") == {}


def test_a_visibility_timeout_that_is_not_there_is_missing(bench):
    place = bench.server.place(bench.name, in_hand_until="vt")
    advice = [one.advice for one in examine(bench.open(place=place)) if not one.is_well]

    assert advice == ["missing: vt; name them in `columns`, or add them"]
