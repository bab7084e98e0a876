"""Records of a topic, and the log that holds them: the port that a Kafka client and the fake implement. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol

from smart_redriver.engine.errors import CallFailed

Header = tuple[str, bytes | None]

#: Stands for headers that no client gives us, because the name of one is no UTF-8.
UNREADABLE: Header = ("RedriveHeadersUnreadable", b"")


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
    """A record to write. `partition`: a number, or None to derive it from the key as Java's client does."""

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
        after: where to read on. Compacted topics and transactions have gaps.
        is_end: whether there was nothing more.

    """

    records: tuple[Record, ...]
    after: Mapping[Partition, int]
    is_end: bool


class Log(Protocol):
    """The cluster for one re-driver. Every call may raise CallFailed."""

    def partitions(self, topic: str) -> int:
        """The number of partitions."""
        ...

    def topic_ids(self, topics: Sequence[str]) -> dict[str, str]:
        """The ids that the cluster gives these topics: each creation has another. Those without one are left out."""
        ...

    def bounds(self, topic: str) -> dict[Partition, tuple[int, int]]:
        """The first offset of each partition, and the offset of the next record to be written."""
        ...

    def written_by(self, topic: str, at: datetime) -> int:
        """How many records had been written to the partitions by then, since their beginning."""
        ...

    def committed(self, group: str, topic: str) -> dict[Partition, int]:
        """Where a group reads on; a partition without a committed offset is left out."""
        ...

    def commit(self, group: str, offsets: Mapping[Partition, int], note: str = "") -> None:
        """Commit where our own group reads on, with a short note."""
        ...

    def notes(self, group: str, topic: str) -> set[str]:
        """The notes with a group's commits, if any."""
        ...

    def read(self, start: Mapping[Partition, int], limit: int) -> Reading:
        """Read about `limit` records from these offsets on.

        If an offset does not exist, because the topic was made anew or has dropped it, read from the first that does.
        """
        ...

    def write(self, records: Sequence[NewRecord]) -> list[Position | CallFailed]:
        """Write records. Returns the position of each once all in-sync replicas have it, or its failure."""
        ...
