"""What AWS refuses a pass: letters stay, or are known by their metadata, and it is told."""

from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from smart_redriver.engine.passes.reporting import BUSY_SECONDS
from smart_redriver.engine.report import Outcome
from tests.integration.conftest import Account
from tests.integration.wires import Client, Refuses


@pytest.mark.parametrize("code", ["AccessDenied", "OverLimit"])
def test_refused_sends_keep_every_letter_and_count_as_a_failure_at_once(
    account: Account, code: str
) -> None:
    account.dead_letters("a", "b")

    report = replace(account, sqs=Refuses(account.sqs, code)).run_pass()

    assert (report.outcome, report.redriven, report.failed) == (Outcome.REFUSED, 0, 2)
    assert report.faults == {f"SendMessageBatch:{code}": 2}
    assert sum(account.counts(account.deployment.dlq_url)) == 2
    assert account.circuit is not None
    assert account.circuit.failure_count == 1
    assert account.circuit.pending == ()


def test_letters_stay_while_their_queue_sends_failed_ones_elsewhere(account: Account) -> None:
    account.dead_letters("a", "b")
    source_url = account.deployment.source_queue_url
    attributes = account.sqs.get_queue_attributes(QueueUrl=source_url, AttributeNames=["All"])
    policy = attributes["Attributes"]["RedrivePolicy"]
    account.sqs.create_queue(QueueName="payments-dlq")
    elsewhere = policy.replace("orders-dlq", "payments-dlq")
    account.sqs.set_queue_attributes(QueueUrl=source_url, Attributes={"RedrivePolicy": elsewhere})

    report = account.run_pass()

    assert (report.outcome, report.redriven, report.failed) == (Outcome.REFUSED, 0, 2)
    assert report.faults == {"SendMessageBatch:RedrivePolicyLeadsElsewhere": 2}
    assert sum(account.counts(account.deployment.dlq_url)) == 2
    assert sum(account.counts(source_url)) == 0

    account.sqs.set_queue_attributes(QueueUrl=source_url, Attributes={"RedrivePolicy": policy})
    account.advance(minutes=5)

    assert account.run_pass().redriven == 1  # a probe, after the failure


def test_throttled_sends_keep_every_letter_and_count_against_nobody(account: Account) -> None:
    account.dead_letters("a", "b")

    report = replace(account, sqs=Refuses(account.sqs, "KmsThrottled")).run_pass()

    assert (report.outcome, report.redriven, report.failed) == (Outcome.DONE, 0, 2)
    assert report.faults == {"SendMessageBatch:KmsThrottled": 2}
    assert sum(account.counts(account.deployment.dlq_url)) == 2
    assert account.circuit is not None
    assert (account.circuit.failure_count, account.circuit.pending) == (0, ())
    assert report.look_again_seconds == BUSY_SECONDS


def test_letters_whose_sends_were_refused_are_back_when_the_pass_is_over(account: Account) -> None:
    account.dead_letters("a", "b")
    replace(account, sqs=Refuses(account.sqs, "AccessDenied")).run_pass()
    account.advance(minutes=5)

    report = account.run_pass()

    assert report.redriven >= 1
    assert report.examined >= 1


def test_a_message_that_sqs_will_not_take_is_parked_where_the_parking_lot_takes_it(
    account: Account,
) -> None:
    account.dead_letters("a", "b")

    class Picky(Client):
        def send_message_batch(self, **request: Any) -> Any:
            bodies = [entry["MessageBody"] for entry in request["Entries"]]
            if "b" in bodies and request["QueueUrl"] == account.deployment.source_queue_url:
                fault = {"Code": "InvalidMessageContents", "Message": "no"}
                raise ClientError({"Error": fault}, "SendMessageBatch")  # type: ignore[typeddict-item]
            return self._sqs.send_message_batch(**request)

    report = replace(account, sqs=Picky(account.sqs)).run_pass()

    assert (report.redriven, report.parked) == (1, {"UNDELIVERABLE": 1})
    assert [message["Body"] for message in account.parked()] == ["b"]
    assert account.circuit is not None
    assert account.circuit.failure_count == 0


class KeepsLetters(Client):
    """The DLQ's deletes are refused: the pass dies, or its permission is gone, after the send."""

    def delete_message_batch(self, **_: Any) -> Any:
        raise ClientError(
            {"Error": {"Code": "AccessDenied", "Message": "no"}}, "DeleteMessageBatch"
        )


def test_a_copy_whose_successor_is_on_its_way_is_deleted_and_not_sent_again(
    account: Account,
) -> None:
    account.dead_letters("a")
    first = replace(account, sqs=KeepsLetters(account.sqs)).run_pass()
    account.advance(seconds=60)
    account.consumer_works()
    account.advance(minutes=10)

    second = account.run_pass()

    account.advance(minutes=10)
    assert (first.redriven, first.failed) == (1, 1)
    assert (second.redriven, second.discarded) == (0, 1)
    assert account.consumer_works() == []
    assert account.counts(account.deployment.dlq_url) == (0, 0)


class ForgetsLetters(Client):
    """The ledger's writes are refused."""

    def batch_write_item(self, **_: Any) -> Any:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "BatchWriteItem")


def test_a_letter_whose_redrive_could_not_be_recorded_is_deleted_and_known_by_its_metadata(
    account: Account,
) -> None:
    (message_id,) = account.dead_letters("a")

    failed = replace(account, dynamodb=ForgetsLetters(account.dynamodb)).run_pass()
    account.advance(seconds=60)
    account.consumer_fails()
    account.live_messages_stay_away()
    report = account.run_pass()

    entry = account.entry(message_id)
    assert (failed.outcome, failed.redriven) == (Outcome.FAILED, 1)
    assert failed.faults == {"BatchWriteItem:AccessDenied": 1}
    assert (report.returned, report.redriven) == (1, 1)
    assert entry is not None
    assert entry.redrive_count == 2


class KeepsTheLease(Client):
    """The lease can't be given back."""

    def delete_item(self, **_: Any) -> Any:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "DeleteItem")


def test_a_lease_that_cannot_be_released_is_told_and_expires_by_itself(account: Account) -> None:
    account.dead_letters("a")

    first = replace(account, dynamodb=KeepsTheLease(account.dynamodb)).run_pass()
    account.sqs.send_message(QueueUrl=account.deployment.dlq_url, MessageBody="b")
    held = account.run_pass()
    account.advance(minutes=5)
    later = account.run_pass()

    assert (first.outcome, first.redriven) == (Outcome.DONE, 1)
    assert first.faults == {"DeleteItem:AccessDenied": 1}
    assert held.outcome is Outcome.LEASE_HELD
    assert later.redriven == 1


@pytest.mark.parametrize("missing", ["table", "dlq", "source queue", "parking lot"])
def test_a_pass_that_lacks_one_of_its_resources_fails_by_name_and_touches_no_letter(
    account: Account, missing: str
) -> None:
    account.dead_letters("a")
    if missing == "table":
        account.dynamodb.delete_table(TableName=account.deployment.table_name)
    else:
        urls = {
            "dlq": account.deployment.dlq_url,
            "source queue": account.deployment.source_queue_url,
            "parking lot": account.deployment.parking_lot_url,
        }
        account.sqs.delete_queue(QueueUrl=urls[missing])

    report = account.run_pass()

    assert report.outcome is Outcome.FAILED
    assert report.examined == 0
    assert report.faults.total() == 1
    assert account.told("call.failed")
    if missing != "dlq":
        assert account.counts(account.deployment.dlq_url) == (1, 0)
