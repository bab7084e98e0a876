"""A world whose queue is a table: jobs, dead letters and parked jobs are rows of a real Postgres, in virtual time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from typing import Any

import psycopg
from psycopg import sql

from emulator.postgres import TABLES, PostgresServer
from fakes.faults import Wire
from simulator.conditions import DLQ, PARKING_LOT, SOURCE, Conditions
from simulator.jobs_worker import JobsWorker, payload_of
from simulator.queues import SETTLES_IN_SECONDS
from simulator.wired_database import WiredDatabase
from simulator.worker import Worker
from simulator.world import TABLE, Policy, World
from smart_redriver.engine.config.deployment import Deployment
from smart_redriver.engine.wiring import Connection
from smart_redriver.postgres.engine.connection import WorkerQueue
from smart_redriver.postgres.engine.database import Database
from smart_redriver.postgres.migration import ROLE, migration_of

_TABLES = {SOURCE: "jobs", DLQ: "jobs_dlq", PARKING_LOT: "jobs_parked"}
_WORLDS = count()

#: The condition for autovacuum to analyze a table, within a minute.
#: https://www.postgresql.org/docs/current/routine-vacuuming.html#AUTOVACUUM
_CHANGED = """
select relname from pg_class where relname = any(%s) and relkind = 'r'
and pg_stat_get_mod_since_analyze(oid) > 50 + 0.1 * greatest(reltuples, 0)
"""


@dataclass(frozen=True, slots=True)
class AtRest:
    """A row of one of the tables: its body, and if parked, since when, in seconds since the epoch."""

    body: str
    arrived_at: float


class PostgresWorld(World):
    """One source, its tables in a database of their own on `server`. Nothing is in its SQS queues."""

    def __init__(self, *, server: PostgresServer, **world: Any) -> None:
        self._server = server
        self._name = f"world_{next(_WORLDS)}"
        server.create(self._name)
        self._owner = server.connect(self._name)
        conditions: Conditions = world["conditions"] or Conditions()
        waits = world["consumer"].backoff_seconds or conditions.visibility_timeout
        self._place = server.place(
            self._name,
            max_attempts=conditions.max_receive_count,
            time_to_fail_seconds=waits * conditions.max_receive_count,
        )
        made = migration_of(self._place)
        for part in (TABLES, made.tables, made.grants, made.index):
            self._owner.execute(part)
        self._analyzed_in = 0
        for table in _TABLES.values():  # at their time, see `_tell_statistics`
            keep = sql.SQL("alter table {} set (autovacuum_enabled = false)")
            self._owner.execute(keep.format(sql.Identifier(table)))
        self._owner.execute(
            sql.SQL("alter table jobs alter max_attempts set default {}").format(
                sql.Literal(conditions.max_receive_count)
            )
        )
        super().__init__(**world)
        self.database = Database(self._place, self._connect)

    def lay(self, wire: Wire) -> None:
        """Put the policy's calls on this wire from now on; the database's statements, too."""
        super().lay(wire)
        self.database.close()
        self.database = WiredDatabase(self._place, self._connect, wire)

    def close(self) -> None:
        """Disconnect from the database, and drop it. The role is the server's, and other worlds may use it."""
        self.database.close()
        self._owner.close()
        with self._server.connect("postgres") as connection:
            connection.execute(sql.SQL("drop database {}").format(sql.Identifier(self._name)))

    def _connect(self) -> psycopg.Connection[Any]:
        return self._server.connect(self._name, user=ROLE)

    @property
    def deployment(self) -> Deployment:
        """Where the tables and the state table are."""
        return Deployment.at(self._place, queue_name=SOURCE, table_name=TABLE)

    def connection(self, sqs: Any, cloudwatch: Any) -> Connection:  # noqa: ARG002
        """The tables: none of it is in AWS."""
        return WorkerQueue(self.database, SOURCE)

    def dead_letters(
        self, count: int, *, poison: int = 0, of: str = SOURCE, left: timedelta | None = None
    ) -> None:
        """Create `count` jobs that have failed for good; `poison` of them, here and there, are poison pills."""
        assert left is None, "no row expires"  # noqa: S101
        bodies, pills = self._dead_bodies(count, poison, of)
        self.sent.update(bodies)
        self.poison.update(pills)
        self._bury(bodies)
        self.clock.advance(SETTLES_IN_SECONDS)
        self.started = self.clock.now()

    def _bury(self, bodies: list[str]) -> None:
        worker, now = self._workers[SOURCE], self.clock.now()
        with self._owner.cursor().copy(
            "copy jobs_dlq (original_id, payload, attempts, error_class, error_msg, failed_by, failed_at) from stdin"
        ) as rows:
            for index, body in enumerate(bodies):
                error = worker.cause_of_death(body)
                attempts = self.conditions.max_receive_count
                rows.write_row(
                    (
                        -index - 1,
                        payload_of(body),
                        attempts,
                        type(error).__name__,
                        str(error),
                        "w",
                        now,
                    )
                )

    def depth(self, queue: str) -> int:
        """How many rows the table has."""
        count_them = sql.SQL("select count(*) from {}").format(sql.Identifier(_TABLES[queue]))
        ((rows,),) = self._owner.execute(count_them).fetchall()
        return int(rows)

    def _at_rest(self, queue: str) -> list[Any]:
        since = sql.Identifier("parked_at") if queue == PARKING_LOT else sql.NULL
        read = sql.SQL("select payload, {} from {}").format(since, sql.Identifier(_TABLES[queue]))
        return [AtRest(body, _seconds(at)) for body, at in self._owner.execute(read).fetchall()]

    def _put(
        self, body: str, queue: str, *, is_poison: bool, attributes: dict[str, Any] | None = None
    ) -> None:
        del queue, attributes
        now = self.clock.now()
        self._owner.execute(
            "insert into jobs (payload, run_after, created_at) values (%s, %s, %s)",
            (payload_of(body), now, now),
        )
        self.sent.add(body)
        if is_poison:
            self.poison.add(body)

    def _tick(self, policy: Policy, elapsed: timedelta) -> None:
        self._tell_statistics()
        before = self._numbered()
        policy.tick()
        if sent := self._numbered() - before:
            self.redrives.append((elapsed, sent))

    def _tell_statistics(self) -> None:
        """Do what Postgres does in its own time: add up its counters, and analyze a table that has changed much."""
        self._owner.execute("select pg_stat_force_next_flush()")
        minute = int(self.clock.time()) // 60
        if minute == self._analyzed_in:
            return
        self._analyzed_in = minute
        changed = self._owner.execute(_CHANGED, (list(_TABLES.values()),)).fetchall()
        for (table,) in changed:
            self._owner.execute(sql.SQL("vacuum analyze {}").format(sql.Identifier(table)))

    def _numbered(self) -> int:
        """How many jobs there ever were."""
        read = "select case when is_called then last_value else 0 end from jobs_id_seq"
        ((number,),) = self._owner.execute(read).fetchall()
        return int(number)

    def _kind_of_worker(self) -> Callable[..., Worker]:
        waits = timedelta(seconds=self.conditions.visibility_timeout)
        return partial(JobsWorker, self._owner, now=self.clock.now, waits=waits)


def _seconds(moment: datetime | None) -> float:
    return moment.timestamp() if moment else 0.0
