"""A worker queue on a real Postgres: letters a second, locks held, and what a deep table costs."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from random import Random
from typing import Any

from bench.jobs_tables import Place, Timed, Watch, outgoing_of, tables
from bench.request import Request
from bench.results import Results, Table
from emulator.postgres import PostgresServer, running_postgres
from fakes.clock import VirtualClock
from fakes.dynamodb import FakeDynamoDb
from fakes.faults import Wire
from fakes.stand_in import TABLE
from smart_redriver.engine.config.deployment import Deployment
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.messages.outgoing import ENTRIES_PER_CALL
from smart_redriver.engine.passes.redrive_pass import run_pass
from smart_redriver.engine.wiring import make_tools
from smart_redriver.postgres.engine.connection import WORKERS, WorkerQueue
from smart_redriver.postgres.engine.dead_letters import DeadLetters
from smart_redriver.postgres.engine.source import MOST_LETTERS, JobsSource

LETTERS, LETTERS_WHEN_QUICK = 200_000, 10_000
OF_A_PASS, OF_A_PASS_WHEN_QUICK = 50_000, 1_000
DEEP, DEEP_WHEN_QUICK = 10_000_000, 20_000
SHALLOW = 1_000
LARGE_MB, LARGE_MB_WHEN_QUICK = 100, 1
#: Letters of one statement: while the consumer is not known to be well, and while it is.
SIZES = (ENTRIES_PER_CALL, MOST_LETTERS)
HIDDEN = timedelta(minutes=5)


def bench(request: Request) -> None:
    """Measure, show, leave."""
    quick = request.is_quick
    results = Results(name="postgres", title="A worker queue in Postgres")
    with running_postgres("fsync=on", "max_wal_size=8GB") as server:
        letters = LETTERS_WHEN_QUICK if quick else LETTERS
        moved = [_moved(server, letters, at_once) for at_once in SIZES]
        passed = _one_pass(server, OF_A_PASS_WHEN_QUICK if quick else OF_A_PASS)
        deep = [_a_look(server, n) for n in (SHALLOW, DEEP_WHEN_QUICK if quick else DEEP)]
        large = _large(server, LARGE_MB_WHEN_QUICK if quick else LARGE_MB)
    results.figures |= {"adapters": moved, "pass": passed, "depths": deep, "large": large}
    _show(request, results)
    results.leave(request)


#: A statement as a person would write it by hand: no metadata, no ledger, no outcome.
_BARE = """
with gone as (
  delete from jobs_dlq where id in (select id from jobs_dlq order by id limit %s for update skip locked)
  returning payload
)
insert into jobs (payload) select payload from gone
"""


def _moved(server: PostgresServer, letters: int, at_once: int) -> dict[str, Any]:
    """The same letters by bare SQL, and by the adapters."""
    bare = _bare(server, letters, at_once)
    moved = _adapters(server, letters, at_once)
    return {
        **moved,
        "at_once": at_once,
        "bare": bare,
        "of_bare": round(moved["letters_a_second"] / bare, 2),
    }


def _bare(server: PostgresServer, letters: int, at_once: int) -> int:
    """Letters a second that SQL alone moves, over as many connections."""
    with tables(server, "bare") as place:
        place.fill(letters)

        def work(_: int) -> None:
            with server.connect(place.name) as connection:
                while connection.execute(_BARE, (at_once,)).rowcount:
                    pass

        began = time.perf_counter()
        with ThreadPoolExecutor(WORKERS) as pool:
            list(pool.map(work, range(WORKERS)))
        return round(letters / (time.perf_counter() - began))


def _adapters(server: PostgresServer, letters: int, at_once: int) -> dict[str, Any]:
    """Every letter received and redriven by as many workers as the function has."""
    with tables(server, "adapters") as place:
        place.fill(letters)
        dlq = DeadLetters(place.database, place.clock)
        source = JobsSource(place.database, "jobs", place.clock)

        def work(_: int) -> int:
            done = 0
            while few := dlq.receive(at_once, hidden_for=HIDDEN):
                done += len(
                    source.deliver([outgoing_of(one, place.clock()) for one in few]).new_ids
                )
            return done

        began = time.perf_counter()
        with Watch(place) as watch, ThreadPoolExecutor(WORKERS) as pool:
            moved = sum(pool.map(work, range(WORKERS)))
        seconds = time.perf_counter() - began
        ((left, jobs),) = place.owner.execute(
            "select (select count(*) from jobs_dlq), (select count(*) from jobs)"
        ).fetchall()
    return {
        "letters": letters,
        "moved": moved,
        "left": left,
        "jobs": jobs,
        "seconds": round(seconds, 1),
        "letters_a_second": round(moved / seconds),
        "locks": watch.locks,
        "waiting": watch.waiting,
        "longest_transaction_ms": round(1000 * watch.longest),
        "looks": watch.looks,
    }


def _one_pass(server: PostgresServer, letters: int) -> dict[str, Any]:
    """One real pass, with a state table in this process."""
    clock = VirtualClock()
    with tables(server, "passes", clock.now) as place:
        place.fill(letters)
        dynamodb = FakeDynamoDb(clock)
        _make_table(dynamodb)
        began = time.perf_counter()
        report = _run(place, clock, dynamodb, window=letters)
        seconds = time.perf_counter() - began
    return {
        "letters": letters,
        "redriven": report.redriven,
        "seconds": round(seconds, 1),
        "letters_a_second": round(report.redriven / seconds),
    }


def _a_look(server: PostgresServer, depth: int) -> dict[str, Any]:
    """A pass with a small window over a table of this depth; the database's part of its time."""
    clock = VirtualClock()
    with tables(server, f"depth_{depth}", clock.now) as place:
        place.fill(depth)
        dynamodb = FakeDynamoDb(clock)
        _make_table(dynamodb)
        # The first pass that there ever is looks for letters near their expiry, of which a table has none.
        _run(place, clock, dynamodb, window=100)
        place.owner.execute("delete from jobs")
        clock.advance(60)
        spent = Timed(place.database)
        began = time.perf_counter()
        report = _run(place, clock, dynamodb, window=100, database=spent)
        seconds = time.perf_counter() - began
        spent.close()
    return {
        "depth": depth,
        "told": report.depth,
        "redriven": report.redriven,
        "statements": spent.statements_run,
        "statements_ms": round(1000 * spent.seconds, 1),
        "pass_ms": round(1000 * seconds, 1),
    }


def _make_table(dynamodb: Any) -> None:
    dynamodb.create_table(
        TableName=TABLE,
        KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "PK", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )


def _run(
    place: Place, clock: VirtualClock, dynamodb: Any, *, window: int, database: Any = None
) -> Any:
    tools = make_tools(
        WorkerQueue(database or place.database, "jobs"),
        Deployment.at(place.place, queue_name="jobs", table_name=TABLE),
        dynamodb=Wire().to(dynamodb),
        journal=lambda _event, /, **_fields: None,
        clock=clock.now,
        rng=Random(1),
        owner="bench",
        workers=WORKERS if database is None else 1,
    )
    settings = Settings(initial_window=window, max_window=max(window, 100), max_rate=0)
    return run_pass(tools, settings, deadline=clock.now() + timedelta(minutes=3))


def _large(server: PostgresServer, megabytes: int) -> dict[str, Any]:
    """One letter with a payload of so many MB that do not compress: redriven, and compared."""
    with tables(server, "large") as place:
        place.owner.execute(
            "insert into jobs_dlq (payload) select to_jsonb(string_agg(md5(n::text), '')) from generate_series(1, %s) n",
            (megabytes * 1_000_000 // 32,),
        )
        digest = "select md5(payload::text) from {}"
        before = place.owner.execute(digest.format("jobs_dlq")).fetchall()
        dlq = DeadLetters(place.database, place.clock)
        source = JobsSource(place.database, "jobs", place.clock)
        began = time.perf_counter()
        letters = dlq.receive(1, hidden_for=HIDDEN)
        sent = source.deliver([outgoing_of(one, place.clock()) for one in letters])
        seconds = time.perf_counter() - began
        after = place.owner.execute(digest.format("jobs")).fetchall()
    return {
        "megabytes": megabytes,
        "seconds": round(seconds, 2),
        "redriven": len(sent.new_ids),
        "unchanged": before == after,
    }


def _show(request: Request, results: Results) -> None:
    adapters, passed = results.figures["adapters"], results.figures["pass"]
    moved = adapters[-1]
    large = results.figures["large"]
    results.show(
        request,
        Table(
            title="Letters a second",
            headings=("what", "letters", "letters a second", "bare SQL", "of that"),
            rows=[
                *(
                    [
                        f"receive and redrive, {one['at_once']} a statement",
                        f"{one['letters']:,}",
                        f"{one['letters_a_second']:,}",
                        f"{one['bare']:,}",
                        str(one["of_bare"]),
                    ]
                    for one in adapters
                ),
                [
                    "one whole pass, state table in the same process",
                    f"{passed['letters']:,}",
                    f"{passed['letters_a_second']:,}",
                    f"{moved['bare']:,}",
                    str(round(passed["letters_a_second"] / moved["bare"], 2)),
                ],
            ],
            note=f"{WORKERS} connections, every commit written to disk; server and pass share the processors. Bare SQL deletes and inserts, "
            "as many a statement, without metadata or outcome. "
            f"Left in jobs_dlq {moved['left']:,}, in jobs {moved['jobs']:,}. At {moved['looks']:,} looks the role held "
            f"{moved['locks']} locks on tables, indexes and transactions at most, {moved['waiting']} waited, and no "
            f"transaction was older than {moved['longest_transaction_ms']:,} ms.",
        ),
    )
    results.show(
        request,
        Table(
            title="What depth costs",
            headings=(
                "letters in jobs_dlq",
                "redriven",
                "statements",
                "in the database",
                "whole pass",
            ),
            rows=[
                [
                    f"{one['depth']:,}",
                    str(one["redriven"]),
                    str(one["statements"]),
                    f"{one['statements_ms']:,} ms",
                    f"{one['pass_ms']:,} ms",
                ]
                for one in results.figures["depths"]
            ],
            note="The second pass, with a window of 100 and the migration's index: it reads a hundred outcomes and redrives.",
        ),
    )
    results.show(
        request,
        Table(
            title="One large payload",
            headings=("megabytes", "seconds", "unchanged"),
            rows=[
                [str(large["megabytes"]), str(large["seconds"]), str(large["unchanged"]).lower()]
            ],
            note="The server moves it: the pass does not read it.",
        ),
    )
