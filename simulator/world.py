"""A small world in virtual time: queues, consumers, live traffic, and a policy that redrives on a schedule.

The policy is ours or a rival's; the world is the same for all. Time moves in steps of a few seconds: at each, live
messages arrive, consumers take what they can, and the policy runs when its schedule says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from random import Random
from typing import Any, Protocol

from fakes.cloudwatch import FakeCloudWatch
from fakes.dynamodb import FakeDynamoDb
from fakes.faults import Wire
from simulator.capacity import Capacity
from simulator.conditions import DLQ, FOURTEEN_DAYS, OUTCOMES, PARKING_LOT, SOURCE, Conditions
from simulator.consumers import Consumer, Reports
from simulator.fifo_worker import FifoWorker
from simulator.kit import Post, reporter_of
from simulator.queues import Queues
from simulator.sources import LiveTraffic, Producers, Source
from simulator.worker import Worker
from smart_redriver.consumer import Reporter
from smart_redriver.engine.config.deployment import Deployment
from smart_redriver.engine.targets.target_source import Reach
from smart_redriver.engine.wiring import Connection
from smart_redriver.engine.wiring import Queues as QueuesOfSqs

__all__ = [
    "DLQ",
    "FOURTEEN_DAYS",
    "OUTCOMES",
    "PARKING_LOT",
    "SOURCE",
    "TABLE",
    "Conditions",
    "LiveTraffic",
    "Policy",
    "World",
    "hours",
    "minutes",
]

TABLE = "redriver-state"

#: Seconds that the deployed outcome queue keeps unread messages.
REPORTS_KEPT = 345_600


class Policy(Protocol):
    """A way to redrive: called every `every` of virtual time, which may change with each call."""

    @property
    def every(self) -> timedelta: ...

    def tick(self) -> None:
        """Do what the schedule asks for."""


class World(Queues):
    """Queues, consumers and clock. `seed` decides everything that is left to chance.

    `consumer` and `traffic` are those of the source queue `orders`; `neighbours` are further source queues that share
    its DLQ. `redrives` records what the policy's ticks sent back, and when. `outcome_queue_url` is empty if no consumer
    reports: then there is no such queue.
    """

    def __init__(
        self,
        *,
        seed: int,
        consumer: Consumer,
        traffic: LiveTraffic | None = None,
        neighbours: Sequence[Source] = (),
        step: timedelta = timedelta(seconds=10),
        conditions: Conditions | None = None,
    ) -> None:
        first = Source(name=SOURCE, consumer=consumer, traffic=traffic or LiveTraffic())
        super().__init__(seed, conditions or Conditions(), (first, *neighbours))
        self.dynamodb: Any = FakeDynamoDb(self.clock)
        self.cloudwatch: Any = FakeCloudWatch(
            self.clock,
            self._queues,
            lag_seconds=self.conditions.metrics_lag_seconds,
            lateness=self.conditions.lateness,
        )
        self.redrives: list[tuple[timedelta, int]] = []
        self.outcome_queue_url = self._outcome_queue()
        self._step = step
        self._later: list[tuple[timedelta, Callable[[], object]]] = []
        self._producers = {name: Producers(one.traffic) for name, one in self.sources.items()}
        self._overloads = Random(seed + 6)
        reports = Random(seed + 3)  # apart, so that mishaps of reports change no message's lot
        self._workers = {name: self._worker(one, reports) for name, one in self.sources.items()}

    def dead_letters(
        self, count: int, *, poison: int = 0, of: str = SOURCE, left: timedelta | None = None
    ) -> None:
        """Like `Queues.dead_letters`. A consumer that reports has said why each of the letters died.

        No report called a failure permanent, or none of these would be a letter; and all reports arrived intact.
        """
        of = self.queue_name(of)
        before = {one.message_id for one in self._at_rest(DLQ)}
        super().dead_letters(count, poison=poison, of=of, left=left)
        dead = [one for one in self._at_rest(DLQ) if one.message_id not in before]
        if self.sources[of].consumer.reports:
            plain = self._reporter(self.sources[of], Reports(), self.rng)
            self._workers[of].report_deaths({one.message_id: one.body for one in dead}, plain)

    @property
    def deployment(self) -> Deployment:
        """Where its queues and its table are, as the deployed function learns it."""
        names = self.source_names
        return Deployment(
            queue_name=names[0],
            table_name=TABLE,
            dlq_url=self.url(DLQ),
            source_queue_url=self.url(names[0]),
            parking_lot_url=self.url(PARKING_LOT),
            further_source_urls=tuple(self.url(name) for name in names[1:]),
            outcome_queue_url=self.outcome_queue_url,
        )

    def connection(self, sqs: Any, cloudwatch: Any) -> Connection:
        """The connection that passes over these clients use."""
        return QueuesOfSqs(self.deployment, sqs=sqs, cloudwatch=cloudwatch, reach=self.reach)

    @property
    def reach(self) -> Reach | None:
        """How to reach targets, if letters go back to anything but queues."""
        return None

    def lay(self, wire: Wire) -> None:
        """Put everything that a policy asks for on this wire from now on."""
        for client in ("sqs", "dynamodb", "cloudwatch"):
            setattr(self, client, wire.to(getattr(self, client)))

    def close(self) -> None:
        """Close what the world has outside this process: usually nothing."""

    def later(self, moment: timedelta, act: Callable[[], object]) -> None:
        """Let something else happen at `moment`, before the policy's tick at that time."""
        self._later.append((moment, act))

    def run(
        self, policy: Policy, *, until: timedelta, stop: Callable[[], bool] | None = None
    ) -> None:
        """Let time pass until `until`, or until `stop` says, at a tick of the policy, that it is enough."""
        next_tick = self.clock.now()
        while self.elapsed < until:
            elapsed = self.elapsed
            self._let_happen(elapsed)
            self._produce(elapsed)
            for worker in self._workers.values():
                worker.work(elapsed, self._step)
            if self.clock.now() >= next_tick:
                if stop is not None and stop():
                    return
                self._tick(policy, elapsed)
                next_tick += policy.every
            self.clock.advance(self._step.total_seconds())

    def is_out(self, elapsed: timedelta) -> bool:
        """Whether a consumer is down then, or something else that some of its messages need."""
        is_fallen = any(worker.capacity.is_fallen(elapsed) for worker in self._workers.values())
        return is_fallen or not all(
            source.consumer.serves(elapsed) for source in self.sources.values()
        )

    @property
    def falls(self) -> int:
        """How often consumers fell over because they got more than they can handle."""
        return sum(len(worker.capacity.falls) for worker in self._workers.values())

    def _tick(self, policy: Policy, elapsed: timedelta) -> None:
        before = self._sent_this_minute()
        policy.tick()
        if sent := self._sent_this_minute() - before:
            self.redrives.append((elapsed, sent))

    def _sent_this_minute(self) -> int:
        minute = int(self.clock.time()) // 60
        known = (self._queues.inspect.metrics(name) for name in self.sources)
        return sum(metrics.sent_in.get(minute, 0) for metrics in known if metrics)

    def _let_happen(self, elapsed: timedelta) -> None:
        if not self._later:
            return
        now = [act for moment, act in self._later if moment <= elapsed]
        self._later = [(moment, act) for moment, act in self._later if moment > elapsed]
        for act in now:
            act()

    def _produce(self, elapsed: timedelta) -> None:
        for name, producers in self._producers.items():
            live, poison = producers.due(elapsed, self._step)
            for _ in range(live):
                self.send(f"live-{len(self.sent)}", to=name)
            for _ in range(poison):
                self.send(f"poison-{len(self.sent)}", is_poison=True, to=name)

    def _outcome_queue(self) -> str:
        if not any(source.consumer.reports for source in self.sources.values()):
            return ""
        url: str = self._queues.create_queue(
            QueueName=OUTCOMES, Attributes={"MessageRetentionPeriod": str(REPORTS_KEPT)}
        )["QueueUrl"]
        return url

    def _reporter(self, source: Source, how: Reports | None, rng: Random) -> Reporter:
        def after(delay: timedelta, act: Callable[[], object]) -> None:
            self.later(self.elapsed + delay, act)

        if how is None:
            return Reporter()
        post = Post(
            self._queues, self.outcome_queue_url, how, rng=rng, after=after, clock=self.clock
        )
        return reporter_of(source.name, how, post, self.url(PARKING_LOT))

    def _worker(self, source: Source, rng: Random) -> Worker:
        def send(body: str, is_poison: bool, attributes: dict[str, Any]) -> None:
            self._put(body, source.name, is_poison=is_poison, attributes=attributes)

        return self._kind_of_worker()(
            self._queues,
            source.name,
            source.consumer,
            self.register,
            max_receive_count=self.conditions.max_receive_count,
            rng=self.rng,
            send=send,
            reporter=self._reporter(source, source.consumer.reports, rng),
            capacity=Capacity(source.consumer, self._overloads),
        )

    def _kind_of_worker(self) -> Callable[..., Worker]:
        """The function that makes a worker from what every worker gets."""
        return FifoWorker if self.conditions.fifo else Worker


def minutes(count: float) -> timedelta:
    """So many minutes."""
    return timedelta(minutes=count)


def hours(count: float) -> timedelta:
    """So many hours."""
    return timedelta(hours=count)
