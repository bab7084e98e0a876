"""One SQS queue: what is asked of it, and what is made of its answers. Sending has tests of its own."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from smart_redriver.engine.aws.sqs import Message, MoveCheck, SqsQueue
from smart_redriver.engine.errors import CallFailed, EntryFault
from smart_redriver.engine.messages.queue_facts import QueueFacts
from tests.unit.sqs_client import ATTRIBUTES, RecordingSqs, denial, letters

URL = "https://sqs/1/orders-dlq"
ARN = "arn:aws:sqs:eu-west-1:1:orders-dlq"


@pytest.fixture
def sqs() -> RecordingSqs:
    return RecordingSqs()


@pytest.fixture
def queue(sqs: RecordingSqs) -> SqsQueue:
    return SqsQueue(sqs, URL)


def test_a_queue_goes_by_the_last_part_of_its_url(queue: SqsQueue) -> None:
    assert (queue.url, queue.name) == (URL, "orders-dlq")


@pytest.mark.parametrize(
    ("count", "sizes"), [(0, []), (1, [1]), (10, [10]), (11, [10, 1]), (25, [10, 10, 5])], ids=str
)
def test_no_call_deletes_or_hides_more_than_ten(
    sqs: RecordingSqs, queue: SqsQueue, count: int, sizes: list[int]
) -> None:
    queue.delete(letters(count))
    assert sqs.batch_sizes == sizes

    sqs.calls.clear()
    queue.hide((letter, timedelta()) for letter in letters(count))
    assert sqs.batch_sizes == sizes


def test_a_letter_is_hidden_for_whole_seconds_and_released_with_zero(
    sqs: RecordingSqs, queue: SqsQueue
) -> None:
    one, other = letters(2)

    queue.hide([(one, timedelta(minutes=3)), (other, timedelta(seconds=-5))])

    assert [entry["VisibilityTimeout"] for entry in sqs.entries] == [180, 0]
    assert [entry["ReceiptHandle"] for entry in sqs.entries] == ["h0", "h1"]
    assert sqs.calls[0][1]["QueueUrl"] == URL


@pytest.mark.parametrize(
    ("operation", "call"),
    [
        ("delete_message_batch", lambda queue: queue.delete(letters(12))),
        (
            "change_message_visibility_batch",
            lambda queue: queue.hide([(one, timedelta()) for one in letters(12)]),
        ),
    ],
)
def test_letters_that_were_not_deleted_or_hidden_come_back_as_faults(
    sqs: RecordingSqs,
    queue: SqsQueue,
    operation: str,
    call: Callable[[SqsQueue], list[EntryFault]],
) -> None:
    codes = {"h2": "ReceiptHandleIsInvalid", "h11": "silence"}
    sqs.refuse = lambda entry: codes.get(entry["ReceiptHandle"])

    faults = call(queue)

    assert {name for name, _ in sqs.calls} == {operation}
    assert [(fault.key, fault.code) for fault in faults] == [
        ("m2", "ReceiptHandleIsInvalid"),
        ("m11", "NoAnswer"),
    ]


def test_receive_asks_for_everything_that_has_to_be_sent_on(
    sqs: RecordingSqs, queue: SqsQueue
) -> None:
    queue.receive(3, hidden_for=timedelta(minutes=5))

    ((_, request),) = sqs.calls
    assert request["QueueUrl"] == URL
    assert request["MaxNumberOfMessages"] == 3
    assert request["VisibilityTimeout"] == 300
    assert request["MessageAttributeNames"] == ["All"]
    assert request["MessageSystemAttributeNames"] == ["All"]
    assert request["WaitTimeSeconds"] > 0


def test_receive_asks_for_no_more_than_ten(sqs: RecordingSqs, queue: SqsQueue) -> None:
    queue.receive(100, hidden_for=timedelta(minutes=5))

    assert sqs.calls[0][1]["MaxNumberOfMessages"] == 10


def test_an_answer_without_messages_is_none(queue: SqsQueue) -> None:
    assert queue.receive(10, hidden_for=timedelta()) == []


FACTS = {
    "QueueArn": "arn:orders",
    "ApproximateNumberOfMessages": "3",
    "ApproximateNumberOfMessagesNotVisible": "2",
    "ApproximateNumberOfMessagesDelayed": "1",
    "VisibilityTimeout": "30",
    "MessageRetentionPeriod": "1209600",
    "MaximumMessageSize": "262144",
    "RedrivePolicy": '{"deadLetterTargetArn":"arn:orders-dlq","maxReceiveCount":"5"}',
}


def facts_of(**changes: str | None) -> Any:
    attributes = {name: value for name, value in (FACTS | changes).items() if value is not None}
    sqs = RecordingSqs(get_queue_attributes={"Attributes": attributes})
    return SqsQueue(sqs, URL).facts()


@pytest.mark.parametrize(("in_flight", "room"), [(0, 60_000), (59_999, 1), (100_000, 0)])
def test_half_of_what_may_be_in_flight_may_be_hidden(in_flight: int, room: int) -> None:
    facts = facts_of(ApproximateNumberOfMessagesNotVisible=str(in_flight))

    assert facts.room_to_hide == room


def test_a_queues_facts_are_read_from_its_attributes() -> None:
    facts = facts_of()

    assert (facts.arn, facts.depth, facts.visible) == ("arn:orders", 6, 3)
    assert facts.visibility_timeout == timedelta(seconds=30)
    assert facts.retention == timedelta(days=14)
    assert facts.max_message_size == 262_144
    assert (facts.max_receive_count, facts.dead_letter_arn) == (5, "arn:orders-dlq")


def test_a_queue_without_a_dlq_has_no_receive_count() -> None:
    facts = facts_of(RedrivePolicy=None)

    assert (facts.max_receive_count, facts.dead_letter_arn) == (None, None)


def test_a_message_is_all_that_sqs_tells() -> None:
    answer = {
        "MessageId": "m1",
        "ReceiptHandle": "h1",
        "Body": "hello",
        "Attributes": {"SentTimestamp": "1"},
        "MessageAttributes": ATTRIBUTES,
    }
    bare = {"MessageId": "m2", "ReceiptHandle": "h2", "Body": "hello"}
    sqs = RecordingSqs(receive_message={"Messages": [answer, bare]})

    messages = SqsQueue(sqs, URL).receive(10, hidden_for=timedelta())

    assert messages == [
        Message(
            message_id="m1",
            receipt_handle="h1",
            body="hello",
            attributes=ATTRIBUTES,
            system={"SentTimestamp": "1"},
        ),
        Message(message_id="m2", receipt_handle="h2", body="hello", attributes={}, system={}),
    ]


@pytest.mark.parametrize(
    ("operation", "name", "call"),
    [
        ("get_queue_attributes", "GetQueueAttributes", SqsQueue.facts),
        (
            "receive_message",
            "ReceiveMessage",
            lambda queue: queue.receive(1, hidden_for=timedelta()),
        ),
    ],
)
def test_a_call_whose_answer_is_needed_fails_by_name(
    operation: str, name: str, call: Callable[[SqsQueue], Any]
) -> None:
    sqs = RecordingSqs(**{operation: denial()})

    with pytest.raises(CallFailed) as failed:
        call(SqsQueue(sqs, URL))

    assert (failed.value.call, failed.value.code) == (name, "AccessDenied")


# Native moves.


@pytest.mark.parametrize(
    ("status", "is_running"),
    [("RUNNING", True), ("CANCELLING", True), ("COMPLETED", False), ("FAILED", False)],
)
def test_a_native_move_is_noticed_while_it_runs(status: str, is_running: bool) -> None:
    sqs = RecordingSqs(list_message_move_tasks={"Results": [{"Status": status}]})

    assert SqsQueue(sqs, URL).check_move(ARN) == MoveCheck(is_running=is_running)
    assert sqs.calls == [("list_message_move_tasks", {"SourceArn": ARN, "MaxResults": 1})]


def test_a_queue_that_was_never_moved_has_no_move_running(queue: SqsQueue) -> None:
    assert queue.check_move(ARN) == MoveCheck(is_running=False)


@pytest.mark.parametrize(
    "code", ["AccessDenied", "AccessDeniedException", "AWS.SimpleQueueService.UnsupportedOperation"]
)
def test_who_may_not_ask_for_moves_assumes_none_and_tells_why(code: str) -> None:
    """A policy without sqs:ListMessageMoveTasks ended every pass, for a check that seldom matters."""
    sqs = RecordingSqs(list_message_move_tasks=denial(code))

    check = SqsQueue(sqs, URL).check_move(ARN)

    assert not check.is_running
    assert check.fault is not None
    assert (check.fault.call, check.fault.code) == (
        "ListMessageMoveTasks",
        code.rpartition(".")[2],
    )


def test_where_moves_do_not_exist_none_is_assumed() -> None:
    """With moto a pass ended in its traceback, so nobody could try one there without a stub."""
    sqs = RecordingSqs(list_message_move_tasks=NotImplementedError("no such action"))

    check = SqsQueue(sqs, URL).check_move(ARN)

    assert not check.is_running
    assert check.fault is not None
    assert check.fault.code == "NotImplemented"


@pytest.mark.parametrize("code", ["RequestThrottled", "InternalError", "ResourceNotFoundException"])
def test_a_check_for_moves_that_fails_otherwise_is_no_answer(code: str) -> None:
    sqs = RecordingSqs(list_message_move_tasks=denial(code))

    with pytest.raises(CallFailed, match=f"ListMessageMoveTasks: {code}"):
        SqsQueue(sqs, URL).check_move(ARN)


@pytest.mark.parametrize(
    ("in_flight", "room", "can_seem_empty"),
    [
        (0, 60_000, False),
        (59_999, 1, False),
        (60_001, 0, False),
        (99_999, 0, False),
        (100_000, 0, True),
        (120_000, 0, True),
    ],
)
def test_a_queue_with_many_messages_in_flight_has_no_room_to_hide_more_and_may_seem_empty(
    in_flight: int, room: int, can_seem_empty: bool
) -> None:
    facts = QueueFacts(
        arn=ARN,
        visible=1,
        in_flight=in_flight,
        delayed=0,
        visibility_timeout=timedelta(seconds=30),
        retention=timedelta(days=4),
        max_message_size=1_024,
    )

    assert (facts.room_to_hide, facts.can_seem_empty) == (room, can_seem_empty)
