"""A letter's identity: the metadata that it carries, and what SQS counts against its size."""

import json
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_redriver.engine.messages.letter import (
    METADATA_ATTRIBUTE,
    Attribute,
    RedriveMetadata,
    attribute_size,
    metadata_attribute,
    read_metadata,
    without_lineage,
)
from smart_redriver.engine.messages.outgoing import Outgoing
from tests.unit.examples import QUEUE, a_letter, some_metadata

METADATA = st.builds(
    RedriveMetadata,
    queue=st.text(),
    original_id=st.from_regex(r"[A-Za-z0-9_-]{1,100}", fullmatch=True),
    redrive_count=st.integers(0, 1000),
    first_seen=st.integers(0, 2**32).map(lambda seconds: datetime.fromtimestamp(seconds, UTC)),
    batch=st.integers(0, 10**9),
    generation=st.integers(0, 10**9),
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=3,
)

FIELDS = ("queue", "id", "n", "seen", "batch", "gen")


def carried(text: str) -> dict[str, Attribute]:
    return {METADATA_ATTRIBUTE: {"DataType": "String", "StringValue": text}}


def encoded(**changes: Any) -> str:
    return json.dumps(json.loads(some_metadata().encode()) | changes)


@given(METADATA)
def test_redrive_metadata_survives_its_own_encoding(metadata: RedriveMetadata) -> None:
    assert RedriveMetadata.decode(metadata.encode()) == metadata


def test_redrive_metadata_names_its_fields_as_older_copies_do() -> None:
    metadata = some_metadata(first_seen=datetime(2026, 1, 1, tzinfo=UTC))

    assert metadata.encode() == (
        '{"queue":"orders","id":"first","n":1,"seen":1767225600,"batch":7,"gen":2}'
    )


def test_redrive_metadata_names_the_group_that_its_letter_was_sent_for_only_where_there_is_one() -> (
    None
):
    metadata = some_metadata(sent_for="shop")

    assert RedriveMetadata.decode(metadata.encode()) == metadata
    assert json.loads(metadata.encode())["for"] == "shop"
    assert "for" not in json.loads(some_metadata().encode())


def decodes_or_raises_value_error(text: str) -> None:
    with suppress(ValueError):
        RedriveMetadata.decode(text)


@given(st.text())
def test_any_text_is_redrive_metadata_or_a_value_error(text: str) -> None:
    decodes_or_raises_value_error(text)


@given(JSON)
def test_any_json_is_redrive_metadata_or_a_value_error(value: Any) -> None:
    decodes_or_raises_value_error(json.dumps(value))


@given(st.fixed_dictionaries(dict.fromkeys(FIELDS, JSON)))
def test_any_values_in_redrive_metadata_are_redrive_metadata_or_a_value_error(fields: Any) -> None:
    decodes_or_raises_value_error(json.dumps(fields))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        "7",
        '"queue"',
        "[" * 100_000,
        "9" * 5_000,
        encoded(n=float("inf")),
        encoded(n=float("nan")),
        encoded(n=-1),
        encoded(n="many"),
        encoded(id=""),
        encoded(seen=10**30),
        encoded(seen="yesterday"),
        encoded(batch=None),
    ],
    ids=lambda text: text[:40] or "empty",
)
def test_what_is_no_metadata_is_refused_with_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match="not redrive metadata"):
        RedriveMetadata.decode(text)


@pytest.mark.parametrize("field", FIELDS)
def test_redrive_metadata_without_one_of_its_fields_is_refused(field: str) -> None:
    fields = json.loads(some_metadata().encode())
    del fields[field]

    with pytest.raises(ValueError, match="not redrive metadata"):
        RedriveMetadata.decode(json.dumps(fields))


@pytest.mark.parametrize(
    "text",
    [
        encoded(id="x" * 3_000),
        encoded(id="\ud800"),
        encoded(n=10**60),
        encoded(batch=10**60),
        encoded(gen=10**60),
    ],
    ids=["an id beyond DynamoDB's 2 KB key", "half a surrogate", "count", "batch", "generation"],
)
def test_redrive_metadata_that_the_ledger_cannot_store_is_refused(text: str) -> None:
    """Forged metadata must not stop a pass: its id becomes a table key, its numbers become attributes.

    An id of more than 2,048 bytes fails BatchGetItem and with it the whole pass; a number of more than 38 digits
    raises decimal.Rounded out of the pass after the send, before the delete.
    """
    with pytest.raises(ValueError, match="not redrive metadata"):
        RedriveMetadata.decode(text)


@pytest.mark.parametrize("field", ["redrive_count", "batch", "generation"])
def test_redrive_metadata_numbers_end_at_a_million_millions(field: str) -> None:
    most: dict[str, Any] = {field: 10**12}
    beyond: dict[str, Any] = {field: 10**12 + 1}

    assert RedriveMetadata.decode(some_metadata(**most).encode()) == some_metadata(**most)
    with pytest.raises(ValueError, match="out of bounds"):
        RedriveMetadata.decode(some_metadata(**beyond).encode())


def test_a_letter_without_metadata_has_none_and_no_fault() -> None:
    assert read_metadata({"colour": {"DataType": "String", "StringValue": "red"}}, {QUEUE}) == (
        None,
        None,
    )


def test_redrive_metadata_is_found_among_the_attributes() -> None:
    metadata = some_metadata(first_seen=datetime(2026, 1, 1, tzinfo=UTC))

    assert read_metadata({METADATA_ATTRIBUTE: metadata_attribute(metadata)}, {QUEUE}) == (
        metadata,
        None,
    )


def test_redrive_metadata_that_names_another_queue_counts_as_absent() -> None:
    attributes = carried(some_metadata(queue="invoices").encode())

    assert read_metadata(attributes, {QUEUE}) == (None, "the metadata names another queue")


@pytest.mark.parametrize(
    "attribute",
    [
        {"DataType": "String", "StringValue": "not JSON"},
        {"DataType": "Binary", "BinaryValue": b"{}"},
        {"DataType": "String"},
        {},
    ],
)
def test_redrive_metadata_that_does_not_parse_counts_as_absent_and_says_why(
    attribute: Attribute,
) -> None:
    metadata, fault = read_metadata({METADATA_ATTRIBUTE: attribute}, {QUEUE})

    assert metadata is None
    assert fault is not None
    assert fault.startswith("not redrive metadata")


def test_a_letters_fault_never_quotes_the_attribute() -> None:
    _, fault = read_metadata(carried("4111 1111 1111 1111"), {QUEUE})

    assert "4111" not in str(fault)


def test_a_first_visit_is_known_by_its_message_id_and_a_return_by_its_metadata() -> None:
    first = a_letter(message_id="a")
    returned = a_letter(message_id="b", metadata=some_metadata(original_id="a"))

    assert (first.original_id, returned.original_id) == ("a", "a")


def test_redrive_metadata_kept_in_the_ledger_takes_the_place_of_a_faulty_one() -> None:
    letter = a_letter(metadata_fault="not redrive metadata").with_metadata(
        some_metadata(original_id="a")
    )

    assert letter.original_id == "a"
    assert letter.metadata_fault is None


@pytest.mark.parametrize(
    ("name", "attribute", "size"),
    [
        ("colour", {"DataType": "String", "StringValue": "red"}, 6 + 6 + 3),
        ("colour", {"DataType": "String", "StringValue": "grün"}, 6 + 6 + 5),
        ("n", {"DataType": "Number", "StringValue": "12"}, 1 + 6 + 2),
        ("b", {"DataType": "Binary.gif", "BinaryValue": b"\x00\xff"}, 1 + 10 + 2),
    ],
)
def test_name_type_and_value_of_an_attribute_count_in_bytes(
    name: str, attribute: Attribute, size: int
) -> None:
    assert attribute_size(name, attribute) == size


def test_a_letters_size_is_its_body_and_all_its_attributes_in_bytes() -> None:
    attributes = {
        "colour": {"DataType": "String", "StringValue": "red"},
        "b": {"DataType": "Binary", "BinaryValue": b"123"},
    }

    assert a_letter(body="é", attributes=attributes).size == 2 + 15 + 10


@pytest.mark.parametrize(("count", "has_room"), [(0, True), (9, True), (10, False)])
def test_the_tenth_attribute_leaves_no_room_for_metadata(count: int, has_room: bool) -> None:
    attributes = {f"a{n}": {"DataType": "String", "StringValue": "1"} for n in range(count)}

    letter = a_letter(attributes=attributes)

    assert (
        Outgoing(letter=letter, metadata=some_metadata(), size_limit=2_000).carries_metadata
        is has_room
    )


@pytest.mark.parametrize(("spare", "has_room"), [(0, True), (-1, False)])
def test_redrive_metadata_fits_to_the_last_byte_of_the_size_limit(
    spare: int, has_room: bool
) -> None:
    metadata = some_metadata()
    letter = a_letter(body="x" * 500)
    limit = 500 + attribute_size(METADATA_ATTRIBUTE, metadata_attribute(metadata)) + spare

    assert Outgoing(letter=letter, metadata=metadata, size_limit=limit).carries_metadata is has_room


@pytest.mark.parametrize(
    ("header", "kept"),
    [
        ("Root=1-a;Parent=b;Sampled=1;Lineage=c:3", "Root=1-a;Parent=b;Sampled=1"),
        ("Lineage=1:a:0;Root=1-a;Parent=b;Sampled=0", "Root=1-a;Parent=b;Sampled=0"),
        ("Root=1-a;Parent=b;Sampled=1", "Root=1-a;Parent=b;Sampled=1"),
        ("Root=1-a", "Root=1-a"),
        ("Root=1-a;;Lineage=x;", "Root=1-a"),
        ("Lineage=c:3", None),
        ("", None),
        (None, None),
    ],
)
def test_a_trace_header_keeps_all_but_its_lineage(header: str | None, kept: str | None) -> None:
    assert without_lineage(header) == kept
