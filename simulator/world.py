"""A small world in virtual time: queues, a consumer, live traffic, and a policy that redrives on a schedule.

The policy is ours or a rival's; the world is the same for all. Time moves in steps of a few seconds: at each, live
messages arrive, the consumer takes what it can, and the policy runs when its schedule says so.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Any, Protocol

from fakes.clock import VirtualClock
from fakes.cloudwatch import FakeCloudWatch
from fakes.dynamodb import FakeDynamoDb
from fakes.sqs import FakeSqs
from simulator.consumers import Consumer

SOURCE = "orders"
DLQ = "orders-dlq"
PARKING_LOT = "orders-parking-lot"
TABLE = "redriver-state"
FOURTEEN_DAYS = 1_209_600

#: Receives of ten after which SQS is near its limit of 120,000 messages in flight.
RECEIVES_IN_FLIGHT = 11_000

#: What every producer's message carries; a delivery without it has lost its attributes on the way.
ATTRIBUTES = {"Tenant": {"DataType": "String", "StringValue": "blue"}}


class Policy(Protocol):
    """A way to redrive: called every `every` of virtual time."""

    every: timedelta

    def tick(self) -> None:
        """Do what the schedule asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveTraffic:
    """Messages that producers send meanwhile.

    Attributes:
        per_minute: messages a minute, evenly spread. They succeed when the consumer is up.
        poison_per_minute: poison pills a minute among them.
        poison_until: when the poison stops; the live messages go on.

    """

    per_minute: float = 0.0
    poison_per_minute: float = 0.0
    poison_until: timedelta = timedelta.max


@dataclass(slots=True)
class Deliveries:
    """What the consumer saw.

    Attributes:
        total: deliveries to it.
        wasted: those of them that came while it was down.
        stripped: those of them that had lost the attributes their producer gave them.
        tried: deliveries by body.
        done: works done by body.
        done_at: when each body's work was done first.

    """

    total: int = 0
    wasted: int = 0
    stripped: int = 0
    tried: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    done_at: dict[str, timedelta] = field(default_factory=dict)


class World:
    """Queues, consumer and clock. `rng` drives everything that is left to chance."""

    def __init__(
        self,
        *,
        seed: int,
        consumer: Consumer,
        traffic: LiveTraffic | None = None,
        step: timedelta = timedelta(seconds=10),
        visibility_timeout: int = 30,
        max_receive_count: int = 3,
        **sqs_options: float,
    ) -> None:
        self.rng = Random(seed)
        self.clock = VirtualClock()
        self.sqs = FakeSqs(self.clock, Random(seed + 1), **sqs_options)  # type: ignore[arg-type]
        self.dynamodb = FakeDynamoDb(self.clock)
        self.cloudwatch = FakeCloudWatch(self.clock, self.sqs)
        self.started = self.clock.now()
        self.deliveries = Deliveries()
        self.sent: set[str] = set()
        self.poison: set[str] = set()
        self.letters: set[str] = set()
        self._consumer = consumer
        self._traffic = traffic or LiveTraffic()
        self._step = step
        self._owed = 0.0
        self._poison_owed = 0.0
        self._make_queues(visibility_timeout, max_receive_count)

    @property
    def elapsed(self) -> timedelta:
        """Virtual time since the world began."""
        return self.clock.now() - self.started

    def dead_letters(self, count: int, *, poison: int = 0) -> None:
        """Let `count` messages, `poison` of them poison pills here and there, fail until SQS moves them to the DLQ.

        Takes a few virtual minutes, before the world's own time starts.
        """
        pills = set(self.rng.sample(range(count), poison))
        for index in range(count):
            body = f"letter-{index}"
            self.send(body, is_poison=index in pills)
            self.letters.add(body)
        while self.sqs.inspect.counts(DLQ).total < count:
            self._receive_all()
            self.clock.advance(31)
        self.clock.advance(120)
        self.started = self.clock.now()

    def send(self, body: str, *, is_poison: bool = False) -> None:
        """A producer's message."""
        self.sqs.send_message(
            QueueUrl=self.url(SOURCE), MessageBody=body, MessageAttributes=ATTRIBUTES
        )
        self.sent.add(body)
        if is_poison:
            self.poison.add(body)

    def run(
        self, policy: Policy, *, until: timedelta, stop: Callable[[], bool] | None = None
    ) -> None:
        """Let time pass until `until`, or until `stop` says at a tick of the policy that it is enough."""
        next_tick = self.clock.now()
        while self.elapsed < until:
            self._produce()
            self._consume()
            if self.clock.now() >= next_tick:
                if stop is not None and stop():
                    return
                policy.tick()
                next_tick += policy.every
            self.clock.advance(self._step.total_seconds())

    def url(self, queue: str) -> str:
        """The queue's URL."""
        url: str = self.sqs.get_queue_url(QueueName=queue)["QueueUrl"]
        return url

    def depth(self, queue: str) -> int:
        """Messages at rest in the queue, exactly."""
        return self.sqs.inspect.counts(queue).total

    def parked(self) -> list[str]:
        """Bodies in the parking lot."""
        return [message.body for message in self.sqs.inspect.messages(PARKING_LOT)]

    def settled_at(self) -> dict[str, timedelta]:
        """When each body that is done or parked came to rest."""
        started = self.started.timestamp()
        parked = {
            message.body: timedelta(seconds=message.arrived_at - started)
            for message in self.sqs.inspect.messages(PARKING_LOT)
        }
        return parked | self.deliveries.done_at

    def lost(self) -> set[str]:
        """Bodies that are neither done nor in any queue."""
        at_rest = {
            message.body
            for queue in (SOURCE, DLQ, PARKING_LOT)
            for message in self.sqs.inspect.messages(queue)
        }
        return self.sent - at_rest - set(self.deliveries.done)

    def let_dead_letters_end_in(self, target: str, *, of: str, after: int) -> None:
        """Give the queue `of` a redrive policy: SQS moves a message to `target` after so many receives."""
        told = self.sqs.get_queue_attributes(QueueUrl=self.url(target), AttributeNames=["QueueArn"])
        policy = {"deadLetterTargetArn": told["Attributes"]["QueueArn"], "maxReceiveCount": after}
        self.sqs.set_queue_attributes(
            QueueUrl=self.url(of), Attributes={"RedrivePolicy": json.dumps(policy)}
        )

    @property
    def is_drained(self) -> bool:
        """Whether nothing waits in the source queue or the DLQ."""
        return not self.depth(SOURCE) and not self.depth(DLQ)

    def _produce(self) -> None:
        step_minutes = self._step / timedelta(minutes=1)
        self._owed += self._traffic.per_minute * step_minutes
        if self.elapsed < self._traffic.poison_until:
            self._poison_owed += self._traffic.poison_per_minute * step_minutes
        for _ in range(int(self._owed)):
            self.send(f"live-{len(self.sent)}")
        for _ in range(int(self._poison_owed)):
            self.send(f"poison-{len(self.sent)}", is_poison=True)
        self._owed %= 1
        self._poison_owed %= 1

    def _consume(self) -> None:
        elapsed = self.elapsed
        if elapsed < self._consumer.polls_from:
            return
        limit = self._consumer.capacity_per_second * self._step.total_seconds() or float("inf")
        taken = 0
        is_up = self._consumer.health(elapsed)
        url = self.url(SOURCE)
        while taken < limit:
            messages = self.sqs.receive_message(
                QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
            ).get("Messages", [])
            if not messages:
                return
            taken += len(messages)
            done = [message for message in messages if self._succeeds(message["Body"], elapsed)]
            self._note(messages, done, elapsed, is_up=is_up)
            if done:
                self.sqs.delete_message_batch(
                    QueueUrl=url,
                    Entries=[
                        {"Id": str(index), "ReceiptHandle": message["ReceiptHandle"]}
                        for index, message in enumerate(done)
                    ],
                )

    def _note(
        self,
        messages: list[dict[str, Any]],
        done: list[dict[str, Any]],
        elapsed: timedelta,
        *,
        is_up: bool,
    ) -> None:
        saw = self.deliveries
        saw.total += len(messages)
        saw.wasted += 0 if is_up else len(messages)
        for message in messages:
            saw.tried[message["Body"]] += 1
            saw.stripped += not ATTRIBUTES.keys() <= message.get("MessageAttributes", {}).keys()
        for message in done:
            saw.done[message["Body"]] += 1
            saw.done_at.setdefault(message["Body"], elapsed)

    def _succeeds(self, body: str, elapsed: timedelta) -> bool:
        return self._consumer.succeeds(elapsed, is_poison=body in self.poison, rng=self.rng)

    def _receive_all(self) -> None:
        for _ in range(RECEIVES_IN_FLIGHT):
            if not self.sqs.receive_message(QueueUrl=self.url(SOURCE), MaxNumberOfMessages=10).get(
                "Messages"
            ):
                break

    def _make_queues(self, visibility_timeout: int, max_receive_count: int) -> None:
        retention = {"MessageRetentionPeriod": str(FOURTEEN_DAYS)}
        visibility = {"VisibilityTimeout": str(visibility_timeout)}
        self.sqs.create_queue(QueueName=DLQ, Attributes=retention)
        self.sqs.create_queue(QueueName=PARKING_LOT, Attributes=retention)
        self.sqs.create_queue(QueueName=SOURCE, Attributes=retention | visibility)
        self.let_dead_letters_end_in(DLQ, of=SOURCE, after=max_receive_count)


def minutes(count: float) -> timedelta:
    """So many minutes."""
    return timedelta(minutes=count)


def hours(count: float) -> timedelta:
    """So many hours."""
    return timedelta(hours=count)


def at(world: World) -> datetime:
    """The world's time now."""
    return world.clock.now()
