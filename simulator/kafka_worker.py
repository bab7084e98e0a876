"""A consumer group at work on a topic: it tries each record several times in place, then writes it to the DLQ topic."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from itertools import chain
from typing import Any

from fakes.kafka import FakeLog
from simulator.capacity import BATCH
from simulator.failures import Overloaded
from simulator.worker import ATTRIBUTES, Invocation, Message, Worker
from smart_redriver.kafka.engine.records import Header, NewRecord, Partition, Position

#: The headers that every producer's message carries.
HEADERS: tuple[Header, ...] = tuple(
    (name, value["StringValue"].encode()) for name, value in ATTRIBUTES.items()
)


class KafkaWorker(Worker):
    """One consumer group. It commits past a record when the record is done or has been written to the DLQ topic."""

    def __init__(
        self,
        log: FakeLog,
        dead_letters: str,
        group: str,
        *worker: Any,
        **more: Any,
    ) -> None:
        super().__init__(*worker, **more)
        self._log = log
        self._dead_letters = dead_letters
        self._group = group
        #: By partition: the offset to read next, and the offsets in process.
        partitions = log.bounds(self._queue)
        self._next = log.committed(group, self._queue) or dict.fromkeys(partitions, 0)
        self._in_hand: dict[Partition, set[int]] = {one: set() for one in partitions}

    def take_from_now_on(self) -> None:
        """Start after the last record there is."""
        self._next = {one: end for one, (_, end) in self._log.bounds(self._queue).items()}
        self._log.commit(self._group, self._next)

    def _waiting(self) -> int:
        ends = self._log.bounds(self._queue)
        return sum(end - self._next[one] for one, (_, end) in ends.items())

    def _receive(self, limit: float = BATCH) -> list[Message]:
        reading = self._log.read(self._next, int(limit))
        self._next = dict(reading.after)
        for record in reading.records:
            self._in_hand[record.position.partition].add(record.offset)
        return [
            {
                "ReceiptHandle": record.position,
                "Body": (record.value or b"").decode(),
                "MessageAttributes": ATTRIBUTES if set(HEADERS) <= set(record.headers) else {},
            }
            for record in reading.records
        ]

    def _try_all(
        self, messages: Sequence[Message], invocation: Invocation, elapsed: timedelta
    ) -> None:
        for message in messages:
            why = self._try_in_place(message, invocation, elapsed)
            if why is not None:
                self._bury(message["ReceiptHandle"], why)
        invocation.failed.clear()

    def _try_in_place(
        self, message: Message, invocation: Invocation, elapsed: timedelta
    ) -> BaseException | None:
        """Try a record until it is done or has failed too often; return why it failed the last time."""
        for _ in range(self._max_receive_count):
            self._error: BaseException | None = None
            done = len(invocation.done)
            self._try(message, invocation, elapsed)
            if len(invocation.done) > done:
                return None
        return self._error or Overloaded()

    def _failure(self, body: str, elapsed: timedelta) -> Any:
        self._error = super()._failure(body, elapsed)
        return self._error

    def _bury(self, position: Position, why: BaseException) -> None:
        self._log.write([self.dead_record(position, why)])
        self._let_go([position])

    def dead_record(self, position: Position, why: BaseException) -> NewRecord:
        """The DLQ topic's record for a record that failed."""
        failed = self._log.records[position.partition][position.offset]
        return NewRecord(
            topic=self._dead_letters,
            key=failed.key,
            value=failed.value,
            headers=(*failed.headers, *told_of_death(position, why)),
            partition=position.partition.number,
        )

    def _delete(self, messages: Sequence[Message]) -> None:
        self._let_go([one["ReceiptHandle"] for one in messages])

    def _let_go(self, positions: Sequence[Position]) -> None:
        """Commit past what is done, up to the first record that is not."""
        for partition, offset in positions:
            self._in_hand[partition].discard(offset)
        self._log.commit(
            self._group,
            {
                one: min(chain(self._in_hand[one], [self._next[one]]))
                for one in {partition for partition, _ in positions}
            },
        )


def told_of_death(position: Position, why: BaseException) -> tuple[Header, ...]:
    """The headers that Spring's DeadLetterPublishingRecoverer adds."""
    topic, partition = position.partition
    return (
        ("kafka_dlt-original-topic", topic.encode()),
        ("kafka_dlt-original-partition", partition.to_bytes(4, "big")),
        ("kafka_dlt-original-offset", position.offset.to_bytes(8, "big")),
        ("kafka_dlt-exception-fqcn", type(why).__name__.encode()),
        ("kafka_dlt-exception-message", str(why).encode()),
    )
