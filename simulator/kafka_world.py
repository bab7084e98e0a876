"""A world whose queue is a topic of a log in memory. One process beside it runs the passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from fakes.kafka import FakeLog
from simulator.conditions import DLQ, PARKING_LOT, SOURCE
from simulator.kafka_worker import HEADERS, KafkaWorker
from simulator.smart_policy import SmartPolicy
from simulator.sources import Producers
from simulator.worker import Worker
from simulator.world import TABLE, Policy, World
from smart_redriver.engine.config.deployment import Deployment
from smart_redriver.engine.passes.reporting import BUSY_SECONDS
from smart_redriver.engine.wiring import Connection
from smart_redriver.kafka.engine.connection import DeadLetterTopic
from smart_redriver.kafka.engine.place import KafkaTopics
from smart_redriver.kafka.engine.records import NewRecord, Partition, Record
from smart_redriver.kafka.process import WHILE_OUT

GROUP = "shop"
PARTITIONS = 4

#: How long producers have been writing when a world begins, and how often they wrote.
BEFORE = timedelta(minutes=6)
BEFORE_STEP = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class AtRest:
    """A message in one of the topics: its body, and when it arrived there, in seconds since the epoch."""

    body: str
    arrived_at: float


class KafkaWorld(World):
    """One source topic, its DLQ topic, retry topic and parking topic. Nothing is in its SQS queues."""

    def __init__(self, **world: Any) -> None:
        self.place = KafkaTopics.read(
            {
                "name": SOURCE,
                "servers": "broker:9092",
                "consumer_group": GROUP,
                "topics": [SOURCE],
                "dead_letters": DLQ,
                "parked": PARKING_LOT,
            }
        )
        self.log = FakeLog(self._now)
        for topic in (SOURCE, DLQ, self.place.held, PARKING_LOT):
            self.log.create(topic, PARTITIONS)
        super().__init__(**world)
        self._process = DeadLetterTopic(self.log, self.place, self.clock.now)

    def _now(self) -> datetime:
        return self.clock.now()

    @property
    def deployment(self) -> Deployment:
        """Where the topics and the state table are."""
        return Deployment.at(self.place, queue_name=SOURCE, table_name=TABLE)

    def connection(self, sqs: Any, cloudwatch: Any) -> Connection:  # noqa: ARG002
        """The process's own connection, for as long as the process lives: none of it is in AWS."""
        return self._process

    def run(
        self, policy: Policy, *, until: timedelta, stop: Callable[[], bool] | None = None
    ) -> None:
        """Let time pass while the process looks as it does: at once for outcomes, otherwise when something is due."""
        if isinstance(policy, SmartPolicy):
            policy = _Process(policy, self._process, self._step)
        super().run(policy, until=until, stop=stop)

    def dead_letters(
        self, count: int, *, poison: int = 0, of: str = SOURCE, left: timedelta | None = None
    ) -> None:
        """Create `count` records that have failed for good; `poison` of them, here and there, are poison pills."""
        assert left is None, "no record expires"  # noqa: S101
        bodies, pills = self._dead_bodies(count, poison, of)
        for body in bodies:
            self._put(body, SOURCE, is_poison=body in pills)
        worker = self._workers[SOURCE]
        assert isinstance(worker, KafkaWorker), "made here"  # noqa: S101
        self.log.write(
            [
                worker.dead_record(one.position, worker.cause_of_death((one.value or b"").decode()))
                for one in self.log.in_topic(SOURCE)
            ]
        )
        self._let_others_write()
        worker.take_from_now_on()
        self.started = self.clock.now()

    def _let_others_write(self) -> None:
        """Let producers write for some minutes before the world begins: topics remember when. All records are done."""
        producers = Producers(self.sources[SOURCE].traffic)
        for _ in range(int(BEFORE / BEFORE_STEP)):
            live, poison = producers.due(timedelta(), BEFORE_STEP)
            some = [
                NewRecord(topic=SOURCE, key=None, value=b"before") for _ in range(live + poison)
            ]
            self.log.write(some)
            self.clock.advance(BEFORE_STEP.total_seconds())

    def depth(self, queue: str) -> int:
        """Records after the reading group's position; in the parking topic, all records."""
        return sum(
            end - start
            for topic, group in _topics_of(self.place, queue)
            for start, end in self._unread(topic, group).values()
        )

    def _at_rest(self, queue: str) -> list[Any]:
        return [
            AtRest((record.value or b"").decode(), record.at.timestamp())
            for topic, group in _topics_of(self.place, queue)
            for record in self._records(topic, group)
        ]

    def _records(self, topic: str, group: str | None) -> Sequence[Record]:
        start = {one: at for one, (at, _) in self._unread(topic, group).items()}
        return self.log.read(start, 1 << 40).records

    def _unread(self, topic: str, group: str | None) -> dict[Partition, tuple[int, int]]:
        read = self.log.committed(group, topic) if group else {}
        return {
            one: (read.get(one, first), end) for one, (first, end) in self.log.bounds(topic).items()
        }

    def _put(
        self, body: str, queue: str, *, is_poison: bool, attributes: dict[str, Any] | None = None
    ) -> None:
        del attributes
        value = body.encode()
        self.log.write([NewRecord(topic=queue, key=value, value=value, headers=HEADERS)])
        self.sent.add(body)
        if is_poison:
            self.poison.add(body)

    def _tick(self, policy: Policy, elapsed: timedelta) -> None:
        before = self._written()
        policy.tick()
        assert not self._process.settle(self.clock.now()), "no call fails here"  # noqa: S101
        if sent := self._written() - before:
            self.redrives.append((elapsed, sent))

    def _written(self) -> int:
        return sum(end for _, end in self.log.bounds(SOURCE).values())

    def _kind_of_worker(self) -> Callable[..., Worker]:
        return partial(KafkaWorker, self.log, DLQ, GROUP)


class _Process:
    """Our policy as the process has it; see `smart_redriver.kafka.process.Process`."""

    def __init__(self, policy: SmartPolicy, connection: DeadLetterTopic, step: timedelta) -> None:
        self._policy = policy
        self._connection = connection
        self._step = step

    @property
    def every(self) -> timedelta:
        """The time to the next pass: what a pass asks for if that is short; seconds while redriven records are out."""
        reports = self._policy.reports
        again = reports[-1].look_again_seconds if reports else BUSY_SECONDS
        if again < BUSY_SECONDS:
            return max(self._step, timedelta(seconds=again))
        return (
            max(self._step, WHILE_OUT) if self._connection.awaits_outcomes else self._policy.every
        )

    def tick(self) -> None:
        """Run a pass if one is due or there may be outcomes."""
        if self._connection.awaits_outcomes:
            self._policy.look()
        else:
            self._policy.tick()


def _topics_of(place: KafkaTopics, queue: str) -> list[tuple[str, str | None]]:
    """The topics that stand for a queue of the world, each with its reading group."""
    if queue == DLQ:
        return [(place.dead_letters, place.group), (place.held, place.group)]
    return [(place.parked, None)] if queue == PARKING_LOT else [(queue, GROUP)]
