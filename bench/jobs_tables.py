"""Tables full of letters on a real Postgres, and what watches them while they are measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from threading import Event, Thread
from typing import Any

from psycopg import sql

from emulator.postgres import TABLES, PostgresServer
from smart_redriver.engine.messages.letter import Letter, RedriveMetadata
from smart_redriver.engine.messages.outgoing import Outgoing
from smart_redriver.postgres.engine.database import Database
from smart_redriver.postgres.engine.dead_letters import LARGEST
from smart_redriver.postgres.migration import ROLE, migration_of

_FILL = """
insert into jobs_dlq (original_id, payload, attempts, error_class, error_msg, failed_by, failed_at)
select -n, jsonb_build_object('order_id', n, 'note', repeat('x', 200)), 5, 'PaymentDeclined', 'declined: card ' || n, 'w', %s
from generate_series(1, %s) n
"""
_LOCKS = """
select count(*) filter (where l.granted), count(*) filter (where not l.granted),
       coalesce(max(extract(epoch from clock_timestamp() - a.xact_start)), 0)
from pg_stat_activity a left join pg_locks l on l.pid = a.pid
where a.usename = %s and a.state = 'active'
"""


class Place:
    """One database with tables and role; dropped afterwards."""

    def __init__(self, server: PostgresServer, name: str, clock: Callable[[], datetime]) -> None:
        server.create(name)
        self.server, self.name, self.clock = server, name, clock
        self.place = server.place(name)
        self.owner = server.connect(name)
        made = migration_of(self.place)
        for part in (TABLES, made.tables, made.grants, made.index):
            self.owner.execute(part)
        self.database = Database(self.place, lambda: server.connect(name, user=ROLE))

    def fill(self, letters: int) -> None:
        self.owner.execute(_FILL, (self.clock() - timedelta(hours=1), letters))
        self.owner.execute("vacuum analyze")

    def drop(self) -> None:
        self.database.close()
        self.owner.execute(sql.SQL("drop owned by {0}; drop role {0}").format(sql.Identifier(ROLE)))
        self.owner.close()
        with self.server.connect("postgres") as connection:
            connection.execute(sql.SQL("drop database {}").format(sql.Identifier(self.name)))


@contextmanager
def tables(
    server: PostgresServer, name: str, clock: Callable[[], datetime] | None = None
) -> Iterator[Place]:
    place = Place(server, name, clock or (lambda: datetime.now(UTC)))
    try:
        yield place
    finally:
        place.drop()


class Watch:
    """The most locks that our role held at any look, and its longest transaction."""

    def __init__(self, place: Place) -> None:
        self.locks, self.waiting, self.longest, self.looks = 0, 0, 0.0, 0
        self._place = place
        self._over = Event()
        self._thread = Thread(target=self._look)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        with self._place.server.connect(self._place.name) as connection:
            while not self._over.wait(0.02):
                ((held, waiting, longest),) = connection.execute(_LOCKS, (ROLE,)).fetchall()
                self.locks = max(self.locks, held)
                self.waiting = max(self.waiting, waiting)
                self.longest = max(self.longest, float(longest))
                self.looks += 1


def outgoing_of(letter: Letter, now: datetime) -> Outgoing:
    metadata = RedriveMetadata(
        queue="jobs",
        original_id=letter.original_id,
        redrive_count=1,
        first_seen=now,
        batch=1,
        generation=0,
    )
    return Outgoing(letter=letter, metadata=metadata, size_limit=LARGEST)


class Timed(Database):
    """A database that adds up the time of its statements."""

    def __init__(self, real: Database) -> None:
        super().__init__(real.place, real._connect)
        self.seconds, self.statements_run = 0.0, 0

    def run(self, *arguments: Any) -> Any:
        began = time.perf_counter()
        try:
            return super().run(*arguments)
        finally:
            self.seconds += time.perf_counter() - began
            self.statements_run += 1
