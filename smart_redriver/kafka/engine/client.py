"""The log over confluent-kafka. Its wheels include librdkafka, the client of most languages except Java.

Failures are named in the same way as those of calls to AWS: no answer is transient, a topic that is gone is a refusal.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

from confluent_kafka import (
    OFFSET_END,
    OFFSET_INVALID,
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicCollection,
    TopicPartition,
    Uuid,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ConfigResource,
    ResourceType,
    TopicDescription,
)

from smart_redriver.engine.errors import CONTENT_FAULTS, GONE, CallFailed
from smart_redriver.kafka.engine.credentials import Account, OwnAccount, client_settings
from smart_redriver.kafka.engine.place import KafkaTopics
from smart_redriver.kafka.engine.records import (
    UNREADABLE,
    Header,
    NewRecord,
    Partition,
    Position,
    Reading,
    Record,
)

T = TypeVar("T")

#: The most seconds that a question may take.
PATIENCE = 20.0
#: Seconds until a record is written or given up: librdkafka retries until then.
WRITE_PATIENCE = 30.0
#: The most that librdkafka accepts.
_MOST_BYTES = 1_000_000_000
#: Seconds that one wait for records lasts.
_WAIT = 1.0

#: Error codes that say that this record can't be written, as in `engine.errors`.
_OF_CONTENT = {
    KafkaError.MSG_SIZE_TOO_LARGE: "LetterTooLarge",
    KafkaError.INVALID_MSG_SIZE: "LetterTooLarge",
    KafkaError.RECORD_LIST_TOO_LARGE: "LetterTooLarge",
    KafkaError.INVALID_RECORD: "InvalidLetter",
    # Another record of its batch is refused.
    KafkaError._INVALID_DIFFERENT_RECORD: "InvalidLetter",
}
_NO_ANSWER = frozenset(
    {
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._MSG_TIMED_OUT,
        KafkaError._RESOLVE,
        KafkaError._TIMED_OUT,
        KafkaError._TRANSPORT,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
    }
)
#: The id of topics on brokers before 2.8, which give none.
_NO_TOPIC_ID = str(Uuid(0, 0))
#: Errors of records that a producer still had when it ended.
_PURGED = frozenset({KafkaError._PURGE_INFLIGHT, KafkaError._PURGE_QUEUE})


def failed_call(call: str, error: KafkaError, topic: str = "") -> CallFailed:
    """Return the failed call for an error of Kafka, with the name of the topic if one is given."""
    code, name = error.code(), error.name()
    detail = f"{topic}: {error.str()}" if topic else error.str()
    if of_content := _OF_CONTENT.get(code):
        return CallFailed(call, of_content, detail)
    # librdkafka would retry for a topic that is gone, but it does not come back by waiting.
    is_passing = name not in GONE and (code in _NO_ANSWER or error.retriable())
    return CallFailed(call, "NoAnswer" if is_passing else name, detail)


@contextmanager
def _naming(call: str, topic: str = "") -> Iterator[None]:
    try:
        yield
    except (KafkaException, SystemError) as raised:
        raise failed_call(call, _error_in(raised), topic) from raised


def _error_in(raised: KafkaException | SystemError) -> KafkaError:
    """The client's error. If it reports another error while it raises, the first is the cause of a SystemError."""
    first = raised if isinstance(raised, KafkaException) else raised.__cause__
    if not isinstance(first, KafkaException):
        raise raised
    error: KafkaError = first.args[0]
    return error


def _settings(place: KafkaTopics, account: Account) -> dict[str, Any]:
    """The settings of every client of the cluster. Raises CallFailed."""
    return {
        **place.client,
        **client_settings(place, account),
        "bootstrap.servers": place.servers,
        # The client raises what it would print, or tries again.
        "log_level": 0,
    }


class KafkaLog:
    """See `Log`. Partitions are assigned, not subscribed to: the lease says who is at work, and no join is needed."""

    @_naming("OpenClient")
    def __init__(self, place: KafkaTopics, account: Account | None = None) -> None:
        self._settings = {
            **_settings(place, account or OwnAccount()),
            "error_cb": self._note_error,
        }
        self._last_error = ""
        self._group = place.group
        self._reader = self._consumer(place.group)
        self._groups = {place.group: self._reader}
        # A topic limits the size of a batch.
        self._batch_bytes = min(1_000_000, place.max_message_bytes)
        self._producer = self._new_producer()
        self._admin: AdminClient | None = None

    def reach(self, patience: float) -> None:
        """Wait until a broker answers, for at most `patience` seconds. Raises CallFailed with the reason."""
        self._serve(self._reader)
        try:
            self._reader.list_topics(timeout=patience)
        except KafkaException as raised:
            self._serve(self._reader)
            failed = failed_call("DescribeCluster", raised.args[0])
            detail = self._last_error or failed.detail
            raise CallFailed(failed.call, failed.code, detail) from raised

    def _note_error(self, error: KafkaError) -> None:
        """Keep the reason why a connection failed. An error that all are down says less."""
        if error.code() != KafkaError._ALL_BROKERS_DOWN:
            self._last_error = error.str()

    def partitions(self, topic: str) -> int:
        """See `Log`."""
        self._serve(self._reader)
        with _naming("DescribeTopic", topic):
            told = self._reader.list_topics(topic, timeout=PATIENCE).topics[topic]
        if told.error is not None:
            raise failed_call("DescribeTopic", told.error, topic)
        return len(told.partitions)

    def topic_ids(self, topics: Sequence[str]) -> dict[str, str]:
        """See `Log`: https://cwiki.apache.org/confluence/display/KAFKA/KIP-516%3A+Topic+Identifiers.

        librdkafka waits for the controller before it asks. Its own mock cluster has none.
        """
        with _naming("DescribeTopics"):
            cluster = self._reader.list_topics(topics[0], timeout=PATIENCE)
            if cluster.controller_id not in cluster.brokers:
                return {}
            if self._admin is None:
                self._admin = AdminClient(dict(self._settings))
            self._serve(self._admin)
            asked = self._admin.describe_topics(
                TopicCollection(list(topics)), request_timeout=PATIENCE
            )
        told = {topic: _topic_id(topic, future) for topic, future in asked.items()}
        return {topic: one for topic, one in told.items() if one is not None}

    def bounds(self, topic: str) -> dict[Partition, tuple[int, int]]:
        """See `Log`."""
        known = {}
        for number in range(self.partitions(topic)):
            with _naming("ListOffsets", topic):
                first, end = self._reader.get_watermark_offsets(
                    TopicPartition(topic, number), timeout=PATIENCE
                )
            known[Partition(topic, number)] = (max(0, first), max(0, end))
        return known

    def written_by(self, topic: str, at: datetime) -> int:
        """See `Log`."""
        asked = [
            TopicPartition(topic, number, int(at.timestamp() * 1000))
            for number in range(self.partitions(topic))
        ]
        with _naming("ListOffsets", topic):
            told = self._reader.offsets_for_times(asked, timeout=PATIENCE)
        ends = self.bounds(topic) if any(one.offset == OFFSET_END for one in told) else {}
        for one in told:
            if one.error is not None:
                raise failed_call("ListOffsets", one.error, topic)
        return sum(
            ends[Partition(topic, one.partition)][1] if one.offset == OFFSET_END else one.offset
            for one in told
        )

    def committed(self, group: str, topic: str) -> dict[Partition, int]:
        """See `Log`."""
        return {
            Partition(one.topic, one.partition): one.offset for one in self._committed(group, topic)
        }

    def notes(self, group: str, topic: str) -> set[str]:
        """See `Log`."""
        return {one.metadata for one in self._committed(group, topic) if one.metadata}

    def _committed(self, group: str, topic: str) -> list[TopicPartition]:
        asked = [TopicPartition(topic, number) for number in range(self.partitions(topic))]
        consumer = self._groups.get(group)
        if consumer is None:
            consumer = self._groups[group] = self._consumer(group)
        self._serve(consumer)
        with _naming("FetchOffsets", topic):
            told = consumer.committed(asked, timeout=PATIENCE)
        for one in told:
            if one.error is not None:
                raise failed_call("FetchOffsets", one.error, topic)
        return [one for one in told if one.offset not in (OFFSET_INVALID, None) and one.offset >= 0]

    def commit(self, group: str, offsets: Mapping[Partition, int], note: str = "") -> None:
        """See `Log`."""
        assert group == self._group, "no other group's position is ours to move"  # noqa: S101
        wanted = [
            TopicPartition(one.topic, one.number, at, metadata=note) for one, at in offsets.items()
        ]
        with _naming("CommitOffsets"):
            told = self._reader.commit(offsets=wanted, asynchronous=False)
        for one in told or ():
            if one.error is not None:
                raise failed_call("CommitOffsets", one.error, one.topic)

    def read(self, start: Mapping[Partition, int], limit: int) -> Reading:
        """See `Log`. Silence does not mean the end: only the broker's own answer does."""
        if not start:
            return Reading((), {}, is_end=True)
        with _naming("Fetch"):
            self._reader.assign(
                [TopicPartition(one.topic, one.number, at) for one, at in start.items()]
            )
            try:
                return self._read(dict(start), limit)
            finally:
                self._reader.unassign()

    def _read(self, after: dict[Partition, int], limit: int) -> Reading:
        records: list[Record] = []
        ended: set[Partition] = set()
        until = time.monotonic() + PATIENCE
        while len(records) < limit and len(ended) < len(after):
            message = self._reader.poll(_WAIT)
            if message is not None:
                self._take(message, records, after, ended)
            elif time.monotonic() > until:
                if not records:
                    raise CallFailed("Fetch", "NoAnswer", "no broker told the end of a partition")
                break
        return Reading(tuple(records), after, is_end=len(ended) == len(after))

    def _take(
        self,
        message: Message,
        records: list[Record],
        after: dict[Partition, int],
        ended: set[Partition],
    ) -> None:
        error = message.error()
        at = Partition(message.topic() or "", message.partition() or 0)
        if error is None:
            records.append(_record(message))
            after[at] = records[-1].offset + 1
            ended.discard(at)
        elif error.code() == KafkaError._PARTITION_EOF:
            ended.add(at)
            # Behind gaps of a compacted topic, or of transactions.
            after[at] = max(after[at], message.offset() or 0)
        elif not error.retriable() and error.code() not in _NO_ANSWER:
            raise failed_call("Fetch", error, at.topic)

    def write(self, records: Sequence[NewRecord]) -> list[Position | CallFailed]:
        """See `Log`. An answer about a record is about that record alone.

        A topic refuses a whole batch for a fault of one record, or because the batch is too large.
        """
        written = self._write(records)
        for number, one in enumerate(written):
            if isinstance(one, CallFailed) and one.code in CONTENT_FAULTS and len(records) > 1:
                [written[number]] = self._write([records[number]])
        return written

    def _write(self, records: Sequence[NewRecord]) -> list[Position | CallFailed]:
        written: list[Position | CallFailed | None] = [None] * len(records)
        for number, one in enumerate(records):
            try:
                self._produce(one, _noting(written, number))
            except KafkaException as raised:
                written[number] = failed_call("Produce", raised.args[0])
            except BufferError:
                written[number] = CallFailed("Produce", "NoAnswer", "too many records wait")
        silence = CallFailed("Produce", "NoAnswer", "nobody said whether it was written")
        unanswered = self._flush() or silence
        return [one if one is not None else unanswered for one in written]

    def _flush(self) -> CallFailed | None:
        """Wait for answers. Returns the error that ended the producer for good, if any; there is a new producer then.

        librdkafka raises such an error among the answers.
        """
        try:
            self._producer.flush(WRITE_PATIENCE + PATIENCE)
        except (KafkaException, SystemError) as raised:
            failed = failed_call("Produce", _error_in(raised))
            self._producer = self._new_producer()
            return failed
        return None

    def close(self) -> None:
        """Close the connections to the cluster."""
        for one in self._groups.values():
            one.close()

    def _produce(self, one: NewRecord, told: Callable[[KafkaError | None, Message], None]) -> None:
        where: dict[str, Any] = {} if one.partition is None else {"partition": one.partition}
        self._producer.produce(
            one.topic,
            key=one.key,
            value=one.value,
            headers=list(one.headers),
            on_delivery=told,
            **where,
        )

    def _new_producer(self) -> Producer:
        return Producer(
            {
                **self._settings,
                "acks": "all",
                "enable.idempotence": True,
                "partitioner": "murmur2_random",
                "message.timeout.ms": int(WRITE_PATIENCE * 1000),
                # The topic decides whether it accepts a record: the parking topic may accept more than the others.
                "message.max.bytes": _MOST_BYTES,
                "batch.size": self._batch_bytes,
                "linger.ms": 5,
            }
        )

    @staticmethod
    def _serve(client: Consumer | AdminClient) -> None:
        """Let librdkafka ask for a token, which it does only while polled. Nothing is assigned yet."""
        client.poll(0)

    def _consumer(self, group: str) -> Consumer:
        return Consumer(
            {
                **self._settings,
                "group.id": group,
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 100,
                "isolation.level": "read_committed",
            }
        )


class KafkaAdministration:
    """See `Administration` in `kafka.doctor`."""

    @_naming("OpenClient")
    def __init__(self, place: KafkaTopics, account: Account) -> None:
        self._client = AdminClient(_settings(place, account))

    def settings(self, topic: str) -> Mapping[str, str]:
        """See `Administration`."""
        call, asked = "DescribeConfigs", ConfigResource(ResourceType.TOPIC, topic)
        with _naming(call):
            told = self._client.describe_configs([asked])
        entries = _answer(call, told[asked])
        return {name: one.value for name, one in entries.items() if one.value is not None}

    def rights_on_topic(self, topic: str) -> frozenset[str] | None:
        """See `Administration`."""
        call, asked = "DescribeTopics", TopicCollection([topic])
        with _naming(call):
            told = self._client.describe_topics(asked, include_authorized_operations=True)
        return _rights(_answer(call, told[topic]))

    def rights_on_group(self, group: str) -> frozenset[str] | None:
        """See `Administration`."""
        call = "DescribeGroups"
        with _naming(call):
            told = self._client.describe_consumer_groups(
                [group], include_authorized_operations=True
            )
        return _rights(_answer(call, told[group]))


def _answer(call: str, asked: Future[T], topic: str = "") -> T:
    """Wait for an answer to an AdminClient. Raises CallFailed."""
    try:
        with _naming(call, topic):
            return asked.result(PATIENCE)
    except TimeoutError as raised:
        raise CallFailed(call, "NoAnswer", "no broker answered in time") from raised


def _rights(described: Any) -> frozenset[str] | None:
    told = described.authorized_operations
    return frozenset(one.name for one in told) if told else None


def _topic_id(topic: str, described: Future[TopicDescription]) -> str | None:
    """The id of a topic; None if it is gone, or of brokers that give none. Raises CallFailed."""
    try:
        topic_id = str(_answer("DescribeTopics", described, topic).topic_id)
    except CallFailed as failed:
        if failed.code in GONE:
            return None
        raise
    return None if topic_id == _NO_TOPIC_ID else topic_id


def _noting(
    written: list[Position | CallFailed | None], number: int
) -> Callable[[KafkaError | None, Message], None]:
    def told(error: KafkaError | None, message: Message) -> None:
        offset = message.offset()
        if error is not None and error.code() in _PURGED:
            return  # the flush raises the producer's error
        if error is not None:
            written[number] = failed_call("Produce", error, message.topic() or "")
        elif offset is None:
            # Any other place would be another record's.
            written[number] = CallFailed("Produce", "NoAnswer", "nobody said where it was written")
        else:
            partition = Partition(message.topic() or "", message.partition() or 0)
            written[number] = Position(partition, offset)

    return told


def _record(message: Message) -> Record:
    kind, milliseconds = message.timestamp()
    at = 0 if kind == TIMESTAMP_NOT_AVAILABLE else milliseconds
    return Record(
        topic=message.topic() or "",
        partition=message.partition() or 0,
        offset=message.offset() or 0,
        key=_bytes(message.key()),
        value=_bytes(message.value()),
        headers=_headers(message),
        at=datetime.fromtimestamp(min(max(0, at), 253_402_300_799_000) / 1000, UTC),
    )


def _headers(message: Message) -> tuple[Header, ...]:
    """The headers. For a name that is no UTF-8, the client raises and also returns a broken list.

    Python may see only the list, and crash on it, unless `map` makes the call: it always checks for both.
    """
    try:
        headers = next(map(Message.headers, (message,))) or []
    except SystemError:
        return (UNREADABLE,)
    assert isinstance(headers, list), "the client gives what it takes"  # noqa: S101
    return tuple((name, _bytes(value)) for name, value in headers)


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
