"""A Kafka cluster in memory, behind the interface of `Log`: topics, groups, and what consumers and producers do.

tests/kafka/test_log.py compares it with librdkafka's mock cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from smart_redriver.engine.errors import CallFailed
from smart_redriver.kafka.engine.records import NewRecord, Partition, Position, Reading, Record


class FakeLog:
    """Topics by name, each with partitions of records. A compacted or expired record leaves a gap."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._partitions: dict[str, int] = {}
        self._created = 0
        self._topic_ids: dict[str, str] = {}
        self.records: dict[Partition, dict[int, Record]] = {}
        self._ends: dict[Partition, int] = {}
        self._committed: dict[tuple[str, Partition], int] = {}
        self._notes: dict[tuple[str, Partition], str] = {}
        #: The largest record that a topic takes, in bytes.
        self.limits: dict[str, int] = {}

    def create(self, topic: str, partitions: int = 1) -> None:
        self._partitions[topic] = partitions
        self._created += 1
        self._topic_ids[topic] = f"topic-{self._created}"
        for number in range(partitions):
            self.records[Partition(topic, number)] = {}
            self._ends[Partition(topic, number)] = 0

    def delete(self, topic: str) -> None:
        """Delete the topic and all that is in it. Groups' commits stay, as they do for a while in Kafka."""
        for number in range(self._partitions.pop(topic)):
            del self.records[Partition(topic, number)], self._ends[Partition(topic, number)]

    def forget(self, position: Position) -> None:
        """Remove one record, as compaction or retention does."""
        del self.records[position.partition][position.offset]

    def in_topic(self, topic: str) -> list[Record]:
        return [
            one
            for number in range(self.partitions(topic))
            for _, one in sorted(self.records[Partition(topic, number)].items())
        ]

    # The methods of `Log`.

    def partitions(self, topic: str) -> int:
        if topic not in self._partitions:
            raise CallFailed("DescribeTopic", "UNKNOWN_TOPIC_OR_PART", topic)
        return self._partitions[topic]

    def topic_ids(self, topics: Sequence[str]) -> dict[str, str]:
        return {one: self._topic_ids[one] for one in topics if one in self._partitions}

    def bounds(self, topic: str) -> dict[Partition, tuple[int, int]]:
        return {
            one: (next(iter(self.records[one]), self._ends[one]), self._ends[one])
            for one in (Partition(topic, n) for n in range(self.partitions(topic)))
        }

    def written_by(self, topic: str, at: datetime) -> int:
        return sum(
            next((one.offset for one in self.records[part].values() if one.at >= at), end)
            for part, (_, end) in self.bounds(topic).items()
        )

    def committed(self, group: str, topic: str) -> dict[Partition, int]:
        return {
            one: self._committed[group, one]
            for one in self.bounds(topic)
            if (group, one) in self._committed
        }

    def commit(self, group: str, offsets: Mapping[Partition, int], note: str = "") -> None:
        for one, offset in offsets.items():
            self._committed[group, one] = offset
            self._notes[group, one] = note

    def notes(self, group: str, topic: str) -> set[str]:
        notes = (self._notes.get((group, one)) for one in self.bounds(topic))
        return {one for one in notes if one}

    def read(self, start: Mapping[Partition, int], limit: int) -> Reading:
        records: list[Record] = []
        if gone := start.keys() - self._ends.keys():
            raise CallFailed("Fetch", "_UNKNOWN_PARTITION", min(gone).topic)
        after = dict(start)
        for one, given in start.items():
            offset = given if given <= self._ends[one] else 0
            there = self.records[one]
            at = offset
            while at < self._ends[one] and len(records) < limit:
                if at in there:
                    records.append(there[at])
                at += 1
            after[one] = at
        is_end = all(after[one] == self._ends[one] for one in start)
        return Reading(tuple(records), after, is_end=is_end)

    def write(self, records: Sequence[NewRecord]) -> list[Position | CallFailed]:
        return [self._write(one) for one in records]

    def _write(self, one: NewRecord) -> Position | CallFailed:
        count = self._partitions.get(one.topic)
        if count is None:
            return CallFailed("Produce", "UNKNOWN_TOPIC_OR_PART", one.topic)
        number = one.partition if one.partition is not None else sum(one.key or b"") % count
        if one.size > self.limits.get(one.topic, one.size):
            return CallFailed("Produce", "LetterTooLarge", one.topic)
        if number >= count:
            return CallFailed("Produce", "_UNKNOWN_PARTITION", one.topic)
        partition = Partition(one.topic, number)
        offset = self._ends[partition]
        self._ends[partition] = offset + 1
        self.records[partition][offset] = Record(
            topic=one.topic,
            partition=number,
            offset=offset,
            key=one.key,
            value=one.value,
            headers=one.headers,
            at=self._clock(),
        )
        return Position(partition, offset)
