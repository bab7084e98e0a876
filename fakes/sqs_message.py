"""One message as a fake queue keeps it, and how it looks in a ReceiveMessage answer."""

import hashlib
import struct
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from typing import Any, Literal

EventKind = Literal["sent", "received", "deleted", "moved", "expired", "moved back"]
MessageAttributes = Mapping[str, Mapping[str, Any]]

SENDER_ID = "AIDASIMULATEDSENDER00"


class Rest(Enum):
    """Where a message rests. Every message ever sent is in exactly one of these."""

    VISIBLE = "visible"
    DELAYED = "delayed"
    IN_FLIGHT = "in flight"
    DELETED = "deleted"
    EXPIRED = "expired"
    MOVED = "moved"  # by a native redrive, which gives it a new id; a native DLQ move does not

    # Members are equal only to themselves; Enum's own hash, in Python, is 6 % of a simulation.
    __hash__ = object.__hash__


@dataclass(slots=True, kw_only=True, eq=False)
class Message:
    """A message and its place in the world. Times are seconds since the epoch."""

    serial: int
    message_id: str
    body: str
    attributes: MessageAttributes
    sent_at: float
    group_id: str | None = None
    trace_header: str | None = None

    receive_count: int = 0  # ApproximateReceiveCount: goes on counting in the DLQ
    first_received_at: float = 0.0
    dead_letter_source_arn: str | None = None

    rest: Rest = Rest.VISIBLE
    arrived_at: float = 0.0  # sent to, or moved into, the queue it is in now
    place: float = 0.0  # its place in the line of visible messages: smaller comes first
    received_at: float = 0.0
    receives_here: int = 0
    receipt_number: int = 0  # only the handle of the last receive is good

    # Heaps keep entries of messages that have since moved on. A stamp tells the entry that is
    # still true from those that are not, so nothing ever has to be searched for and removed.
    turn: int = 0  # changes whenever the message comes to rest elsewhere
    stay: int = 0  # changes whenever the message leaves a queue

    body_md5: str = field(init=False)

    def __post_init__(self) -> None:
        self.body_md5 = _md5(self.body.encode())


def new_message_id(rng: Random) -> str:
    """An id like SQS's, from the simulation's own randomness."""
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


def render(
    message: Message,
    receipt_handle: str,
    attribute_names: Collection[str],
    system_attribute_names: Collection[str],
) -> dict[str, Any]:
    """The message as ReceiveMessage returns it: attributes only as far as they were asked for.

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
    if attribute_names and message.attributes:
        chosen = {
            name: dict(value)
            for name, value in message.attributes.items()
            if any(_asks_for(pattern, name) for pattern in attribute_names)
        }
        if chosen:
            answer["MessageAttributes"] = chosen
            answer["MD5OfMessageAttributes"] = attributes_md5(chosen)
    return answer


def attributes_md5(attributes: MessageAttributes) -> str:
    """The digest SQS returns for message attributes, over name, type and value in name order.

    Source: SQS Developer Guide, "Calculating the MD5 message digest for message attributes".
    """
    encoded = bytearray()
    for name in sorted(attributes):
        attribute = attributes[name]
        is_binary = attribute["DataType"].startswith("Binary")
        value = attribute["BinaryValue"] if is_binary else attribute["StringValue"].encode()
        for part in (name.encode(), attribute["DataType"].encode()):
            encoded += struct.pack("!I", len(part)) + part
        encoded += struct.pack("!BI", 2 if is_binary else 1, len(value)) + value
    return _md5(bytes(encoded))


def _system_attributes(message: Message, names: Collection[str]) -> dict[str, str]:
    known = {
        "SenderId": SENDER_ID,
        "SentTimestamp": str(int(message.sent_at * 1000)),
        "ApproximateReceiveCount": str(message.receive_count),
        "ApproximateFirstReceiveTimestamp": str(int(message.first_received_at * 1000)),
        "MessageGroupId": message.group_id,
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


def _md5(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()
