"""What the libraries write to a DLQ topic, as they write it, and whatever else may be in a header."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_redriver.engine.messages.letter import METADATA_ATTRIBUTE, RedriveMetadata
from smart_redriver.kafka.engine.letters import HELD_HEADER, dead_of, id_at, place_in
from smart_redriver.kafka.engine.records import NewRecord, Partition, Position, Record
from smart_redriver.kafka.engine.shapes import Death, message_of
from tests.kafka.conftest import place_at

OWN = (("traceparent", b"00-1"), ("tenant", b"a"), ("tenant", b"b"), ("x-original-for", b"1.2.3.4"))


def four(number):
    return number.to_bytes(4, "big")


def eight(number):
    return number.to_bytes(8, "big")


SPRING = (
    ("kafka_dlt-original-topic", b"orders"),
    ("kafka_dlt-original-partition", four(3)),
    ("kafka_dlt-original-offset", eight(17)),
    ("kafka_dlt-original-timestamp", eight(1_700_000_000_000)),
    ("kafka_dlt-original-timestamp-type", b"CreateTime"),
    ("kafka_dlt-original-consumer-group", b"shop"),
    ("kafka_dlt-exception-fqcn", b"org.springframework.kafka.ListenerExecutionFailedException"),
    ("kafka_dlt-exception-cause-fqcn", b"java.lang.IllegalStateException"),
    ("kafka_dlt-exception-message", b"card declined"),
    ("kafka_dlt-exception-stacktrace", b"at A\nat B"),
)
RETRY_TOPICS = (
    ("kafka_original-topic", b"orders"),
    ("kafka_original-partition", four(3)),
    ("kafka_original-offset", eight(17)),
    ("kafka_exception-fqcn", b"java.lang.IllegalStateException"),
    ("kafka_exception-message", b"card declined"),
    ("kafka_exception-stacktrace", b"at A\nat B"),
    ("kafka_original-consumer-group", b"shop"),
    ("retry_topic-attempts", four(4)),
    ("retry_topic-backoff-timestamp", eight(1)),
)
CONNECT = (
    ("__connect.errors.topic", b"orders"),
    ("__connect.errors.partition", b"3"),
    ("__connect.errors.offset", b"17"),
    ("__connect.errors.connector.name", b"shop"),
    ("__connect.errors.task.id", b"0"),
    ("__connect.errors.stage", b"VALUE_CONVERTER"),
    ("__connect.errors.class.name", b"org.apache.kafka.connect.json.JsonConverter"),
    ("__connect.errors.exception.class.name", b"java.lang.IllegalStateException"),
    ("__connect.errors.exception.message", b"card declined"),
    ("__connect.errors.exception.stacktrace", b"at A\nat B"),
)
X_ORIGINAL = (
    ("x-original-topic", b"orders"),
    ("x-original-partition", four(3)),
    ("x-original-offset", eight(17)),
    ("x-original-timestamp", eight(1)),
    ("x-exception-fqcn", b"java.lang.IllegalStateException"),
    ("x-exception-message", b"card declined"),
    ("x-exception-stacktrace", b"at A\nat B"),
    ("x-original-group", b"shop"),
)
ALL = {"spring": SPRING, "retry topics": RETRY_TOPICS, "connect": CONNECT, "x": X_ORIGINAL}


def record(headers=(), value=b"v", key=b"k"):
    return NewRecord(topic="orders.DLT", key=key, value=value, headers=tuple(headers))


def read(headers=(), value=b"v", key=b"k", offset=5):
    return Record(
        topic="orders.DLT",
        partition=1,
        offset=offset,
        key=key,
        value=value,
        headers=tuple(headers),
        at=datetime(2026, 1, 1, tzinfo=UTC),
    )


def dead(record, *topics):
    return dead_of(record, place_at("broker:9092", topics=list(topics or ["orders"])))


@pytest.mark.parametrize("shape", ALL)
def test_each_library_tells_where_and_of_what_a_message_died(shape):
    message = message_of(record((*OWN[:2], *ALL[shape], *OWN[2:])))

    death = message.death
    assert (death.topic, death.partition, death.offset, death.group) == ("orders", 3, 17, "shop")
    assert death.error_class == "java.lang.IllegalStateException"
    assert (death.error_message, death.stack_trace) == ("card declined", "at A\nat B")


@pytest.mark.parametrize("shape", ALL)
def test_the_producers_own_headers_stay_in_their_order(shape):
    message = message_of(record((*OWN[:2], *ALL[shape], *OWN[2:])))

    assert (message.headers, message.key, message.value) == (OWN, b"k", b"v")


@pytest.mark.parametrize("shape", ALL)
def test_of_headers_that_were_added_again_the_last_counts(shape):
    (topic, partition, offset, *_) = (name for name, _ in ALL[shape])
    again = ((topic, b"orders"), (partition, b"4"), (offset, b"99"))

    death = message_of(record((*ALL[shape], *again))).death

    assert (death.partition, death.offset) == (4, 99)


#: Headers that producers use, too.
SHARED = (
    ("x-attempts", b"5"),
    ("x-attempt-count", b"5"),
    ("x-retry-count", b"5"),
    ("x-consumer-group", b"shop"),
    ("x-error-class", b"E"),
    ("x-error-message", b"it broke"),
    ("x-error-stacktrace", b"at A"),
)


def test_a_producers_own_headers_stay_though_a_consumer_may_add_some_of_these_names():
    """They were dropped from the redriven message. A consumer appends its own to those that it read."""
    message = message_of(record((*OWN, *SHARED, *X_ORIGINAL)))

    assert message.headers == (*OWN, *SHARED)


def test_a_consumers_count_of_attempts_does_not_come_back_beside_the_producers():
    """The consumer would take the redriven message for one at its last attempt."""
    behind = tuple((name, b"9") for name, _ in SHARED)

    message = message_of(record((*OWN, *SHARED, *X_ORIGINAL, *behind)))

    assert message.headers == (*OWN, *SHARED)
    assert message.death.attempts == 9


#: JSON that is another text once it was read and written: by its numbers, its names, its blanks.
AS_WRITTEN = (
    b'{"n": 12345678901234567890, "x": 1.10, "y": 1e400, "z": [0.1000000000000000055511151231257827],'
    b' "n": "\\u00fc\xc3\xbc", "deep": {"n": 1,"n" : 2} }'
)


def test_an_envelope_is_taken_off():
    value = b"""
    { "original_topic" : "orders", "original_partition": 3, "original_offset": 17,
      "attempt_count": 4, "error_class": "Declined", "error_message": "no money",
      "failed_at": "2026-01-01T10:00:00Z", "original_key": "7", "more": [{"payload": 1}, 2.5],
      "original_headers": {"tenant": "a", "none": null, "tenant": "b"},
      "payload": %b }
    """

    message = message_of(record(value=value % AS_WRITTEN))

    assert message.is_whole
    assert message.value == AS_WRITTEN
    assert message.key == b"7"
    assert message.headers == (("tenant", b"a"), ("none", None), ("tenant", b"b"))
    assert message.death == Death(
        topic="orders",
        partition=3,
        offset=17,
        attempts=4,
        error_class="Declined",
        error_message="no money",
        failed_at=datetime(2026, 1, 1, 10, tzinfo=UTC),
    )


@pytest.mark.parametrize(
    ("payload", "value"),
    [
        ({"payload": "plain text"}, b"plain text"),
        ({"payload": None}, None),
        ({"payload_base64": "AP8="}, b"\x00\xff"),
    ],
)
def test_an_envelopes_payload_is_what_was_sent(payload, value):
    envelope = {"original_topic": "orders", "attempt_count": 1} | payload

    assert message_of(record(value=json.dumps(envelope).encode())).value == value


@given(
    st.dictionaries(
        st.text(),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
            lambda some: st.lists(some) | st.dictionaries(st.text(), some),
            max_leaves=5,
        ),
    ),
    st.sampled_from([None, 1]),
    st.booleans(),
)
def test_the_payload_of_any_envelope_is_what_stands_in_it(payload, indent, is_ascii):
    written = json.dumps(payload, indent=indent, ensure_ascii=is_ascii)
    value = f'{{"original_topic":"orders","payload":{written},"error_class":"E"}}'.encode()

    message = message_of(record(value=value))

    assert (message.value, message.is_whole) == (written.encode(), True)


@pytest.mark.parametrize(
    "faulty",
    [
        '"error_message": "it has no payload"',
        '"payload_base64": "?"',
        '"payload_base64": true, "payload": 1',
        r'"payload": "\ud800"',
        r'"payload": {"a": 1}, "payload": {"a": 2}',
        r'"payload": 1, "original_key": "\ud800"',
        '"payload": 1, "original_key": 7',
        '"payload": 1, "original_headers": {"n": 7}',
        '"payload": 1, "original_headers": {"n": ["a"]}',
        '"payload": 1, "original_headers": [["n", "a"]]',
        '"payload": 1, "original_headers": "n=a"',
        r'"payload": 1, "original_headers": {"n": "\ud800"}',
        r'"payload": 1, "original_headers": {"\ud800": "a"}',
        '"payload": ' + 5_000 * "[" + 5_000 * "]",
    ],
)
def test_an_envelope_whose_message_can_not_be_sent_as_it_was_is_incomplete(faulty):
    value = f'{{"original_topic": "orders", "error_class": "E", {faulty}}}'.encode()

    letter = dead(read(value=value)).letter

    assert letter.unfit is not None
    assert letter.unfit.value == "INCOMPLETE"


@pytest.mark.parametrize("topic", ['["orders"]', '{"name": "orders"}', "7", "null", '"or ders"'])
def test_an_envelope_that_does_not_name_a_topic_is_incomplete(topic):
    """The consumer got the envelope itself."""
    value = f'{{"original_topic": {topic}, "error_class": "E", "payload": 1}}'.encode()

    letter = dead(read(value=value)).letter

    assert letter.unfit is not None
    assert letter.unfit.value == "INCOMPLETE"


def test_a_key_that_is_no_text_is_the_records_if_it_says_the_same():
    value = b'{"original_topic": "orders", "error_class": "E", "payload": 1, "original_key": 7}'

    message = message_of(record(value=value, key=b"7"))

    assert (message.key, message.is_whole) == (b"7", True)


@pytest.mark.parametrize(
    "value",
    [
        b'{"original_topic": "orders", "error_class": "E", "payload": 1} {}',
        b'{"original_topic": "orders", "error_class": "E", "payload": 1',
        b'{"original_topic": "orders", "error_class": "E", "payload": 1,}',
        b'{"original_topic": "orders", "error_class": "E", 7: 1}',
        b'{"message": {"original_topic": "orders", "error_class": "E", "payload": 1}}',
        b'["original_topic", "error_class"]',
    ],
)
def test_what_is_no_envelope_is_a_message_by_itself(value):
    message = message_of(record(OWN, value=value))

    assert (message.value, message.headers, message.is_whole) == (value, OWN, True)


@pytest.mark.parametrize("beside", [(), ("trail",)], ids=["within alone", "beside, too"])
def test_redrive_metadata_among_the_headers_in_an_envelope_is_the_letters(beside):
    metadata = RedriveMetadata(
        queue="orders",
        original_id="first",
        redrive_count=2,
        first_seen=datetime(2026, 1, 1, tzinfo=UTC),
        batch=3,
        generation=1,
    )
    envelope = {
        "original_topic": "orders",
        "error_class": "E",
        "payload": "a",
        "original_headers": {"tenant": "a", METADATA_ATTRIBUTE: metadata.encode()},
    }

    later = replace(metadata, redrive_count=3, batch=4)
    headers = [(METADATA_ATTRIBUTE, later.encode().encode()) for _ in beside]

    known = dead(read(headers, value=json.dumps(envelope).encode()))

    assert known.letter.metadata == (later if beside else metadata)
    assert known.message.headers == (("tenant", b"a"),)


def test_a_message_that_only_looks_like_an_envelope_is_one_by_itself():
    value = b'{"original_topic": "orders", "amount": 3}'

    message = message_of(record(OWN, value=value))

    assert (message.value, message.headers, message.death) == (value, OWN, Death())


def test_a_letter_of_a_topic_that_is_not_listed_is_of_unknown_origin():
    letter = dead(read((("x-original-topic", b"payments"),))).letter

    assert letter.unfit is not None
    assert letter.unfit.value == "UNKNOWN_ORIGIN"


def test_a_letter_that_says_nothing_goes_back_to_the_only_topic_and_to_none_of_several():
    assert dead(read()).letter.unfit is None

    assert dead(read(), "orders", "payments").letter.unfit is not None


def test_a_letter_goes_by_where_its_message_was_so_that_a_copy_is_known():
    copy = id_at(Position(Partition("orders", 3), 17), b"k", b"v")

    assert dead(read(SPRING)).letter.message_id == copy
    assert place_in(copy) == (3, 17)


def test_a_topic_made_anew_has_other_letters_at_the_same_offsets():
    one, other = dead(read(SPRING, value=b"old")), dead(read(SPRING, value=b"new"))

    assert one.letter.message_id != other.letter.message_id


@given(
    headers=st.lists(
        st.tuples(
            st.sampled_from(
                [name for shape in ALL.values() for name, _ in shape]
                + [HELD_HEADER, "RedriveTrail", "own"]
            )
            | st.text(),
            st.none() | st.binary(max_size=40) | st.just(b"orders"),
        ),
        max_size=12,
    ),
    key=st.none() | st.binary(max_size=10),
    value=st.none()
    | st.binary(max_size=40)
    | st.dictionaries(
        st.sampled_from(["original_topic", "attempt_count", "payload", "failed_at", "error_class"]),
        st.none() | st.text() | st.integers() | st.booleans() | st.floats() | st.just("orders"),
    ).map(lambda one: json.dumps(one).encode()),
)
def test_whatever_a_record_holds_it_is_a_letter(headers, key, value):
    made = dead(read(headers, value=value, key=key))

    assert made.letter.message_id
    assert made.letter.unfit is not None or made.letter.source_arn == "orders"
    assert made.message.is_whole or made.letter.unfit is not None


def redriven(sent_for, *, value=b"v", of=b"v"):
    """The copy of a message that was `of` when it failed, and failed again."""
    original = id_at(Position(Partition("orders", 3), 4), b"k", of)
    metadata = RedriveMetadata(
        queue="orders",
        original_id=original,
        redrive_count=2,
        first_seen=datetime(2026, 1, 1, tzinfo=UTC),
        batch=7,
        generation=1,
        sent_for=sent_for,
    )
    headers = (*SPRING, (METADATA_ATTRIBUTE, metadata.encode().encode()))
    return dead(read(headers, value=value)).letter, original


@pytest.mark.parametrize("sent_for", ["", "shop"])
def test_a_copy_that_was_sent_for_the_own_group_is_a_return(sent_for):
    letter, original = redriven(sent_for)

    assert (letter.original_id, letter.is_anothers) == (original, False)
    assert (letter.metadata.redrive_count, letter.metadata.batch, letter.metadata.generation) == (
        2,
        7,
        1,
    )


def test_a_copy_that_was_sent_for_another_group_is_known_and_counts_for_nothing_that_was_tried():
    letter, original = redriven("billing")

    assert (letter.original_id, letter.is_anothers) == (original, True)
    assert (letter.metadata.redrive_count, letter.metadata.batch, letter.metadata.generation) == (
        0,
        0,
        0,
    )


def test_a_message_with_other_content_than_another_groups_metadata_tells_is_one_of_its_own():
    letter, _ = redriven("billing", value=b"other")

    assert (letter.metadata, letter.is_anothers) == (None, False)
    assert letter.original_id == letter.message_id
