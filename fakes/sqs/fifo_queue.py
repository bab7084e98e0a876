"""One FIFO queue: its messages keep their order in each group, and come once in five minutes.

How it differs from a standard queue, and the source of each difference:

- A receive takes as many as it can from one group before it goes on to the next. [localstack, recorded on AWS:
  test_fifo_receive_message_group_id_ordering; botocore sqs ReceiveMessage]
- Messages that may not be received yet count as visible. [test_fifo_approximate_number_of_messages_not_visible]
- At 120,000 messages in flight, a receive is empty and is no error. [SQS Developer Guide, quotas-fifo]
- A dead letter keeps its MessageId, which replaces its MessageDeduplicationId. The time of the move replaces its time
  of sending, from which it expires. [SQS Developer Guide, sqs-configure-dead-letter-queue-redrive,
  setting-up-dead-letter-queue-retention] Two things are assumed: that SentTimestamp shows the new time, and that the
  letter has a sequence number of the DLQ's own, at the end of its group there.
- No message has a delay of its own; DelaySeconds 0 means the queue's delay. [test_fifo_message_delay_seconds]
- Deduplicated sends are not counted as sent. [SQS Developer Guide, sqs-available-cloudwatch-metrics]
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from fakes.boto_client import Fault, Response
from fakes.sqs.deduplication import DeduplicationWindow, FirstCopy, content_hash
from fakes.sqs.lines import Timeline
from fakes.sqs.message import EventKind, Message, Rest
from fakes.sqs.message_attributes import invalid
from fakes.sqs.message_groups import Group, GroupLines
from fakes.sqs.queue import MAX_IN_FLIGHT, Queue
from fakes.sqs.validation import check_deduplication_id

#: SequenceNumber has 20 digits on AWS and is not consecutive; only its order means something.
FIRST_SEQUENCE_NUMBER = 18_850_000_000_000_000_000


class FifoQueue(Queue):
    """The messages of one FIFO queue. `serials` numbers an account's messages in the order of their arrival."""

    is_fifo = True

    def __init__(
        self,
        *,
        name: str,
        arn: str,
        serials: Iterator[int],
        report: Callable[[EventKind, float, Queue, Message], None],
    ) -> None:
        self._groups = GroupLines()
        super().__init__(name=name, arn=arn, line=self._groups, report=report)
        # However often it was received, the oldest message remains the oldest: nothing here goes to the back.
        self._by_arrival = Timeline(stamp=lambda message: message.stay)
        self.deduplicates_by_content = False
        self.deduplicates_by_group = False
        self._serials = serials
        self._window = DeduplicationWindow()

    def check_batch(self, entries: Sequence[Mapping[str, Any]]) -> None:
        """Refuse the whole batch if one entry has no group or id.

        As recorded on AWS. [localstack, test_send_batch_missing_*]
        """
        for entry in entries:
            if not entry.get("MessageGroupId"):
                raise invalid("The request must contain the parameter MessageGroupId.")
            self._deduplication_id(entry)

    def terms(self, entry: Mapping[str, Any]) -> tuple[int, str | None]:
        """The queue's own delay, and the deduplication id that was given or is derived from the body."""
        if not entry.get("MessageGroupId"):
            missing = "The request must contain the parameter MessageGroupId."
            raise Fault("MissingParameter", missing)
        if delay := entry.get("DelaySeconds"):
            reason = "The request include parameter that is not valid for this queue type."
            raise invalid(f"Value {delay} for parameter DelaySeconds is invalid. Reason: {reason}")
        return self.settings.delay, self._deduplication_id(entry)

    def send(self, message: Message, delay: int, now: float) -> Response:
        """Accept a new message. If the same one came within the window, return the first one's answer."""
        key = (
            str(message.deduplication_id),
            message.group_id if self.deduplicates_by_group else None,
        )
        first = self._window.first_copy(key, now)
        if first is None:
            message.sequence_number = _sequence_number(message)
            super().send(message, delay, now)
            first = FirstCopy(message.message_id, message.sequence_number)
            self._window.note(key, first, now)
        return {"MessageId": first.message_id, "SequenceNumber": first.sequence_number}

    def take(self, limit: int, visibility_timeout: int, now: float) -> list[Message]:
        """Put up to this many messages in flight: as many of one group as possible, then of the next."""
        room = min(limit, MAX_IN_FLIGHT - self.counts().in_flight)
        taken: list[Message] = []
        while len(taken) < room and (group := self._groups.next_group()):
            taken += self._take_of(group, room - len(taken), visibility_timeout, now)
        return taken

    def put_back(self, message: Message) -> None:
        """Undo `draw_visible`."""
        self._groups.look_at(message.group_id)

    def _take_of(
        self, group: Group, limit: int, visibility_timeout: int, now: float
    ) -> list[Message]:
        target = self.dead_letter_target
        dead, alive = list[Message](), list[Message]()
        for message in group.visible():
            if len(alive) == limit:
                break
            is_dead = target and message.receives_here >= target.max_receive_count
            (dead if is_dead else alive).append(message)
        if target:
            for message in dead:
                self._bury(message, target.queue, now)
        for message in alive:
            self._hand_out(message, visibility_timeout, now)
        return alive

    def _deduplication_id(self, entry: Mapping[str, Any]) -> str:
        given: str | None = entry.get("MessageDeduplicationId")
        if given is not None:
            check_deduplication_id(given)
            return given
        if not self.deduplicates_by_content:
            either = "The queue should either have ContentBasedDeduplication enabled"
            raise invalid(f"{either} or MessageDeduplicationId provided explicitly")
        return content_hash(entry["MessageBody"])

    def _admit(self, message: Message, now: float) -> None:
        message.sent_at = now
        message.deduplication_id = message.message_id
        message.serial = next(self._serials)
        message.sequence_number = _sequence_number(message)
        super()._admit(message, now)

    def _show(self, message: Message, at: float) -> None:
        del at  # it keeps its place
        self._enter(message, Rest.VISIBLE)
        self._groups.add(message)

    def _add(self, message: Message) -> None:
        super()._add(message)
        self._groups.join(message)

    def _withdraw(self, message: Message) -> None:
        super()._withdraw(message)
        self._groups.look_at(message.group_id)


def _sequence_number(message: Message) -> str:
    return str(FIRST_SEQUENCE_NUMBER + message.serial)
