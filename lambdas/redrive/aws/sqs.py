"""The queues of one deployment, as a pass uses them: an adapter over the boto3 SQS client.

It owns the calls' shapes: batches of ten, the batch's size limit, what must be asked for on receive, and that
every entry of every answer is looked at. It decides nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, Protocol, TypeVar

from redrive.aws.calls import answer_or_fault, naming
from redrive.core.letter import (
    MAX_MESSAGE_ATTRIBUTES,
    TRAIL_ATTRIBUTE,
    Attribute,
    Letter,
    Trail,
    read_trail,
    trail_attribute,
    without_lineage,
)
from redrive.core.queue_facts import QueueFacts, Sources, queue_name
from redrive.errors import EntryFault
from redrive.settings import Deployment

Item = TypeVar("Item")

#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
ENTRIES_PER_CALL = 10
BYTES_PER_CALL = 1_048_576

#: What SQS answers when the message itself is at fault, so that no later attempt can succeed.
CONTENT_FAULTS = frozenset(
    {
        "InvalidMessageContents",
        "InvalidParameterValue",
        "InvalidAttributeValue",
        "InvalidAttributeName",
    }
)


class SqsClient(Protocol):
    """The calls of a boto3 SQS client that a pass makes."""

    @property
    def get_queue_attributes(self) -> Callable[..., Any]: ...
    @property
    def list_message_move_tasks(self) -> Callable[..., Any]: ...
    @property
    def receive_message(self) -> Callable[..., Any]: ...
    @property
    def send_message_batch(self) -> Callable[..., Any]: ...
    @property
    def delete_message_batch(self) -> Callable[..., Any]: ...
    @property
    def change_message_visibility_batch(self) -> Callable[..., Any]: ...


@dataclass(frozen=True, kw_only=True)
class Outgoing:
    """One letter on its way to a queue that takes messages of `size_limit` bytes, and its trail."""

    letter: Letter
    trail: Trail
    size_limit: int
    delay: timedelta = timedelta()

    @cached_property
    def carries_trail(self) -> bool:
        """Whether the message has room for its trail; if not, it stays untouched and the ledger keeps the trail."""
        has_place = len(self.letter.attributes) < MAX_MESSAGE_ATTRIBUTES
        return has_place and self._size_with_trail <= self.size_limit

    @cached_property
    def trail_attribute(self) -> Attribute:
        """The trail as the message carries it."""
        return trail_attribute(self.trail)

    @cached_property
    def size(self) -> int:
        """Bytes of the message, with its trail if it carries it."""
        return self._size_with_trail if self.carries_trail else self.letter.size

    @cached_property
    def _size_with_trail(self) -> int:
        return self.letter.size_with(self.trail_attribute)


@dataclass(slots=True)
class Sent:
    """What became of a send: the new MessageId by the letter's own, and what was not accepted."""

    new_ids: dict[str, str] = field(default_factory=dict)
    faults: list[EntryFault] = field(default_factory=list)


class Queues:
    """The DLQ, its source queues and the parking lot of one deployment."""

    def __init__(self, sqs: SqsClient, deployment: Deployment) -> None:
        self._sqs = sqs
        self._deployment = deployment
        # All sources of a DLQ are of its account and region, so a name tells them apart. The first one goes by
        # the deployment's own name for it.
        further = {url.rpartition("/")[2]: url for url in deployment.further_source_urls}
        self._sources = further | {deployment.queue_name: deployment.source_queue_url}

    def out_of_parking_lot(self) -> Queues:
        """These queues, but with the parking lot in the DLQ's place as the one that is received from."""
        lot = replace(self._deployment, dlq_url=self._deployment.parking_lot_url)
        return Queues(self._sqs, lot)

    def dead_letter_queue(self) -> QueueFacts:
        """The facts of the DLQ. Raises CallFailed."""
        return self._facts(self._deployment.dlq_url)

    def source_queues(self) -> Sources:
        """The facts of every source queue that shares the DLQ. Raises CallFailed."""
        return Sources(tuple(self._facts(url) for url in self._deployment.source_urls))

    def name_of(self, source_arn: str | None) -> str:
        """The name of the served source queue with this ARN; of the first one for any other."""
        name = queue_name(source_arn or "")
        return name if name in self._sources else self._deployment.queue_name

    def parking_lot(self) -> QueueFacts:
        """The facts of the parking lot; asking also keeps its CloudWatch metrics awake. Raises CallFailed."""
        return self._facts(self._deployment.parking_lot_url)

    def is_move_running(self, dlq_arn: str) -> bool:
        """Whether a native move task (StartMessageMoveTask) is emptying the DLQ. Raises CallFailed."""
        with naming("ListMessageMoveTasks"):
            answer = self._sqs.list_message_move_tasks(SourceArn=dlq_arn, MaxResults=1)
        return any(
            task.get("Status") in ("RUNNING", "CANCELLING") for task in answer.get("Results", ())
        )

    def receive(self, limit: int, *, hidden_for: timedelta) -> list[Letter]:
        """At most `limit` (1 to 10) letters of the DLQ, hidden from others for `hidden_for`. Raises CallFailed."""
        with naming("ReceiveMessage"):
            answer = self._sqs.receive_message(
                QueueUrl=self._deployment.dlq_url,
                MaxNumberOfMessages=min(limit, ENTRIES_PER_CALL),
                VisibilityTimeout=_whole_seconds(hidden_for),
                # A short wait asks all of SQS's servers; none at all asks a sample and may come back empty.
                WaitTimeSeconds=1,
                # Nothing comes unless it is asked for, and what does not come can't be sent on.
                MessageAttributeNames=["All"],
                MessageSystemAttributeNames=["All"],
            )
        return [self._letter(message) for message in answer.get("Messages", ())]

    def redrive(self, outgoing: Sequence[Outgoing]) -> Sent:
        """Send each letter to the source queue that its trail names."""
        sent = Sent()
        by_queue: dict[str, list[Outgoing]] = {}
        for one in outgoing:
            by_queue.setdefault(one.trail.queue, []).append(one)
        for queue, some in by_queue.items():
            part = self._send(self._sources[queue], some)
            sent.new_ids |= part.new_ids
            sent.faults += part.faults
        return sent

    def park(self, outgoing: Sequence[Outgoing]) -> Sent:
        """Send letters to the parking lot."""
        return self._send(self._deployment.parking_lot_url, outgoing)

    def delete(self, letters: Iterable[Letter]) -> list[EntryFault]:
        """Delete letters from the DLQ; what comes back was not deleted."""
        faults: list[EntryFault] = []
        for few in _chunks(list(letters), ENTRIES_PER_CALL):
            entries = [
                {"Id": str(index), "ReceiptHandle": letter.receipt_handle}
                for index, letter in enumerate(few)
            ]
            faults += self._batch("DeleteMessageBatch", few, entries)[1]
        return faults

    def hide(self, letters: Iterable[tuple[Letter, timedelta]]) -> list[EntryFault]:
        """Keep letters in the DLQ, hidden for a time from now; zero releases at once."""
        faults: list[EntryFault] = []
        for few in _chunks(list(letters), ENTRIES_PER_CALL):
            entries = [
                {
                    "Id": str(index),
                    "ReceiptHandle": letter.receipt_handle,
                    "VisibilityTimeout": _whole_seconds(hidden_for),
                }
                for index, (letter, hidden_for) in enumerate(few)
            ]
            hidden = [letter for letter, _ in few]
            faults += self._batch("ChangeMessageVisibilityBatch", hidden, entries)[1]
        return faults

    def _send(self, queue_url: str, outgoing: Sequence[Outgoing]) -> Sent:
        sent = Sent()
        for few in in_calls(outgoing):
            self._send_few(queue_url, few, sent)
        return sent

    def _send_few(self, queue_url: str, few: Sequence[Outgoing], sent: Sent) -> None:
        letters = [one.letter for one in few]
        entries = [_send_entry(index, one) for index, one in enumerate(few)]
        accepted, faults = self._batch("SendMessageBatch", letters, entries, queue_url=queue_url)
        if len(few) > 1 and not accepted and all(fault.code in CONTENT_FAULTS for fault in faults):
            # The whole call was refused for what may be one bad message: find it, let the others through.
            for one in few:
                self._send_few(queue_url, [one], sent)
            return
        for index, message_id in accepted.items():
            sent.new_ids[few[index].letter.message_id] = message_id
        sent.faults += faults

    def _batch(
        self,
        call: str,
        letters: Sequence[Letter],
        entries: list[dict[str, Any]],
        *,
        queue_url: str | None = None,
    ) -> tuple[dict[int, str], list[EntryFault]]:
        """One batch call: the accepted entries' MessageIds by index, and a fault for every other entry."""
        method = getattr(self._sqs, _METHODS[call])
        keys = [letter.message_id for letter in letters]
        answer, faults = answer_or_fault(
            call,
            keys,
            lambda: method(QueueUrl=queue_url or self._deployment.dlq_url, Entries=entries),
        )
        if faults:
            return {}, faults
        accepted = {
            int(one["Id"]): one.get("MessageId", "") for one in answer.get("Successful", ())
        }
        refused = {int(one["Id"]): one for one in answer.get("Failed", ())}
        for index, key in enumerate(keys):
            if index not in accepted:
                one = refused.get(index, {})
                code = str(one.get("Code", "NoAnswer")).rpartition(".")[2]
                faults.append(
                    EntryFault(call=call, key=key, code=code, detail=str(one.get("Message", "")))
                )
        return accepted, faults

    def _facts(self, queue_url: str) -> QueueFacts:
        with naming("GetQueueAttributes"):
            answer = self._sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["All"])
        attributes = answer["Attributes"]
        policy = json.loads(attributes.get("RedrivePolicy") or "{}")
        receives = policy.get("maxReceiveCount")
        return QueueFacts(
            arn=attributes["QueueArn"],
            visible=int(attributes["ApproximateNumberOfMessages"]),
            in_flight=int(attributes["ApproximateNumberOfMessagesNotVisible"]),
            delayed=int(attributes["ApproximateNumberOfMessagesDelayed"]),
            visibility_timeout=timedelta(seconds=int(attributes["VisibilityTimeout"])),
            retention=timedelta(seconds=int(attributes["MessageRetentionPeriod"])),
            max_message_size=int(attributes["MaximumMessageSize"]),
            max_receive_count=int(receives) if receives is not None else None,
            dead_letter_arn=policy.get("deadLetterTargetArn"),
        )

    def _letter(self, message: Mapping[str, Any]) -> Letter:
        attributes = dict(message.get("MessageAttributes") or {})
        system = message.get("Attributes") or {}
        source = queue_name(system.get("DeadLetterQueueSourceArn") or "")
        # SQS tells where it moved a letter from; one that was sent here can be of any of the sources.
        owners = {source} & self._sources.keys() or self._sources.keys()
        trail, trail_fault = read_trail(attributes, owners)
        if trail is not None:
            del attributes[TRAIL_ATTRIBUTE]
        return Letter(
            message_id=message["MessageId"],
            receipt_handle=message["ReceiptHandle"],
            body=message["Body"],
            attributes=attributes,
            sent_at=datetime.fromtimestamp(int(system["SentTimestamp"]) / 1000, UTC),
            group_id=system.get("MessageGroupId"),
            trace_header=system.get("AWSTraceHeader"),
            source_arn=system.get("DeadLetterQueueSourceArn"),
            trail=trail,
            trail_fault=trail_fault,
        )


_METHODS = {
    "SendMessageBatch": "send_message_batch",
    "DeleteMessageBatch": "delete_message_batch",
    "ChangeMessageVisibilityBatch": "change_message_visibility_batch",
}


def _send_entry(index: int, one: Outgoing) -> dict[str, Any]:
    letter = one.letter
    attributes = {name: _sendable(value) for name, value in letter.attributes.items()}
    if one.carries_trail:
        attributes[TRAIL_ATTRIBUTE] = dict(one.trail_attribute)
    entry: dict[str, Any] = {"Id": str(index), "MessageBody": letter.body}
    if attributes:
        entry["MessageAttributes"] = attributes
    if one.delay:
        entry["DelaySeconds"] = _whole_seconds(one.delay)
    if letter.group_id is not None:
        entry["MessageGroupId"] = letter.group_id
    # Set for every entry: without it each message would take the re-driver's own trace, Lineage included.
    if trace_header := without_lineage(letter.trace_header):
        entry["MessageSystemAttributes"] = {
            "AWSTraceHeader": {"DataType": "String", "StringValue": trace_header}
        }
    return entry


def _sendable(attribute: Mapping[str, Any]) -> dict[str, Any]:
    """The attribute with its DataType verbatim; receive answers also hold empty list values, which send refuses."""
    return {
        name: attribute[name]
        for name in ("DataType", "StringValue", "BinaryValue")
        if name in attribute
    }


def in_calls(outgoing: Sequence[Outgoing]) -> Iterator[list[Outgoing]]:
    """Cut into calls of at most ten entries and 1 MiB together."""
    few: list[Outgoing] = []
    size = 0
    for one in outgoing:
        if few and (len(few) == ENTRIES_PER_CALL or size + one.size > BYTES_PER_CALL):
            yield few
            few, size = [], 0
        few.append(one)
        size += one.size
    if few:
        yield few


def _chunks(items: list[Item], size: int) -> Iterator[list[Item]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _whole_seconds(duration: timedelta) -> int:
    return max(0, round(duration.total_seconds()))
