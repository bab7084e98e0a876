"""One standard queue: where each message rests, and how time and receives move it on.

It knows nothing of the API. Nothing happens in the background: `settle` lets everything happen that was due until now,
in the order in which it was due.

Messages move as follows:

    arrive -> DELAYED -> VISIBLE <-> IN_FLIGHT -> DELETED
    any rest but DELETED -> EXPIRED, retention after the original SentTimestamp
    VISIBLE -> the dead-letter queue, on the receive attempt after maxReceiveCount receives
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from fakes.boto_client import Fault, Response
from fakes.sqs.lines import Timeline
from fakes.sqs.message import EventKind, Message, Rest
from fakes.sqs.message_attributes import invalid
from fakes.sqs.metrics import Counts, QueueMetrics
from fakes.sqs.validation import (
    MAX_DELAY_SECONDS,
    MAX_VISIBILITY_SECONDS,
    check_range,
)

MAX_IN_FLIGHT = 120_000  # [botocore ReceiveMessage: OverLimit]
RECEIVES_BEFORE_THE_BACK = 3  # [SQS Developer Guide, sqs-available-cloudwatch-metrics]

_AT_REST = (Rest.VISIBLE, Rest.DELAYED, Rest.IN_FLIGHT)


@dataclass(frozen=True, slots=True)
class DeadLetterTarget:
    """Where dead letters go, and after how many receives."""

    queue: "Queue"
    max_receive_count: int


@dataclass(slots=True, kw_only=True)
class QueueSettings:
    """The queue attributes that change what a queue does. Seconds and bytes."""

    visibility_timeout: int = 30
    delay: int = 0
    retention: int = 345_600
    maximum_message_size: int = 1_048_576
    wait_time: int = 0


class Line(Protocol):
    """The visible messages, in the order in which the queue gives them out."""

    def add(self, message: Message) -> None: ...

    def draw(self) -> Message | None: ...


class Queue:
    """The messages of one queue. Every method takes `now`, which must never go back."""

    is_fifo = False

    def __init__(
        self,
        *,
        name: str,
        arn: str,
        line: Line,
        report: Callable[[EventKind, float, "Queue", Message], None],
    ) -> None:
        self.name = name
        self.arn = arn
        self.settings = QueueSettings()
        self.dead_letter_target: DeadLetterTarget | None = None
        self.metrics = QueueMetrics()
        self.messages: dict[str, Message] = {}  # messages at rest here, by MessageId
        self.expired: list[Message] = []
        self._report = report
        self._count = dict.fromkeys(_AT_REST, 0)
        self._line = line
        self._waiting = Timeline(stamp=lambda message: message.turn)
        self._by_sending = Timeline(stamp=lambda message: message.stay)
        self._by_arrival = Timeline(stamp=_stamp_for_age)

    def counts(self) -> Counts:
        """How many messages are in each rest, now and exactly."""
        return Counts(
            self._count[Rest.VISIBLE], self._count[Rest.IN_FLIGHT], self._count[Rest.DELAYED]
        )

    @property
    def is_full(self) -> bool:
        """Whether no more messages may go in flight."""
        return self._count[Rest.IN_FLIGHT] >= MAX_IN_FLIGHT

    def settle(self, now: float) -> None:
        """Let everything happen that was due until `now`: delays and timeouts end, letters expire.

        A message at the end of its retention expires wherever it rests, even in flight.
        """
        while True:
            wakes_at = self._waiting.first_at()
            sent_at = self._by_sending.first_at()
            expires_at = None if sent_at is None else sent_at + self.settings.retention
            if expires_at is not None and expires_at <= min(now, wakes_at or now):
                expired = self._by_sending.pop()
                self._remove(expired, Rest.EXPIRED)
                self.expired.append(expired)
                # A letter can be expired on arrival: the DLQ's retention may be shorter.
                happened_at = max(expires_at, expired.arrived_at)
                self._report("expired", happened_at, self, expired)
            elif wakes_at is not None and wakes_at <= now:
                happened_at = wakes_at
                self._show(self._waiting.pop(), wakes_at)
            else:
                return
            self.observe(happened_at)

    def check_batch(self, entries: Sequence[Mapping[str, Any]]) -> None:
        """Refuse a whole batch if this kind of queue does not take it. Here, each entry is checked on its own."""

    def terms(self, entry: Mapping[str, Any]) -> tuple[int, str | None]:
        """Delay and deduplication id of a message that is sent. Refuses what this kind of queue does not take."""
        if entry.get("MessageDeduplicationId"):
            raise invalid("MessageDeduplicationId is not valid for this queue type.")
        delay: int | None = entry.get("DelaySeconds")
        if delay is None:
            delay = self.settings.delay
        check_range("DelaySeconds", delay, 0, MAX_DELAY_SECONDS)
        return delay, None

    def send(self, message: Message, delay: int, now: float) -> Response:
        """Accept a new message; return the answer for its sender."""
        message.arrived_at = now
        self._add(message)
        if delay:
            self._enter(message, Rest.DELAYED)
            self._waiting.add(now + delay, message)
        else:
            message.place = now
            self._enter(message, Rest.VISIBLE)
            self._line.add(message)
        self.metrics.sent(now)
        self._report("sent", now, self, message)
        return {"MessageId": message.message_id}

    def take(self, limit: int, visibility_timeout: int, now: float) -> list[Message]:
        """Put up to this many visible messages in flight. Dead letters found on the way move to their queue.

        With a timeout of 0, messages stay in flight until the caller has all of them and releases them.

        If the DLQ has a DLQ of its own, it is not documented which receives count towards maxReceiveCount; here, those
        in this queue count.
        """
        if self.is_full:
            raise Fault("OverLimit", "Too many messages in flight.")
        target, taken = self.dead_letter_target, list[Message]()
        while len(taken) < limit and not self.is_full:
            message = self._line.draw()
            if message is None:
                break
            if target and message.receives_here >= target.max_receive_count:
                self._bury(message, target.queue, now)
                continue
            self._hand_out(message, visibility_timeout, now)
            taken.append(message)
        return taken

    def delete(self, message: Message, now: float) -> None:
        """End a message's life."""
        self._remove(message, Rest.DELETED)
        self._report("deleted", now, self, message)

    def change_visibility(self, message: Message, visibility_timeout: int, now: float) -> None:
        """Set when a received message becomes visible again, up to 12 h after it was received."""
        if now + visibility_timeout > message.received_at + MAX_VISIBILITY_SECONDS:
            beyond = f"is beyond the limit [{MAX_VISIBILITY_SECONDS} seconds]"
            raise invalid(f"Total VisibilityTimeout for the message {beyond}.")
        if visibility_timeout == 0:
            self.release(message, now)
        else:
            self._enter(message, Rest.IN_FLIGHT)
            self._waiting.add(now + visibility_timeout, message)

    def release(self, message: Message, now: float) -> None:
        """Make a message in flight visible again at once; its receipt handle stays valid."""
        self._show(message, now)

    def draw_visible(self) -> Message | None:
        """Take a visible message out of the line, to be moved elsewhere or put back."""
        return self._line.draw()

    def put_back(self, message: Message) -> None:
        """Undo `draw_visible`."""
        self._line.add(message)

    def move_away(self, message: Message, now: float) -> None:
        """End a drawn message's life here: a native redrive gives it a new one elsewhere."""
        self._remove(message, Rest.MOVED)
        self._report("moved back", now, self, message)

    def observe(self, now: float) -> None:
        """Record what a metric, or a late count, will show of this moment."""
        self.metrics.observe(now, self.counts(), self._by_arrival.first_at())

    def _hand_out(self, message: Message, visibility_timeout: int, now: float) -> None:
        if message.receive_count == 0:
            message.first_received_at = now
        message.receive_count += 1
        message.receives_here += 1
        message.receipt_number += 1
        message.received_at = now
        self._enter(message, Rest.IN_FLIGHT)
        if visibility_timeout:
            self._waiting.add(now + visibility_timeout, message)
        self.metrics.received(now)
        self._report("received", now, self, message)

    def _bury(self, message: Message, grave: "Queue", now: float) -> None:
        """Move a dead letter, with its id, attributes and receive count."""
        self._withdraw(message)
        grave.settle(now)
        message.dead_letter_source_arn = self.arn
        self._report("dead", now, grave, message)
        grave._admit(message, now)
        grave.observe(now)
        self._report("moved", now, grave, message)

    def _admit(self, message: Message, now: float) -> None:
        """Take in a dead letter; in this kind of queue it keeps its time of sending."""
        message.arrived_at = message.place = now
        message.receives_here = 0
        self._add(message)
        self._enter(message, Rest.VISIBLE)
        self._line.add(message)

    def _show(self, message: Message, at: float) -> None:
        is_new = message.rest is Rest.DELAYED
        if is_new or message.receives_here >= RECEIVES_BEFORE_THE_BACK:
            message.place = at
        self._enter(message, Rest.VISIBLE)
        self._line.add(message)

    def _add(self, message: Message) -> None:
        self.messages[message.message_id] = message
        self._by_sending.add(message.sent_at, message)
        self._by_arrival.add(message.arrived_at, message)
        self._count[Rest.VISIBLE] += 1
        message.rest = Rest.VISIBLE

    def _enter(self, message: Message, rest: Rest) -> None:
        self._count[message.rest] -= 1
        self._count[rest] += 1
        message.rest = rest
        message.turn += 1

    def _withdraw(self, message: Message) -> None:
        del self.messages[message.message_id]
        self._count[message.rest] -= 1
        message.turn += 1
        message.stay += 1

    def _remove(self, message: Message, rest: Rest) -> None:
        self._withdraw(message)
        message.rest = rest


def _stamp_for_age(message: Message) -> int:
    # A message that was received three times without a delete no longer counts as the oldest.
    return message.stay if message.receives_here < RECEIVES_BEFORE_THE_BACK else -1
