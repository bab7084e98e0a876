"""Producers' own jobs as evidence, and workers that would fool one that guesses."""

import pytest

from smart_redriver.engine.config.settings import Mode
from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.model.evidence import LiveOutcome
from smart_redriver.engine.model.queue_metrics import QueueMetrics
from smart_redriver.postgres.engine.queue_metrics import JobMetricsReader
from tests.postgres.bench import QUEUE, Bench
from tests.postgres.live import Live


@pytest.fixture
def live(bench: Bench) -> Live:
    return Live(bench)


def test_jobs_that_are_done_between_two_looks_are_heard_of(live):
    live.work(3)

    account = live.account()

    assert (account.sent, account.deleted, account.moved, account.left) == (3, 3, 0, 0)
    assert account.failed_tries == 0
    assert live.outcome is LiveOutcome.SUCCEEDS


def test_a_burst_is_heard_of_to_the_last_job(live):
    live.work(2_000)
    live.look()
    live.work(1_500)

    assert live.account().deleted == 3_500


def test_what_is_rolled_back_proves_nothing(live):
    """Ids are used up and rows are counted; and the one job that there is fails."""
    (job,) = live.add()
    for _ in range(4):
        with live.rolled_back():
            live.work(20)
        with live.rolled_back():
            live.done([job])
        live.lock([job])
        live.unlock([job])
        live.look()

    account = live.account()

    assert (account.deleted, account.moved, account.left) == (0, 0, 1)
    assert account.failed_tries >= 3
    assert live.outcome is not LiveOutcome.SUCCEEDS


def test_beside_producers_that_roll_back_all_the_time_work_that_is_done_is_proved(live):
    for _ in range(3):
        with live.rolled_back():
            live.add(50)
        live.work(4)
        live.look()

    assert live.account().deleted == 12


def test_workers_that_are_off_have_done_nothing(live):
    live.add(30)

    account = live.account()

    assert (account.deleted, account.moved, account.waiting) == (0, 0, 30)
    assert account.failed_tries == 0
    assert live.outcome is LiveOutcome.UNSEEN


def test_a_job_that_takes_ten_minutes_has_not_failed_until_then(live):
    jobs = live.add(2)
    live.lock(jobs)
    live.look(9)
    meanwhile = live.account()
    live.owner.execute("analyze jobs")  # what its counters prove is forgotten, what was seen is not
    live.done(jobs)
    live.owner.execute("analyze jobs")

    assert (meanwhile.failed_tries, meanwhile.in_flight, meanwhile.deleted) == (0, 2, 0)
    assert live.account().deleted == 2


def test_jobs_that_are_tried_five_times_fail_from_the_first_on(live):
    jobs = live.add(3)
    for attempt in range(4):
        live.lock(jobs)
        live.look()
        live.unlock(jobs)
        live.look(2**attempt)
        assert live.outcome is LiveOutcome.FAILS
    live.lock(jobs)
    live.die(jobs)

    account = live.account()

    assert (account.deleted, account.moved, account.failed_tries) == (0, 3, 15)


@pytest.mark.parametrize("parks", [False, True])
def test_a_job_whose_letter_was_moved_on_before_the_next_look_has_died(live, parks):
    jobs = live.add(2)
    live.look()
    live.die(jobs)
    assert live.redrive(parks=parks) == 2

    account = live.account()

    assert (account.deleted, account.moved) == (0, 2)


def test_deaths_between_two_looks_are_counted(live):
    live.work(4)
    jobs = live.add(3)
    live.die(jobs)

    account = live.account()

    assert (account.deleted, account.moved) == (4, 3)


def test_where_nobody_but_redriven_jobs_is_seen_the_metrics_are_empty(bench):
    bench.die("a", "b", "c")
    live = Live(bench)
    live.redrive()
    live.look()
    live.bench.work()

    assert live.metrics() == QueueMetrics()


def test_redriven_jobs_are_in_the_metrics_beside_others(bench):
    """The core takes the batch's size off: what is left is the others'."""
    bench.die("good", "bad")
    live = Live(bench)
    live.redrive()
    live.work(5)
    bench.work(lambda payload: "Boom" if payload == "bad" else None)

    account = live.account()

    assert (account.sent, account.deleted, account.moved) == (7, 6, 1)


def test_a_table_that_nobody_uses_says_nothing(live):
    live.look(20)

    assert live.metrics() == QueueMetrics()


def test_jobs_for_later_are_nobodys_failure(live):
    live.add(500, after_minutes=600)
    live.work(2)

    account = live.account()

    assert (account.met, account.deleted, account.left) == (2, 2, 0)


def test_a_job_that_says_nothing_of_itself_is_there_all_the_same(live):
    live.owner.execute(
        "alter table jobs alter attempts drop not null, alter run_after drop not null"
    )
    (job,) = live.add()
    live.look()
    live.owner.execute("update jobs set attempts = null, run_after = null")

    account = live.account()
    assert (account.deleted, account.moved, account.left) == (0, 0, 1)
    live.done([job])
    assert live.account().deleted == 1


def test_a_worker_that_deletes_what_it_failed_with_passes_for_a_good_one(live):
    """Nobody could tell: docs/postgres.md says so."""
    live.work(2)

    assert live.account().deleted == 2


def test_a_race_of_inserts_for_one_key_is_no_delete(live):
    """Postgres counts the loser as inserted and deleted; where that can be, its counters are not believed."""
    live.owner.execute("create unique index on jobs ((payload::text)) where attempts < 0")
    live.look()
    live.work(5)
    seen = live.add(1)
    live.look()
    live.done(seen)

    assert live.account().deleted == 1


PARTITIONED_DLQ = """
drop table jobs_dlq cascade;
create table jobs_dlq (
  id bigserial, original_id bigint, payload jsonb not null, attempts int, error_class text, error_msg text,
  stacktrace text, failed_by text, failed_at timestamptz not null default now(), primary key (id, failed_at)
) partition by range (failed_at);
create table jobs_dlq_all partition of jobs_dlq default;
create index on jobs_dlq (original_id);
grant select, delete, update (id) on jobs_dlq to smart_redriver;
"""
CHILD = "create table jobs_dlq_more () inherits (jobs_dlq)"


@pytest.mark.parametrize("ddl", [PARTITIONED_DLQ, CHILD], ids=["partitioned", "inherited"])
def test_deaths_that_partitions_count_by_themselves_are_no_successes(bench, ddl):
    bench.owner.execute(ddl)
    live = Live(bench)
    for _ in range(3):
        jobs = live.add(20)
        live.lock(jobs)
        live.die(jobs)
        live.look()

    assert live.metrics() == QueueMetrics() or live.account().deleted == 0
    assert live.outcome is not LiveOutcome.SUCCEEDS


def test_jobs_of_a_truncated_table_have_not_succeeded(live):
    live.add(1_000, after_minutes=600)
    live.look()
    live.owner.execute("truncate jobs")

    assert live.metrics() == QueueMetrics() or live.account().deleted == 0
    assert live.outcome is not LiveOutcome.SUCCEEDS


def test_what_was_counted_before_a_reset_is_not_counted_on(live):
    live.work(50)
    live.look()
    live.owner.execute("select pg_stat_reset()")
    live.work(60)
    live.look()
    (job,) = live.add()

    assert live.account().deleted <= 110
    assert live.bench.rows("select count(*) from jobs where id = %s", job) == [(1,)]


def test_of_two_looks_that_go_on_from_the_same_one_is_kept(live):
    other = JobMetricsReader(live.bench.database, live.bench.clock.now)
    live.work(4)
    live.bench.clock.advance(30)
    other.look()
    live.work(4)

    assert live.account().deleted == 8


def test_where_too_many_of_ours_are_out_they_alone_are_heard(bench, monkeypatch):
    monkeypatch.setattr("smart_redriver.postgres.engine.queue_metrics.MOST", 20)
    bench.die(*range(21))
    live = Live(bench)
    live.work(3)
    live.redrive()

    assert live.metrics() == QueueMetrics()

    bench.work()
    live.look(2)
    live.began = live.bench.clock.now()
    live.work(3)

    assert live.account().deleted == 3


def test_a_look_that_was_written_by_somebody_else_is_none(live):
    live.owner.execute("update jobs_redriven_looks set state = '{\"at\": 1}'")
    live.look()
    live.work(3)

    assert live.account().deleted == 3


def test_a_look_that_fails_keeps_nobody_from_hearing_and_is_told(bench):
    bench.die("a")
    bench.run_pass(base_delay_seconds=0)
    bench.owner.execute("drop table jobs_redriven_looks")
    bench.work()
    bench.clock.advance(60)

    report = bench.run_pass()

    assert report.faults == {"ReadLook:UndefinedTable": 1}
    assert bench.rows("select count(*) from jobs_redriven where settled_at is not null") == [(1,)]
    metrics_reader = JobMetricsReader(bench.database, bench.clock.now)
    metrics_reader.look()
    with pytest.raises(CallFailed):
        metrics_reader.since(bench.clock.now(), bench.clock.now(), QUEUE)


def test_a_dry_run_looks_and_changes_nothing_else(bench):
    bench.die("a", "b")
    tables = ("jobs", "jobs_dlq", "jobs_parked", "jobs_held", "jobs_redriven")
    before = [bench.rows(f"select * from {one}") for one in tables]

    bench.run_pass(mode=Mode.DRY_RUN)

    assert [bench.rows(f"select * from {one}") for one in tables] == before
    assert bench.rows("select count(*) from jobs_redriven_looks") == [(1,)]
