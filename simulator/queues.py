"""The queues of a world: source queues that share a DLQ, a parking lot, and a register of all messages in them.

Time stands still here, except for the time that letters take to die before the world begins.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

from fakes.clock import VirtualClock
from fakes.sqs import Event, FakeSqs, Message
from simulator.conditions import DLQ, PARKING_LOT, SOURCE, Conditions
from simulator.groups import Groups
from simulator.register import Register, Registered
from simulator.sources import Source
from simulator.worker import ATTRIBUTES

#: Receives of ten messages after which SQS is near its limit of 120,000 messages in flight.
RECEIVES_IN_FLIGHT = 11_000

#: A queue that has this DLQ as its own, and that the re-driver does not know.
FOREIGN = "arn:aws:sqs:us-east-1:123456789012:nobodys"

#: How long letters in the DLQ are left alone before the world begins, so that counts have settled by then.
SETTLES_IN_SECONDS = 120


class Queues(Registered):
    """Messages come in by `send` and `dead_letters`. Everything else looks without touching.

    Queues may be named as in `conditions`, even FIFO queues: SQS knows those by their `queue_name`.
    """

    def __init__(self, seed: int, conditions: Conditions, sources: Sequence[Source]) -> None:
        self.rng = Random(seed)
        self.clock = VirtualClock()
        self.conditions = conditions
        named = [replace(one, name=self.queue_name(one.name)) for one in sources]
        self.sources = {source.name: source for source in named}
        self.register = Register()
        self.started = self.clock.now()
        self._queues = FakeSqs(
            self.clock,
            Random(seed + 1),
            count_lag_seconds=conditions.count_lag_seconds,
            count_noise=conditions.count_noise,
            order_width=conditions.order_width,
        )
        # Separate from `rng`, so that the same messages need the downstream, whatever else is left to chance.
        self._chooser = Random(seed + 2)
        self._spoiler = Random(seed + 7)
        self._groups = Groups(conditions.groups, Random(seed + 4)) if conditions.fifo else None
        self.sqs: Any = self._queues  # the policy's client; a scenario may put faults between
        self._create()
        if conditions.fifo:
            self._queues.inspect.subscribe(self._note_death)

    @property
    def elapsed(self) -> timedelta:
        """Virtual time since the world began."""
        return self.clock.now() - self.started

    @property
    def source_names(self) -> tuple[str, ...]:
        """The source queues that share the DLQ, `orders` first."""
        return tuple(self.sources)

    def queue_name(self, queue: str) -> str:
        """SQS's name for a queue."""
        return self.conditions.queue_name(queue)

    def dead_letters(
        self, count: int, *, poison: int = 0, of: str = SOURCE, left: timedelta | None = None
    ) -> None:
        """Let `count` messages, `poison` of them poison pills here and there, fail until SQS moves them to the DLQ.

        This takes a while, before the world's own time starts. `left`, if given, is the time before they expire in the
        DLQ.
        """
        of = self.queue_name(of)
        bodies, pills = self._dead_bodies(count, poison, of)
        began = self.clock.time()
        for body in bodies:
            self._put(body, of, is_poison=body in pills)
        expire_at = self.clock.time() + self.conditions.dlq_retention
        expected = self.depth(DLQ) + count
        while self.depth(DLQ) < expected:
            self._receive_all(of)
            self.clock.advance(self.conditions.visibility_timeout + 1)
        self.clock.advance(SETTLES_IN_SECONDS)
        if left is not None:
            self.clock.advance_to(expire_at - left.total_seconds())
        self.started = self.clock.now()
        for body in bodies:
            self._spoils(body, of, sent_at=timedelta(seconds=began - self.clock.time()))
        if self.conditions.fifo:
            self.order.died_at |= dict.fromkeys(bodies, timedelta())

    def _dead_bodies(self, count: int, poison: int, of: str) -> tuple[list[str], set[str]]:
        """Bodies of the `count` messages that are to die, and of the pills among them. Some may need a downstream."""
        prefix = "letter" if of == self.queue_name(SOURCE) else f"{of}-letter"
        bodies = [f"{prefix}-{index}" for index in range(count)]
        pills = {bodies[index] for index in self.rng.sample(range(count), poison)}
        downstream = self.sources[of].consumer.downstream
        if downstream is not None:
            dependent = self._chooser.sample(bodies, round(downstream.share * count))
            self.register.dependent.update(dependent)
        self.letters.update(bodies)
        return bodies, pills

    def send(self, body: str, *, is_poison: bool = False, to: str = SOURCE) -> None:
        """Send a producer's message."""
        to = self.queue_name(to)
        downstream = self.sources[to].consumer.downstream
        if downstream is not None and self._chooser.random() < downstream.live_share:
            self.register.dependent.add(body)
        self.register.sent_at[body] = self.elapsed
        self._spoils(body, to, sent_at=self.elapsed)
        self._put(body, to, is_poison=is_poison)

    def url(self, queue: str) -> str:
        url: str = self._queues.get_queue_url(QueueName=self.queue_name(queue))["QueueUrl"]
        return url

    def depth(self, queue: str) -> int:
        """How many messages are at rest in the queue, exactly."""
        return self._queues.inspect.counts(self.queue_name(queue)).total

    def bodies(self, *queues: str) -> list[str]:
        """Bodies of the messages at rest in these queues."""
        return [one.body for queue in queues for one in self._at_rest(queue)]

    def parked(self) -> list[str]:
        return self.bodies(PARKING_LOT)

    def settled_at(self) -> dict[str, timedelta]:
        """When each body that is done or parked came to rest."""
        started = self.started.timestamp()
        parked = {
            message.body: timedelta(seconds=message.arrived_at - started)
            for message in self._at_rest(PARKING_LOT)
        }
        return parked | self.deliveries.done_at

    def lost(self) -> set[str]:
        """Bodies that are neither done nor in any queue."""
        at_rest = self.bodies(*self.sources, DLQ, PARKING_LOT)
        return self.sent - set(at_rest) - set(self.deliveries.done)

    @property
    def is_drained(self) -> bool:
        """Whether nothing waits in a source queue or the DLQ."""
        return not any(self.depth(queue) for queue in (DLQ, *self.sources))

    @property
    def is_settled(self) -> bool:
        """Whether no message that ever was a dead letter or a poison pill is waiting; producers' messages may wait."""
        if self.depth(DLQ):
            return False
        return not any(
            body in self.letters or body in self.poison for body in self.bodies(*self.sources)
        )

    def let_dead_letters_end_in(self, target: str, *, of: str, after: int) -> None:
        """Give the queue `of` a redrive policy: SQS moves a message to `target` after this many receives."""
        told = self._queues.get_queue_attributes(
            QueueUrl=self.url(target), AttributeNames=["QueueArn"]
        )
        policy = {"deadLetterTargetArn": told["Attributes"]["QueueArn"], "maxReceiveCount": after}
        self._queues.set_queue_attributes(
            QueueUrl=self.url(of), Attributes={"RedrivePolicy": json.dumps(policy)}
        )

    def _put(
        self,
        body: str,
        queue: str,
        *,
        is_poison: bool,
        attributes: dict[str, Any] | None = None,
    ) -> None:
        fields = self._groups.fields(body) if self._groups else {}
        self._queues.send_message(
            QueueUrl=self.url(queue),
            MessageBody=body,
            MessageAttributes=attributes or ATTRIBUTES,
            **fields,  # type: ignore[arg-type]  # names of strings
        )
        if fields:
            self.order.sent[fields["MessageGroupId"]].append(body)
        self.sent.add(body)
        if is_poison:
            self.poison.add(body)

    def foreign_letters(self, count: int) -> None:
        """Put this many letters from a queue that no one knows into the DLQ. Each has to be parked."""
        url = self.url(DLQ)
        bodies = {f"foreign-{number}" for number in range(count)}
        for body in sorted(bodies):
            self._queues.send_message(QueueUrl=url, MessageBody=body, MessageAttributes=ATTRIBUTES)
        for message in self._at_rest(DLQ):
            if message.body in bodies:
                message.dead_letter_source_arn = FOREIGN
        self.sent.update(bodies)
        self.letters.update(bodies)
        self.poison.update(bodies)

    def hold(self, count: int, seconds: int) -> None:
        """Let someone else receive this many dead letters, and keep them in flight for this long."""
        for _ in range(0, count, 10):
            self._queues.receive_message(
                QueueUrl=self.url(DLQ), MaxNumberOfMessages=10, VisibilityTimeout=seconds
            )

    def spoil(self) -> None:
        """Note which messages have become poison pills by now: those that are no longer valid, and not done."""
        done, elapsed = self.deliveries.done_at, self.elapsed
        perishable = self.register.perishable
        self.poison.update(
            body for body, until in perishable.items() if done.get(body, elapsed) > until
        )

    def _spoils(self, body: str, queue: str, *, sent_at: timedelta) -> None:
        """Draw whether a message expires, and when."""
        validity = self.sources[queue].consumer.validity
        if validity is not None and self._spoiler.random() < validity.share:
            self.register.perishable[body] = sent_at + validity.lasts

    def _receive_all(self, queue: str) -> None:
        """Fail everything that can be received, once; in a FIFO queue repeatedly, or groups would die ten by ten."""
        timeout = 0 if self.conditions.fifo else None
        url = self.url(queue)
        for _ in range(RECEIVES_IN_FLIGHT):
            answer = self._queues.receive_message(
                QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=timeout
            )
            if not answer.get("Messages"):
                break

    def _at_rest(self, queue: str) -> list[Message]:
        return self._queues.inspect.messages(self.queue_name(queue))

    def _note_death(self, event: Event) -> None:
        """Note a message that was received too often. It is a letter now, whether or not its consumer ever tried it."""
        if event.kind == "moved" and event.queue_name == self.queue_name(DLQ):
            body = event.message.body
            if body not in self.letters:
                self.letters.add(body)
                self.deliveries.died_at[body] = event.at - self.started
            self.order.died_at.setdefault(body, event.at - self.started)

    def _create(self) -> None:
        for queue in (DLQ, PARKING_LOT, *self.sources):
            self._queues.create_queue(
                QueueName=self.queue_name(queue), Attributes=self.conditions.attributes_of(queue)
            )
        for name in self.sources:
            self.let_dead_letters_end_in(DLQ, of=name, after=self.conditions.max_receive_count)
