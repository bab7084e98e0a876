"""A worker on a table of jobs: takes one after another, and is done with each, waits for it, or moves it to `jobs_dlq`.

    python worker.py "host=... dbname=..." orders:handle

`handle(payload, connection)` is the team's own. What it writes through `connection` and the job's delete are one
transaction, so that a job's work in this database is done once, whoever dies when.
What it does elsewhere needs a key of the payload's own: a redriven job has a new id.
"""

from __future__ import annotations

import importlib
import os
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg

from smart_redriver.consumer import PermanentError
from smart_redriver.consumer.failure import failure_of

Handle = Callable[[Any, psycopg.Connection[Any]], None]

#: Whoever has held a job for longer has crashed: longer than any job takes.
LOCK_TIMEOUT = timedelta(minutes=15)
#: The first wait after a failure; each further one is twice as long.
BACKOFF = timedelta(seconds=30)
LONGEST_BACKOFF = timedelta(hours=1)

TAKE = """
update jobs set locked_at = %(now)s, locked_by = %(me)s, attempts = attempts + 1
where id = (select id from jobs where run_after <= %(now)s and (locked_at is null or locked_at < %(expired)s)
            order by run_after, id limit 1 for update skip locked)
returning id, payload, attempts, max_attempts
"""
#: Only whoever has the lock still may end a job: another may have taken it over.
DONE = "delete from jobs where id = %(id)s and locked_by = %(me)s and attempts = %(attempts)s"
AGAIN = """
update jobs set locked_at = null, locked_by = null, run_after = %(run_after)s
where id = %(id)s and locked_by = %(me)s and attempts = %(attempts)s
"""
#: One transaction: the job is never in both tables, nor in none.
DIE = """
with dead as (delete from jobs where id = %(id)s and locked_by = %(me)s and attempts = %(attempts)s
              returning id, payload, attempts)
insert into jobs_dlq (original_id, payload, attempts, error_class, error_msg, stacktrace, failed_by, failed_at)
select id, payload, attempts, %(error_class)s, %(error_msg)s, %(stacktrace)s, %(me)s, %(now)s from dead
"""


class LockLostError(Exception):
    """Raised within a job's transaction, which it ends: another worker has taken the job over."""


@dataclass(frozen=True, slots=True)
class Job:
    """One job in hand, its tries counted with this one."""

    id: int
    payload: Any
    attempts: int
    max_attempts: int


class Worker:
    """Takes jobs. `connection` is in autocommit; `clock` tells the time, which the database's need not be."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        handle: Handle,
        *,
        name: str | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._connection = connection
        self._handle = handle
        self._clock = clock
        self._name = name or f"{socket.gethostname()}-{os.getpid()}"

    def work(self) -> bool:
        """Take one job and end it in one way or another; whether there was one."""
        job = self.take()
        if job is None:
            return False
        try:
            with self._connection.transaction():
                self._handle(job.payload, self._connection)
                self._run(DONE, job, or_raise=True)
        except LockLostError:
            pass
        except Exception as error:  # whatever the team's code raises, the worker goes on
            self._failed(job, error)
        return True

    def take(self) -> Job | None:
        """Lock the job whose turn it is; also one whose worker has crashed."""
        now = self._clock()
        parameters = {"now": now, "me": self._name, "expired": now - LOCK_TIMEOUT}
        row = self._connection.execute(TAKE, parameters).fetchone()
        return Job(*row) if row else None

    def _failed(self, job: Job, error: Exception) -> None:
        if job.attempts < job.max_attempts and not isinstance(error, PermanentError):
            wait = min(BACKOFF * 2 ** (job.attempts - 1), LONGEST_BACKOFF)
            self._run(AGAIN, job, run_after=self._clock() + wait)
            return
        failure = failure_of(error, str(job.payload))
        self._run(
            DIE,
            job,
            error_class=failure.error_class,
            error_msg=failure.first_line,
            stacktrace=failure.traceback,
        )

    def _run(self, statement: str, job: Job, *, or_raise: bool = False, **more: Any) -> None:
        known = {"id": job.id, "attempts": job.attempts, "me": self._name, "now": self._clock()}
        ended = self._connection.execute(statement, {**known, **more}).rowcount
        if or_raise and not ended:
            raise LockLostError


def main() -> None:
    """Work until somebody stops it."""
    module, _, name = sys.argv[2].partition(":")
    handle = getattr(importlib.import_module(module), name or "handle")
    with psycopg.connect(sys.argv[1], autocommit=True) as connection:
        worker = Worker(connection, handle)
        while True:
            if not worker.work():
                time.sleep(1)


if __name__ == "__main__":
    main()
