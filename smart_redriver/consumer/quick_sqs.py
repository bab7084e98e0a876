"""Calls to SQS with a deadline: a sender waits a second at most, whatever becomes of the call. Then calls stop a while.

An endpoint that drips bytes, a name that does not resolve and a half-open connection outlast every time-out of an HTTP
client. So a thread makes the calls, and can be abandoned: its caller has one deadline for all of them.

Only a few threads work at once; other calls wait for one of them. Half of the deadline is kept for calls under way: a
call that can't begin in the first half is not made at all, so its caller knows that nothing was sent.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from threading import Lock, Thread
from time import monotonic
from typing import Any, Self

import boto3
from botocore.config import Config
from botocore.exceptions import ConnectTimeoutError, HTTPClientError, ReadTimeoutError

#: Seconds for all calls of one report, or for parking all messages of a batch.
DEADLINE = 1.0
#: Calls at once: botocore keeps as many connections.
AT_ONCE = 10
#: Seconds without calls after one was given up, because the next would hang, too.
SILENCE = 30.0

#: Seconds for each address of SQS, and for each read. They only end the thread; nobody waits for it. A read lasts as
#: long as anybody waits, because a message whose answer is not awaited may be parked, and still come back.
_CONNECT = 0.3
_READ = DEADLINE

_TIMED_OUT = (TimeoutError, ConnectTimeoutError, ReadTimeoutError)


class SilentError(Exception):
    """Raised instead of a call for a while after a call had to be given up."""


class NoTimeError(Exception):
    """Raised when a call was not made, because it could not begin in time."""


class Allowance:
    """The time that calls may take together. It passes while anybody waits for one of them, and at no other time."""

    def __init__(self, seconds: float) -> None:
        self._reserve = seconds / 2
        self._left = seconds
        self._waiting = 0
        self._since = 0.0
        self._is_closed = False

    @property
    def left(self) -> float:
        """Seconds for calls under way."""
        return self._left - (monotonic() - self._since) if self._waiting else self._left

    @property
    def to_begin(self) -> float:
        """Seconds in which calls may still begin."""
        return 0.0 if self._is_closed else max(0.0, self.left - self._reserve)

    def close(self) -> None:
        """Let no other call begin."""
        self._is_closed = True

    def __enter__(self) -> Self:
        if not self._waiting:
            self._since = monotonic()
        self._waiting += 1
        return self

    def __exit__(self, *_: object) -> None:
        left = self.left
        self._waiting -= 1
        if not self._waiting:
            self._left = left


@dataclass(slots=True, frozen=True)
class _Job:
    """Requests to send, one after another, and the `future` of their answers. It runs once the first may begin."""

    requests: Sequence[dict[str, Any]]
    allowance: Allowance
    future: Future[list[Any]] = field(default_factory=Future)


class Wire:
    """Sends messages with `client`, within `seconds`. Threads may share it."""

    def __init__(self, client: Any, seconds: float = DEADLINE) -> None:
        self._client = client
        self.seconds = seconds
        self._silent_until = 0.0
        self._given_up: set[Future[list[Any]]] = set()
        self._lock = Lock()
        self._queue: deque[_Job] = deque()
        self._at_work = 0

    def send(
        self, requests: Sequence[dict[str, Any]], allowance: Allowance | None = None
    ) -> list[Any]:
        """Send all, one after another, and return the answers.

        Raises TimeoutError when the time is up, NoTimeError or SilentError if nothing was tried, or the error of a
        call. After any time-out, no calls are made for a while.
        """
        with allowance or Allowance(self.seconds) as time:
            future = self._begin(_Job(requests, time))
            try:
                wait([future], time.to_begin)
                if future.cancel():
                    raise NoTimeError
                return future.result(max(0.0, time.left))
            except _TIMED_OUT:
                self._give_up(future)
                raise
            finally:
                future.cancel()

    async def send_async(
        self, requests: Sequence[dict[str, Any]], allowance: Allowance | None = None
    ) -> list[Any]:
        """Do as `send` does, without blocking the event loop."""
        with allowance or Allowance(self.seconds) as time:
            future = self._begin(_Job(requests, time))
            answers = asyncio.wrap_future(future)
            try:
                await asyncio.wait([answers], timeout=time.to_begin)
                if future.cancel():
                    raise NoTimeError
                return await asyncio.wait_for(answers, max(0.0, time.left))
            except _TIMED_OUT:
                self._give_up(future)
                raise
            finally:
                future.cancel()
                answers.cancel()

    @property
    def is_hanging(self) -> bool:
        """Whether a call that was given up is still under way."""
        return bool(self._given_up)

    def _begin(self, job: _Job) -> Future[list[Any]]:
        """Begin the job if a thread is free for it, or else queue it for the next one that is."""
        if self.is_hanging or monotonic() < self._silent_until:
            job.allowance.close()
            raise SilentError
        if not job.allowance.to_begin:
            raise NoTimeError
        with self._lock:
            if self._at_work >= AT_ONCE:
                self._queue.append(job)
                return job.future
            job.future.set_running_or_notify_cancel()
            # A thread of its own, because the interpreter waits for a pool's threads when it ends.
            Thread(target=self._work, args=(job,), daemon=True).start()
            self._at_work += 1
        return job.future

    def _work(self, job: _Job | None) -> None:
        while job:
            try:
                job.future.set_result([self._call(one, job.allowance) for one in job.requests])
            except BaseException as fault:
                # If SQS refuses or hangs, it would do so for every message of the batch.
                job.allowance.close()
                job.future.set_exception(fault)
            job = self._next()

    def _next(self) -> _Job | None:
        """Take the next job that is still wanted and has time. Without one, the thread ends."""
        with self._lock:
            while self._queue:
                job = self._queue.popleft()
                if job.future.set_running_or_notify_cancel():
                    if job.allowance.to_begin:
                        return job
                    job.future.set_exception(NoTimeError())
            self._at_work -= 1
            return None

    def _call(self, request: dict[str, Any], allowance: Allowance) -> Any:
        """Make one call. Retry after a lost connection: in Lambda, the last call's is often gone after a pause."""
        if allowance.left <= 0:
            raise TimeoutError
        try:
            return self._client.send_message(**request)
        except HTTPClientError as fault:
            if isinstance(fault, _TIMED_OUT) or allowance.left <= 0:
                raise
            return self._client.send_message(**request)

    def _give_up(self, future: Future[list[Any]]) -> None:
        self._silent_until = monotonic() + SILENCE
        self._given_up.add(future)
        future.add_done_callback(self._given_up.discard)


def quick_client() -> Any:
    """An SQS client with short time-outs and no retries. Its calls do not carry the consumer's own trace.

    In Lambda, botocore adds the invocation's trace to every call, including `Lineage`, where Lambda's recursion guard
    counts hops.
    """
    config = Config(
        connect_timeout=_CONNECT,
        read_timeout=_READ,
        retries={"mode": "standard", "total_max_attempts": 1},
    )
    client = boto3.client("sqs", config=config)
    # Registered last, and on plain "before-call", where botocore's own handler adds the header.
    client.meta.events.register_last("before-call", _without_own_trace)
    return client


def _without_own_trace(params: dict[str, Any], **_: Any) -> None:
    params["headers"].pop("X-Amzn-Trace-Id", None)
