"""SQS queues as a pass uses them: adapters over the boto3 SQS client.

This module owns the shape of calls: batches of ten, the batch's size limit, what a receive must ask for, and the check
of every entry in every answer. It decides nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Protocol, TypeVar

from smart_redriver.engine.aws.clients import BatchAnswer, batch, naming
from smart_redriver.engine.config.targets import is_fifo
from smart_redriver.engine.errors import CONTENT_FAULTS, CallFailed, EntryFault
from smart_redriver.engine.messages.letter import Attribute
from smart_redriver.engine.messages.outgoing import (
    BYTES_PER_CALL,
    ENTRIES_PER_CALL,
    Outgoing,
    Sent,
    in_calls,
    send_entry,
    whole_seconds,
)
from smart_redriver.engine.messages.queue_facts import QueueFacts

__all__ = [
    "BYTES_PER_CALL",
    "CONTENT_FAULTS",
    "ENTRIES_PER_CALL",
    "Message",
    "MoveCheck",
    "Outgoing",
    "Sent",
    "SqsClient",
    "SqsQueue",
    "in_calls",
]

T = TypeVar("T")

#: Throttled by KMS, which botocore does not retry by itself. https://github.com/boto/botocore (retries/standard.py)
_NOT_RETRIED_YET = frozenset({"ThrottlingException", "KmsThrottled"})

#: Codes for a caller who may not ask, or where the call does not exist.
_CANNOT_ASK = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "AuthorizationError",
        "InvalidAction",
        "UnsupportedOperation",
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


class Received(Protocol):
    """A received message that can be deleted from its queue: a `Message`, or the `Letter` made of one."""

    @property
    def message_id(self) -> str: ...
    @property
    def receipt_handle(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message as SQS hands it out: `attributes` are all of its sender's, `system` all of SQS's."""

    message_id: str
    receipt_handle: str
    body: str
    attributes: Mapping[str, Attribute]
    system: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveCheck:
    """Whether a native move task is emptying a queue; with a `fault`, that is unknown and none is assumed."""

    is_running: bool
    fault: CallFailed | None = None


class SqsQueue:
    """One SQS queue."""

    def __init__(self, sqs: SqsClient, url: str) -> None:
        self._sqs = sqs
        self.url = url
        self.name = url.rpartition("/")[2]
        self.is_fifo = is_fifo(url)

    def facts(self) -> QueueFacts:
        """Call GetQueueAttributes, which also keeps the queue's CloudWatch metrics awake. Raises CallFailed."""
        with naming("GetQueueAttributes"):
            answer = self._sqs.get_queue_attributes(QueueUrl=self.url, AttributeNames=["All"])
        return _facts(answer["Attributes"])

    def receive(
        self, limit: int, *, hidden_for: timedelta, asks_all_servers: bool = True
    ) -> list[Message]:
        """Receive at most `limit` messages, and at most ten; hide them for `hidden_for`. Raises CallFailed.

        An answer without messages takes a second if all of SQS's servers are asked. A sample of them answers at once,
        but may miss messages.
        """
        with naming("ReceiveMessage"):
            answer = self._sqs.receive_message(
                QueueUrl=self.url,
                MaxNumberOfMessages=min(limit, ENTRIES_PER_CALL),
                VisibilityTimeout=whole_seconds(hidden_for),
                WaitTimeSeconds=1 if asks_all_servers else 0,
                # SQS returns only requested attributes, and an attribute that is not received can't be sent on.
                MessageAttributeNames=["All"],
                MessageSystemAttributeNames=["All"],
            )
        return [_message(one) for one in answer.get("Messages", ())]

    def send(self, outgoing: Sequence[Outgoing]) -> Sent:
        """Send letters. The answer has each one's new MessageId, or its fault, under its own MessageId.

        Entries that failed for a temporary reason are sent once more, together, after the others.
        """
        sent, again = Sent(), []
        for few in in_calls(outgoing):
            again += self._send_few(few, sent)
        if again:
            second = Sent()
            for few in in_calls(again):
                self._send_few(few, second)
            sent.make_good(second)
        return sent

    def delete(self, received: Iterable[Received]) -> list[EntryFault]:
        """Delete received messages; return those that were not deleted."""
        return self._change(
            "DeleteMessageBatch",
            self._sqs.delete_message_batch,
            [(one, {"ReceiptHandle": one.receipt_handle}) for one in received],
        )

    def hide(self, received: Iterable[tuple[Received, timedelta]]) -> list[EntryFault]:
        """Hide received messages for a time from now; zero releases at once. Return those that were not changed."""
        return self._change(
            "ChangeMessageVisibilityBatch",
            self._sqs.change_message_visibility_batch,
            [
                (
                    one,
                    {
                        "ReceiptHandle": one.receipt_handle,
                        "VisibilityTimeout": whole_seconds(hidden_for),
                    },
                )
                for one, hidden_for in received
            ],
        )

    def check_move(self, arn: str) -> MoveCheck:
        """Whether a native move task (StartMessageMoveTask) is emptying this queue, whose ARN is `arn`.

        If the call is not allowed or does not exist, none is assumed. Raises CallFailed for any other failure.
        """
        try:
            with naming("ListMessageMoveTasks"):
                answer = self._sqs.list_message_move_tasks(SourceArn=arn, MaxResults=1)
        except CallFailed as failed:
            if failed.code in _CANNOT_ASK:
                return MoveCheck(is_running=False, fault=failed)
            raise
        except NotImplementedError as missing:  # moto's word for a call that does not exist
            missed = CallFailed("ListMessageMoveTasks", "NotImplemented", str(missing))
            return MoveCheck(is_running=False, fault=missed)
        tasks = answer.get("Results", ())
        return MoveCheck(
            is_running=any(task.get("Status") in ("RUNNING", "CANCELLING") for task in tasks)
        )

    def _send_few(self, few: Sequence[Outgoing], sent: Sent) -> list[Outgoing]:
        """Send one call's letters, note each result in `sent`, and return those to try once more."""
        answer = batch(
            "SendMessageBatch",
            [one.letter.message_id for one in few],
            [send_entry(one, is_fifo=self.is_fifo) for one in few],
            partial(self._sqs.send_message_batch, QueueUrl=self.url),
        )
        if len(few) > 1 and answer.failed_as_a_whole and answer.faults[0].is_of_content:
            # Refused because of one bad message, or of the total length: find it, and let the others through.
            sent.healed.append(answer.faults[0])
            half = len(few) // 2
            return self._send_few(few[:half], sent) + self._send_few(few[half:], sent)
        for index, message_id in answer.message_ids.items():
            sent.new_ids[few[index].letter.message_id] = message_id
        sent.faults += answer.faults.values()
        return [few[index] for index in _worth_another_try(answer)]

    def _change(
        self,
        call: str,
        request: Callable[..., Any],
        entries: Sequence[tuple[Received, dict[str, Any]]],
    ) -> list[EntryFault]:
        faults: list[EntryFault] = []
        for few in _cut(entries, ENTRIES_PER_CALL):
            keys = [one.message_id for one, _ in few]
            answer = batch(
                call, keys, [entry for _, entry in few], partial(request, QueueUrl=self.url)
            )
            faults += answer.faults.values()
        return faults


def _facts(attributes: Mapping[str, str]) -> QueueFacts:
    written = attributes.get("RedrivePolicy")
    policy = json.loads(written) if written else {}
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


def _message(received: Mapping[str, Any]) -> Message:
    return Message(
        message_id=received["MessageId"],
        receipt_handle=received["ReceiptHandle"],
        body=received["Body"],
        attributes=received.get("MessageAttributes") or {},
        system=received.get("Attributes") or {},
    )


def _worth_another_try(answer: BatchAnswer) -> list[int]:
    """The entries that failed temporarily. As a rule, botocore has already tried a whole call three times."""
    return [
        index
        for index, fault in answer.faults.items()
        if fault.is_transient and (not answer.failed_as_a_whole or fault.code in _NOT_RETRIED_YET)
    ]


def _cut(entries: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(entries), size):
        yield entries[start : start + size]
