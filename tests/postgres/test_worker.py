"""The example's worker: causes, backoff, crash recovery, and each job's work done once."""

import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from tests.postgres.bench import Bench

PERMANENT = "smart_redriver.consumer.errors.PermanentError"
EXAMPLE = Path(__file__).parents[2] / "examples" / "postgres_worker"

#: A worker that is killed within its job: after its work, before its commit.
KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
import psycopg
from datetime import datetime
from worker import Worker

def handle(payload, connection):
    connection.execute("insert into booked values (%s)", (payload,))
    os.kill(os.getpid(), signal.SIGKILL)

with psycopg.connect(host=sys.argv[2], dbname=sys.argv[3], user="postgres", autocommit=True) as connection:
    Worker(connection, handle, clock=lambda: datetime.fromisoformat(sys.argv[4])).work()
"""


@pytest.fixture
def worker(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLE))
    for name in ("worker", "orders"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import worker

    return worker


@pytest.fixture
def jobs(bench: Bench) -> Bench:
    bench.owner.execute("create table booked (order_id int primary key)")
    return bench


def add(bench: Bench, *payloads: str) -> None:
    for one in payloads:
        bench.owner.execute(
            "insert into jobs (payload, run_after) values (%s::jsonb, %s)", (one, bench.clock.now())
        )


def book(payload, connection):
    connection.execute("insert into booked values (%s)", (payload,))


def fail(payload, connection):
    book(payload, connection)
    raise ConnectionError("refused by 10.0.0.1")


def booked(bench: Bench) -> list[int]:
    return [one for (one,) in bench.rows("select order_id from booked order by 1")]


def test_a_job_that_is_done_is_gone_with_what_it_wrote(jobs, worker):
    add(jobs, "1", "2")
    one = worker.Worker(jobs.owner, book, clock=jobs.clock.now)

    assert [one.work(), one.work(), one.work()] == [True, True, False]

    assert (booked(jobs), jobs.payloads("jobs")) == ([1, 2], [])


def test_a_job_that_fails_waits_longer_each_time_and_leaves_nothing_of_its_work(jobs, worker):
    add(jobs, "1")
    one = worker.Worker(jobs.owner, fail, clock=jobs.clock.now)

    one.work()
    assert not one.work()
    jobs.clock.advance(30)
    one.work()

    ((run_after, locked_by, attempts),) = jobs.rows(
        "select run_after, locked_by, attempts from jobs"
    )
    assert (run_after, locked_by, attempts) == (jobs.clock.now() + timedelta(seconds=60), None, 2)
    assert booked(jobs) == []


def test_the_last_failure_makes_a_letter_that_says_why(jobs, worker):
    add(jobs, "1")
    one = worker.Worker(jobs.owner, fail, name="w1", clock=jobs.clock.now)
    for _ in range(3):
        one.work()
        jobs.clock.advance(3600)

    ((original, payload, attempts, kind, message, trace, by),) = jobs.rows(
        "select original_id, payload, attempts, error_class, error_msg, stacktrace, failed_by from jobs_dlq"
    )
    assert (original, payload, attempts, kind, by) == (1, 1, 3, "ConnectionError", "w1")
    assert message == "refused by 10.0.0.1"
    assert "in fail" in trace
    assert jobs.payloads("jobs") == []


def test_what_no_retry_can_heal_is_a_letter_at_once(jobs, worker):
    import orders

    add(jobs, '{"order_id": 7}', '{"order_id": "x"}', "[]")
    one = worker.Worker(jobs.owner, orders.handle, clock=jobs.clock.now)
    while one.work():
        pass

    assert booked(jobs) == [7]
    assert jobs.rows("select payload, attempts, error_class from jobs_dlq order by id") == [
        ({"order_id": "x"}, 1, PERMANENT),
        ([], 1, PERMANENT),
    ]
    # The re-driver believes it, and sets them aside without a try.
    assert jobs.run_pass().parked == {"PERMANENT": 2}


def test_a_job_whose_worker_was_killed_is_done_by_another_and_once(jobs, worker):
    add(jobs, "1")
    command = [sys.executable, "-c", KILLED, str(EXAMPLE), str(jobs.server.directory), jobs.name]
    killed = subprocess.run([*command, jobs.clock.now().isoformat()], check=False)
    assert killed.returncode == -9
    one = worker.Worker(jobs.owner, book, clock=jobs.clock.now)

    assert not one.work()
    jobs.clock.advance(worker.LOCK_TIMEOUT.total_seconds() + 1)
    assert one.work()

    assert (booked(jobs), jobs.payloads("jobs")) == ([1], [])


def test_a_worker_that_lost_its_lock_undoes_its_work(jobs, worker):
    """It was not dead, only slow; another has the job now."""
    add(jobs, "1")

    def slow(payload, connection):
        book(payload, connection)
        with jobs.server.connect(jobs.name) as other:
            jobs.clock.advance(worker.LOCK_TIMEOUT.total_seconds() + 1)
            assert worker.Worker(other, lambda *_: None, name="other", clock=jobs.clock.now).take()

    worker.Worker(jobs.owner, slow, name="slow", clock=jobs.clock.now).work()

    assert booked(jobs) == []
    assert jobs.rows("select locked_by, attempts from jobs") == [("other", 2)]
    assert jobs.payloads("jobs_dlq") == []


def test_two_workers_at_once_do_each_job_once(jobs, worker):
    add(jobs, *map(str, range(60)))

    def work_all(name):
        with jobs.server.connect(jobs.name) as connection:
            one = worker.Worker(connection, book, name=name, clock=jobs.clock.now)
            done = 0
            while one.work():
                done += 1
            return done

    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(work_all, ("first", "second")))

    assert (sum(done), booked(jobs)) == (60, list(range(60)))
    assert jobs.payloads("jobs_dlq") == []


def test_worker_and_passes_bring_every_letter_home_through_an_outage(jobs, worker):
    """The whole story: an outage, its letters, passes at work, and a worker that is well again."""
    is_down = True

    def handle(payload, connection):
        if is_down:
            raise ConnectionError("the bank does not answer")
        book(payload, connection)

    add(jobs, *map(str, range(40)))
    one = worker.Worker(jobs.owner, handle, clock=jobs.clock.now)
    for _ in range(4):
        while one.work():
            pass
        jobs.run_pass(initial_window=5)
        jobs.clock.advance(120)
    assert len(jobs.payloads("jobs_dlq")) >= 30
    is_down = False
    for _ in range(60):
        jobs.run_pass(initial_window=5)
        while one.work():
            pass
        jobs.clock.advance(60)

    assert (booked(jobs), jobs.payloads("jobs_dlq"), jobs.payloads("jobs")) == (
        list(range(40)),
        [],
        [],
    )
    assert Counter(jobs.payloads("jobs_parked")) == Counter()
