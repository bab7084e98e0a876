"""What letters go back to. A source knows its facts, how to deliver, how long it takes to fail, and its own letters.

SQS queues are the first kind of source.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol, TypeVar

from redrive.aws.sqs import SqsQueue
from redrive.core.letter import Trail
from redrive.core.outgoing import Outgoing, Sent
from redrive.core.pacing import MAX_SQS_DELAY
from redrive.core.queue_facts import QueueFacts
from redrive.queue_names import queue_name


class SqsSource:
    """A source queue, with its consumer. `name` is what the circuit and the trails call it: the queue's name."""

    settles_at_once = False
    carries_trails = True

    def __init__(self, queue: SqsQueue, name: str) -> None:
        self._queue = queue
        self.name = name
        self.longest_delay = timedelta() if queue.is_fifo else MAX_SQS_DELAY

    def facts(self) -> QueueFacts:
        """The queue's facts. Raises CallFailed."""
        return self._queue.facts()

    def deliver(self, outgoing: Sequence[Outgoing]) -> Sent:
        """Send letters back to the queue, see `SqsQueue.send`."""
        return self._queue.send(outgoing)

    def time_to_fail(self, facts: QueueFacts, max_receive_count_otherwise: int) -> timedelta:
        """From a message's first receive to its move to the DLQ, at the longest, for a consumer that just fails.

        `max_receive_count_otherwise` counts where the queue does not say after how many receives SQS moves it.
        """
        return facts.visibility_timeout * (facts.max_receive_count or max_receive_count_otherwise)

    def owns(self, source_arn: str | None, trail: Trail | None) -> bool:
        """Whether a letter is of this queue: SQS says where it moved it from, else its trail where it was sent to.

        All sources of a DLQ are of its account and region, so that their names tell them apart.
        """
        if source_arn is not None:
            return queue_name(source_arn) == self.name
        return trail is not None and trail.queue == self.name


class Owning(Protocol):
    """What knows which letters are its own."""

    def owns(self, source_arn: str | None, trail: Trail | None) -> bool: ...


S = TypeVar("S", bound=Owning)


def owner_of(sources: Sequence[S], *, source_arn: str | None, trail: Trail | None) -> S | None:
    """The source that a letter belongs to; the first where it says nothing of where it came from.

    None for a letter that SQS moved here from a queue that is not served.
    """
    for source in sources:
        if source.owns(source_arn, trail):
            return source
    return sources[0] if source_arn is None else None
