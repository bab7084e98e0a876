"""Tables and columns by other names, schemas, columns that go along, and what the role may not do."""

import math
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import psycopg
import pytest

from smart_redriver.engine.errors import SettingsError
from smart_redriver.postgres import migration
from smart_redriver.postgres.engine.dead_letters import DeadLetters, ParkingLot
from smart_redriver.postgres.engine.outcomes import Outcomes
from smart_redriver.postgres.engine.place import JobsDatabase
from smart_redriver.postgres.engine.source import JobsSource
from smart_redriver.postgres.oncall.databases import Databases
from tests.postgres.desk import PostgresDesk

TABLES = """
create schema work;
create table work."Tasks" (
  "taskId" bigint generated always as identity primary key, body text not null, tries int, most int not null,
  due timestamptz, taken timestamptz, made timestamptz, tenant text not null, "order" int
);
create table work.dead (
  n bigint generated always as identity primary key, task bigint, body text not null, tries int, kind text, said text,
  trace text, worker text, died timestamptz not null, tenant text not null, "order" int
);
"""

NAMES = {
    "jobs": "work.Tasks",
    "dead_letters": "work.dead",
    "parked": "work.parked",
    "held": "work.held",
    "redriven": "work.redriven",
    "user": "other_redriver",
    "carried": ["tenant", "order"],
    "max_attempts": 7,
    "columns": {
        "jobs.id": "taskId",
        "jobs.payload": "body",
        "jobs.attempts": "tries",
        "jobs.max_attempts": "most",
        "jobs.run_after": "due",
        "jobs.locked_at": "taken",
        "jobs.created_at": "made",
        "jobs_dlq.id": "n",
        "jobs_dlq.original_id": "task",
        "jobs_dlq.payload": "body",
        "jobs_dlq.attempts": "tries",
        "jobs_dlq.error_class": "kind",
        "jobs_dlq.error_msg": "said",
        "jobs_dlq.stacktrace": "trace",
        "jobs_dlq.failed_by": "worker",
        "jobs_dlq.failed_at": "died",
    },
}


@pytest.fixture
def place(bench) -> Iterator[JobsDatabase]:
    named = bench.server.place(bench.name, **NAMES)
    made = migration.migration_of(named)
    bench.owner.execute(TABLES)
    bench.owner.execute(made.tables)
    bench.owner.execute("drop role if exists other_redriver")
    bench.owner.execute(made.grants)
    bench.owner.execute(made.index)
    bench.owner.execute(
        'insert into work.dead (task, body, kind, said, died, tenant, "order")'
        " values (1, 'no json', 'Boom', 'it broke', now(), 'blue', 4), (2, 'b', 'Boom', 'x', now(), 'red', null)"
    )
    yield named
    for one in bench._databases:
        one.close()
    bench.owner.execute("drop owned by other_redriver; drop role other_redriver")


def test_a_letter_goes_all_its_ways_between_tables_of_other_names(bench, place):
    def connect():
        return bench.server.connect(bench.name, user="other_redriver")

    database, now = bench.open(place=place, connect=connect), bench.clock.now
    dlq, lot = DeadLetters(database, now), ParkingLot(database, now)
    jobs, outcomes = JobsSource(database, "tasks", now), Outcomes(database, "tasks", now)
    received = dlq.receive(10, hidden_for=timedelta(minutes=1))
    first, second = sorted(received, key=lambda one: one.message_id)

    parked = lot.park(bench.outgoing([first]))
    sent = jobs.deliver(bench.outgoing([*lot.receive(1, hidden_for=timedelta(minutes=1)), second]))
    bench.owner.execute('delete from work."Tasks" where "taskId" = 1')
    (report,) = outcomes.receive(hidden_for=timedelta(minutes=1))

    assert parked.new_ids == {"dlq-1": "parked-1"}
    assert set(sent.new_ids) == {"parked-1", "dlq-2"}
    ((body, tries, most, tenant, order),) = bench.rows(
        'select body, tries, most, tenant, "order" from work."Tasks"'
    )
    assert (body, tries, most, tenant, order) in [
        ("no json", 0, 7, "blue", 4),
        ("b", 0, 7, "red", None),
    ]
    assert outcomes.delete([report]) == []
    assert (dlq.facts().depth, lot.facts().depth, jobs.facts().depth) == (0, 0, 1)


@pytest.mark.parametrize(
    "forbidden",
    [
        "delete from jobs",
        "update jobs set attempts = 0",
        "select payload from jobs",
        "update jobs_dlq set payload = '1'",
        "insert into jobs_dlq (payload) values ('1')",
        "truncate jobs_dlq",
        "create table mine (n int)",
        "alter table jobs add column x int",
        "drop table jobs_parked",
    ],
)
def test_the_role_may_do_no_more_than_it_has_to(bench, forbidden):
    with (
        bench.server.connect(bench.name, user="smart_redriver") as role,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        role.execute(forbidden)


@pytest.mark.parametrize(
    "name",
    [
        'jobs"; drop table jobs; --',
        "a.b.c",
        "1jobs",
        "",
        "jobs jobs",
        "jobs\x00",
        "x" * 64,
        "ünder",
    ],
)
def test_what_is_no_identifier_is_refused(name):
    given = {"host": "h", "dbname": "d", "user": "u"}
    if name:
        with pytest.raises(SettingsError):
            JobsDatabase.of({**given, "jobs": name})
    with pytest.raises(SettingsError):
        JobsDatabase.of({**given, "columns": {"jobs.payload": name}})
    with pytest.raises(SettingsError):
        JobsDatabase.of({**given, "carried": [name]})


@pytest.mark.parametrize("name", ["dead-jobs", "dead jobs"])
def test_a_table_whose_name_is_refused_may_have_a_view(name):
    with pytest.raises(SettingsError, match="make a view of a table with another name"):
        JobsDatabase.of({"host": "h", "dbname": "d", "user": "u", "dead_letters": name})


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"host": ""}, "DATABASE host"),
        ({"dbname": None}, "DATABASE dbname"),
        ({"port": 0}, "DATABASE port"),
        ({"port": True}, "DATABASE port"),
        ({"sslmode": "prefer"}, "DATABASE sslmode"),
        ({"secret": "hunter2"}, "DATABASE secret"),
        ({"colour": "blue"}, "DATABASE colour"),
        ({"parked": "jobs"}, "DATABASE parked"),
        ({"jobs": ""}, "DATABASE jobs"),
        ({"jobs": "public."}, "DATABASE jobs"),
        ({"sslrootcert": ""}, "DATABASE sslrootcert"),
        ({"dead_letters": "public.jobs"}, "DATABASE dead_letters"),
        ({"held": "public.jobs_dlq"}, "DATABASE held"),
        ({"parked": "jobs_redriven_looks"}, "DATABASE parked"),
        ({"redriven": "app." + "x" * 58}, "DATABASE redriven"),
        ({"carried": ["payload"]}, "DATABASE carried"),
        ({"carried": ["locked_at"]}, "DATABASE carried"),
        ({"carried": ["our_row"]}, "DATABASE carried"),
        ({"carried": ["parked_at"]}, "DATABASE carried"),
        ({"carried": ["tenant", "tenant"]}, "DATABASE carried"),
        ({"carried": ["body"], "columns": {"jobs_dlq.payload": "body"}}, "DATABASE carried"),
        ({"carried": ["max_attempts"], "max_attempts": 3}, "DATABASE carried"),
        ({"columns": {"jobs.payload": "attempts"}}, "DATABASE columns jobs.payload"),
        ({"columns": {"jobs.max_attempts": "payload"}}, "DATABASE columns jobs.max_attempts"),
        ({"columns": {"jobs_dlq.failed_at": "parked_at"}}, "DATABASE columns jobs_dlq.failed_at"),
        (
            {"columns": {"jobs_dlq.error_class": "x", "jobs_dlq.error_msg": "x"}},
            "DATABASE columns jobs_dlq.error_msg",
        ),
        ({"port": math.nan}, "DATABASE port"),
        ({"time_to_fail_seconds": math.inf}, "DATABASE time_to_fail_seconds"),
        ({"max_attempts": date(2026, 1, 1)}, "DATABASE max_attempts"),
        ({"host": {"name": "h"}}, "DATABASE host"),
        ({"columns": {"jobs.payload": True}}, "DATABASE columns"),
        ({"permanent": [1]}, "DATABASE permanent"),
        ({"columns": {"jobs.colour": "c"}}, "DATABASE columns"),
        ({"carried": "tenant"}, "DATABASE carried"),
        ({"user": ""}, "DATABASE user"),
        ({"host": "evil host=other"}, "DATABASE host"),
        (
            {
                "secret": "arn:aws:secretsmanager:eu-west-1:123456789012:secret:x",
                "sslmode": "disable",
            },
            "DATABASE sslmode",
        ),
    ],
)
def test_what_is_wrong_with_a_database_is_named(given, named):
    with pytest.raises(SettingsError) as refused:
        JobsDatabase.of({"host": "h", "dbname": "d", "user": "u", **given})

    assert [one.setting for one in refused.value.faults] == [named]


@pytest.mark.parametrize("text", ["", "[]", "{", "1", "[" * 100_000])
def test_what_is_no_object_of_json_is_refused(text):
    with pytest.raises(SettingsError):
        JobsDatabase.parse(text)


@pytest.mark.parametrize(
    "given",
    [
        {"jobs": "work.jobs", "dead_letters": "jobs"},
        {"carried": ["max_attempts"]},
        {"columns": {"jobs.attempts": "max_attempts", "jobs.max_attempts": "attempts"}},
        {"columns": {"jobs.payload": "body", "jobs_dlq.payload": "body"}, "carried": ["failed"]},
        {"redriven": "app." + "x" * 57},
    ],
    ids=str,
)
def test_what_is_not_the_same_name_twice_is_taken(given):
    one = JobsDatabase.of({"host": "h", "dbname": "d", "user": "u", **given})

    assert JobsDatabase.parse(one.encode()) == one


def test_a_database_is_read_as_it_was_written():
    one = JobsDatabase.of({"host": "h", "dbname": "d", **NAMES})

    assert JobsDatabase.parse(one.encode()) == one


def test_that_no_error_is_permanent_is_read_as_it_was_written():
    one = JobsDatabase.of({"host": "h", "dbname": "d", "user": "u", "permanent": []})

    assert JobsDatabase.parse(one.encode()).permanent == ()


def test_nothing_of_psycopg_is_imported_where_the_origin_is_another():
    """Synth, and a function without it in its bundle, read the same settings."""
    source = Path(migration.__file__).parents[1]
    for one in (*source.glob("*.py"), *source.glob("core/*.py"), *source.glob("passes/*.py")):
        assert "import psycopg" not in one.read_text(), one


def test_the_command_serves_tables_of_other_names(bench, place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bench.place = place
    desk = PostgresDesk(bench)
    desk.databases = Databases()
    columns = 'n, task, body, tries, kind, said, trace, worker, died, tenant, "order"'
    before = bench.rows(f"select {columns} from work.dead order by n")

    (causes,) = desk("causes", "--json").json["queues"]
    shown = desk("show", "dlq-1")
    deleted = desk("delete", "--all", "--from-dlq", "--export", "kept.jsonl", answer="2")
    gone = bench.rows("select 1 from work.dead")
    undone = desk("undo", "kept.jsonl", "--yes")
    parked = bench.rows(f"select {columns} from work.parked order by n")
    replayed = desk("replay", "dlq-1", "parked-2", "--yes")

    assert [(one["cause"], one["in_dlq"]) for one in causes["groups"]] == [("Boom", 2)]
    assert "no json" in shown.out
    assert (deleted.code, gone, undone.code, parked) == (0, [], 0, before)
    assert replayed.code == 0
    assert bench.rows('select body, tenant, "order" from work."Tasks" order by 1') == [
        ("b", "red", None),
        ("no json", "blue", 4),
    ]
