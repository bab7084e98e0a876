"""Tables as nobody expects them: rows that are hidden, other types, ids below one. A letter stays a letter."""

from datetime import timedelta

import pytest
from psycopg import sql
from psycopg.adapt import Loader

from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.reports.outcomes import Result, parse_outcomes
from smart_redriver.postgres.engine.dead_letters import DeadLetters, ParkingLot
from smart_redriver.postgres.engine.outcomes import Outcomes
from smart_redriver.postgres.engine.source import JobsSource
from smart_redriver.postgres.oncall.people import PeoplesLetters
from smart_redriver.postgres.oncall.tables import count_by_cause, oldest_death, rows_named
from tests.postgres.bench import QUEUE

A_MINUTE = timedelta(minutes=1)

OURS = ["jobs_parked", "jobs_held", "jobs_redriven", "jobs_redriven_looks"]


@pytest.mark.parametrize("policy", ["nobody", "some"])
@pytest.mark.parametrize("table", ["jobs", "jobs_dlq", *OURS])
def test_rows_that_are_hidden_from_us_are_a_fault_and_no_success(bench, table, policy):
    bench.die("a", "b", "c")
    bench.run_pass(initial_window=2, base_delay_seconds=0)
    before = bench.rows("select * from jobs_redriven order by job_id")
    bench.owner.execute(f"alter table {table} enable row level security")
    if policy == "some":
        bench.owner.execute(f"create policy few on {table} using (random() < 0)")
    bench.clock.advance(60)

    report = bench.run_pass(initial_window=2, base_delay_seconds=0)

    assert (report.redriven, report.parked, report.verdicts) == (0, {}, [])
    assert {one.partition(":")[2] for one in report.faults} == {"InsufficientPrivilege"}
    assert bench.rows("select * from jobs_redriven order by job_id") == before
    assert bench.everywhere().total() == 3
    bench.owner.execute(f"alter table {table} disable row level security")
    bench.live(steps=12)
    assert bench.done == {"a": 1, "b": 1, "c": 1}


def test_why_rows_are_not_told_is_said(bench):
    bench.owner.execute("alter table jobs_dlq enable row level security")

    with pytest.raises(CallFailed, match="row-level security policy for table"):
        DeadLetters(bench.database, bench.clock.now).facts()


TYPES = {
    "attempts numeric": "alter table {} alter attempts type numeric",
    "attempts real": "alter table {} alter attempts type real",
    "attempts text": "alter table {} alter attempts type text",
    "error_class int": "alter table {} alter error_class type int using 7",
    "error_msg jsonb": "alter table {} alter error_msg type jsonb using to_jsonb(error_msg)",
    "error_msg bytea": "alter table {} alter error_msg type bytea using error_msg::bytea",
    "stacktrace xml": "alter table {} alter stacktrace type jsonb using to_jsonb(stacktrace)",
    "failed_by uuid": "alter table {} alter failed_by type uuid using gen_random_uuid()",
    "failed_at timestamp": "alter table {} alter failed_at type timestamp",
    "failed_at date": "alter table {} alter failed_at type date",
    "failed_at text": "alter table {} alter failed_at type text",
    "id int": "alter table {} alter id type int",
    "id numeric": "alter table {} alter id type numeric",
    "original_id numeric": "alter table {} alter original_id type numeric",
    "payload text": "alter table {} alter payload type jsonb using payload::text::jsonb",
}


@pytest.mark.parametrize("change", TYPES.values(), ids=TYPES)
def test_columns_of_other_types_end_no_pass(bench, change):
    bench.die("a", "bad", error="7")
    for table in ("jobs_dlq", "jobs_parked"):
        bench.owner.execute(change.format(table))

    first = bench.run_pass(base_delay_seconds=0)
    bench.work()
    bench.clock.advance(60)
    second = bench.run_pass(base_delay_seconds=0)

    assert (first.redriven, first.parked, second.heard) == (2, {}, {"succeeded": 2})
    assert bench.done == {"a": 1, "bad": 1}


@pytest.mark.parametrize("kind", ["numeric", "smallint"])
def test_jobs_with_ids_of_other_types_are_seen_pass_after_pass(bench, kind):
    bench.owner.execute(f"alter table jobs alter id type {kind}")
    bench.owner.execute("insert into jobs (payload) values ('1')")
    bench.die("a")

    reports = [bench.run_pass(base_delay_seconds=0) for _ in range(3)]

    assert [one.faults for one in reports] == [{}, {}, {}]
    assert sum(one.redriven for one in reports) == 1


SETTINGS = [
    "datestyle = 'German'",
    "datestyle = 'SQL, DMY'",
    "client_encoding = 'SQL_ASCII'",
    "client_encoding = 'LATIN1'",
]


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_settings_of_a_role_change_nothing(bench, setting):
    bench.die("é")
    bench.owner.execute(f"alter database {bench.name} set {setting}")

    first = bench.run_pass(base_delay_seconds=0)
    bench.clock.advance(60)
    second = bench.run_pass(base_delay_seconds=0)

    assert (first.redriven, first.faults, second.faults) == (1, {}, {})
    assert bench.payloads("jobs") == ["é"]


def test_a_value_that_can_t_be_read_is_a_call_that_failed(bench):
    def lie():
        connection = bench.server.connect(bench.name)
        connection.adapters.register_loader("int4", Unreadable)
        return connection

    database = bench.open(connect=lie)

    with pytest.raises(CallFailed) as failed:
        database.run("Read", sql.SQL("select 1").format(), {})

    assert (failed.value.code, str(failed.value.__cause__)) == ("NotImplementedError", "no such")


class Unreadable(Loader):
    def load(self, data):
        raise NotImplementedError("no such")


@pytest.mark.parametrize("change", TYPES.values(), ids=TYPES)
def test_people_are_shown_letters_of_other_types_and_may_park_them(bench, change):
    bench.die("a", error="7")
    for table in ("jobs_dlq", "jobs_parked"):
        bench.owner.execute(change.format(table))
    theirs = PeoplesLetters(bench.database, bench.clock.now, whole=True)

    (letter,) = theirs.receive(10, hidden_for=A_MINUTE)
    (kept,), _ = theirs.keep([letter])
    oldest, (counted,) = (
        oldest_death(bench.database),
        count_by_cause(bench.database, is_parked=False),
    )
    sent = ParkingLot(bench.database, bench.clock.now).park(bench.outgoing([letter]))

    assert kept.attributes["Row"]["StringValue"]
    assert (counted.cause, sent.new_ids) == ("7", {"dlq-1": "parked-1"})
    assert oldest is None or oldest <= bench.clock.now()


@pytest.mark.parametrize("tries", ["2.5", "'NaN'", "1e30", "-4"])
def test_numbers_of_tries_that_are_none_end_no_pass(bench, tries):
    for table in ("jobs", "jobs_dlq", "jobs_parked"):
        bench.owner.execute(f"alter table {table} alter attempts type numeric")
    bench.die("a")
    bench.owner.execute(f"update jobs_dlq set attempts = {tries}")
    first = bench.run_pass(base_delay_seconds=0)
    bench.owner.execute(f"update jobs set attempts = {tries}")
    bench.clock.advance(60)

    second = bench.run_pass(base_delay_seconds=0)

    assert (first.redriven, first.faults, second.faults) == (1, {}, {})


def test_rows_with_numbers_below_one_are_letters(bench):
    bench.owner.execute("insert into jobs_dlq (id, payload) values (-7, '1'), (0, '2')")
    letters = DeadLetters(bench.database, bench.clock.now).receive(10, hidden_for=A_MINUTE)
    assert {one.message_id for one in letters} == {"dlq--7", "dlq-0"}
    lot, jobs = (
        ParkingLot(bench.database, bench.clock.now),
        JobsSource(bench.database, QUEUE, bench.clock.now),
    )

    assert rows_named(bench.database, ["dlq--7", "dlq-0"], is_parked=False) == [-7, 0]
    assert len(lot.park(bench.outgoing(letters)).new_ids) == 2
    parked = lot.receive(10, hidden_for=A_MINUTE)
    assert len(jobs.deliver(bench.outgoing(parked)).new_ids) == 2

    assert sorted(bench.payloads("jobs")) == [1, 2]


def test_jobs_with_numbers_below_one_are_heard_of(bench):
    bench.owner.execute("alter sequence jobs_id_seq minvalue -5 restart -5")
    bench.owner.execute("insert into jobs_dlq (payload) values ('1'), ('2')")
    dlq = DeadLetters(bench.database, bench.clock.now)
    jobs = JobsSource(bench.database, QUEUE, bench.clock.now)
    jobs.deliver(bench.outgoing(dlq.receive(10, hidden_for=A_MINUTE)))
    bench.work(lambda one: "Boom" if one == 1 else None)
    outcomes = Outcomes(bench.database, QUEUE, bench.clock.now)

    (told,) = outcomes.receive(hidden_for=A_MINUTE)

    assert outcomes.delete([told]) == []
    assert [one.result for one in parse_outcomes(told.body).outcomes] == [
        Result.FAILED,
        Result.SUCCEEDED,
    ]
    assert outcomes.receive(hidden_for=A_MINUTE) == []
    assert bench.rows("select count(*) from jobs_redriven where settled_at is null") == [(0,)]
