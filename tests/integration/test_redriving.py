"""What a letter meets on its way back, over real boto3 clients."""

import json
from dataclasses import replace
from typing import Any

from smart_redriver.engine.messages.letter import METADATA_ATTRIBUTE, RedriveMetadata
from smart_redriver.engine.report import Outcome
from smart_redriver.engine.triage.ledger import Status
from tests.integration.conftest import Account
from tests.integration.letters import ATTRIBUTES, metadata_of, without_metadata
from tests.integration.wires import DeliversTwice


def test_a_letter_is_redriven_with_a_delay_and_its_metadata_and_deleted_from_the_dlq(
    account: Account,
) -> None:
    (message_id,) = account.dead_letters("hello", MessageAttributes=ATTRIBUTES)

    report = account.run_pass()

    assert (report.outcome, report.redriven, report.examined) == (Outcome.DONE, 1, 1)
    assert report.failed == 0
    assert account.counts(account.deployment.dlq_url) == (0, 0)
    assert account.consumer_works() == []
    account.advance(seconds=60)
    (message,) = account.consumer_works()
    assert message["Body"] == "hello"
    assert message["MessageId"] != message_id
    assert without_metadata(message) == ATTRIBUTES
    metadata = metadata_of(message)
    assert (metadata.queue, metadata.original_id, metadata.redrive_count) == (
        "orders",
        message_id,
        1,
    )
    entry = account.entry(message_id)
    assert entry is not None
    assert (entry.status, entry.redrive_count) == (Status.REDRIVEN, 1)
    assert entry.current_id == message["MessageId"]
    assert entry.has_replaced(message_id)


def test_a_message_group_on_a_standard_queue_comes_back_with_its_letter(account: Account) -> None:
    account.dead_letters("hello", MessageGroupId="tenant-7")

    account.run_pass()

    account.advance(seconds=60)
    (message,) = account.consumer_works()
    assert message["Attributes"]["MessageGroupId"] == "tenant-7"


def test_a_letter_with_ten_attributes_goes_untouched_and_keeps_its_count_in_the_ledger(
    account: Account,
) -> None:
    full = {f"a{n}": {"DataType": "String", "StringValue": "1"} for n in range(10)}
    (message_id,) = account.dead_letters("hello", MessageAttributes=full)
    account.run_pass()
    account.advance(seconds=60)
    account.consumer_fails()
    account.live_messages_stay_away()

    report = account.run_pass()

    assert (report.returned, report.redriven) == (1, 1)
    account.advance(minutes=3)
    (message,) = account.consumer_works()
    assert message["MessageAttributes"].keys() == full.keys()
    entry = account.entry(message_id)
    assert entry is not None
    assert entry.redrive_count == 2


def test_a_letter_of_a_queue_that_is_not_served_is_parked_and_not_sent_to_ours(
    account: Account, plain_sqs: Any
) -> None:
    dlq_arn = plain_sqs.get_queue_attributes(
        QueueUrl=account.deployment.dlq_url, AttributeNames=["QueueArn"]
    )["Attributes"]["QueueArn"]
    policy = json.dumps({"deadLetterTargetArn": dlq_arn, "maxReceiveCount": 1})
    invoices = plain_sqs.create_queue(
        QueueName="invoices", Attributes={"RedrivePolicy": policy, "VisibilityTimeout": "0"}
    )["QueueUrl"]
    plain_sqs.send_message(QueueUrl=invoices, MessageBody="an invoice")
    for _ in range(2):
        plain_sqs.receive_message(QueueUrl=invoices)

    report = account.run_pass()

    assert report.parked == {"UNKNOWN_SOURCE": 1}
    assert report.redriven == 0
    assert [message["Body"] for message in account.parked()] == ["an invoice"]
    assert account.counts(account.deployment.source_queue_url) == (0, 0)


def test_a_letter_that_was_put_into_the_dlq_by_hand_goes_to_the_one_source_queue(
    account: Account,
) -> None:
    account.sqs.send_message(QueueUrl=account.deployment.dlq_url, MessageBody="by hand")

    report = account.run_pass()

    account.advance(seconds=60)
    assert report.redriven == 1
    assert [message["Body"] for message in account.consumer_works()] == ["by hand"]


def test_copied_metadata_of_another_queue_is_told_and_the_letter_redriven_as_its_own(
    account: Account,
) -> None:
    foreign = RedriveMetadata.decode(
        '{"queue":"invoices","id":"x","n":14,"seen":0,"batch":3,"gen":1}'
    )
    attribute = {"DataType": "String", "StringValue": foreign.encode()}
    (message_id,) = account.dead_letters("a", MessageAttributes={METADATA_ATTRIBUTE: attribute})

    report = account.run_pass()

    account.advance(seconds=60)
    (message,) = account.consumer_works()
    assert report.redriven == 1
    assert (metadata_of(message).queue, metadata_of(message).original_id) == ("orders", message_id)
    assert [fields["message_id"] for fields in account.told("trail.ignored")] == [message_id]


def test_the_window_bounds_how_many_go_back_at_once(account: Account) -> None:
    account.dead_letters(*(f"letter {n}" for n in range(12)))

    first, second = account.run_pass(), account.run_pass()

    assert (first.redriven, second.redriven) == (5, 0)
    assert second.outcome is Outcome.WAITING
    account.advance(seconds=1)  # moto shows what was released from the next second on
    assert account.counts(account.deployment.dlq_url) == (7, 0)


def test_a_letter_that_is_delivered_twice_is_redriven_once(account: Account) -> None:
    account.dead_letters("a")

    report = replace(account, sqs=DeliversTwice(account.sqs)).run_pass()

    account.advance(seconds=60)
    assert report.redriven == 1
    assert [message["Body"] for message in account.consumer_works()] == ["a"]


def test_a_report_is_a_json_object_and_no_event_holds_a_body_or_an_attribute(
    account: Account,
) -> None:
    # No random id in the events can have this word, as it could have digits.
    attribute = {"card": {"DataType": "String", "StringValue": "swordfish"}}
    account.dead_letters("the body swordfish", MessageAttributes=attribute)

    report = account.run_pass()

    assert json.loads(json.dumps(report.to_json()))["redriven"] == 1
    assert "swordfish" not in json.dumps(account.events, default=str)
    assert account.events[-1][0] == "pass.finished"
