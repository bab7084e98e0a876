"""What is sent, how it is cut into calls, and what is made of the answers."""

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from smart_redriver.engine.aws.sqs import SqsQueue
from smart_redriver.engine.errors import CONTENT_FAULTS, EntryFault
from smart_redriver.engine.messages.letter import METADATA_ATTRIBUTE, RedriveMetadata
from smart_redriver.engine.messages.outgoing import BYTES_PER_CALL, Outgoing, in_calls, send_entry
from tests.unit.examples import QUEUE, a_letter, some_metadata
from tests.unit.sqs_client import ATTRIBUTES, MIB, RecordingSqs, denial, numbered, outgoing


@pytest.fixture
def sqs() -> RecordingSqs:
    return RecordingSqs()


@pytest.fixture
def queue(sqs: RecordingSqs) -> SqsQueue:
    return SqsQueue(sqs, "https://sqs/orders")


def test_a_letter_is_sent_with_its_delay_and_its_metadata(
    sqs: RecordingSqs, queue: SqsQueue
) -> None:
    queue.send([outgoing(a_letter(body="hello"), delay=timedelta(seconds=59.6))])

    ((operation, request),) = sqs.calls
    assert (operation, request["QueueUrl"]) == ("send_message_batch", "https://sqs/orders")
    assert request["Entries"] == [
        {
            "Id": "0",
            "MessageBody": "hello",
            "DelaySeconds": 60,
            "MessageAttributes": {
                METADATA_ATTRIBUTE: {"DataType": "String", "StringValue": some_metadata().encode()}
            },
        }
    ]


def test_every_attribute_keeps_its_exact_type_and_value(sqs: RecordingSqs, queue: SqsQueue) -> None:
    queue.send([outgoing(a_letter(attributes=ATTRIBUTES))])

    sent = dict(sqs.entries[0]["MessageAttributes"])
    del sent[METADATA_ATTRIBUTE]
    assert sent == ATTRIBUTES


def test_the_list_values_that_receive_answers_hold_are_not_sent_back(
    sqs: RecordingSqs, queue: SqsQueue
) -> None:
    """SQS answers with empty StringListValues and refuses them in a request."""
    received = {"DataType": "String", "StringValue": "x", "StringListValues": []}

    queue.send([outgoing(a_letter(attributes={"a": received}))])

    assert sqs.entries[0]["MessageAttributes"]["a"] == {"DataType": "String", "StringValue": "x"}


def test_the_message_group_is_passed_on_where_there_is_one(
    sqs: RecordingSqs, queue: SqsQueue
) -> None:
    queue.send([outgoing(a_letter(group_id="tenant-7")), outgoing(a_letter())])

    assert sqs.entries[0]["MessageGroupId"] == "tenant-7"
    assert "MessageGroupId" not in sqs.entries[1]


def test_each_entry_carries_its_own_trace_without_its_lineage(
    sqs: RecordingSqs, queue: SqsQueue
) -> None:
    headers = ["Root=1-a;Parent=b;Sampled=1;Lineage=c:15", "Lineage=c:15", None]

    queue.send([outgoing(a_letter(trace_header=header)) for header in headers])

    assert [entry.get("MessageSystemAttributes") for entry in sqs.entries] == [
        {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1-a;Parent=b;Sampled=1"}},
        None,
        None,
    ]


def test_a_message_with_ten_attributes_is_sent_untouched(
    sqs: RecordingSqs, queue: SqsQueue
) -> None:
    full = {f"a{n}": {"DataType": "String", "StringValue": "1"} for n in range(10)}
    one = outgoing(a_letter(attributes=full))

    queue.send([one])

    assert sqs.entries[0]["MessageAttributes"] == full
    assert not one.carries_metadata


def test_a_message_that_its_metadata_would_make_too_large_is_sent_untouched(
    sqs: RecordingSqs, queue: SqsQueue
) -> None:
    one = outgoing(a_letter(body="x" * 1_000), size_limit=1_024)

    queue.send([one])

    assert "MessageAttributes" not in sqs.entries[0]
    assert not one.carries_metadata


# How it is cut into calls.


@pytest.mark.parametrize(
    ("count", "sizes"), [(0, []), (1, [1]), (10, [10]), (11, [10, 1]), (25, [10, 10, 5])], ids=str
)
def test_no_call_has_more_than_ten_entries(
    sqs: RecordingSqs, queue: SqsQueue, count: int, sizes: list[int]
) -> None:
    sent = queue.send(numbered(count))

    assert sqs.batch_sizes == sizes
    assert len(sent.new_ids) == count


def test_no_call_is_larger_than_a_mebibyte_attributes_and_metadata_included(
    sqs: RecordingSqs, queue: SqsQueue
) -> None:
    blob = {"blob": {"DataType": "Binary", "BinaryValue": b"x" * 150_000}}

    queue.send(numbered(10, body="y" * 100_000, attributes=blob))

    for _, request in sqs.calls:
        total = sum(
            len(entry["MessageBody"])
            + sum(
                len(name)
                + len(one["DataType"])
                + len(one.get("StringValue", one.get("BinaryValue")))
                for name, one in entry["MessageAttributes"].items()
            )
            for entry in request["Entries"]
        )
        assert total <= BYTES_PER_CALL
    assert sqs.batch_sizes == [4, 4, 2]


@pytest.mark.parametrize(
    ("count", "more", "calls"), [(2, 0, [2]), (4, 0, [2, 2]), (2, 1, [1, 1]), (4, 1, [1, 1, 1, 1])]
)
def test_a_call_holds_a_whole_mebibyte_and_no_byte_more(
    count: int, more: int, calls: list[int]
) -> None:
    empty = outgoing(a_letter(body="")).size
    letters = [
        outgoing(
            a_letter(message_id=f"m{n}", body="y" * (BYTES_PER_CALL // 2 - empty + more * (n % 2)))
        )
        for n in range(count)
    ]

    assert [len(few) for few in in_calls(letters)] == calls


def test_a_letter_of_a_whole_mebibyte_goes_alone(sqs: RecordingSqs, queue: SqsQueue) -> None:
    small = outgoing(a_letter(message_id="s"))

    queue.send([small, outgoing(a_letter(message_id="big", body="x" * MIB)), small])

    assert sqs.batch_sizes == [1, 1, 1]


def test_entry_ids_are_unique_within_a_call(sqs: RecordingSqs, queue: SqsQueue) -> None:
    queue.send(numbered(10))

    assert len({entry["Id"] for entry in sqs.entries}) == 10


# What is made of the answers.


def test_accepted_letters_are_known_by_their_new_ids(queue: SqsQueue) -> None:
    sent = queue.send(numbered(12))

    assert sent.new_ids == {f"m{n}": f"new b{n}" for n in range(12)}
    assert sent.faults == []


def test_every_entry_that_was_not_accepted_is_a_fault_and_the_others_are_sent(
    sqs: RecordingSqs, queue: SqsQueue
) -> None:
    codes = {"b3": "InternalError", "b7": "AWS.SimpleQueueService.Throttled", "b11": "silence"}
    sqs.refuse = lambda entry: codes.get(entry["MessageBody"])

    sent = queue.send(numbered(12))

    assert sent.faults == [
        EntryFault(call="SendMessageBatch", key="m3", code="InternalError", detail="refused"),
        EntryFault(call="SendMessageBatch", key="m7", code="Throttled", detail="refused"),
        EntryFault(call="SendMessageBatch", key="m11", code="NoAnswer"),
    ]
    assert set(sent.new_ids) == {f"m{n}" for n in range(12)} - {"m3", "m7", "m11"}


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (denial("AccessDenied"), "AccessDenied"),
        (denial("AWS.SimpleQueueService.NonExistentQueue"), "NonExistentQueue"),
        (ReadTimeoutError(endpoint_url="https://sqs"), "ReadTimeoutError"),
    ],
    ids=["denied", "gone", "timed out"],
)
def test_a_call_that_fails_as_a_whole_is_a_fault_of_each_of_its_letters_and_of_no_other(
    sqs: RecordingSqs, queue: SqsQueue, error: Exception, code: str
) -> None:
    sqs.fail = lambda entries: error if entries[0]["MessageBody"] == "b0" else None

    sent = queue.send(numbered(12))

    assert [fault.code for fault in sent.faults] == [code] * 10
    assert set(sent.new_ids) == {"m10", "m11"}
    assert sqs.batch_sizes == [10, 2]


@pytest.mark.parametrize("code", sorted(CONTENT_FAULTS))
def test_one_bad_message_that_fails_its_whole_call_is_found_and_the_others_go_through(
    sqs: RecordingSqs, queue: SqsQueue, code: str
) -> None:
    sqs.fail = lambda entries: (
        denial(code) if any(one["MessageBody"] == "b4" for one in entries) else None
    )

    sent = queue.send(numbered(10))

    assert [(fault.key, fault.code) for fault in sent.faults] == [("m4", code)]
    assert set(sent.new_ids) == {f"m{n}" for n in range(10)} - {"m4"}


def test_a_redrive_replaces_foreign_metadata_by_its_own(sqs: RecordingSqs, queue: SqsQueue) -> None:
    foreign = {
        METADATA_ATTRIBUTE: {
            "DataType": "String",
            "StringValue": some_metadata(queue="invoices").encode(),
        }
    }

    queue.send([outgoing(a_letter(attributes=foreign))])

    sent = sqs.entries[0]["MessageAttributes"][METADATA_ATTRIBUTE]["StringValue"]
    assert RedriveMetadata.decode(sent).queue == QUEUE


def test_to_a_fifo_queue_it_goes_in_its_group_without_delay_and_once_however_often_it_is_sent() -> (
    None
):
    letter = a_letter(message_id="m1", group_id="customer-7")

    def entry(**changes: Any) -> dict[str, Any]:
        usual: dict[str, Any] = {
            "letter": letter,
            "metadata": some_metadata(redrive_count=2),
            "size_limit": 1_000,
        }
        return send_entry(Outgoing(**usual | changes), is_fifo=True)

    first = entry(delay=timedelta(seconds=30))
    assert "DelaySeconds" not in first
    assert first["MessageGroupId"] == "customer-7"
    assert first["MessageDeduplicationId"] == entry()["MessageDeduplicationId"]
    others = [
        entry(metadata=some_metadata(redrive_count=3)),
        entry(letter=replace(letter, message_id="m2")),
        entry(letter=replace(letter, body="edited")),
        entry(salt=1),
    ]
    assert first["MessageDeduplicationId"] not in {one["MessageDeduplicationId"] for one in others}


def deduplication_id(message_id: str = "m1", **attributes: dict[str, Any]) -> str:
    letter = a_letter(message_id=message_id, group_id="a", attributes=attributes)
    return Outgoing(letter=letter, metadata=some_metadata(), size_limit=1_000_000).deduplication_id


def test_a_letter_whose_attributes_alone_were_edited_is_not_taken_for_its_repetition() -> None:
    text, blob = {"DataType": "String"}, {"DataType": "Binary"}
    ids = [
        deduplication_id(),
        deduplication_id(a=text | {"StringValue": "1"}),
        deduplication_id(a=text | {"StringValue": "2"}),
        deduplication_id(b=text | {"StringValue": "1"}),
        deduplication_id(a={"DataType": "String.kind", "StringValue": "1"}),
        deduplication_id(a=text | {"StringValue": "1"}, b=text | {"StringValue": "2"}),
        deduplication_id(a=text | {"StringValue": "2"}, b=text | {"StringValue": "1"}),
        deduplication_id(a=text | {"StringValue": "b6:String1:2"}),
        deduplication_id(a=blob | {"BinaryValue": b"\x00"}),
        deduplication_id(a=blob | {"BinaryValue": b"\xff"}),
    ]

    assert len(set(ids)) == len(ids)


def test_the_order_of_attributes_and_what_only_a_receive_says_of_them_make_no_difference() -> None:
    one, other = (
        {"DataType": "Number", "StringValue": "1"},
        {"DataType": "Binary", "BinaryValue": b"\0"},
    )
    received = {**one, "StringListValues": [], "BinaryListValues": []}

    assert deduplication_id(a=one, b=other) == deduplication_id(b=other, a=received)


@pytest.mark.parametrize("message_id", ["m1", "m" * 100, "of a file: ünlike SQS's own"])
def test_a_deduplication_id_is_one_that_sqs_takes(message_id: str) -> None:
    assert re.fullmatch(r"[0-9A-Za-z!-/:-@\[-`{-~]{1,128}", deduplication_id(message_id))


def test_a_letter_of_no_group_is_a_group_by_itself() -> None:
    letter = a_letter(message_id="m1")
    outgoing = Outgoing(letter=letter, metadata=some_metadata(), size_limit=1_000)

    assert send_entry(outgoing, is_fifo=True)["MessageGroupId"] == "m1"
    assert "MessageGroupId" not in send_entry(outgoing, is_fifo=False)


@pytest.mark.parametrize(
    ("may_return", "may_carry", "leaves"),
    [(True, True, False), (True, False, True), (False, True, False), (False, False, False)],
)
def test_the_ledger_keeps_the_metadata_of_what_may_come_back_without_it(
    may_return: bool, may_carry: bool, leaves: bool
) -> None:
    one = outgoing(a_letter(), may_return=may_return, may_carry_metadata=may_carry)

    assert one.leaves_metadata == leaves
