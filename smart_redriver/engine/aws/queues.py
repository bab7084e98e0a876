"""The queues of a pass, over SQS: source queue, dead-letter queue, parking lot, and the queue of consumers' reports.

A source knows its facts, how to deliver, how long it takes to fail, and which letters are its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from datetime import UTC, datetime, timedelta
from typing import Protocol, TypeVar

from smart_redriver.engine.aws.sqs import Message, MoveCheck, SqsQueue
from smart_redriver.engine.config.targets import queue_name
from smart_redriver.engine.errors import CallFailed, EntryFault
from smart_redriver.engine.messages.letter import (
    METADATA_ATTRIBUTE,
    Letter,
    RedriveMetadata,
    read_metadata,
)
from smart_redriver.engine.messages.outgoing import MAX_SQS_DELAY, Outgoing, Sent
from smart_redriver.engine.messages.queue_facts import QueueFacts
from smart_redriver.engine.reports.outcomes import OutcomeMessage


class DeadLetters:
    """A queue of letters.

    `sources` are the names of the sources that letters can be from; only metadata with these names is believed.
    `recognise` finds a letter's source if SQS does not name it.
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
        """Receive at most `limit` letters, and at most ten; hide them for `hidden_for`. Raises CallFailed."""
        received = self._queue.receive(limit, hidden_for=hidden_for)
        letters = [letter_of(message, self._sources) for message in received]
        return [self._recognise(one) for one in letters] if self._recognise else letters

    def delete(self, letters: Iterable[Letter]) -> list[EntryFault]:
        """Delete letters; return those that were not deleted."""
        return self._queue.delete(letters)

    def hide(self, letters: Iterable[tuple[Letter, timedelta]]) -> list[EntryFault]:
        """Keep letters, hidden for a time from now; zero releases them at once. Return those that were not changed."""
        return self._queue.hide(letters)

    def check_move(self, arn: str) -> MoveCheck:
        """Whether a native move task is emptying the queue, see `SqsQueue.check_move`. Raises CallFailed."""
        return self._queue.check_move(arn)

    def renew(self, outgoing: Sequence[Outgoing]) -> Sent:
        """Send letters that are in the queue to it once more: see `SqsQueue.send`."""
        return self._queue.send(outgoing)


class ParkingLot(DeadLetters):
    """The queue that holds letters for a person: another queue's letters are sent to it, too."""

    def park(self, outgoing: Sequence[Outgoing]) -> Sent:
        """Send letters to it, see `SqsQueue.send`."""
        return self._queue.send(outgoing)


def letter_of(message: Message, sources: Set[str]) -> Letter:
    """The letter in a message: its metadata is taken out of its attributes if one of `sources` can have sent it."""
    attributes = dict(message.attributes)
    source_arn = message.system.get("DeadLetterQueueSourceArn")
    # SQS says where it moved a letter from; a letter that was sent here can be from any of the sources.
    owners = {queue_name(source_arn or "")} & sources or sources
    metadata, metadata_fault = read_metadata(attributes, owners)
    if metadata is not None:
        del attributes[METADATA_ATTRIBUTE]
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
        metadata=metadata,
        metadata_fault=metadata_fault,
    )


def _instant(milliseconds: str) -> datetime:
    return datetime.fromtimestamp(int(milliseconds) / 1000, UTC)


def _maybe_instant(milliseconds: str | None) -> datetime | None:
    return _instant(milliseconds) if milliseconds else None


#: The code of a refusal: a letter that fails would not come back, but go where nobody looks after it.
LEADS_ELSEWHERE = "RedrivePolicyLeadsElsewhere"


class SqsSource:
    """A source queue, with its consumer. `name` is its name in the circuit and the metadata: the queue's name.

    It refuses letters as long as its redrive policy names another DLQ than `dlq_name`, by the facts last read. Without
    a policy, a consumer may send failed messages to the DLQ by itself.
    """

    settles_at_once = False
    carries_metadata = True

    def __init__(self, queue: SqsQueue, name: str, dlq_name: str) -> None:
        self._queue = queue
        self.name = name
        self.longest_delay = timedelta() if queue.is_fifo else MAX_SQS_DELAY
        self._dlq_name = dlq_name
        self._refusal: CallFailed | None = None

    def facts(self) -> QueueFacts:
        """The queue's facts. Raises CallFailed."""
        facts = self._queue.facts()
        fails_to = queue_name(facts.dead_letter_arn or "")
        self._refusal = None
        if fails_to not in ("", self._dlq_name):
            why = f"failed messages of {self.name} go to {fails_to}, not to {self._dlq_name}"
            self._refusal = CallFailed("SendMessageBatch", LEADS_ELSEWHERE, why)
        return facts

    def deliver(self, outgoing: Sequence[Outgoing]) -> Sent:
        """Send letters back to the queue, see `SqsQueue.send`."""
        refusal = self._refusal
        if refusal is not None:
            return Sent(faults=[EntryFault.of(refusal, one.letter.message_id) for one in outgoing])
        return self._queue.send(outgoing)

    def time_to_fail(self, facts: QueueFacts, max_receive_count_otherwise: int) -> timedelta:
        """Return the longest time from a message's first receive to its move to the DLQ, if its consumer just fails.

        `max_receive_count_otherwise` applies if the queue does not say after how many receives SQS moves it.
        """
        return facts.visibility_timeout * (facts.max_receive_count or max_receive_count_otherwise)

    def owns(self, source_arn: str | None, metadata: RedriveMetadata | None) -> bool:
        """Whether a letter is from this queue: SQS says where it moved it from, or else the metadata where it was sent.

        All sources of a DLQ are in its account and Region, so that their names tell them apart.
        """
        if source_arn is not None:
            return queue_name(source_arn) == self.name
        return metadata is not None and metadata.queue == self.name


class Owning(Protocol):
    """Knows which letters are its own."""

    def owns(self, source_arn: str | None, metadata: RedriveMetadata | None) -> bool: ...


S = TypeVar("S", bound=Owning)


def owner_of(
    sources: Sequence[S], *, source_arn: str | None, metadata: RedriveMetadata | None
) -> S | None:
    """The source that a letter belongs to; the first if the letter does not say where it came from.

    None for a letter that SQS moved here from a queue that is not served.
    """
    for source in sources:
        if source.owns(source_arn, metadata):
            return source
    return sources[0] if source_arn is None else None


#: SQS hands out at most ten messages a call.
_AT_ONCE = 10


class OutcomeQueue:
    """Hands out reports, and deletes those that were processed."""

    def __init__(self, queue: SqsQueue) -> None:
        self._queue = queue

    def receive(self, *, hidden_for: timedelta) -> list[OutcomeMessage]:
        """Receive some reports, and hide them for `hidden_for`. Raises CallFailed."""
        # The next look finds reports that this one misses; a second in each pass of an idle queue would cost more.
        received = self._queue.receive(_AT_ONCE, hidden_for=hidden_for, asks_all_servers=False)
        return [_report(one) for one in received]

    def delete(self, reports: Sequence[OutcomeMessage]) -> list[EntryFault]:
        """Delete reports; return those that were not deleted."""
        return self._queue.delete(reports)

    def release(self, reports: Sequence[OutcomeMessage]) -> list[EntryFault]:
        """Make reports visible again; return those that were not released."""
        return self._queue.hide((one, timedelta()) for one in reports)


def _report(message: Message) -> OutcomeMessage:
    return OutcomeMessage(
        message_id=message.message_id,
        receipt_handle=message.receipt_handle,
        body=message.body,
        sent_at=datetime.fromtimestamp(int(message.system["SentTimestamp"]) / 1000, UTC),
    )
