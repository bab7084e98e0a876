"""Messages in, letters out: what a letter is made of, and whose metadata is believed."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from smart_redriver.engine.aws.queues import DeadLetters, ParkingLot
from smart_redriver.engine.aws.sqs import MoveCheck, SqsQueue
from smart_redriver.engine.messages.letter import METADATA_ATTRIBUTE, Letter
from tests.unit.examples import QUEUE, ago, some_metadata
from tests.unit.sqs_client import ATTRIBUTES, RecordingSqs, letters, outgoing

URL = "https://sqs/1/orders-dlq"


def a_message(**changes: Any) -> dict[str, Any]:
    usual: dict[str, Any] = {
        "MessageId": "m1",
        "ReceiptHandle": "h1",
        "Body": "hello",
        "Attributes": {"SentTimestamp": "1767225600500"},
    }
    return usual | changes


def received(message: dict[str, Any]) -> Letter:
    sqs = RecordingSqs(receive_message={"Messages": [message]})
    (letter,) = DeadLetters(SqsQueue(sqs, URL), {QUEUE}).receive(
        10, hidden_for=timedelta(minutes=5)
    )
    return letter


def test_a_letter_is_made_of_all_that_sqs_tells() -> None:
    system = {
        "SentTimestamp": "1767225600500",
        "MessageGroupId": "tenant-7",
        "AWSTraceHeader": "Root=1-a",
        "ApproximateFirstReceiveTimestamp": "1767225601000",
        "DeadLetterQueueSourceArn": "arn:orders",
    }

    letter = received(a_message(Attributes=system, MessageAttributes=ATTRIBUTES))

    assert letter == Letter(
        message_id="m1",
        receipt_handle="h1",
        body="hello",
        attributes=ATTRIBUTES,
        sent_at=datetime(2026, 1, 1, 0, 0, 0, 500_000, tzinfo=UTC),
        first_received_at=datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC),
        group_id="tenant-7",
        trace_header="Root=1-a",
        source_arn="arn:orders",
    )


def test_redrive_metadata_is_taken_out_of_the_attributes() -> None:
    metadata = some_metadata(first_seen=ago(hours=1))
    carried = {METADATA_ATTRIBUTE: {"DataType": "String", "StringValue": metadata.encode()}}

    letter = received(a_message(MessageAttributes=carried | ATTRIBUTES))

    assert letter.metadata == metadata
    assert letter.attributes == ATTRIBUTES


@pytest.mark.parametrize("text", ["garbage", some_metadata(queue="invoices").encode()])
def test_redrive_metadata_that_cannot_be_trusted_stays_among_the_attributes_and_is_told(
    text: str,
) -> None:
    carried = {METADATA_ATTRIBUTE: {"DataType": "String", "StringValue": text}}

    letter = received(a_message(MessageAttributes=carried))

    assert letter.metadata is None
    assert letter.metadata_fault
    assert letter.attributes == carried


@pytest.mark.parametrize(
    ("moved_from", "is_trusted"), [("invoices", True), ("orders", False), (None, True)]
)
def test_redrive_metadata_is_trusted_where_it_names_the_queue_that_the_letter_was_moved_from(
    moved_from: str | None, is_trusted: bool
) -> None:
    attribute = {"DataType": "String", "StringValue": some_metadata(queue="invoices").encode()}
    system = {"SentTimestamp": "0"}
    if moved_from:
        system["DeadLetterQueueSourceArn"] = f"arn:aws:sqs:eu-west-1:1:{moved_from}"
    message = a_message(Attributes=system, MessageAttributes={METADATA_ATTRIBUTE: attribute})
    sqs = RecordingSqs(receive_message={"Messages": [message]})

    (letter,) = DeadLetters(SqsQueue(sqs, URL), {"orders", "invoices"}).receive(
        1, hidden_for=timedelta()
    )

    assert (letter.metadata is not None) is is_trusted


def test_letters_are_deleted_and_hidden_where_they_were_received() -> None:
    sqs = RecordingSqs()
    dlq = DeadLetters(SqsQueue(sqs, URL), {QUEUE})

    dlq.delete(letters(1))
    dlq.hide([(one, timedelta(minutes=1)) for one in letters(1)])

    assert [(operation, request["QueueUrl"]) for operation, request in sqs.calls] == [
        ("delete_message_batch", URL),
        ("change_message_visibility_batch", URL),
    ]


def test_a_move_out_of_the_queue_is_noticed() -> None:
    sqs = RecordingSqs(list_message_move_tasks={"Results": [{"Status": "RUNNING"}]})

    check = DeadLetters(SqsQueue(sqs, URL), {QUEUE}).check_move("arn")

    assert check == MoveCheck(is_running=True)


def test_a_parked_letter_goes_to_the_parking_lot_and_comes_out_as_a_letter_again() -> None:
    sent = outgoing(letters(1)[0])
    metadata = {"DataType": "String", "StringValue": sent.metadata.encode()}
    message = a_message(MessageAttributes={METADATA_ATTRIBUTE: metadata})
    sqs = RecordingSqs(receive_message={"Messages": [message]})
    lot = ParkingLot(SqsQueue(sqs, "https://sqs/1/parking"), {QUEUE})

    parked = lot.park([sent])
    (letter,) = lot.receive(1, hidden_for=timedelta())

    assert parked.new_ids == {"m0": "new b0"}
    assert letter.metadata == sent.metadata
    assert {request["QueueUrl"] for _, request in sqs.calls} == {"https://sqs/1/parking"}
