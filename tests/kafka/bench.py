"""A DLQ topic in memory, in virtual time: dead letters, a consumer, passes, and what became of each message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

from fakes.clock import VirtualClock
from fakes.dynamodb import FakeDynamoDb
from fakes.faults import Act, Call, Crash, Wire
from fakes.kafka import FakeLog
from smart_redriver.engine.aws.state_table import StateStore
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.passes.ports import Tools
from smart_redriver.engine.passes.redrive_pass import run_pass
from smart_redriver.engine.report import Report
from smart_redriver.kafka.engine.connection import DeadLetterTopic
from smart_redriver.kafka.engine.place import KafkaTopics
from smart_redriver.kafka.engine.records import Header, NewRecord, Position
from smart_redriver.kafka.sqlite import SqliteTable
from tests.kafka.conftest import place_at

TABLE = "state"
GROUP = "shop"

#: Why a consumer fails with a value; None where it does not.
Failure = Callable[[bytes], str | None]


class WiredLog:
    """A log over a wire, on which a process dies before or after a call, or within a write."""

    def __init__(self, log: FakeLog, wire: Wire) -> None:
        self._log = log
        self._wire = wire

    def __getattr__(self, name: str) -> Callable[..., Any]:
        act = getattr(self._log, name)

        def call(*given: Any) -> Any:
            return self._wire.carry(name.capitalize(), {"given": given}, lambda given: act(*given))

        return call


class Bench:
    """`headers_of_death`: what the consumer adds to a message's own, which it leaves out without `keeps_headers`."""

    def __init__(
        self,
        partitions: int = 2,
        headers_of_death: Callable[[Position, str], tuple[Header, ...]] | None = None,
        *,
        keeps_headers: bool = True,
        **differs: Any,
    ) -> None:
        self._headers_of_death = headers_of_death or spring
        self._keeps_headers = keeps_headers
        self.place: KafkaTopics = place_at("broker:9092", **differs)
        self.partitions = partitions
        #: Names the state of its processes.
        self.state = ""
        self.clock = VirtualClock()
        self.begin_anew()

    def begin_anew(self) -> None:
        self.log = FakeLog(self.clock.now)
        for topic in (
            *self.place.topics,
            self.place.dead_letters,
            self.place.held,
            self.place.parked,
        ):
            self.log.create(topic, self.partitions)
        self.dynamodb: Any = FakeDynamoDb(self.clock)
        self.dynamodb.create_table(
            TableName=TABLE,
            KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "PK", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        #: What the consumer was done with, in the order of it.
        self.done: list[bytes] = []
        self.events: list[tuple[str, dict[str, Any]]] = []
        self._process: DeadLetterTopic | None = None
        #: Every message that there ever was.
        self.produced: set[bytes] = set()

    # What there is.

    def produce(self, *values: str, keys: Sequence[str | None] = (), topic: str = "orders") -> None:
        """A producer's messages, each with a header of its own; without `keys` every one has another."""
        for number, value in enumerate(values):
            key = keys[number % len(keys)] if keys else value
            self.produced.add(value.encode())
            self.log.write(
                [
                    NewRecord(
                        topic=topic,
                        key=key.encode() if key is not None else None,
                        value=value.encode(),
                        headers=(("of", value.encode()),),
                    )
                ]
            )

    def die(self, *values: str, **more: Any) -> None:
        """Messages that the consumer has failed with."""
        self.produce(*values, **more)
        self.work(lambda _: "Boom")

    def create_again(self, topic: str, partitions: int | None = None) -> None:
        """The topic with its name, and with nothing in it that there was. The consumer begins again, too."""
        self.log.delete(topic)
        self.log.create(topic, partitions or self.partitions)
        self.log.commit(GROUP, dict.fromkeys(self.log.bounds(topic), 0))

    def work(self, fails: Failure = lambda _: None) -> int:
        """The consumer takes each message in order: is done with it, or writes it to the DLQ topic; then it commits."""
        taken = 0
        for topic in self.place.topics:
            read = self.log.committed(self.place.consumer_group, topic)
            start = {one: read.get(one, 0) for one in self.log.bounds(topic)}
            reading = self.log.read(start, 1 << 30)
            for record in reading.records:
                why = fails(record.value or b"")
                if why is None:
                    self.done.append(record.value or b"")
                else:
                    kept = record.headers if self._keeps_headers else ()
                    headers = (*kept, *self._headers_of_death(record.position, why))
                    self.log.write(
                        [
                            NewRecord(
                                topic=self.place.dead_letters,
                                key=record.key,
                                value=record.value,
                                headers=headers,
                                partition=record.partition,
                            )
                        ]
                    )
                self.log.commit(
                    self.place.consumer_group, {record.position.partition: record.offset + 1}
                )
            taken += len(reading.records)
        return taken

    def values(self, topic: str) -> list[bytes]:
        return [one.value or b"" for one in self.log.in_topic(topic)]

    @property
    def parked(self) -> list[bytes]:
        return self.values(self.place.parked)

    @property
    def waiting(self) -> Counter[bytes]:
        """What is behind our group's positions and the consumer's."""
        there: Counter[bytes] = Counter()
        for group, topic in (
            (self.place.group, self.place.dead_letters),
            (self.place.group, self.place.held),
            *((self.place.consumer_group, one) for one in self.place.topics),
        ):
            read = self.log.committed(group, topic)
            for one in self.log.in_topic(topic):
                if one.offset >= read.get(one.position.partition, 0):
                    there[one.value or b""] += 1
        return there

    # Passes.

    def process(self, wire: Wire | None = None) -> DeadLetterTopic:
        """A process that has just begun."""
        log: Any = WiredLog(self.log, wire) if wire else self.log
        self._process = DeadLetterTopic(log, self.place, self.clock.now, state=self.state)
        return self._process

    def memory(self, wire: Wire | None = None) -> StateStore:
        dynamodb = wire.to(self.dynamodb) if wire else self.dynamodb
        first, name = self.place.topics[0], self.place.name
        return StateStore(
            dynamodb, TABLE, first, names_within=name, letters_within=name, pause=lambda _: None
        )

    def tools(self, process: DeadLetterTopic, wire: Wire | None = None, owner: str = "me") -> Tools:
        return Tools(
            **process.parts(self.memory(wire), self.clock.now),
            journal=lambda event, /, **fields: self.events.append((event, fields)),
            clock=self.clock.now,
            rng=Random(1),
            owner=owner,
        )

    def run_pass(
        self,
        wire: Wire | None = None,
        *,
        process: DeadLetterTopic | None = None,
        owner: str = "me",
        **settings: Any,
    ) -> Report:
        """One pass of the process that is at work."""
        process = process or self._process or self.process(wire)
        tools = self.tools(process, wire, owner)
        made = Settings(**{"initial_window": 100, "base_delay_seconds": 0, **settings})
        report = run_pass(tools, made, deadline=self.clock.now() + timedelta(seconds=60))
        process.after_pass(tools, {})
        return report

    def live(
        self,
        wire: Wire | None = None,
        *,
        fails: Failure = lambda _: None,
        steps: int = 60,
        **settings: Any,
    ) -> int:
        """Let passes and a consumer take turns until all are done or parked, and twice more; how many passes have died.

        A pass that dies is followed by those of a new process, over a good wire.
        """
        deaths, ends_in = 0, 3
        if wire:
            self.process(wire)
        for step in range(steps):
            try:
                self.run_pass(wire, **settings)
            except Crash:
                deaths, wire = deaths + 1, None
                self.process()
            self.work(fails)
            if not self.produced - set(self.done) - set(self.parked):
                ends_in -= 1
            if not ends_in:
                break
            self.clock.advance(30 if step < 8 else 600)
        return deaths


def spring(position: Position, why: str) -> tuple[Header, ...]:
    """The headers of Spring's DeadLetterPublishingRecoverer."""
    topic, partition = position.partition
    return (
        ("kafka_dlt-original-topic", topic.encode()),
        ("kafka_dlt-original-partition", partition.to_bytes(4, "big")),
        ("kafka_dlt-original-offset", position.offset.to_bytes(8, "big")),
        ("kafka_dlt-exception-fqcn", why.encode()),
        ("kafka_dlt-exception-message", b"it broke"),
    )


def nameless(_: Position, why: str) -> tuple[Header, ...]:
    """Headers that do not say which message failed."""
    return (("error", why.encode()),)


def die_within(call: Call, act: Act) -> Any:
    """The process dies when half of what it writes is written, or all of anything else."""
    given = call.request.get("given", ())
    if call.operation == "Write":
        some = given[0]
        act(given=(some[: (len(some) + 1) // 2],))
    else:
        with suppress(CallFailed):
            act(**call.request)
    raise Crash(f"within {call}")


def move_another_over(file: Path) -> None:
    """Replace a state file by a new one, as somebody who restores or copies files does."""
    other = file.with_name("another")
    SqliteTable.open(other, lambda: 0.0, is_made=True).close()
    other.replace(file)
