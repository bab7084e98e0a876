"""The fake log does what a cluster does: one set of tests for both, over librdkafka's mock cluster."""

from datetime import timedelta

import pytest

from fakes.kafka import FakeLog
from smart_redriver.engine.errors import CallFailed
from smart_redriver.kafka.engine.records import NewRecord, Partition, Position
from tests.kafka.conftest import PARTITIONS

GROUP = "redrive-orders"


@pytest.fixture
def topic(new_topic) -> str:
    return new_topic()


def own_group(log) -> str:
    return GROUP if isinstance(log, FakeLog) else log._group


def record(topic, value, *, key=b"k", partition=None, headers=()):
    return NewRecord(topic=topic, key=key, value=value, partition=partition, headers=headers)


def ends(log, topic):
    return {one: end for one, (_, end) in log.bounds(topic).items()}


def test_what_is_written_is_read_with_key_headers_and_place(log, topic):
    start = ends(log, topic)
    headers = (("a", b"1"), ("a", b"2"), ("none", None), ("bytes", b"\x00\xff"))

    (where,) = log.write([record(topic, b"v", partition=2, headers=headers)])
    reading = log.read(start, 10)

    assert where == Position(Partition(topic, 2), start[Partition(topic, 2)])
    (read,) = reading.records
    assert (read.key, read.value, read.headers, read.position) == (b"k", b"v", headers, where)


def test_a_record_is_written_that_is_larger_than_messages_may_be(log, topic):
    """The parking topic may take what the others do not."""
    value = bytes(2_000_000)

    (where,) = log.write([record(topic, value, partition=0)])

    assert isinstance(where, Position)


def test_a_record_without_key_and_value_stays_so(log, topic):
    start = ends(log, topic)

    log.write([record(topic, None, key=None, partition=0)])

    (read,) = log.read(start, 10).records
    assert (read.key, read.value) == (None, None)


def test_records_of_a_partition_keep_their_order_and_its_end_is_told(log, topic):
    start = ends(log, topic)
    log.write([record(topic, b"%d" % n, partition=1) for n in range(20)])

    reading = log.read(start, 100)

    assert [one.value for one in reading.records] == [b"%d" % n for n in range(20)]
    assert reading.is_end
    assert reading.after == ends(log, topic)


def test_a_read_that_is_full_goes_on_where_it_ended(log, topic):
    start = ends(log, topic)
    log.write([record(topic, b"%d" % n, partition=n % PARTITIONS) for n in range(20)])

    first = log.read(start, 7)
    rest = log.read(first.after, 100)

    values = {one.value for one in (*first.records, *rest.records)}
    assert len(first.records) + len(rest.records) == 20
    assert len(values) == 20
    assert rest.is_end
    assert not first.is_end


def test_records_of_one_key_are_in_one_partition(log, topic):
    written = log.write([record(topic, b"v", key=b"alpha") for _ in range(5)])

    assert len({one.partition for one in written}) == 1


def test_an_empty_topic_has_an_end(log, topic):
    reading = log.read(ends(log, topic), 10)

    assert (reading.records, reading.is_end) == ((), True)


def test_how_many_records_had_been_written_by_a_moment_is_known(log, topic):
    log.write([record(topic, b"%d" % n, partition=n % PARTITIONS) for n in range(20)])
    there = [one.at for one in log.read(dict.fromkeys(ends(log, topic), 0), 100).records]
    end, second = sum(ends(log, topic).values()), timedelta(seconds=1)

    assert log.written_by(topic, max(there) + second) == end
    if isinstance(log, FakeLog):  # the mock cluster does not know when its records were written
        assert log.written_by(topic, min(there)) == 0


def test_a_group_reads_on_where_it_committed_and_another_does_not(log, topic):
    one, other = Partition(topic, 0), Partition(topic, 3)

    log.commit(own_group(log), {one: 5, other: 7})

    assert log.committed(own_group(log), topic) == {one: 5, other: 7}
    assert log.committed("somebody else", topic) == {}


def test_words_beside_a_position_are_kept_until_the_next_is_committed(log, topic):
    one, other = Partition(topic, 0), Partition(topic, 1)
    told = []

    for note in ("mine", "yours", ""):
        log.commit(own_group(log), {one: 5}, note)
        told.append(log.notes(own_group(log), topic))
    log.commit(own_group(log), {one: 6}, "mine")
    log.commit(own_group(log), {other: 7}, "yours")

    assert told == [{"mine"}, {"yours"}, set()]
    assert log.notes(own_group(log), topic) == {"mine", "yours"}
    assert log.notes("somebody else", topic) == set()


def test_a_position_may_go_back(log, topic):
    one = Partition(topic, 0)
    log.commit(own_group(log), {one: 5})

    log.commit(own_group(log), {one: 2})

    assert log.committed(own_group(log), topic) == {one: 2}


def test_a_topic_that_is_not_there_is_refused(log):
    with pytest.raises(CallFailed) as failed:
        log.partitions("nowhere")

    assert failed.value.code == "UNKNOWN_TOPIC_OR_PART"
    assert "nowhere" in failed.value.detail  # of four topics, that one is missing


def test_a_partition_that_is_not_there_is_refused_and_the_others_are_written(log, topic):
    bad, good = log.write([record(topic, b"v", partition=99), record(topic, b"v", partition=0)])

    assert isinstance(bad, CallFailed)
    assert bad.code == "_UNKNOWN_PARTITION"
    assert isinstance(good, Position)


def test_an_offset_beyond_the_end_is_the_first_as_the_topic_was_made_anew(log, topic):
    log.write([record(topic, b"v", partition=2)])
    two = Partition(topic, 2)
    (first, _), there = log.bounds(topic)[two], log.read({two: 0}, 10).records

    reading = log.read({two: 1_000}, 10)

    assert reading.records == there
    assert reading.records[0].offset == first
