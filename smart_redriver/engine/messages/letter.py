"""A letter and its metadata: one message in the dead-letter queue, and what it carries about its past.

Identity travels with the letter. `SendMessage` gives every redriven copy a new MessageId, so a count by MessageId never
passes one; SQS's own move to the DLQ keeps the id. Hence the original id is the MessageId at the first visit to the
DLQ, and later the one in the metadata.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum
from sys import getsizeof
from typing import Any

METADATA_ATTRIBUTE = "RedriveTrail"

#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
MAX_MESSAGE_ATTRIBUTES = 10

_MESSAGE_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")
_LARGEST_NUMBER = 10**12
# Made once: `json.dumps` would make a new encoder for each metadata.
_to_json = json.JSONEncoder(separators=(",", ":")).encode

#: A message attribute in boto3's form: DataType with StringValue or BinaryValue.
Attribute = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RedriveMetadata:
    """The history in a redriven letter, in one String attribute of compact JSON.

    `sent_for`: the consumer group that it was sent again for, if other groups read the same messages.
    """

    queue: str
    original_id: str
    redrive_count: int
    first_seen: datetime
    batch: int
    generation: int
    sent_for: str = ""

    def encode(self) -> str:
        """The attribute's value, about 150 bytes."""
        fields = {
            "queue": self.queue,
            "id": self.original_id,
            "n": self.redrive_count,
            "seen": int(self.first_seen.timestamp()),
            "batch": self.batch,
            "gen": self.generation,
        }
        if self.sent_for:
            fields["for"] = self.sent_for
        return _to_json(fields)

    @classmethod
    def decode(cls, text: str) -> RedriveMetadata:
        """The metadata in `text`.

        Raises:
            ValueError: it does not parse, or a field is missing or of the wrong kind. Consumers and people can write
            anything into an attribute, so no value may surprise a pass.

        """
        try:
            fields = json.loads(text)
            metadata = cls(
                queue=str(fields["queue"]),
                original_id=str(fields["id"]),
                redrive_count=int(fields["n"]),
                first_seen=datetime.fromtimestamp(int(fields["seen"]), UTC),
                batch=int(fields["batch"]),
                generation=int(fields["gen"]),
                sent_for=str(fields.get("for", "")),
            )
        except (KeyError, TypeError, ValueError, OverflowError, OSError, RecursionError) as fault:
            raise ValueError(f"not redrive metadata: {type(fault).__name__}") from fault
        numbers = (metadata.redrive_count, metadata.batch, metadata.generation)
        if not _MESSAGE_ID.fullmatch(metadata.original_id) or not all(
            0 <= number <= _LARGEST_NUMBER for number in numbers
        ):
            # The ledger could not store it, and would refuse the whole batch that contains it.
            raise ValueError("not redrive metadata: an id or a number out of bounds")
        return metadata


class Unfit(str, Enum):
    """The reason why a letter can't go back to the consumer or target that failed it."""

    UNKNOWN_ORIGIN = "UNKNOWN_ORIGIN"
    INCOMPLETE = "INCOMPLETE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """One message received from the DLQ, with the metadata taken out of its attributes.

    `attributes` are the sender's own, unchanged. `metadata_fault` says why redrive metadata that was there counts as
    absent; it is reported and never stops a pass. `first_received_at` is when this copy was first received.
    `request_id` is the id of the asynchronous invocation that left this letter; it identifies a copy without a
    MessageId. `failed_at` is known for letters that were sent to the DLQ once they had failed. `unfit` says why the
    letter can't go back to what failed it. `is_anothers`: it is the copy of a message that was sent again for another
    consumer group, and this group has already had the message itself. `content_marks`: an id given to its content ends
    with one of these; empty if ids do not identify the content. `copy_has_left`: the copy that was sent last is known
    to be neither at its consumer nor on its way to the DLQ. `extra_bytes`: the message's bytes beyond body and
    attributes; negative if these are longer than what is sent.
    """

    message_id: str
    receipt_handle: str
    body: str
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    sent_at: datetime
    first_received_at: datetime | None = None
    group_id: str | None = None
    trace_header: str | None = None
    source_arn: str | None = None
    metadata: RedriveMetadata | None = None
    metadata_fault: str | None = None
    request_id: str | None = None
    failed_at: datetime | None = None
    unfit: Unfit | None = None
    is_anothers: bool = False
    content_marks: tuple[str, ...] = ()
    copy_has_left: bool = False
    extra_bytes: int = 0

    @property
    def known_as(self) -> tuple[str, ...]:
        """The ids under which a delivery of it may have been recorded."""
        return (self.message_id, self.request_id) if self.request_id else (self.message_id,)

    @property
    def original_id(self) -> str:
        """The id that the letter had on its first visit to the DLQ."""
        return self.metadata.original_id if self.metadata else self.message_id

    @property
    def size(self) -> int:
        """Bytes of the message; SQS counts the body, and name, type and value of every attribute.

        https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-metadata.html
        """
        of_attributes = sum(attribute_size(name, one) for name, one in self.attributes.items())
        return bytes_of(self.body) + of_attributes + self.extra_bytes

    @property
    def weight(self) -> int:
        """Bytes of memory that the body takes: up to four for each character if one of them is an emoji."""
        return getsizeof(self.body)

    def with_metadata(self, metadata: RedriveMetadata) -> Letter:
        """This letter with redrive metadata that the ledger kept for it."""
        return replace(self, metadata=metadata, metadata_fault=None)

    def without_metadata(self) -> Letter:
        """This letter as one of its own, whose metadata was copied from another's."""
        return replace(self, metadata=None, metadata_fault="the metadata is another letter's")


def read_metadata(
    attributes: Mapping[str, Attribute], queues: Set[str]
) -> tuple[RedriveMetadata | None, str | None]:
    """The metadata among `attributes`, or the reason why it can't be trusted.

    Consumers copy attributes to messages of their own, so redrive metadata that names none of the `queues` that the
    letter can have come from is not this letter's and counts as absent.
    """
    carried = attributes.get(METADATA_ATTRIBUTE)
    if carried is None:
        return None, None
    try:
        metadata = RedriveMetadata.decode(carried.get("StringValue") or "")
    except ValueError as fault:
        return None, str(fault)
    if metadata.queue not in queues:
        return None, "the metadata names another queue"
    return metadata, None


def metadata_attribute(metadata: RedriveMetadata) -> Attribute:
    """The message attribute that carries `metadata`."""
    return {"DataType": "String", "StringValue": metadata.encode()}


def attribute_size(name: str, attribute: Attribute) -> int:
    """Bytes that one message attribute counts towards the size limit."""
    kind, value = str(attribute.get("DataType", "")), attribute.get("StringValue")
    if value is None:
        return bytes_of(name) + bytes_of(kind) + len(attribute.get("BinaryValue") or b"")
    # Called several times for each attribute of each letter.
    if name.isascii() and kind.isascii() and value.isascii():
        return len(name) + len(kind) + len(value)
    return bytes_of(name) + bytes_of(kind) + bytes_of(value)


def bytes_of(text: str) -> int:
    """Bytes of a text as it is sent."""
    # Python knows whether a text is ASCII, so a megabyte need not be copied to be counted.
    return len(text) if text.isascii() else len(text.encode())


def without_lineage(trace_header: str | None) -> str | None:
    """The X-Ray trace header without its `Lineage` part; None when nothing is left.

    Lambda's recursion guard counts hops in `Lineage` and stops a chain after about 16. A letter that is in the DLQ
    because of that guard would be stopped forever if its old count came along.
    https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html
    """
    if not trace_header:
        return None
    kept = [part for part in trace_header.split(";") if part and not part.startswith("Lineage=")]
    return ";".join(kept) or None
