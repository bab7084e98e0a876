"""A consumer at work on its source queue: it polls, and treats each message as its model says."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import Any

from fakes.sqs import FakeSqs
from simulator.capacity import BATCH, Capacity
from simulator.consumers import Consumer
from simulator.failures import (
    Alike,
    BadOrder,
    DownstreamUnavailable,
    Expired,
    Failed,
    Flaked,
    Overloaded,
    PaymentDeclined,
)
from simulator.register import Register
from smart_redriver.consumer import Batch, Reporter

Message = dict[str, Any]

#: Attributes of every producer's message. A delivery without them has lost them on the way.
ATTRIBUTES = {"Tenant": {"DataType": "String", "StringValue": "blue"}}

#: In the body of a part: between the body of the letter that was split and the number of the part.
PART = "/part-"

#: Sends a message to the worker's queue, given its body, whether it is a poison pill, and its attributes.
Send = Callable[[str, bool, dict[str, Any]], None]


@dataclass(slots=True, kw_only=True)
class Invocation:
    """A batch of messages at its consumer, as Lambda hands them out, and what became of them.

    Attributes:
        outcomes: what to report about them, in one report when the batch is over.
        done, failed: messages whose work is done, and messages that are left to be tried again.
        parked: messages that the kit took to the parking lot, to be deleted as if they were done.

    """

    number: int
    outcomes: Batch
    done: list[Message] = field(default_factory=list)
    failed: list[Message] = field(default_factory=list)
    parked: list[Message] = field(default_factory=list)


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
        reporter: Reporter,
        capacity: Capacity,
    ) -> None:
        self.consumer = consumer
        self.capacity = capacity
        self._sqs = sqs
        self._queue = queue
        self._url: str = sqs.get_queue_url(QueueName=queue)["QueueUrl"]
        self._register = register
        self._max_receive_count = max_receive_count
        self._rng = rng
        self._send = send
        self._reporter = reporter
        self._invocations = 0
        self._too_many: set[str] = set()
        self._in_process: deque[tuple[timedelta, Invocation]] = deque()
        # Only splits, reports and parking need more attributes; asking for them costs a digest for each message.
        needs_all = consumer.splits or reporter.is_on
        self._asks_for = ["All"] if needs_all else list(ATTRIBUTES)
        self._asks_system_for = ["All"] if reporter.is_on else []

    def work(self, elapsed: timedelta, step: timedelta) -> None:
        """Run one step: finish what was in process for long enough, then take what is there."""
        while self._in_process and self._in_process[0][0] <= elapsed:
            self._finish(self._in_process.popleft()[1], elapsed)
        if not self.consumer.polls(elapsed):
            return
        if self.capacity.takes_all:
            self._take_all(elapsed, step)
            return
        room = self.capacity.room(step, self._waiting())
        while room > 0 and (messages := self._receive(min(BATCH, room))):
            room -= len(messages)
            self._handle(messages, elapsed)

    def _take_all(self, elapsed: timedelta, step: timedelta) -> None:
        """Take everything that waits, even more than it can handle; the tries that are too many fail."""
        batches = list(iter(self._receive, []))
        tries = [message["ReceiptHandle"] for messages in batches for message in messages]
        failing = self.capacity.overloaded(len(tries), elapsed, step)
        self._too_many = {handle for handle, fails in zip(tries, failing, strict=True) if fails}
        for messages in batches:
            self._handle(messages, elapsed)

    def report_deaths(self, bodies: Mapping[str, str], reporter: Reporter) -> None:
        """Report the last failures of messages that died before the world began, by their ids."""
        dead = list(bodies.items())
        for start in range(0, len(dead), BATCH):
            with reporter.batch() as outcomes:
                for message_id, body in dead[start : start + BATCH]:
                    last = {"ApproximateReceiveCount": str(self._max_receive_count)}
                    message = {"MessageId": message_id, "Body": body, "Attributes": last}
                    outcomes.failed(message, self.cause_of_death(body), self._queue)

    def cause_of_death(self, body: str) -> Failed:
        """Return the failure by which a message died before the world began."""
        if body in self._register.poison:
            return BadOrder(body)
        return PaymentDeclined() if body in self._register.dependent else DownstreamUnavailable()

    def _waiting(self) -> int:
        """Messages that it can take."""
        return self._sqs.inspect.counts(self._queue).visible

    def _receive(self, limit: float = BATCH) -> list[Message]:
        if not self._waiting():
            return []
        try:
            answer = self._sqs.receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=int(limit),
                MessageAttributeNames=self._asks_for,
                MessageSystemAttributeNames=self._asks_system_for,
            )
        except self._sqs.exceptions.OverLimit:
            return []
        messages: list[Message] = answer.get("Messages", [])
        return messages

    def _handle(self, messages: Sequence[Message], elapsed: timedelta) -> None:
        self._invocations += 1
        invocation = Invocation(number=self._invocations, outcomes=self._reporter.batch())
        self._try_all(messages, invocation, elapsed)
        if invocation.done and self.consumer.processing_seconds:
            ready_at = elapsed + timedelta(seconds=self.consumer.processing_seconds)
            self._in_process.append((ready_at, invocation))
        else:
            self._finish(invocation, elapsed)
        if invocation.failed and self.consumer.backoff_seconds:
            self._back_off(invocation.failed)

    def _try_all(
        self, messages: Sequence[Message], invocation: Invocation, elapsed: timedelta
    ) -> None:
        for message in messages:
            self._try(message, invocation, elapsed)
        if invocation.failed and self.consumer.whole_batches:
            self._fail_with_others(invocation, elapsed)

    def _fail_with_others(self, invocation: Invocation, elapsed: timedelta) -> None:
        """Fail the done messages with the others: no one knows any more which were done."""
        for message in invocation.done:
            if self._register.deliveries.tried[message["Body"]] >= self._max_receive_count:
                self._dies(message["Body"], elapsed)
        invocation.failed += invocation.done
        invocation.done.clear()

    def _try(self, message: Message, invocation: Invocation, elapsed: timedelta) -> None:
        """Deliver one message, and note what becomes of it."""
        body, saw = message["Body"], self._register.deliveries
        saw.stripped += not ATTRIBUTES.keys() <= message.get("MessageAttributes", {}).keys()
        error = self._tried(body, elapsed)
        if error is None and message["ReceiptHandle"] in self._too_many:
            error = self._named(Overloaded())
        if error is None:
            invocation.done.append(message)
        elif invocation.outcomes.failed(message, error, self._queue):
            invocation.parked.append(message)
        else:
            invocation.failed.append(message)
            if saw.tried[body] >= self._max_receive_count:
                self._dies(body, elapsed)

    def _dies(self, body: str, elapsed: timedelta) -> None:
        """Note that this was the last try of a message."""
        if body not in self._register.letters:
            self._register.letters.add(body)
            self._register.deliveries.died_at[body] = elapsed

    def answer(self, body: str, elapsed: timedelta) -> Failed | None:
        """The answer to a message that is handed over without a queue in between: done, or why not."""
        if not self.consumer.polls(elapsed):
            return DownstreamUnavailable()
        saw = self._register.deliveries
        error = self._tried(body, elapsed)
        if error is None:
            saw.done[body] += 1
            saw.done_at.setdefault(body, elapsed)
        return error

    def _tried(self, body: str, elapsed: timedelta) -> Failed | None:
        saw = self._register.deliveries
        saw.total += 1
        saw.tried[body] += 1
        if body in self._register.letters and saw.letters_at[-1:] != [elapsed]:
            saw.letters_at.append(elapsed)
        error = self._failure(body, elapsed)
        return self._named(error) if error else None

    def _named(self, error: Failed) -> Failed:
        return Alike() if self.consumer.says_alike else error

    def _failure(self, body: str, elapsed: timedelta) -> Failed | None:
        """Why this delivery fails.

        The failure is never raised: a traceback of the model says nothing, and is half of what a report costs.
        """
        saw, is_poison = self._register.deliveries, body in self._register.poison
        is_up = self.consumer.health(elapsed) and not self.capacity.is_fallen(elapsed)
        is_served = is_up and self.consumer.serves(
            elapsed, needs_downstream=body in self._register.dependent
        )
        if not is_served:
            saw.wasted += 1
            saw.wasted_on_letters += body in self._register.letters
        if not is_up:
            return DownstreamUnavailable()
        if is_poison:
            return BadOrder(body)
        if self._register.perishable.get(body, elapsed) < elapsed:
            return Expired(body)
        if not is_served:
            return PaymentDeclined()
        return Flaked() if self.consumer.stumbles(elapsed, self._rng) else None

    def _finish(self, invocation: Invocation, elapsed: timedelta) -> None:
        """End an invocation: delete what is done, and report the outcomes."""
        saw = self._register.deliveries
        for message in invocation.done:
            body = message["Body"]
            if self.consumer.splits and body in self._register.letters and PART not in body:
                self._split(message)
            saw.done[body] += 1
            saw.done_at.setdefault(body, elapsed)
            invocation.outcomes.succeeded(message, self._queue)
        self._delete([*invocation.done, *invocation.parked])
        invocation.outcomes.send(f"{self._queue}-{invocation.number}")

    def _delete(self, messages: Sequence[Message]) -> None:
        entries = [
            {"Id": str(index), "ReceiptHandle": message["ReceiptHandle"]}
            for index, message in enumerate(messages)
        ]
        for _ in range(self.consumer.deletes if entries else 0):
            self._sqs.delete_message_batch(QueueUrl=self._url, Entries=entries)

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
