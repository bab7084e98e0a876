"""One message as a fake queue keeps it, and how it looks in a ReceiveMessage answer."""

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Any, Literal

from fakes.sqs.message_attributes import NONE, Attributes, MessageAttributes, attributes_md5, md5

EventKind = Literal["sent", "received", "deleted", "dead", "moved", "expired", "moved back"]

SENDER_ID = "AIDASIMULATEDSENDER00"


class Rest(Enum):
    """Where a message rests. Every message ever sent is in exactly one of these."""

    VISIBLE = "visible"
    DELAYED = "delayed"
    IN_FLIGHT = "in flight"
    DELETED = "deleted"
    EXPIRED = "expired"
    MOVED = "moved"  # by a native redrive, which gives it a new id (a native DLQ move does not)

    # Queues count messages by this, several times for each receive, and Enum's own hash is written in Python.
    __hash__ = object.__hash__


@dataclass(slots=True, kw_only=True, eq=False)
class Message:
    """A message and its place in the world. Times are seconds since the epoch."""

    serial: int
    message_id: str
    body: str
    carried: Attributes = NONE
    sent_at: float
    group_id: str | None = None
    trace_header: str | None = None
    deduplication_id: str | None = None  # this and the next of messages in FIFO queues
    sequence_number: str | None = None

    receive_count: int = 0  # ApproximateReceiveCount: goes on counting in the DLQ
    first_received_at: float = 0.0
    dead_letter_source_arn: str | None = None

    rest: Rest = Rest.VISIBLE
    arrived_at: float = 0.0  # sent to, or moved into, the queue it is in now
    place: float = 0.0  # its place in the line of visible messages: smaller comes first
    received_at: float = 0.0
    receives_here: int = 0
    receipt_number: int = 0  # only the handle of the last receive is good

    # Heaps keep entries of messages that have since moved on. A stamp tells entries that are still true from others, so
    # nothing ever has to be searched for and removed.
    turn: int = 0  # changes whenever the message comes to rest elsewhere
    stay: int = 0  # changes whenever the message leaves a queue

    @property
    def attributes(self) -> MessageAttributes:
        """The message attributes as SQS keeps them; callers must not change them."""
        return self.carried.kept

    @property
    def body_md5(self) -> str:
        """Computed on request: a million digests would be kept for the few that are used."""
        return md5(self.body.encode())


def new_message_id(rng: Random) -> str:
    """An id like SQS's, a UUID of version 4, from the simulation's own randomness."""
    digits = f"{rng.getrandbits(128):032x}"
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def render(
    message: Message,
    receipt_handle: str,
    attribute_names: Collection[str],
    system_attribute_names: Collection[str],
) -> dict[str, Any]:
    """The message as ReceiveMessage returns it, with only the attributes that the request names.

    Source: botocore sqs ReceiveMessage (`All`, `.*`, `prefix.*` or exact names).
    """
    answer: dict[str, Any] = {
        "MessageId": message.message_id,
        "ReceiptHandle": receipt_handle,
        "MD5OfBody": message.body_md5,
        "Body": message.body,
    }
    if system_attribute_names:
        asked = _system_attributes(message, system_attribute_names)
        if asked:
            answer["Attributes"] = asked
    chosen = {
        name: dict(value)
        for name, value in message.attributes.items()
        if any(_asks_for(pattern, name) for pattern in attribute_names)
    }
    if chosen:
        has_all = len(chosen) == len(message.attributes)
        digest = message.carried.kept_md5 if has_all else attributes_md5(chosen)
        answer |= {"MessageAttributes": chosen, "MD5OfMessageAttributes": digest}
    return answer


def _system_attributes(message: Message, names: Collection[str]) -> dict[str, str]:
    known = {
        "SenderId": SENDER_ID,
        "SentTimestamp": str(int(message.sent_at * 1000)),
        "ApproximateReceiveCount": str(message.receive_count),
        "ApproximateFirstReceiveTimestamp": str(int(message.first_received_at * 1000)),
        "MessageGroupId": message.group_id,
        "MessageDeduplicationId": message.deduplication_id,
        "SequenceNumber": message.sequence_number,
        "AWSTraceHeader": message.trace_header,
        "DeadLetterQueueSourceArn": message.dead_letter_source_arn,
    }
    wants_all = "All" in names
    return {
        name: value
        for name, value in known.items()
        if value is not None and (wants_all or name in names)
    }


def _asks_for(pattern: str, name: str) -> bool:
    if pattern.endswith(".*"):
        return name.startswith(pattern[:-1]) or pattern == ".*"
    return pattern in ("All", name)
