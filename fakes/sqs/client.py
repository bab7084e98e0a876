# ruff: noqa: N803 - the parameters have boto3's names
"""A fake of the boto3 SQS client: queues in memory, in virtual time.

It is faithful where a re-driver could go wrong: letters move to their DLQ only when someone polls the source queue,
keep id, SentTimestamp and receive count on the way, and expire by the original SentTimestamp; counts are late; order is
rough; an old receipt handle deletes nothing, and reports nothing. FIFO queues keep their groups in order, and accept
each message once (`fifo_queue`). tests/contract checks the fake against moto. None of it was compared with a real
account: each module names the source of what it does.

WaitTimeSeconds never waits, and only tells a long poll from a short one. ReceiveRequestAttemptId is not supported.
"""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from fakes.boto_client import Fault, Response, operation
from fakes.clock import VirtualClock
from fakes.sqs.account import SqsAccount
from fakes.sqs.message import (
    Message,
    new_message_id,
    render,
)
from fakes.sqs.message_attributes import MessageAttributes, attributes_of
from fakes.sqs.queue import Queue
from fakes.sqs.receipts import change_visibility, delete, receipt_handle
from fakes.sqs.validation import (
    MAX_BATCH_ENTRIES,
    MAX_VISIBILITY_SECONDS,
    MAX_WAIT_SECONDS,
    check_batch,
    check_batch_size,
    check_message,
    check_range,
    check_size,
    message_bytes,
)

Entry = Mapping[str, Any]


class FakeSqs(SqsAccount):
    """One account's SQS. Not thread-safe; the same `rng` seed gives the same history.

    count_lag_seconds: how old the counts of GetQueueAttributes may be (0: as they are).
    count_noise: by how many each count may be off, drawn anew for each reading; never below 0.
    order_width: a receive from a standard queue draws at random among this many of the oldest messages (1: by age).
    duplicate_probability: chance that a received message of a standard queue also stays visible.
    """

    def __init__(
        self,
        clock: VirtualClock,
        rng: Random,
        *,
        count_lag_seconds: float = 60.0,
        count_noise: int = 0,
        order_width: int = 20,
        duplicate_probability: float = 0.0,
        region: str = "us-east-1",
        account: str = "123456789012",
    ) -> None:
        super().__init__(
            clock,
            rng,
            count_lag_seconds=count_lag_seconds,
            count_noise=count_noise,
            order_width=order_width,
            region=region,
            account=account,
        )
        self._duplicate_probability = duplicate_probability

    @operation
    def send_message(
        self,
        *,
        QueueUrl: str,
        MessageBody: str,
        DelaySeconds: int | None = None,
        MessageAttributes: MessageAttributes | None = None,
        MessageSystemAttributes: MessageAttributes | None = None,
        MessageGroupId: str | None = None,
        MessageDeduplicationId: str | None = None,
    ) -> Response:
        """Send one message."""
        queue, now = self._queue(QueueUrl)
        entry = {
            "MessageBody": MessageBody,
            "DelaySeconds": DelaySeconds,
            "MessageAttributes": MessageAttributes,
            "MessageSystemAttributes": MessageSystemAttributes,
            "MessageGroupId": MessageGroupId,
            "MessageDeduplicationId": MessageDeduplicationId,
        }
        sent = self._send(queue, entry, now)
        queue.observe(now)
        return sent

    @operation
    def send_message_batch(self, *, QueueUrl: str, Entries: Sequence[Entry]) -> Response:
        """Send up to ten messages. Each is accepted or refused on its own, if its queue does so."""
        queue, now = self._queue(QueueUrl)
        check_batch(Entries)
        queue.check_batch(Entries)
        check_batch_size(
            sum(
                message_bytes(entry["MessageBody"], attributes_of(entry.get("MessageAttributes")))
                for entry in Entries
            )
        )
        return _each(Entries, lambda entry: self._send(queue, entry, now), queue, now)

    @operation
    def receive_message(
        self,
        *,
        QueueUrl: str,
        MaxNumberOfMessages: int = 1,
        VisibilityTimeout: int | None = None,
        WaitTimeSeconds: int = 0,
        MessageAttributeNames: Sequence[str] = (),
        MessageSystemAttributeNames: Sequence[str] = (),
    ) -> Response:
        """Receive visible messages; the answer has no `Messages` if there are none."""
        queue, now = self._queue(QueueUrl)
        check_range("MaxNumberOfMessages", MaxNumberOfMessages, 1, MAX_BATCH_ENTRIES)
        check_range("WaitTimeSeconds", WaitTimeSeconds, 0, MAX_WAIT_SECONDS)
        timeout = queue.settings.visibility_timeout
        if VisibilityTimeout is not None:
            check_range("VisibilityTimeout", VisibilityTimeout, 0, MAX_VISIBILITY_SECONDS)
            timeout = VisibilityTimeout
        waits = WaitTimeSeconds or queue.settings.wait_time
        # A long poll waits for room and ends empty; a short poll is refused. [aws-facts: quotas-queues]
        received = [] if waits and queue.is_full else queue.take(MaxNumberOfMessages, timeout, now)
        for message in received:
            if timeout == 0 or self._is_duplicated(queue):
                queue.release(message, now)
        queue.observe(now)
        rendered = [
            render(
                message,
                receipt_handle(queue, message),
                MessageAttributeNames,
                MessageSystemAttributeNames,
            )
            for message in received
        ]
        return {"Messages": rendered} if rendered else {}

    @operation
    def delete_message(self, *, QueueUrl: str, ReceiptHandle: str) -> Response:
        """Delete by the handle of the last receive. With an older handle, succeed and do nothing."""
        queue, now = self._queue(QueueUrl)
        delete(queue, ReceiptHandle, now)
        queue.observe(now)
        return {}

    @operation
    def delete_message_batch(self, *, QueueUrl: str, Entries: Sequence[Entry]) -> Response:
        """Delete up to ten messages."""
        queue, now = self._queue(QueueUrl)
        check_batch(Entries)
        return _each(Entries, lambda entry: delete(queue, entry["ReceiptHandle"], now), queue, now)

    @operation
    def change_message_visibility(
        self, *, QueueUrl: str, ReceiptHandle: str, VisibilityTimeout: int
    ) -> Response:
        """Set when a message in flight becomes visible again."""
        queue, now = self._queue(QueueUrl)
        change_visibility(queue, ReceiptHandle, VisibilityTimeout, now)
        queue.observe(now)
        return {}

    @operation
    def change_message_visibility_batch(
        self, *, QueueUrl: str, Entries: Sequence[Entry]
    ) -> Response:
        """Change the visibility of up to ten messages."""
        queue, now = self._queue(QueueUrl)
        check_batch(Entries)

        def change(entry: Entry) -> Response:
            timeout = entry.get("VisibilityTimeout", queue.settings.visibility_timeout)
            return change_visibility(queue, entry["ReceiptHandle"], timeout, now)

        return _each(Entries, change, queue, now)

    def _send(self, queue: Queue, entry: Entry, now: float) -> Response:
        body = entry["MessageBody"]
        attributes = attributes_of(entry.get("MessageAttributes"))
        system_attributes = entry.get("MessageSystemAttributes") or {}
        group_id = entry.get("MessageGroupId")
        check_message(body, attributes, system_attributes, group_id)
        check_size(message_bytes(body, attributes), queue.settings.maximum_message_size)
        delay, deduplication_id = queue.terms(entry)
        message = Message(
            serial=next(self._serials),
            message_id=new_message_id(self._rng),
            body=body,
            carried=attributes,
            sent_at=now,
            group_id=group_id,
            trace_header=system_attributes.get("AWSTraceHeader", {}).get("StringValue"),
            deduplication_id=deduplication_id,
        )
        answer = queue.send(message, delay, now)
        answer["MD5OfMessageBody"] = message.body_md5
        if attributes.given:
            answer["MD5OfMessageAttributes"] = attributes.given_md5
        return answer

    def _is_duplicated(self, queue: Queue) -> bool:
        chance = 0 if queue.is_fifo else self._duplicate_probability
        return bool(chance) and self._rng.random() < chance


def _each(
    entries: Sequence[Entry], act: Callable[[Entry], Response], queue: Queue, now: float
) -> Response:
    """Act on every entry of a batch, and report what became of it.

    As in SQS, the answer leaves out an empty list.
    """
    successful, failed = [], []
    for entry in entries:
        try:
            successful.append({"Id": entry["Id"], **act(entry)})
        except Fault as fault:
            told = {"SenderFault": True, "Code": fault.entry_code, "Message": fault.message}
            failed.append({"Id": entry["Id"], **told})
    queue.observe(now)
    lists = {"Successful": successful, "Failed": failed}
    return {name: answers for name, answers in lists.items() if answers}
