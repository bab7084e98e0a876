"""Calls to SQS with a deadline: a sender waits a second at most, whatever becomes of the call. Then calls stop a while.

An endpoint that drips bytes, a name that does not resolve and a half-open connection outlast every time-out of an HTTP
client. So a thread makes the calls, and can be abandoned: its caller has one deadline for all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from threading import Thread
from time import monotonic
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import ConnectTimeoutError, HTTPClientError, ReadTimeoutError

#: Seconds for all calls of one report, or for parking one message.
DEADLINE = 1.0
#: Seconds without calls after one was given up, because the next would hang, too.
SILENCE = 30.0

#: Seconds for each address of SQS, and for each read. They only end the thread; nobody waits for it.
_CONNECT = 0.3
_READ = 0.6

_TIMED_OUT = (TimeoutError, ConnectTimeoutError, ReadTimeoutError)


class SilentError(Exception):
    """Raised instead of a call for a while after a call had to be given up."""


class Wire:
    """Sends messages with `client`, within `seconds`. Threads may share it."""

    def __init__(self, client: Any, seconds: float = DEADLINE) -> None:
        self._client = client
        self.seconds = seconds
        self._silent_until = 0.0
        self._given_up: Future[list[Any]] | None = None

    def send(self, requests: Sequence[dict[str, Any]]) -> list[Any]:
        """Send all, one after another, and return the answers.

        Raises TimeoutError when the time is up, SilentError if nothing was tried, or the error of a call. After any
        time-out, no calls are made for a while.
        """
        future = self._begin(requests)
        try:
            return future.result(self.seconds)
        except _TIMED_OUT:
            self._give_up(future)
            raise

    async def send_async(self, requests: Sequence[dict[str, Any]]) -> list[Any]:
        """Do as `send` does, without blocking the event loop."""
        future = self._begin(requests)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self.seconds)
        except _TIMED_OUT:
            self._give_up(future)
            raise

    @property
    def is_hanging(self) -> bool:
        """Whether a call that was given up is still under way."""
        return self._given_up is not None and not self._given_up.done()

    def _begin(self, requests: Sequence[dict[str, Any]]) -> Future[list[Any]]:
        if self.is_hanging or monotonic() < self._silent_until:
            raise SilentError
        future: Future[list[Any]] = Future()
        future.set_running_or_notify_cancel()
        begin_by = monotonic() + self.seconds
        # A thread of its own, because the interpreter waits for a pool's threads when it ends.
        Thread(target=self._work, args=(future, requests, begin_by), daemon=True).start()
        return future

    def _work(
        self, future: Future[list[Any]], requests: Sequence[dict[str, Any]], begin_by: float
    ) -> None:
        try:
            future.set_result([self._call(one, begin_by) for one in requests])
        except BaseException as fault:
            future.set_exception(fault)

    def _call(self, request: dict[str, Any], begin_by: float) -> Any:
        """Make one call. Retry after a lost connection: in Lambda, the last call's is often gone after a pause."""
        if monotonic() >= begin_by:
            raise TimeoutError
        try:
            return self._client.send_message(**request)
        except HTTPClientError as fault:
            if isinstance(fault, _TIMED_OUT) or monotonic() >= begin_by:
                raise
            return self._client.send_message(**request)

    def _give_up(self, future: Future[list[Any]]) -> None:
        self._silent_until = monotonic() + SILENCE
        self._given_up = future


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
