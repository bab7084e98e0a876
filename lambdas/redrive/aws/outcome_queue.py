"""The queue that consumers report outcomes to."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from redrive.aws.sqs import Message, SqsQueue
from redrive.core.outcomes import OutcomeMessage
from redrive.errors import EntryFault

#: SQS hands out at most ten messages a call.
_AT_ONCE = 10


class OutcomeQueue:
    """Hands out reports, and forgets those that were taken in."""

    def __init__(self, queue: SqsQueue) -> None:
        self._queue = queue

    def receive(self, *, hidden_for: timedelta) -> list[OutcomeMessage]:
        """Some reports, hidden from others for `hidden_for`; none where there are none. Raises CallFailed."""
        # What is missed now is there at the next look; a second in each pass of an idle queue would cost more.
        received = self._queue.receive(_AT_ONCE, hidden_for=hidden_for, asks_all_servers=False)
        return [_report(one) for one in received]

    def delete(self, reports: Sequence[OutcomeMessage]) -> list[EntryFault]:
        """Delete reports; what comes back was not deleted."""
        return self._queue.delete(reports)

    def release(self, reports: Sequence[OutcomeMessage]) -> list[EntryFault]:
        """Make reports visible again; what comes back was not released."""
        return self._queue.hide((one, timedelta()) for one in reports)


def _report(message: Message) -> OutcomeMessage:
    return OutcomeMessage(
        message_id=message.message_id,
        receipt_handle=message.receipt_handle,
        body=message.body,
        sent_at=datetime.fromtimestamp(int(message.system["SentTimestamp"]) / 1000, UTC),
    )
