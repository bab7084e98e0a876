"""Records of a topic, and the log that holds them: the port that a Kafka client fits, and so does the fake. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol

from smart_redriver.engine.errors import CallFailed

Header = tuple[str, bytes | None]


class Partition(NamedTuple):
    """One partition of a topic."""

    topic: str
    number: int


class Position(NamedTuple):
    """Where a record is."""

    partition: Partition
    offset: int


def bytes_of(key: bytes | None, value: bytes | None, headers: Sequence[Header]) -> int:
    """Bytes of key, value and headers together."""
    of_headers = sum(len(name.encode()) + len(one or b"") for name, one in headers)
    return len(key or b"") + len(value or b"") + of_headers


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRecord:
    """A record to be written. `partition`: a number, or None for the one that its key says, as Java's client has it."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    partition: int | None = None

    @property
    def size(self) -> int:
        """Bytes of key, value and headers."""
        return bytes_of(self.key, self.value, self.headers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record(NewRecord):
    """A record as it was read; `partition` is never None. `at`: its timestamp."""

    offset: int
    at: datetime

    @property
    def position(self) -> Position:
        """Where it is."""
        assert self.partition is not None, "a record that was read has one"  # noqa: S101
        return Position(Partition(self.topic, self.partition), self.offset)


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of one read.

    Attributes:
        records: by partition in the order of their offsets.
        after: where to read on; a compacted topic has gaps, and so have transactions.
        is_end: whether that was all.

    """

    records: tuple[Record, ...]
    after: Mapping[Partition, int]
    is_end: bool


class Log(Protocol):
    """The cluster, as one re-driver uses it. Every call may raise CallFailed."""

    def partitions(self, topic: str) -> int:
        """How many there are."""
        ...

    def bounds(self, topic: str) -> dict[Partition, tuple[int, int]]:
        """The first offset of each partition, and that of the next record to be written."""
        ...

    def written_by(self, topic: str, at: datetime) -> int:
        """How many records the partitions had been given by then, since their beginning."""
        ...

    def committed(self, group: str, topic: str) -> dict[Partition, int]:
        """Where a group reads on; a partition without a committed offset is left out."""
        ...

    def commit(self, group: str, offsets: Mapping[Partition, int], note: str = "") -> None:
        """Note where our own group reads on, and a few words beside it."""
        ...

    def notes(self, group: str, topic: str) -> set[str]:
        """The words beside what a group has committed; none where there are none."""
        ...

    def read(self, start: Mapping[Partition, int], limit: int) -> Reading:
        """Records from these offsets on, about `limit` of them.

        An offset that is not there, as the topic was made anew or has forgotten it, is the first that is.
        """
        ...

    def write(self, records: Sequence[NewRecord]) -> list[Position | CallFailed]:
        """Write records; where each is once all in-sync replicas have it, or why it is not."""
        ...
