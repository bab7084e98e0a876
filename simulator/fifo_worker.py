"""A consumer at work on a FIFO source queue."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from simulator.order import Try
from simulator.worker import Invocation, Message, Worker


class FifoWorker(Worker):
    """A worker that processes the messages of a group one after another, and records their order.

    When a message fails, the later messages of its group in the batch go back untried, as with Lambda's partial batch
    response for FIFO queues; other groups go on. SQS counts a receive of those messages, too: behind a message that
    fails, they may die without having been tried.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._asks_system_for = self._asks_system_for or ["MessageGroupId"]
        self._under_way: dict[str, Try] = {}

    def _try_all(
        self, messages: Sequence[Message], invocation: Invocation, elapsed: timedelta
    ) -> None:
        blocked = set()
        for message in messages:
            group = message["Attributes"]["MessageGroupId"]
            if group in blocked:
                continue
            one = self._register.order.tried(group, message["Body"], elapsed)
            self._under_way[message["ReceiptHandle"]] = one
            self._try(message, invocation, elapsed)
            if invocation.failed and invocation.failed[-1] is message:
                blocked.add(group)

    def _finish(self, invocation: Invocation, elapsed: timedelta) -> None:
        for message in invocation.done:
            self._under_way.pop(message["ReceiptHandle"]).done_at = elapsed
        super()._finish(invocation, elapsed)
