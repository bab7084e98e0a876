"""Passes invoked by hand on a deployed stack whose source queue nobody consumes."""

import pytest

from demo.orders import Order
from demo.stack import Depths
from smart_redriver.engine.model.verdict import LIVE_PATIENCE
from tests.e2e.by_hand import DRESSED, ByHand, assert_intact


@pytest.mark.parametrize(
    "payload", [b"{}", b"", b"null", b"42", b'"a text"', b"[1, 2]", b'{"dlq": {"url": [null]}}']
)
def test_whatever_the_payload_a_pass_answers_with_its_report(
    by_hand: ByHand, payload: bytes
) -> None:
    report = by_hand.invoke(payload)

    assert isinstance(report, dict)
    assert report["outcome"] == "IDLE"
    assert report["queue"] == by_hand.stack.queue_name
    assert report["depth"] == 0


def test_the_report_that_is_returned_is_the_one_that_is_logged(by_hand: ByHand) -> None:
    by_hand.stack.redriver_log.fresh()
    by_hand.add_letters(Order(number=1))

    report = by_hand.invoke()

    (logged,) = [e for e in by_hand.stack.redriver_log.fresh() if e.name == "pass.finished"]
    # The log leaves out what is null.
    assert {name: logged.fields.get(name) for name in report} == report


def test_a_redriven_letter_is_the_message_that_was_sent_plus_its_metadata(by_hand: ByHand) -> None:
    by_hand.add_letters(DRESSED)

    report = by_hand.invoke()
    by_hand.stack.aws.pass_time(120)  # its backoff

    assert report["redriven"] == 1
    (message,) = by_hand.receive(by_hand.stack.source_url)
    assert_intact(message, DRESSED)


def test_a_letter_that_returns_again_and_again_stays_the_message_that_was_sent(
    by_hand: ByHand,
) -> None:
    (original_id,) = by_hand.add_letters(DRESSED)

    for _ in range(2):
        assert by_hand.invoke()["redriven"] == 1
        by_hand.stack.aws.pass_time(300)
        by_hand.add_letters()  # receives what is there until it is dead
        by_hand.stack.aws.pass_time(LIVE_PATIENCE.total_seconds())  # no producer speaks up
    (message,) = by_hand.receive(by_hand.stack.dead_letter_url)

    assert message["MessageId"] != original_id
    assert_intact(message, DRESSED)
    entry = by_hand.stack.state_item(f"MESSAGE#{original_id}")
    assert entry is not None
    assert entry["RedriveCount"] == 2


def test_a_pass_that_is_repeated_redrives_nothing_twice(by_hand: ByHand) -> None:
    by_hand.add_letters(*(Order(number=number) for number in range(1, 5)))

    first, second = by_hand.invoke(), by_hand.invoke()

    assert (first["redriven"], second["redriven"]) == (4, 0)
    assert by_hand.stack.depths() == Depths(source=4, dead_letters=0, parked=0)


def test_a_pass_touches_nothing_while_another_holds_the_lease(by_hand: ByHand) -> None:
    letters = by_hand.add_letters(Order(number=1), Order(number=2))
    by_hand.hold_lease(seconds=240)

    report = by_hand.invoke()

    assert report["outcome"] == "LEASE_HELD"
    assert (report["examined"], report["redriven"]) == (0, 0)
    by_hand.assert_untouched(letters)


def test_a_lease_whose_holder_died_is_taken_over_when_it_has_expired(by_hand: ByHand) -> None:
    by_hand.add_letters(Order(number=1))
    by_hand.hold_lease(seconds=240)
    by_hand.stack.aws.pass_time(241)

    report = by_hand.invoke()

    assert (report["outcome"], report["redriven"]) == ("DONE", 1)


@pytest.mark.parametrize(
    ("variable", "call"),
    [
        ("DYNAMODB_TABLE_NAME", "GetItem"),
        ("DLQ_URL", "GetQueueAttributes"),
        ("SOURCE_QUEUE_URL", "GetQueueAttributes"),
        ("PARKING_LOT_URL", "GetQueueAttributes"),
    ],
)
def test_a_pass_that_misses_a_table_or_queue_fails_and_touches_no_letter(
    by_hand: ByHand, variable: str, call: str
) -> None:
    letters = by_hand.add_letters(Order(number=1), Order(number=2))
    elsewhere = by_hand.stack.source_url.replace(by_hand.stack.queue_name, "no-such-thing")
    name = "no-such-thing" if variable == "DYNAMODB_TABLE_NAME" else elsewhere

    with by_hand.environment(**{variable: name}):
        report = by_hand.invoke()

    assert report["outcome"] == "FAILED"
    (fault,) = report["faults"]
    assert fault.startswith(f"{call}:")
    by_hand.assert_untouched(letters)
    assert by_hand.invoke()["redriven"] == len(letters)  # nothing stays behind, the lease included


def test_a_pass_stands_aside_while_a_native_move_task_runs(by_hand: ByHand) -> None:
    letters = by_hand.add_letters(*(Order(number=number) for number in range(1, 9)))
    sqs = by_hand.stack.sqs
    attributes = sqs.get_queue_attributes(
        QueueUrl=by_hand.stack.dead_letter_url, AttributeNames=["QueueArn"]
    )
    dlq_arn = attributes["Attributes"]["QueueArn"]
    sqs.start_message_move_task(SourceArn=dlq_arn, MaxNumberOfMessagesPerSecond=1)

    report = by_hand.invoke()

    assert report["outcome"] == "MOVE_TASK_RUNNING"
    assert (report["examined"], report["redriven"]) == (0, 0)
    by_hand.stack.aws.pass_time(30)  # the task goes on undisturbed
    assert by_hand.stack.depths() == Depths(source=len(letters), dead_letters=0, parked=0)
