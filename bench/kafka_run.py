"""One measured run over a cluster, in a process of its own: `python -m bench.kafka_run` with a job as JSON."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.engine_run import peak_mib
from smart_redriver.engine.aws.state_table import StateStore
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.passes.ports import Tools
from smart_redriver.engine.passes.redrive_pass import run_pass
from smart_redriver.kafka.engine.client import KafkaLog
from smart_redriver.kafka.engine.connection import DeadLetterTopic
from smart_redriver.kafka.engine.place import KafkaTopics
from smart_redriver.kafka.sqlite import TABLE, SqliteTable

#: Each topic of the mock has so many.
PARTITIONS = 4
SOURCE = "orders"
GROUP = "shop"
#: Passes after which a run has failed.
ENOUGH = 60


@dataclass(frozen=True, kw_only=True)
class Job:
    """The letters to move, and where the cluster is."""

    servers: str
    order: str
    letters: int
    value_bytes: int


@dataclass(frozen=True, kw_only=True)
class Run:
    """The figures of a run.

    `back`: records that the source topic got; `left`: letters behind our position; `cpu_seconds`: of the processor, all
    threads together.
    """

    order: str
    value_bytes: int
    passes: int
    back: int
    left: int
    back_seconds: float
    settled_seconds: float
    cpu_seconds: float
    peak_mib: float

    @property
    def letters_a_second(self) -> float:
        """Until all are back."""
        return self.back / self.back_seconds if self.back_seconds else 0.0


class Rig:
    """A process's tools over the cluster, and its consumers' group, which is done with all at once."""

    def __init__(self, job: Job, folder: Path) -> None:
        self.place = KafkaTopics.read(
            {
                "name": "bench",
                "servers": job.servers,
                "consumer_group": GROUP,
                "topics": [SOURCE],
                "dead_letters": f"{SOURCE}.DLT",
                "order": job.order,
            }
        )
        self.log = KafkaLog(self.place)
        self._fill(job)
        self.begun = self._written()
        self._consumers = Consumer(
            {"bootstrap.servers": job.servers, "group.id": GROUP, "log_level": 0}
        )
        self._connection = DeadLetterTopic(self.log, self.place, _now)
        state = SqliteTable.open(folder / "state", time.time, is_made=True)
        name = self.place.name
        self._memory = StateStore(state, TABLE, SOURCE, names_within=name, letters_within=name)
        self._settings = Settings(
            initial_window=max(job.letters, 1),
            max_window=max(job.letters, 100),
            max_rate=0,
            base_delay_seconds=0,
        )

    def _fill(self, job: Job) -> None:
        """Write the dead letters. The mock makes a topic when it is first written to, so each has a record that is passed over."""
        topics = (SOURCE, self.place.dead_letters, self.place.held, self.place.parked)
        producer = Producer({"bootstrap.servers": job.servers, "linger.ms": 50, "log_level": 0})
        for topic in topics:
            producer.produce(topic, b"first")
        producer.flush()
        for topic in topics:
            self.log.commit(
                self.place.group, {one: end for one, (_, end) in self.log.bounds(topic).items()}
            )
        for number in range(job.letters):
            producer.produce(
                self.place.dead_letters,
                b"%d " % number + b"x" * (job.value_bytes - 10),
                key=b"%d" % number,
                partition=number % PARTITIONS,
                headers=_of_spring(number),
            )
            producer.poll(0)
        producer.flush()

    def _written(self) -> int:
        return sum(end for _, end in self.log.bounds(SOURCE).values())

    @property
    def back(self) -> int:
        """Records that came to the source topic since."""
        return self._written() - self.begun

    @property
    def left(self) -> int:
        """Records behind our group's position."""
        committed = self.log.committed(self.place.group, self.place.dead_letters)
        bounds = self.log.bounds(self.place.dead_letters)
        return sum(end - committed.get(one, first) for one, (first, end) in bounds.items())

    def run_pass(self) -> None:
        """One pass of the process."""
        tools = Tools(
            **self._connection.parts(self._memory, _now),
            journal=lambda _event, /, **_fields: None,
            clock=_now,
            rng=Random(1),
            owner="bench",
        )
        run_pass(tools, self._settings, deadline=_now() + timedelta(minutes=3))
        self._connection.after_pass(tools, {})

    def consume(self) -> None:
        """Let the group be done with all that there is."""
        ends = [
            TopicPartition(SOURCE, one.number, end)
            for one, (_, end) in self.log.bounds(SOURCE).items()
        ]
        self._consumers.commit(offsets=ends, asynchronous=False)


def measure(job: Job, folder: Path) -> Run:
    """Passes until all letters are back, then until nothing is left to do."""
    rig, passes, back_seconds = Rig(job, folder), 0, 0.0
    began, cpu_began = time.perf_counter(), time.process_time()
    while passes < ENOUGH and (rig.left or not passes):
        rig.run_pass()
        passes += 1
        if not back_seconds and rig.back >= job.letters:
            back_seconds = time.perf_counter() - began
        rig.consume()
    return Run(
        order=job.order,
        value_bytes=job.value_bytes,
        passes=passes,
        back=rig.back,
        left=rig.left,
        back_seconds=back_seconds,
        settled_seconds=time.perf_counter() - began,
        cpu_seconds=time.process_time() - cpu_began,
        peak_mib=peak_mib(),
    )


def _of_spring(number: int) -> list[tuple[str, str | bytes | None]]:
    """Where a message was when it failed, as Spring's recoverer tells it."""
    return [
        ("kafka_dlt-original-topic", SOURCE.encode()),
        ("kafka_dlt-original-partition", (number % PARTITIONS).to_bytes(4, "big")),
        ("kafka_dlt-original-offset", (1_000_000 + number).to_bytes(8, "big")),
        ("kafka_dlt-exception-fqcn", b"java.lang.IllegalStateException"),
    ]


def _now() -> datetime:
    return datetime.now(UTC)


if __name__ == "__main__":
    with TemporaryDirectory() as made:
        print(json.dumps(vars(measure(Job(**json.load(sys.stdin)), Path(made)))))
