"""What a test or a simulation may know about the queues, and an AWS client may not."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from fakes.sqs.message import EventKind, Message, Rest
from fakes.sqs.metrics import Counts, QueueMetrics
from fakes.sqs.queue import Queue


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a message.

    `dead` comes just before a message is `moved`, when the message is in no queue: a listener that stands for another
    sender than SQS may then give it the shape that it has there. `moved` is SQS's own move of a dead letter, and names
    the DLQ that it came to. `moved back` is a native redrive, names the queue left behind, and is followed by a `sent`
    of the new message.
    """

    kind: EventKind
    at: datetime
    queue_name: str
    message: Message


class Inspection:
    """Looks without touching: nothing here counts as an access, and all of it is exact."""

    def __init__(
        self, settled: Callable[[str], Queue | None], listeners: list[Callable[[Event], None]]
    ) -> None:
        self._settled = settled
        self._listeners = listeners

    def subscribe(self, listener: Callable[[Event], None]) -> None:
        """Pass every event from now on to the listener, in the order in which events come to light.

        Events that time alone causes (expiry) come with the first call after they were due, and carry the time at which
        they were due.
        """
        self._listeners.append(listener)

    def counts(self, queue_name: str) -> Counts:
        """How many messages rest in a queue, exactly and now."""
        return self._queue(queue_name).counts()

    def messages(self, queue_name: str, *rests: Rest) -> list[Message]:
        """The messages at rest in a queue, or only those in one of `rests`, by the time they were sent.

        O(n), for tests; a simulation uses `counts`.
        """
        at_rest = self._queue(queue_name).messages.values()
        chosen = (message for message in at_rest if not rests or message.rest in rests)
        return sorted(chosen, key=lambda message: (message.sent_at, message.serial))

    def expired(self, queue_name: str) -> list[Message]:
        """The messages that a queue lost to its retention."""
        return list(self._queue(queue_name).expired)

    def metrics(self, queue_name: str) -> QueueMetrics | None:
        """The queue's past, for the fake CloudWatch; None if there is no such queue."""
        queue = self._settled(queue_name)
        return queue.metrics if queue else None

    def _queue(self, queue_name: str) -> Queue:
        queue = self._settled(queue_name)
        if queue is None:
            raise KeyError(queue_name)
        return queue


def event(kind: EventKind, at: float, queue: Queue, message: Message) -> Event:
    """An event as listeners get it."""
    return Event(kind, datetime.fromtimestamp(at, UTC), queue.name, message)
