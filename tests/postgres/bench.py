"""A worker queue on a real Postgres, in virtual time: letters, a worker, passes, and what became of each payload."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from random import Random
from typing import Any, Self

import psycopg

from emulator.postgres import PostgresServer
from fakes.clock import VirtualClock
from fakes.dynamodb import FakeDynamoDb
from fakes.faults import Act, Call, Crash, Response, Wire
from simulator.wired_database import WiredDatabase
from smart_redriver.engine.config.deployment import Deployment
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.messages.letter import Letter, RedriveMetadata
from smart_redriver.engine.messages.outgoing import Outgoing
from smart_redriver.engine.passes.ports import Tools
from smart_redriver.engine.passes.redrive_pass import run_pass
from smart_redriver.engine.report import Report
from smart_redriver.engine.wiring import make_tools
from smart_redriver.postgres.engine.connection import WorkerQueue
from smart_redriver.postgres.engine.database import LOST, Database
from smart_redriver.postgres.engine.place import JobsDatabase
from smart_redriver.postgres.migration import ROLE

QUEUE = "orders"
TABLE = "state"

#: Why a worker fails with a payload; None where it does not.
Failure = Callable[[Any], str | None]


class Bench:
    """`queue` is what circuit and ledger call it."""

    def __init__(self, server: PostgresServer, name: str, queue: str = QUEUE) -> None:
        self.server = server
        self.name = name
        self.queue = queue
        self.place = server.place(name, time_to_fail_seconds=60)
        self.clock = VirtualClock()
        self._make_state_table()
        self.done: Counter[Any] = Counter()
        self.events: list[tuple[str, dict[str, Any]]] = []
        self._databases: list[Database] = []
        self._by_wire: dict[Wire, Database] = {}

    def begin_anew(self) -> None:
        """The same database with nothing in it, and a state table without a word."""
        self.owner.execute(
            "truncate jobs, jobs_dlq, jobs_parked, jobs_held, jobs_redriven, jobs_redriven_looks restart identity"
        )
        self._make_state_table()
        self.done.clear()
        self.events.clear()

    def _make_state_table(self) -> None:
        self.dynamodb: Any = FakeDynamoDb(self.clock)
        self.dynamodb.create_table(
            TableName=TABLE,
            KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "PK", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )

    def __enter__(self) -> Self:
        self.owner = self.server.connect(self.name)
        self.database = self.open()
        return self

    def __exit__(self, *_: object) -> None:
        for one in self._databases:
            one.close()
        self.owner.close()

    def open(
        self,
        wire: Wire | None = None,
        place: JobsDatabase | None = None,
        connect: Callable[[], psycopg.Connection[Any]] | None = None,
    ) -> Database:
        """The database as the re-driver's own role has it."""
        place, connect = place or self.place, connect or self._connect
        made = WiredDatabase(place, connect, wire) if wire else Database(place, connect)
        self._databases.append(made)
        return made

    def wired(self, wire: Wire) -> Database:
        if wire not in self._by_wire:
            for one in self._by_wire.values():
                one.close()
            self._by_wire = {wire: self.open(wire)}
        return self._by_wire[wire]

    def _connect(self) -> psycopg.Connection[Any]:
        return self.server.connect(self.name, user=ROLE)

    # What there is.

    def die(self, *payloads: Any, error: str = "Boom", message: str = "it broke") -> None:
        """Dead letters with these payloads, of jobs that were never ours."""
        with self.owner.cursor() as cursor:
            cursor.executemany(
                "insert into jobs_dlq (original_id, payload, attempts, error_class, error_msg, stacktrace, failed_by,"
                " failed_at) values (nextval('jobs_id_seq'), %s, 3, %s, %s, 'a\nb', 'w1', %s)",
                [(json.dumps(one), error, message, self.clock.now()) for one in payloads],
            )

    def work(self, fails: Failure = lambda _: None) -> int:
        """A worker takes each job whose time has come, and is done with it or moves it, in one transaction."""
        now, rows = (
            self.clock.now(),
            self.rows("select id, payload from jobs where run_after <= %s", self.clock.now()),
        )
        for job, payload in rows:
            why = fails(payload)
            if why is None:
                self.owner.execute("delete from jobs where id = %s", (job,))
                self.done[_key(payload)] += 1
            else:
                self.owner.execute(
                    "with j as (delete from jobs where id = %s returning *) insert into jobs_dlq (original_id, payload,"
                    " attempts, error_class, error_msg, failed_at) select id, payload, 3, %s, 'it broke', %s from j",
                    (job, why, now),
                )
        return len(rows)

    def rows(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        return self.owner.execute(statement, parameters).fetchall()

    def payloads(self, table: str) -> list[Any]:
        return [one for (one,) in self.rows(f"select payload from {table} order by id")]

    def everywhere(self) -> Counter[Any]:
        """Each payload, by how often it is in a table or done."""
        tables = ("jobs", "jobs_dlq", "jobs_parked")
        there = Counter(_key(one) for table in tables for one in self.payloads(table))
        return there + self.done

    # Passes.

    def tools(self, wire: Wire | None = None, **more: Any) -> Tools:
        deployment = Deployment.at(self.place, queue_name=self.queue, table_name=TABLE)
        return make_tools(
            WorkerQueue(self.wired(wire) if wire else self.database, self.queue),
            deployment,
            dynamodb=wire.to(self.dynamodb) if wire else self.dynamodb,
            journal=lambda event, /, **fields: self.events.append((event, fields)),
            clock=self.clock.now,
            rng=Random(1),
            owner=more.pop("owner", "me"),
            pause=lambda _: None,
            **more,
        )

    def run_pass(
        self, wire: Wire | None = None, *, tools: Tools | None = None, **settings: Any
    ) -> Report:
        """One pass, and a minute later."""
        deadline = self.clock.now() + timedelta(seconds=195)
        made = Settings(**{"initial_window": 100, **settings})
        return run_pass(tools or self.tools(wire), made, deadline=deadline)

    def live(
        self,
        wire: Wire | None = None,
        *,
        fails: Failure = lambda _: None,
        steps: int = 60,
        **settings: Any,
    ) -> int:
        """Let passes and a worker take turns, each half a minute and later ten minutes, until nothing waits;
        how many passes have died.

        A pass that dies is followed by others over a good wire.
        """
        deaths = 0
        for step in range(steps):
            try:
                self.run_pass(wire, **settings)
            except Crash:
                deaths, wire = deaths + 1, None
            self.work(fails)
            if not (self.payloads("jobs") or self.payloads("jobs_dlq")):
                break
            self.clock.advance(30 if step < 8 else 600)
        return deaths

    def outgoing(
        self, letters: Sequence[Letter], *, delay: timedelta = timedelta()
    ) -> list[Outgoing]:
        return [
            Outgoing(letter=one, metadata=self.metadata(one), size_limit=1 << 30, delay=delay)
            for one in letters
        ]

    def metadata(self, letter: Letter, *, batch: int = 1) -> RedriveMetadata:
        count = letter.metadata.redrive_count if letter.metadata else 0
        return RedriveMetadata(
            queue=QUEUE,
            original_id=letter.original_id,
            redrive_count=count + 1,
            first_seen=self.clock.now(),
            batch=batch,
            generation=0,
        )


def lose_the_answer(call: Call, act: Act) -> Response:
    """It is carried out, and the connection is gone before anybody hears."""
    act(**call.request)
    raise CallFailed(call.operation, LOST)


def die_within(call: Call, act: Act) -> Response:
    """The process dies while the server carries it out, and nobody is there for the answer."""
    act(**call.request)
    raise Crash(f"within {call}")


def _key(payload: Any) -> Any:
    return payload if isinstance(payload, int | str) else json.dumps(payload, sort_keys=True)
