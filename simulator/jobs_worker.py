"""A consumer at work on a table of jobs: it locks, tries, and then deletes, delays or moves, as Postgres workers do."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import psycopg

from simulator.capacity import BATCH
from simulator.failures import Overloaded
from simulator.worker import ATTRIBUTES, Invocation, Message, Worker

_TAKE = """
update jobs set locked_at = %(now)s, locked_by = 'worker', attempts = attempts + 1
where id in (select id from jobs where locked_at is null and run_after <= %(now)s
             order by run_after, id limit %(limit)s for update skip locked)
returning id, payload, attempts, max_attempts
"""

#: Jobs that have failed too often become letters, the others wait: one transaction.
_FAIL = """
with failed as (select * from unnest(%(jobs)s::bigint[], %(classes)s::text[], %(messages)s::text[])
                  as f(id, error_class, error_msg)),
dead as (delete from jobs j using failed f where j.id = f.id and j.attempts >= j.max_attempts
         returning j.id, j.payload, j.attempts, f.error_class, f.error_msg),
moved as (insert into jobs_dlq (original_id, payload, attempts, error_class, error_msg, failed_by, failed_at)
          select id, payload, attempts, error_class, error_msg, 'worker', %(now)s from dead order by id)
update jobs j set locked_at = null, locked_by = null, run_after = %(again)s
from failed f where j.id = f.id and j.attempts < j.max_attempts
"""


class JobsWorker(Worker):
    """One consumer. A job that fails waits for `waits`, as a message waits for its visibility timeout."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        *worker: Any,
        now: Callable[[], datetime],
        waits: timedelta,
        **more: Any,
    ) -> None:
        super().__init__(*worker, **more)
        self._connection = connection
        self._now = now
        self._waits = waits
        self._errors: dict[str, BaseException] = {}

    def _receive(self, limit: float = BATCH) -> list[Message]:
        taken = {"now": self._now(), "limit": int(limit)}
        rows = self._connection.execute(_TAKE, taken).fetchall()
        return [
            {"ReceiptHandle": str(job), "Body": payload, "MessageAttributes": ATTRIBUTES}
            for job, payload, *_ in rows
        ]

    def _try_all(
        self, messages: Sequence[Message], invocation: Invocation, elapsed: timedelta
    ) -> None:
        super()._try_all(messages, invocation, elapsed)
        failed, now = invocation.failed, self._now()
        if failed:
            wait = timedelta(seconds=self.consumer.backoff_seconds) or self._waits
            causes = [self._why(one["Body"]) for one in failed]
            parameters = {
                "jobs": [int(one["ReceiptHandle"]) for one in failed],
                "classes": [type(one).__name__ for one in causes],
                "messages": [str(one) for one in causes],
                "now": now,
                "again": now + wait,
            }
            self._connection.execute(_FAIL, parameters)
        invocation.failed.clear()  # there is no visibility timeout to change

    def _failure(self, body: str, elapsed: timedelta) -> Any:
        error = super()._failure(body, elapsed)
        if error is not None:
            self._errors[body] = error
        return error

    def _why(self, body: str) -> BaseException:
        return self._errors.pop(body, None) or Overloaded()

    def _delete(self, messages: Sequence[Message]) -> None:
        if messages:
            jobs = [int(one["ReceiptHandle"]) for one in messages]
            self._connection.execute("delete from jobs where id = any(%s)", (jobs,))


def payload_of(body: str) -> str:
    """A body as the JSON of a payload."""
    return json.dumps(body)
