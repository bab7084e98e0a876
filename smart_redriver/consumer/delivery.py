"""One message as its consumer got it: from Lambda's event or from `ReceiveMessage`, which spell its fields differently.

Also a poller's messages: each is deleted when the `with` around its work ends without an error.
"""

from __future__ import annotations

import json
import logging
import re
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

#: A record of Lambda's event or a message of `ReceiveMessage`, as a mapping. Powertools' SQSRecord is one, too.
Message = Mapping[str, Any]
#: A message attribute as boto3 takes it: DataType with StringValue or BinaryValue.
Attribute = Mapping[str, Any]

#: The message attribute that marks a redriven message.
METADATA_ATTRIBUTE = "RedriveTrail"

_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")
_LARGEST_NUMBER = 10**12


@dataclass(frozen=True, slots=True, kw_only=True)
class RedriveMetadata:
    """The history in a redriven message. `redrive_count` counts redrives, `first_seen` is in seconds."""

    queue: str
    original_id: str
    redrive_count: int
    first_seen: int
    batch: int
    generation: int

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of the attribute's JSON."""
        return {
            "queue": self.queue,
            "id": self.original_id,
            "n": self.redrive_count,
            "seen": self.first_seen,
            "batch": self.batch,
            "gen": self.generation,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One message from the queue with this name, with its attributes as boto3 takes them.

    `metadata` is None if the message was not redriven, or if it carries metadata of another queue's message.
    `is_whole` is false if its poller did not ask for system attributes or, in a FIFO queue, not for its group, so that
    they are missing here. A message without message attributes looks like one whose poller did not ask for them.
    """

    queue: str
    message_id: str
    body: str
    attributes: Mapping[str, Attribute]
    system: Mapping[str, str]
    metadata: RedriveMetadata | None
    is_whole: bool

    @property
    def original_id(self) -> str:
        """The id that the message had before any redrive."""
        return self.metadata.original_id if self.metadata else self.message_id

    @property
    def values(self) -> list[str]:
        """The texts of its attributes, which no report should contain."""
        return [
            one["StringValue"]
            for name, one in self.attributes.items()
            if name != METADATA_ATTRIBUTE and "StringValue" in one
        ]

    @property
    def receive_count(self) -> int | None:
        """The message's receive count; None if the consumer did not ask for it."""
        count = self.system.get("ApproximateReceiveCount")
        return int(count) if count else None

    @property
    def sent_at(self) -> datetime | None:
        """The time of sending; None if the consumer did not ask for it."""
        millis = self.system.get("SentTimestamp")
        return datetime.fromtimestamp(int(millis) / 1000, UTC) if millis else None


def idempotency_key(message: Message, queue: str | None = None) -> str:
    """The id of a message that stays the same however often it is redriven. Use it as the idempotency key.

    Raises ValueError if nothing names the queue, even for a message that was never redriven: otherwise the error would
    first appear with redriven ones.

    Args:
        message: a record of Lambda's event, or a message of `ReceiveMessage` that was received with all attributes.
        queue: name, URL or ARN of its queue. A record names the queue itself.

    """
    named = _named(message, queue)
    return (
        delivery_of(message, named).original_id if is_carrying_metadata(message) else _id(message)
    )


def is_carrying_metadata(message: Message) -> bool:
    """Whether the message looks redriven. A quick check, because every message gets it."""
    return METADATA_ATTRIBUTE in (
        message.get("messageAttributes") or message.get("MessageAttributes") or ()
    )


def queue_name(named: str) -> str:
    """The name of the queue with this name, URL or ARN."""
    return named.replace("/", ":").rpartition(":")[2]


def delivery_of(message: Message, queue: str | None = None) -> Delivery:
    """Read `message` as a delivery. Raises ValueError if nothing names its queue."""
    is_record = "messageId" in message
    name = queue_name(_named(message, queue))
    if is_record:
        given = message.get("messageAttributes") or {}
        attributes = {key: _of_lambda(value) for key, value in given.items()}
    else:
        given = message.get("MessageAttributes") or {}
        attributes = {key: _sendable(value) for key, value in given.items()}
    system = message.get("attributes" if is_record else "Attributes")
    metadata = _metadata(attributes.get(METADATA_ATTRIBUTE, {}).get("StringValue"))
    return Delivery(
        queue=name,
        message_id=_id(message),
        body=message["body" if is_record else "Body"],
        attributes=attributes,
        system=system or {},
        metadata=metadata if metadata and metadata.queue == name else None,
        is_whole=is_record or _is_whole(name, system),
    )


def _is_whole(queue: str, system: Mapping[str, str] | None) -> bool:
    return system is not None and ("MessageGroupId" in system or not _is_fifo(queue))


def _metadata(text: str | None) -> RedriveMetadata | None:
    """The metadata in `text`; None if the re-driver could not read it."""
    try:
        fields = json.loads(text or "")
        metadata = RedriveMetadata(
            queue=str(fields["queue"]),
            original_id=str(fields["id"]),
            redrive_count=int(fields["n"]),
            first_seen=int(fields["seen"]),
            batch=int(fields["batch"]),
            generation=int(fields["gen"]),
        )
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError):
        return None
    numbers = (metadata.redrive_count, metadata.batch, metadata.generation)
    is_in_bounds = all(0 <= number <= _LARGEST_NUMBER for number in numbers)
    return metadata if is_in_bounds and _ID.fullmatch(metadata.original_id) else None


def _named(message: Message, queue: str | None) -> str:
    named = queue or message.get("eventSourceARN")
    if not named:
        raise ValueError("a message of ReceiveMessage does not name its queue: give it")
    return str(named)


def _id(message: Message) -> str:
    return str(message["messageId"] if "messageId" in message else message["MessageId"])


def _of_lambda(attribute: Mapping[str, Any]) -> Attribute:
    kept = {"DataType": attribute.get("dataType", "String")}
    if attribute.get("stringValue") is not None:
        return kept | {"StringValue": attribute["stringValue"]}
    return kept | {"BinaryValue": b64decode(attribute.get("binaryValue") or "")}


def _sendable(attribute: Mapping[str, Any]) -> Attribute:
    """Drop the empty lists that are in SQS's answers but not allowed in requests."""
    known = ("DataType", "StringValue", "BinaryValue")
    return {name: attribute[name] for name in known if name in attribute}


FAILED = "message.failed"
NOT_DELETED = "message.not_deleted"

#: The kit needs all attributes of a message, whatever its caller asks for: it can't park one that it did not receive,
#: nor keep the order of a group that it does not know.
_WHOLE = {"MessageAttributeNames": ["All"], "MessageSystemAttributeNames": ["All"]}
_MOST_MESSAGES = 10
_LONGEST_WAIT_SECONDS = 20

_log = logging.getLogger(__name__)

#: Reports what becomes of a message of this queue, as `Batch.message` does.
Reporting = Callable[[Message, str], AbstractContextManager[None]]


def received(
    reporting: Reporting, sqs: Any, url: str, request: dict[str, Any]
) -> Iterator[Received]:
    """Yield the messages of one receive from the queue, except those behind a failed one of their group."""
    usual = {"MaxNumberOfMessages": _MOST_MESSAGES, "WaitTimeSeconds": _LONGEST_WAIT_SECONDS}
    answer = sqs.receive_message(**usual | request | _WHOLE, QueueUrl=url)
    failed_groups = set()
    for message in answer.get("Messages", []):
        group = message.get("Attributes", {}).get("MessageGroupId") if _is_fifo(url) else None
        if group is None or group not in failed_groups:
            one = Received(message, reporting(message, url), sqs, url)
            yield one
            if not one.is_done:
                failed_groups.add(group)


def _is_fifo(url: str) -> bool:
    return url.endswith(".fifo")


class Received:
    """One message of a poller: a `with` gives it as `ReceiveMessage` returned it, and deletes it when it is done."""

    def __init__(
        self, message: Message, reporting: AbstractContextManager[None], sqs: Any, url: str
    ) -> None:
        self.message = message
        self.is_done = False
        self._reporting = reporting
        self._sqs = sqs
        self._url = url

    def __enter__(self) -> Message:
        self._reporting.__enter__()
        return self.message

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        # A message that is still in the queue is no success, so it is deleted first.
        if error is None and not self._delete():
            return True
        is_parked = self._reporting.__exit__(kind, error, trace)
        if error is None or (is_parked and self._delete()):
            self.is_done = True
        elif isinstance(error, Exception) and not is_parked:
            _log.error("%s: %s", FAILED, self.message.get("MessageId"), exc_info=error)
        return error is None or isinstance(error, Exception)

    def _delete(self) -> bool:
        try:
            self._sqs.delete_message(
                QueueUrl=self._url, ReceiptHandle=self.message["ReceiptHandle"]
            )
        except Exception:
            _log.exception("%s: %s", NOT_DELETED, self.message.get("MessageId"))
            return False
        return True
