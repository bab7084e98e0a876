"""The log where a broker refuses what is written, or has what no client reads: librdkafka's mock cluster."""

import ctypes
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, Producer, cimpl

from smart_redriver.engine.errors import CallFailed
from smart_redriver.kafka.engine.client import KafkaLog
from smart_redriver.kafka.engine.records import UNREADABLE, NewRecord, Partition, Position
from tests.kafka.conftest import place_at

#: https://kafka.apache.org/protocol#protocol_api_keys
PRODUCE, INIT_PRODUCER_ID = 0, 22


class MockCluster:
    """One broker with the topic `orders`, for as long as this lives."""

    def __init__(self) -> None:
        self._owner = Producer({"test.mock.num.brokers": 1, "log_level": 0})
        (broker,) = self._owner.list_topics(timeout=10).brokers.values()
        self.servers = f"{broker.host}:{broker.port}"
        self._owner.produce("orders", b"first", partition=0)
        self._owner.flush(10)

    def answer(self, request: int, *codes: int) -> None:
        """Answer the next requests of a kind with these errors; Python's client has no name for that."""
        librdkafka, handle = self._librdkafka()
        librdkafka.rd_kafka_handle_mock_cluster.restype = ctypes.c_void_p
        librdkafka.rd_kafka_mock_push_request_errors_array(
            ctypes.c_void_p(librdkafka.rd_kafka_handle_mock_cluster(handle)),
            ctypes.c_short(request),
            ctypes.c_size_t(len(codes)),
            (ctypes.c_int * len(codes))(*codes),
        )

    def write_with_header(self, name: bytes) -> None:
        """Write a record with a header of any name, which Python's client does not take."""
        librdkafka, handle = self._librdkafka()
        # https://github.com/confluentinc/librdkafka: rd_kafka_vtype_t, each kind before what it is about.
        topic, value, header, end = (ctypes.c_int(kind) for kind in (1, 4, 9, 0))
        one, size = ctypes.c_char_p(b"1"), ctypes.c_size_t(1)
        librdkafka.rd_kafka_producev(
            handle,
            *(topic, ctypes.c_char_p(b"orders")),
            *(ctypes.c_int(3), ctypes.c_int(0)),  # the partition
            *(ctypes.c_int(7), ctypes.c_int(2)),  # copy what is given
            *(value, one, size),
            *(header, ctypes.c_char_p(name), one, size),
            end,
        )
        self._owner.flush(10)

    def _librdkafka(self) -> tuple[ctypes.CDLL, ctypes.c_void_p]:
        handle = ctypes.c_void_p.from_address(id(self._owner) + object.__basicsize__)
        return ctypes.CDLL(cimpl.__file__), handle


@pytest.fixture
def cluster() -> MockCluster:
    return MockCluster()


@pytest.fixture
def log(cluster: MockCluster) -> Iterator[KafkaLog]:
    log = KafkaLog(place_at(cluster.servers))
    yield log
    log.close()


def records(*values: bytes) -> list[NewRecord]:
    return [NewRecord(topic="orders", key=None, value=one, partition=0) for one in values]


def values_in(log: KafkaLog) -> list[bytes | None]:
    return [one.value for one in log.read({Partition("orders", 0): 1}, 100).records]


def code_of(written: Position | CallFailed) -> str:
    assert isinstance(written, CallFailed)
    return written.code


@pytest.mark.parametrize(
    "code",
    [
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.INVALID_RECORD,
    ],
)
def test_what_is_refused_of_a_batch_is_not_said_of_each_record_in_it(cluster, log, code):
    """Ten letters that a topic would take one by one were parked as too large for it."""
    cluster.answer(PRODUCE, code)

    written = log.write(records(b"a", b"b", b"c"))

    assert written == [Position(Partition("orders", 0), offset) for offset in (1, 2, 3)]
    assert values_in(log) == [b"a", b"b", b"c"]


def test_a_record_that_is_refused_alone_is_refused_and_the_others_are_written(cluster, log):
    too_large, taken = KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.NO_ERROR
    cluster.answer(PRODUCE, too_large, taken, too_large, taken)

    first, second, third = log.write(records(b"a", b"large", b"c"))

    assert isinstance(first, Position)
    assert code_of(second) == "LetterTooLarge"
    assert isinstance(third, Position)
    assert values_in(log) == [b"a", b"c"]


def test_a_record_is_not_taken_for_another_when_the_broker_does_not_say_where_it_is(cluster, log):
    """It was taken for the first of its partition: a group that had committed anything had succeeded with it."""
    cluster.answer(PRODUCE, KafkaError.DUPLICATE_SEQUENCE_NUMBER)

    (written,) = log.write(records(b"a"))

    assert code_of(written) == "NoAnswer"


def test_records_are_written_again_after_an_error_that_ended_the_producer(cluster, log):
    """It was raised as a SystemError, and each later write failed."""
    log.write(records(b"a"))
    cluster.answer(PRODUCE, KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER)

    failed = log.write(records(b"b", b"c"))
    written = log.write(records(b"d"))

    assert {code_of(one) for one in failed} == {"OUT_OF_ORDER_SEQUENCE_NUMBER"}
    assert written == [Position(Partition("orders", 0), 2)]
    assert values_in(log) == [b"a", b"d"]


def test_a_right_that_is_missing_is_told_until_it_is_given(cluster, log):
    refused = KafkaError.CLUSTER_AUTHORIZATION_FAILED
    cluster.answer(INIT_PRODUCER_ID, refused, refused)

    failed = [log.write(records(b"a", b"b")) for _ in range(2)]
    (written,) = log.write(records(b"c"))

    assert {code_of(one) for some in failed for one in some} == {"CLUSTER_AUTHORIZATION_FAILED"}
    assert written == Position(Partition("orders", 0), 1)


def test_a_header_whose_name_is_no_text_ends_no_read(cluster, log):
    """The process reported a bug and ended, each time that it came to the record."""
    for name in (
        *[b"fine"] * 50,
        b"\xff\xfe",
        b"fine",
    ):  # Python checks calls less once it has made some
        cluster.write_with_header(name)

    *before, unreadable, after = log.read({Partition("orders", 0): 1}, 100).records

    assert (unreadable.value, unreadable.headers) == (b"1", (UNREADABLE,))
    assert {one.headers for one in (*before, after)} == {(("fine", b"1"),)}
