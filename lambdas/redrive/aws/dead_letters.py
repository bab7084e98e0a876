"""The queues that letters are taken from: the DLQ, and the parking lot. Messages in, letters out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from datetime import UTC, datetime, timedelta

from redrive.aws.sqs import Message, MoveCheck, SqsQueue
from redrive.core.letter import TRAIL_ATTRIBUTE, Letter, read_trail
from redrive.core.outgoing import Outgoing, Sent
from redrive.core.queue_facts import QueueFacts
from redrive.errors import EntryFault
from redrive.queue_names import queue_name


class DeadLetters:
    """A queue of letters.

    `sources` are the names of what they can be of, whose trails are believed. `recognise` tells what a letter is of
    where SQS does not.
    """

    def __init__(
        self,
        queue: SqsQueue,
        sources: Set[str],
        recognise: Callable[[Letter], Letter] | None = None,
    ) -> None:
        self._queue = queue
        self._sources = sources
        self._recognise = recognise
        self.url = queue.url
        self.name = queue.name
        self.is_fifo = queue.is_fifo

    def facts(self) -> QueueFacts:
        """The queue's facts. Raises CallFailed."""
        return self._queue.facts()

    def receive(self, limit: int, *, hidden_for: timedelta) -> list[Letter]:
        """At most `limit` letters, and at most ten, hidden from others for `hidden_for`. Raises CallFailed."""
        received = self._queue.receive(limit, hidden_for=hidden_for)
        letters = [letter_of(message, self._sources) for message in received]
        return [self._recognise(one) for one in letters] if self._recognise else letters

    def delete(self, letters: Iterable[Letter]) -> list[EntryFault]:
        """Delete letters; what comes back was not deleted."""
        return self._queue.delete(letters)

    def hide(self, letters: Iterable[tuple[Letter, timedelta]]) -> list[EntryFault]:
        """Keep letters, hidden for a time from now; zero releases at once. What comes back was not changed."""
        return self._queue.hide(letters)

    def check_move(self, arn: str) -> MoveCheck:
        """Whether a native move task is emptying the queue, see `SqsQueue.check_move`. Raises CallFailed."""
        return self._queue.check_move(arn)


class ParkingLot(DeadLetters):
    """The queue that holds letters for a person: letters are sent to it, too."""

    def park(self, outgoing: Sequence[Outgoing]) -> Sent:
        """Send letters to it, see `SqsQueue.send`."""
        return self._queue.send(outgoing)


def letter_of(message: Message, sources: Set[str]) -> Letter:
    """The letter that a message is: its trail taken out of its attributes, where one of `sources` can have sent it."""
    attributes = dict(message.attributes)
    source_arn = message.system.get("DeadLetterQueueSourceArn")
    # SQS tells where it moved a letter from; one that was sent here can be of any of the sources.
    owners = {queue_name(source_arn or "")} & sources or sources
    trail, trail_fault = read_trail(attributes, owners)
    if trail is not None:
        del attributes[TRAIL_ATTRIBUTE]
    return Letter(
        message_id=message.message_id,
        receipt_handle=message.receipt_handle,
        body=message.body,
        attributes=attributes,
        sent_at=_instant(message.system["SentTimestamp"]),
        first_received_at=_maybe_instant(message.system.get("ApproximateFirstReceiveTimestamp")),
        group_id=message.system.get("MessageGroupId"),
        trace_header=message.system.get("AWSTraceHeader"),
        source_arn=source_arn,
        trail=trail,
        trail_fault=trail_fault,
    )


def _instant(milliseconds: str) -> datetime:
    return datetime.fromtimestamp(int(milliseconds) / 1000, UTC)


def _maybe_instant(milliseconds: str | None) -> datetime | None:
    return _instant(milliseconds) if milliseconds else None
