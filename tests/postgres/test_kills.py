"""kill -9 of the pass and of the database, in the middle of the one statement that moves letters."""

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

from emulator.postgres import running_postgres
from smart_redriver.postgres.engine.dead_letters import DeadLetters, ParkingLot
from smart_redriver.postgres.engine.source import JobsSource
from tests.postgres.bench import QUEUE, Bench
from tests.postgres.conftest import prepare

ROOT = Path(__file__).parents[2]
LETTERS = ("a", "b", "c")

#: A pass of its own process, given the database's configuration: it tells when it begins.
PASS = """
import sys
from emulator.postgres import PostgresServer
from tests.postgres.bench import Bench
server = PostgresServer.__new__(PostgresServer)
server.directory = __import__("pathlib").Path(sys.argv[1])
with Bench(server, sys.argv[2]) as bench:
    bench.run_pass(base_delay_seconds=0)
"""

#: What makes the statement stop after its delete and before its end, for as long as somebody holds a lock.
STOP = """
create function stop() returns trigger language plpgsql as $$ begin
  perform pg_advisory_xact_lock_shared(7); return new;
end $$;
create trigger stop before insert on {table} for each row execute function stop();
"""


@pytest.fixture
def own() -> Iterator[Bench]:
    """Tables on a server that may be killed."""
    with running_postgres() as running:
        prepare(running).create("orders", template="template")
        with Bench(running, "orders") as one:
            yield one


@contextmanager
def stopped_within(bench: Bench, table: str, act: Callable[[], object]) -> Iterator[None]:
    """`act` is under way, and its statement has begun to write into `table`; afterwards it goes on."""
    bench.owner.execute(STOP.format(table=table))
    with bench.server.connect(bench.name) as holder:
        holder.execute("select pg_advisory_lock(7)")
        act()
        waits = "select 1 from pg_locks where locktype = 'advisory' and not granted"
        wait_for(lambda: holder.execute(waits).fetchall())
        yield


def wait_for(condition: Callable[[], object]) -> None:
    """Wait for what comes by itself; what never comes is a failure and no hang."""
    for _ in range(6000):
        if condition():
            return
        time.sleep(0.005)
    raise AssertionError("it never came")


def everything(own: Bench) -> Counter[str]:
    """What the database has, whoever was connected before it was killed."""
    with own.server.connect(own.name) as owner:
        tables = ("jobs", "jobs_dlq", "jobs_parked")
        return Counter(
            f"{table}: {payload}"
            for table in tables
            for (payload,) in owner.execute(f"select payload from {table}").fetchall()
        )


def test_a_pass_that_is_killed_within_its_statement_repeats_nothing(bench):
    bench.die(*LETTERS)
    command = [sys.executable, "-c", PASS, str(bench.server.directory), bench.name]
    passes: list[subprocess.Popen[bytes]] = []

    with stopped_within(bench, "jobs", lambda: passes.append(subprocess.Popen(command, cwd=ROOT))):
        passes[0].kill()
        assert passes[0].wait() == -9
        assert Counter(bench.payloads("jobs_dlq")) == Counter(LETTERS)
    # The server has heard the statement; nobody is there to commit it.
    wait_for(lambda: is_idle(bench))

    assert Counter(bench.payloads("jobs_dlq")) == Counter(LETTERS)
    bench.run_pass(base_delay_seconds=0)
    assert bench.payloads("jobs_dlq") == []
    assert bench.everywhere() == Counter(LETTERS)


def is_idle(bench: Bench) -> bool:
    busy = (
        "select 1 from pg_stat_activity where usename = 'smart_redriver' and state <> 'idle'"
        " and datname = current_database()"
    )
    return not bench.rows(busy)


@pytest.mark.parametrize("table", ["jobs", "jobs_redriven", "jobs_parked"])
def test_a_database_that_is_killed_within_a_statement_has_done_nothing_of_it(own, table):
    own.die(*LETTERS)
    letters = own.outgoing(
        DeadLetters(own.database, own.clock.now).receive(10, hidden_for=own.place.time_to_fail)
    )
    lot = ParkingLot(own.database, own.clock.now)
    jobs = JobsSource(own.database, QUEUE, own.clock.now)
    move = lot.park if table == "jobs_parked" else jobs.deliver
    answers = []
    mover = Thread(target=lambda: answers.append(move(letters)))

    with stopped_within(own, table, mover.start):
        own.server.kill()
        mover.join()
    own.server.start()

    (sent,) = answers
    assert [one.is_transient for one in sent.faults] == [True, True, True]
    assert everything(own) == Counter(f"jobs_dlq: {one}" for one in LETTERS)
    with own.server.connect(own.name) as owner:
        owner.execute(f"drop trigger stop on {table}")
    assert len(move(letters).new_ids) == 3
    assert everything(own).total() == 3


def test_what_was_moved_before_a_database_was_killed_stays_moved(own):
    own.die(*LETTERS)
    own.run_pass(base_delay_seconds=0)

    own.server.kill()
    own.server.start()

    assert everything(own) == Counter(f"jobs: {one}" for one in LETTERS)
    report = own.run_pass(base_delay_seconds=0)
    assert (report.redriven, report.depth) == (0, 0)
