"""A view in the place of a table: normalised tables, and ids that are no numbers."""

import pytest

from smart_redriver.postgres.doctor.examination import examine
from smart_redriver.postgres.migration import migration_of
from tests.postgres.bench import Bench

#: What a team has that gives each job a UUID, and keeps errors beside dead jobs; views as the re-driver takes them.
TABLES = """
drop table jobs, jobs_dlq, jobs_parked, jobs_held, jobs_redriven, jobs_redriven_looks;
create sequence job_numbers;
create table job (
  key uuid primary key default gen_random_uuid(), number bigint not null unique default nextval('job_numbers'),
  payload jsonb not null, attempts int not null default 0, max_attempts int not null default 3,
  run_after timestamptz not null default now(), locked_at timestamptz, created_at timestamptz not null default now()
);
create table dead_job (number bigint primary key default nextval('job_numbers'), job bigint, payload jsonb not null);
create table death (
  number bigint primary key references dead_job on delete cascade, attempts int, error_class text, error_msg text,
  failed_at timestamptz
);
create view jobs as
  select number as id, payload, attempts, max_attempts, run_after, locked_at, created_at from job;
create view jobs_dlq as
  select number as id, job as original_id, payload, attempts, error_class, error_msg, null::text as stacktrace,
         null::text as failed_by, failed_at
  from dead_job join death using (number);
create function bury() returns trigger language plpgsql security definer as $$ begin
  delete from dead_job where number = old.id;
  return case when found then old end;
end $$;
create trigger bury instead of delete on jobs_dlq for each row execute function bury();
"""
DIES = """
with d as (insert into dead_job (payload) values (to_jsonb(%s::int)) returning number)
insert into death select number, 3, 'Boom', 'it broke', '2020-01-01' from d
"""


@pytest.fixture
def bench(bench: Bench) -> Bench:
    bench.owner.execute(TABLES)
    bench.place = bench.server.place(bench.name, time_to_fail_seconds=60, sequence="job_numbers")
    migration = migration_of(bench.place)
    bench.owner.execute(migration.tables)
    bench.owner.execute(migration.grants)
    bench.database = bench.open()
    return bench


def test_the_doctor_finds_views_well(bench):
    assert [one for one in examine(bench.database) if not one.is_well and one.is_needed] == []


def test_the_doctor_misses_the_sequence_of_a_view(bench):
    found = examine(bench.open(place=bench.server.place(bench.name)))

    (missing,) = [one for one in found if not one.is_well and one.is_needed]
    assert missing.what == "the sequence of jobs.id"
    assert "`sequence`" in missing.advice


@pytest.mark.parametrize(
    ("view", "what", "table"),
    [
        ("jobs", "select of id, attempts, run_after, locked_at of jobs", "job"),
        ("jobs", "insert on jobs", "job"),
        ("jobs_dlq", "select on jobs_dlq", "dead_job"),
    ],
)
def test_the_doctor_misses_a_right_below_a_view_that_asks_for_the_invoker_s(
    bench, view, what, table
):
    bench.owner.execute(f"alter view {view} set (security_invoker = true)")

    found = [one for one in examine(bench.database) if not one.is_well and one.is_needed]

    (missing,) = [one for one in found if one.what == what]
    assert missing.advice == f"grant it: permission denied for table {table}"


def test_letters_of_a_view_go_back_to_one_are_heard_of_and_parked(bench):
    for one in range(3):
        bench.owner.execute(DIES, [one])
    settings = {"base_delay_seconds": 0, "max_attempts": 1, "last_chance_seconds": 0}

    assert bench.run_pass(**settings).redriven == 3
    keys = bench.rows("select key from job")
    assert len(keys) == 3

    bench.owner.execute(
        "with j as (delete from job where payload = '0' returning *),"
        " d as (insert into dead_job (job, payload) select number, payload from j returning number)"
        " insert into death select number, 3, 'Boom', 'it broke', '2020-01-01' from d;"
        " delete from job where payload <> '0'"
    )
    bench.clock.advance(60)
    report = bench.run_pass(**settings)

    assert (report.heard["succeeded"], report.heard["failed"]) == (2, 1)
    assert report.parked.total() == 1
    assert bench.rows("select payload, error_class from jobs_parked") == [(0, "Boom")]
    assert bench.rows("select count(*) from death") == [(0,)]


def test_a_view_that_lets_no_row_go_is_told(bench):
    bench.owner.execute(DIES, [1])
    bench.owner.execute("drop trigger bury on jobs_dlq")

    report = bench.run_pass()

    assert report.redriven == 0
    assert bench.rows("select count(*) from dead_job") == [(1,)]
    assert "refused letters" in report.reason
