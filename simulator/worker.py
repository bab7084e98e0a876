"""A consumer at work on its source queue: it polls, and does with each message what its model says."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from datetime import timedelta
from random import Random
from typing import Any

from fakes.sqs import FakeSqs
from simulator.consumers import Consumer
from simulator.register import Register

Message = dict[str, Any]

#: What every producer's message carries; a delivery without it has lost its attributes on the way.
ATTRIBUTES = {"Tenant": {"DataType": "String", "StringValue": "blue"}}

#: In the body of a part, between the body of the letter it was split from and its number.
PART = "/part-"

#: Sends a message with these attributes to the worker's queue: body, whether it is a poison pill, attributes.
Send = Callable[[str, bool, dict[str, Any]], None]


class Worker:
    """One consumer. `max_receive_count` tells it which failures are a message's last."""

    def __init__(
        self,
        sqs: FakeSqs,
        queue: str,
        consumer: Consumer,
        register: Register,
        *,
        max_receive_count: int,
        rng: Random,
        send: Send,
    ) -> None:
        self.consumer = consumer
        self._sqs = sqs
        self._queue = queue
        self._url: str = sqs.get_queue_url(QueueName=queue)["QueueUrl"]
        self._register = register
        self._max_receive_count = max_receive_count
        self._rng = rng
        self._send = send
        self._in_process: deque[tuple[timedelta, list[Message]]] = deque()
        # Only what splits copies attributes on; asking for them costs a digest by message.
        self._asks_for = ["All"] if consumer.splits else list(ATTRIBUTES)

    def work(self, elapsed: timedelta, step: timedelta) -> None:
        """One step: finish what was long enough in process, then take what there is."""
        while self._in_process and self._in_process[0][0] <= elapsed:
            self._finish(self._in_process.popleft()[1], elapsed)
        if not self.consumer.polls(elapsed):
            return
        limit = self.consumer.capacity_per_second * step.total_seconds() or float("inf")
        taken = 0
        while taken < limit and (messages := self._receive()):
            taken += len(messages)
            self._handle(messages, elapsed)

    def _receive(self) -> list[Message]:
        if not self._sqs.inspect.counts(self._queue).visible:
            return []
        try:
            answer = self._sqs.receive_message(
                QueueUrl=self._url, MaxNumberOfMessages=10, MessageAttributeNames=self._asks_for
            )
        except self._sqs.exceptions.OverLimit:
            return []
        messages: list[Message] = answer.get("Messages", [])
        return messages

    def _handle(self, messages: Sequence[Message], elapsed: timedelta) -> None:
        done: list[Message] = []
        failed: list[Message] = []
        for message in messages:
            (done if self._tries(message, elapsed) else failed).append(message)
        if done and self.consumer.processing_seconds:
            ready_at = elapsed + timedelta(seconds=self.consumer.processing_seconds)
            self._in_process.append((ready_at, done))
        elif done:
            self._finish(done, elapsed)
        if failed and self.consumer.backoff_seconds:
            self._back_off(failed)

    def _tries(self, message: Message, elapsed: timedelta) -> bool:
        """Whether this delivery succeeds, noted."""
        body, saw = message["Body"], self._register.deliveries
        saw.total += 1
        saw.tried[body] += 1
        saw.stripped += not ATTRIBUTES.keys() <= message.get("MessageAttributes", {}).keys()
        is_served = self.consumer.serves(elapsed, needs_downstream=body in self._register.dependent)
        saw.wasted += not is_served
        saw.wasted_on_letters += not is_served and body in self._register.letters
        if (
            is_served
            and body not in self._register.poison
            and not self.consumer.stumbles(elapsed, self._rng)
        ):
            return True
        if saw.tried[body] >= self._max_receive_count:
            self._register.letters.add(body)
        return False

    def _finish(self, messages: Sequence[Message], elapsed: timedelta) -> None:
        saw = self._register.deliveries
        for message in messages:
            body = message["Body"]
            if self.consumer.splits and body in self._register.letters and PART not in body:
                self._split(message)
            saw.done[body] += 1
            saw.done_at.setdefault(body, elapsed)
        for _ in range(self.consumer.deletes):
            self._sqs.delete_message_batch(
                QueueUrl=self._url,
                Entries=[
                    {"Id": str(index), "ReceiptHandle": message["ReceiptHandle"]}
                    for index, message in enumerate(messages)
                ],
            )

    def _split(self, message: Message) -> None:
        splits = self.consumer.splits
        assert splits is not None  # noqa: S101 - the caller looked
        for number in range(splits.parts):
            body = f"{message['Body']}{PART}{number}"
            self._send(body, number < splits.poison, message.get("MessageAttributes", {}))
            self._register.letters.add(body)

    def _back_off(self, messages: Sequence[Message]) -> None:
        self._sqs.change_message_visibility_batch(
            QueueUrl=self._url,
            Entries=[
                {
                    "Id": str(index),
                    "ReceiptHandle": message["ReceiptHandle"],
                    "VisibilityTimeout": self.consumer.backoff_seconds,
                }
                for index, message in enumerate(messages)
            ],
        )
