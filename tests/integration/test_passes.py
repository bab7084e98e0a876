"""Whole passes over real boto3 clients: what a letter meets on its way, and what a pass leaves behind."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from redrive.aws.state_table import Lease
from redrive.core.breaker import force, new_circuit, order
from redrive.core.circuit import Orders, State
from redrive.core.ledger import Status
from redrive.core.letter import TRAIL_ATTRIBUTE, Trail
from redrive.core.report import Outcome
from redrive.settings import Settings
from tests.integration.conftest import Account

ATTRIBUTES: dict[str, dict[str, Any]] = {
    "payload": {"DataType": "String.json", "StringValue": '{"a": 1}'},
    "image": {"DataType": "Binary.gif", "BinaryValue": b"GIF89a\x00\xff"},
    "count": {"DataType": "Number", "StringValue": "12"},
}


def without_trail(message: dict[str, Any]) -> dict[str, Any]:
    """A message's attributes as its sender wrote them."""
    return {
        name: {kind: value for kind, value in attribute.items() if not kind.endswith("ListValues")}
        for name, attribute in message.get("MessageAttributes", {}).items()
        if name != TRAIL_ATTRIBUTE
    }


def trail_of(message: dict[str, Any]) -> Trail:
    return Trail.decode(message["MessageAttributes"][TRAIL_ATTRIBUTE]["StringValue"])


def test_a_letter_is_redriven_with_a_delay_and_its_trail_and_deleted_from_the_dlq(
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
    assert without_trail(message) == ATTRIBUTES
    trail = trail_of(message)
    assert (trail.queue, trail.original_id, trail.redrive_count) == ("orders", message_id, 1)
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
    account.advance(minutes=10)

    report = account.run_pass()

    assert (report.returned, report.redriven) == (1, 1)
    account.advance(minutes=3)
    (message,) = account.consumer_works()
    assert message["MessageAttributes"].keys() == full.keys()
    entry = account.entry(message_id)
    assert entry is not None
    assert entry.redrive_count == 2


def test_a_letter_that_was_processed_makes_its_batch_a_success(account: Account) -> None:
    account.dead_letters("a", "b")
    account.run_pass()
    account.advance(seconds=60)
    account.consumer_works()
    account.advance(minutes=10)

    report = account.run_pass()

    (verdict,) = report.verdicts
    assert (verdict["verdict"], verdict["size"], verdict["returned"]) == ("SUCCESS", 2, 0)
    assert report.circuit_after == "CLOSED"
    assert account.circuit is not None
    assert account.circuit.pending == ()
    assert account.run_pass().outcome is Outcome.IDLE


def test_a_return_is_counted_and_fails_its_batch(account: Account) -> None:
    (message_id,) = account.dead_letters("hello")
    account.run_pass()
    account.advance(seconds=60)
    account.consumer_fails()

    report = account.run_pass()

    (verdict,) = report.verdicts
    assert report.returned == 1
    assert verdict["verdict"] == "FAILURE"
    assert account.circuit is not None
    assert account.circuit.failure_count == 1
    assert report.redriven == 1
    entry = account.entry(message_id)
    assert entry is not None
    assert (entry.redrive_count, entry.strikes) == (2, 0)


def test_a_consumer_that_stays_down_opens_the_circuit_and_gets_only_canaries(
    account: Account,
) -> None:
    account.dead_letters("a", "b", "c")

    reports = []
    for _ in range(8):
        reports.append(account.run_pass())
        account.advance(minutes=16)
        account.consumer_fails()

    opened = next(n for n, report in enumerate(reports) if report.circuit_after != "CLOSED")
    assert all(report.redriven <= 1 for report in reports[opened + 1 :])
    assert sum(report.parked.total() for report in reports) == 0
    assert account.told("circuit.open")


def test_a_return_is_charged_once_though_it_is_received_again_while_it_waits_for_its_verdict(
    account: Account,
) -> None:
    account.dead_letters("a", "b", "c", "d")
    account.run_pass()
    account.advance(seconds=60)
    account.fail_only("d")

    early = account.run_pass()
    account.advance(minutes=10)
    due = account.run_pass()

    assert (early.returned, early.held) == (1, {"AWAITING_VERDICT": 1})
    assert due.examined == 1
    assert due.returned == 0
    assert [verdict["returned"] for verdict in due.verdicts] == [1]


def test_a_poison_pill_is_parked_with_body_and_attributes_unchanged(account: Account) -> None:
    (message_id,) = account.dead_letters("poison", MessageAttributes=ATTRIBUTES)
    for _ in range(12):
        account.run_pass(max_attempts=1)
        account.advance(minutes=31)
        account.consumer_fails()
        account.advance(minutes=10)

    (parked,) = account.parked()
    entry = account.entry(message_id)
    assert parked["Body"] == "poison"
    assert without_trail(parked) == ATTRIBUTES
    assert trail_of(parked).original_id == message_id
    assert account.counts(account.deployment.dlq_url) == (0, 0)
    assert entry is not None
    assert (entry.status, entry.park_reason) == (Status.PARKED, "MAX_ATTEMPTS")
    assert entry.redrive_count <= 3


def test_a_pill_that_fails_while_others_succeed_earns_a_strike_and_is_parked_at_the_limit(
    account: Account,
) -> None:
    account.dead_letters("a", "b", "c", "poison")
    account.run_pass(max_attempts=1)
    account.advance(seconds=60)
    account.fail_only("poison")
    account.advance(minutes=10)

    report = account.run_pass(max_attempts=1)

    assert report.parked == {"MAX_ATTEMPTS": 1}
    assert [message["Body"] for message in account.parked()] == ["poison"]
    assert report.circuit_after == "CLOSED"


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


def test_a_copied_trail_of_another_queue_is_told_and_the_letter_redriven_as_its_own(
    account: Account,
) -> None:
    foreign = Trail.decode('{"queue":"invoices","id":"x","n":14,"seen":0,"batch":3,"gen":1}')
    attribute = {"DataType": "String", "StringValue": foreign.encode()}
    (message_id,) = account.dead_letters("a", MessageAttributes={TRAIL_ATTRIBUTE: attribute})

    report = account.run_pass()

    account.advance(seconds=60)
    (message,) = account.consumer_works()
    assert report.redriven == 1
    assert (trail_of(message).queue, trail_of(message).original_id) == ("orders", message_id)
    assert [fields["message_id"] for fields in account.told("trail.ignored")] == [message_id]


def test_the_window_bounds_how_many_go_back_at_once(account: Account) -> None:
    account.dead_letters(*(f"letter {n}" for n in range(12)))

    first, second = account.run_pass(), account.run_pass()

    assert (first.redriven, second.redriven) == (5, 0)
    assert second.outcome is Outcome.WAITING
    assert account.counts(account.deployment.dlq_url) == (7, 0)


def test_an_expiring_letter_is_parked_while_the_circuit_is_open_and_cools_down(
    account: Account,
) -> None:
    account.dead_letters("old")
    account.advance(days=12, hours=1)
    circuit = force(new_circuit("orders", Settings(), account.now()), State.OPEN, "", account.now())
    account.store.save_circuit(circuit)

    report = account.run_pass()

    assert (report.circuit_before, report.circuit_after) == ("OPEN", "OPEN")
    assert report.parked == {"EXPIRING": 1}
    assert [message["Body"] for message in account.parked()] == ["old"]


def test_an_open_circuit_that_cools_down_lets_nothing_through(account: Account) -> None:
    account.dead_letters("a")
    circuit = force(new_circuit("orders", Settings(), account.now()), State.OPEN, "", account.now())
    account.store.save_circuit(circuit)

    reports = [account.run_pass() for _ in range(2)]

    assert reports[1].outcome is Outcome.WAITING
    assert sum(report.redriven for report in reports) == 0
    account.advance(minutes=6)
    canary = account.run_pass()
    assert (canary.redriven, canary.circuit_after) == (1, "HALF_OPEN")


def test_a_parked_letter_gets_a_new_clock_before_it_expires(account: Account) -> None:
    (message_id,) = account.dead_letters("x" * 2_000)
    account.sqs.set_queue_attributes(
        QueueUrl=account.deployment.source_queue_url, Attributes={"MaximumMessageSize": "1024"}
    )
    parking = account.run_pass()
    account.advance(days=12, hours=1)

    account.run_pass()

    account.advance(days=12)
    (renewed,) = account.parked()
    entry = account.entry(message_id)
    assert parking.parked == {"UNDELIVERABLE": 1}
    assert renewed["Body"] == "x" * 2_000
    assert trail_of(renewed).original_id == message_id
    assert entry is not None
    assert (entry.status, entry.park_reason) == (Status.PARKED, "UNDELIVERABLE")
    assert entry.current_id == renewed["MessageId"]


class Client:
    """The real SQS client, but for what a subclass says of one of its operations."""

    def __init__(self, sqs: Any) -> None:
        self._sqs = sqs

    def __getattr__(self, operation: str) -> Any:
        return getattr(self._sqs, operation)


class DeliversTwice(Client):
    """SQS delivers at least once: each message of an answer comes twice."""

    def receive_message(self, **request: Any) -> Any:
        messages = self._sqs.receive_message(**request).get("Messages", [])
        return {"Messages": [*messages, *messages]}


class Refuses(Client):
    """A queue that may not be sent to any more."""

    def __init__(self, sqs: Any, code: str) -> None:
        super().__init__(sqs)
        self._code = code

    def send_message_batch(self, **_: Any) -> Any:
        raise ClientError({"Error": {"Code": self._code, "Message": "no"}}, "SendMessageBatch")


def test_a_letter_that_is_delivered_twice_is_redriven_once(account: Account) -> None:
    account.dead_letters("a")

    report = replace(account, sqs=DeliversTwice(account.sqs)).run_pass()

    account.advance(seconds=60)
    assert report.redriven == 1
    assert [message["Body"] for message in account.consumer_works()] == ["a"]


@pytest.mark.parametrize("code", ["AccessDenied", "KmsThrottled", "OverLimit"])
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
                raise ClientError({"Error": fault}, "SendMessageBatch")
            return self._sqs.send_message_batch(**request)

    report = replace(account, sqs=Picky(account.sqs)).run_pass()

    assert (report.redriven, report.parked) == (1, {"UNDELIVERABLE": 1})
    assert [message["Body"] for message in account.parked()] == ["b"]
    assert account.circuit is not None
    assert account.circuit.failure_count == 0


def test_an_order_given_while_a_pass_runs_stands(account: Account) -> None:
    """A person opens the circuit between the pass's first read and its first write."""
    account.dead_letters("a")

    class Overruled(Client):
        def receive_message(self, **request: Any) -> Any:
            if account.circuit is None:
                fresh = new_circuit("orders", Settings(), account.now())
                account.store.save_circuit(force(fresh, State.OPEN, "by hand", account.now()))
            return self._sqs.receive_message(**request)

    report = replace(account, sqs=Overruled(account.sqs)).run_pass()

    assert report.outcome is Outcome.LOST_RACE
    assert report.redriven == 0
    assert account.circuit is not None
    assert (account.circuit.state, account.circuit.reason) == (State.OPEN, "by hand")
    assert sum(account.counts(account.deployment.dlq_url)) == 1


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


def test_a_letter_whose_redrive_could_not_be_recorded_is_deleted_and_known_by_its_trail(
    account: Account,
) -> None:
    (message_id,) = account.dead_letters("a")

    failed = replace(account, dynamodb=ForgetsLetters(account.dynamodb)).run_pass()
    account.advance(seconds=60)
    account.consumer_fails()
    account.advance(minutes=10)
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


def test_a_pass_that_runs_out_of_time_stops_by_itself_and_loses_nothing(account: Account) -> None:
    account.dead_letters("a")

    class Slow(Client):
        def receive_message(self, **request: Any) -> Any:
            account.advance(minutes=4)
            return self._sqs.receive_message(**request)

    report = replace(account, sqs=Slow(account.sqs)).run_pass()

    assert (report.outcome, report.redriven) == (Outcome.OUT_OF_TIME, 0)
    account.advance(minutes=1)
    assert account.run_pass().redriven == 1


def test_a_long_backoff_is_held_in_the_dlq_and_its_time_remembered(account: Account) -> None:
    slow = {"base_delay_seconds": 900, "max_delay_seconds": 43_200}
    (message_id,) = account.dead_letters("a")
    account.run_pass(**slow)
    account.advance(minutes=16)
    account.consumer_fails()

    reports = []
    for _ in range(5):
        account.advance(minutes=5)
        reports.append(account.run_pass(**slow))

    entry = account.entry(message_id)
    assert reports[0].held == {"BACKOFF": 1}
    assert sum(report.redriven for report in reports) == 1
    assert entry is not None
    assert entry.redrive_count == 2


# Standing aside.


def test_a_pause_that_a_person_ordered_ends_by_itself(account: Account) -> None:
    account.dead_letters("a")
    fresh = new_circuit("orders", Settings(), account.now())
    orders = Orders(
        is_paused=True, paused_until=account.now() + timedelta(minutes=9), by="ann", reason="deploy"
    )
    account.store.save_circuit(order(fresh, orders, account.now()))

    reports = [account.run_pass() for _ in range(2)]
    account.advance(minutes=10)
    after = account.run_pass()

    assert {report.outcome for report in reports} == {Outcome.PAUSED}
    assert "ann" in reports[1].reason
    assert sum(report.redriven for report in reports) == 0
    assert after.redriven == 1


def test_a_paused_pass_redrives_nothing_and_says_so(account: Account) -> None:
    account.dead_letters("a")

    reports = [account.run_pass(mode="paused") for _ in range(2)]

    assert {report.outcome for report in reports} == {Outcome.PAUSED}
    assert sum(report.redriven + report.parked.total() for report in reports) == 0
    assert sum(account.counts(account.deployment.dlq_url)) == 1
    assert account.counts(account.deployment.source_queue_url) == (0, 0)


def test_a_letter_that_expires_while_the_re_driver_is_paused_is_parked(account: Account) -> None:
    account.dead_letters("old")
    account.advance(days=12, hours=1)

    report = account.run_pass(mode="paused")

    assert report.parked == {"EXPIRING": 1}
    assert [message["Body"] for message in account.parked()] == ["old"]


def test_an_empty_dlq_costs_no_lease_and_leaves_no_circuit(account: Account) -> None:
    report = account.run_pass()

    assert report.outcome is Outcome.IDLE
    assert account.dynamodb.scan(TableName=account.deployment.table_name)["Items"] == []


def test_a_pass_stands_aside_while_a_native_move_runs(account: Account) -> None:
    account.dead_letters("a")
    account.moves.append({"Status": "RUNNING"})

    report = account.run_pass()

    assert report.outcome is Outcome.MOVE_TASK_RUNNING
    assert report.examined == 0
    account.moves.clear()
    assert account.run_pass().redriven == 1


def test_a_pass_leaves_the_queue_to_the_holder_of_the_lease_and_gives_its_own_back(
    account: Account,
) -> None:
    account.dead_letters("a")
    held = Lease(owner="another", expires_at=account.now() + timedelta(minutes=4))
    account.store.acquire_lease(held, account.now())

    refused = account.run_pass()
    account.store.release_lease(held)
    granted = account.run_pass()

    assert (refused.outcome, refused.examined) == (Outcome.LEASE_HELD, 0)
    assert granted.redriven == 1
    assert account.store.acquire_lease(held, account.now())


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


def test_a_dry_run_tells_its_decisions_and_applies_none(account: Account) -> None:
    (message_id,) = account.dead_letters("a")

    report = account.run_pass(mode="dry_run")

    assert report.outcome is Outcome.DRY_RUN
    assert report.redriven == 0
    assert report.decisions == [
        {
            "message_id": message_id,
            "original_id": message_id,
            "decision": "redrive",
            "reason": "DUE",
        }
    ]
    account.advance(seconds=1)
    assert account.counts(account.deployment.dlq_url) == (1, 0)
    assert account.counts(account.deployment.source_queue_url) == (0, 0)
    assert account.dynamodb.scan(TableName=account.deployment.table_name)["Items"] == []


def test_a_report_is_a_json_object_and_no_event_holds_a_body_or_an_attribute(
    account: Account,
) -> None:
    attribute = {"card": {"DataType": "String", "StringValue": "4111"}}
    account.dead_letters("the body 4111", MessageAttributes=attribute)

    report = account.run_pass()

    assert json.loads(json.dumps(report.to_json()))["redriven"] == 1
    assert "4111" not in json.dumps(account.events, default=str)
    assert account.events[-1][0] == "pass.finished"
