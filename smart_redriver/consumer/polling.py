"""A poller's messages, each of which is deleted when the `with` around its work is left without an error."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

from smart_redriver.consumer.delivery import Message

FAILED = "message.failed"
NOT_DELETED = "message.not_deleted"

#: What the kit needs of a message: what was not received can't be parked.
_ALL = ["All"]
_MOST_MESSAGES = 10
_LONGEST_WAIT_SECONDS = 20

_log = logging.getLogger(__name__)

#: Reports what becomes of a message of this queue, as `Batch.message` does.
Reporting = Callable[[Message, str], AbstractContextManager[None]]


def received(
    reporting: Reporting, sqs: Any, url: str, request: dict[str, Any]
) -> Iterator[Received]:
    """The messages of one receive from the queue, less those behind a failed one of their group."""
    usual = {
        "MaxNumberOfMessages": _MOST_MESSAGES,
        "WaitTimeSeconds": _LONGEST_WAIT_SECONDS,
        "MessageAttributeNames": _ALL,
        "MessageSystemAttributeNames": _ALL,
    }
    answer = sqs.receive_message(**usual | request, QueueUrl=url)
    failed_groups = set()
    for message in answer.get("Messages", []):
        group = message.get("Attributes", {}).get("MessageGroupId") if _is_fifo(url) else None
        if group is None or group not in failed_groups:
            one = Received(message, reporting(message, url), sqs, url)
            yield one
            if not one.is_done:
                failed_groups.add(group)


def _is_fifo(url: str) -> bool:
    return url.endswith(".fifo")


class Received:
    """One message of a poller's: a `with` gives it as `ReceiveMessage` did, and deletes it when it is done."""

    def __init__(
        self, message: Message, reporting: AbstractContextManager[None], sqs: Any, url: str
    ) -> None:
        self.message = message
        self.is_done = False
        self._reporting = reporting
        self._sqs = sqs
        self._url = url

    def __enter__(self) -> Message:
        self._reporting.__enter__()
        return self.message

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        # A success that is still in the queue is none: it is deleted first.
        if error is None and not self._delete():
            return True
        is_parked = self._reporting.__exit__(kind, error, trace)
        if error is None or (is_parked and self._delete()):
            self.is_done = True
        elif isinstance(error, Exception) and not is_parked:
            _log.error("%s: %s", FAILED, self.message.get("MessageId"), exc_info=error)
        return error is None or isinstance(error, Exception)

    def _delete(self) -> bool:
        try:
            self._sqs.delete_message(
                QueueUrl=self._url, ReceiptHandle=self.message["ReceiptHandle"]
            )
        except Exception:
            _log.exception("%s: %s", NOT_DELETED, self.message.get("MessageId"))
            return False
        return True
