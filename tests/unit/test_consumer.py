"""The example consumer, driven through its Lambda handler over moto's DynamoDB and SQS."""

import importlib
import io
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from smart_redriver.engine.messages.letter import METADATA_ATTRIBUTE, RedriveMetadata
from smart_redriver.engine.reports.outcomes import DeliveryOutcome, parse_outcomes

QUEUE = "orders"
IDEMPOTENCY_TABLE = "idempotency"
CONTROL_TABLE = "control"
QUEUES = "https://sqs.eu-west-1.amazonaws.com/123456789012"
OUTCOME_QUEUE = "outcomes"
PARKING_LOT = "parking-lot"
DAY_SECONDS = 24 * 60 * 60

POISON = '{"poison": true}'
PERMANENT = '{"permanent": true}'
PAYMENT = '{"payment": true}'


@dataclass(frozen=True, kw_only=True)
class Context:
    """What the consumer and Powertools ask of a Lambda context."""

    remaining_millis: int = 30_000
    function_name: str = "consumer"
    memory_limit_in_mb: int = 256
    invoked_function_arn: str = "arn:aws:lambda:eu-west-1:123456789012:function:consumer"
    aws_request_id: str = "request"

    def get_remaining_time_in_millis(self) -> int:
        return self.remaining_millis


class Killed(BaseException):
    """Lambda ends the process: no `except Exception` gets to run."""


class Consumer:
    """A cold-started consumer with its tables, and the questions the tests ask of them."""

    def __init__(self) -> None:
        self.dynamodb = boto3.client("dynamodb")
        self.sqs = boto3.client("sqs")
        for name in (OUTCOME_QUEUE, PARKING_LOT):
            self.sqs.create_queue(QueueName=name)
        self.create_table(IDEMPOTENCY_TABLE, key="id")
        self.create_table(CONTROL_TABLE, key="PK")
        self.module: Any = importlib.import_module("consumer.handler")
        self.log_stream = io.StringIO()
        self.module.logger.registered_handler.setStream(self.log_stream)

    def create_table(self, name: str, *, key: str) -> None:
        self.dynamodb.create_table(
            TableName=name,
            KeySchema=[{"AttributeName": key, "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )

    def failures(self, *records: dict[str, Any], remaining_millis: int = 30_000) -> list[str]:
        """Deliver one batch; the ids of the messages that the consumer hands back."""
        response = self.module.lambda_handler(
            {"Records": list(records)}, Context(remaining_millis=remaining_millis)
        )
        return [failure["itemIdentifier"] for failure in response["batchItemFailures"]]

    def set_down(self, down: bool, *, payments: bool = False, capacity: int | None = None) -> None:
        item: dict[str, Any] = {
            "PK": {"S": "DEPENDENCY"},
            "Down": {"BOOL": down},
            "PaymentsDown": {"BOOL": payments},
        }
        if capacity is not None:
            item["CapacityPerMinute"] = {"N": str(capacity)}
        self.dynamodb.put_item(TableName=CONTROL_TABLE, Item=item)

    def records(self) -> list[dict[str, Any]]:
        return self.dynamodb.scan(TableName=IDEMPOTENCY_TABLE)["Items"]

    def processed(self) -> list[str]:
        """The original ids of the messages whose work is done."""
        done = [record for record in self.records() if record["status"]["S"] == "COMPLETED"]
        return sorted(json.loads(record["data"]["S"])["original_id"] for record in done)

    def reported(self) -> list[DeliveryOutcome]:
        """What the re-driver hears of it."""
        bodies = [message["Body"] for message in self.received(OUTCOME_QUEUE)]
        return [outcome for body in bodies for outcome in parse_outcomes(body).outcomes]

    def received(self, queue: str) -> list[dict[str, Any]]:
        found: list[Any] = self.sqs.receive_message(
            QueueUrl=f"{QUEUES}/{queue}", MaxNumberOfMessages=10, MessageAttributeNames=["All"]
        ).get("Messages", [])
        return found

    def log(self) -> list[tuple[str, str]]:
        """Each log line's event name and original id."""
        lines = [json.loads(line) for line in self.log_stream.getvalue().splitlines()]
        return [(line["message"], line["original_id"]) for line in lines]


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("IDEMPOTENCY_TABLE_NAME", IDEMPOTENCY_TABLE)
    monkeypatch.setenv("CONTROL_TABLE_NAME", CONTROL_TABLE)
    monkeypatch.setenv("OUTCOME_QUEUE_URL", f"{QUEUES}/{OUTCOME_QUEUE}")
    monkeypatch.setenv("PARKING_LOT_URL", f"{QUEUES}/{PARKING_LOT}")
    # Importing the handler is its cold start, and every test has its own.
    monkeypatch.delitem(sys.modules, "consumer.handler", raising=False)
    return monkeypatch


@pytest.fixture
def consumer(environment: pytest.MonkeyPatch) -> Iterator[Consumer]:
    with mock_aws():
        yield Consumer()


def message(message_id: str, body: str = "{}", *, metadata: str | None = None) -> dict[str, Any]:
    """One record of an SQS event; with redrive metadata, as the re-driver would have sent it."""
    attribute = {"stringValue": metadata, "dataType": "String"}
    return {
        "messageId": message_id,
        "receiptHandle": f"handle of {message_id}",
        "body": body,
        "attributes": {"ApproximateReceiveCount": "1"},
        "messageAttributes": {} if metadata is None else {METADATA_ATTRIBUTE: attribute},
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:eu-west-1:123456789012:{QUEUE}",
        "awsRegion": "eu-west-1",
    }


def metadata_of(original_id: str, *, queue: str = QUEUE) -> str:
    """Redrive metadata as the re-driver writes it, so that the two cannot drift apart."""
    first_seen = datetime(2026, 1, 1, tzinfo=UTC)
    return RedriveMetadata(
        queue=queue,
        original_id=original_id,
        redrive_count=1,
        first_seen=first_seen,
        batch=1,
        generation=1,
    ).encode()


def test_every_message_of_a_healthy_batch_is_processed(consumer: Consumer) -> None:
    failures = consumer.failures(message("a"), message("b"), message("c", "not JSON at all"))

    assert failures == []
    assert consumer.processed() == ["a", "b", "c"]


def test_a_poison_message_fails_alone_and_is_not_remembered(consumer: Consumer) -> None:
    failures = consumer.failures(message("a"), message("bad", POISON), message("b"))

    assert failures == ["bad"]
    assert consumer.processed() == ["a", "b"]
    assert len(consumer.records()) == 2


@pytest.mark.parametrize(
    "body",
    ["", "[]", "null", '{"poison": false}', '{"poison": "true"}', '{"poison"', "[" * 200_000],
    ids=lambda body: body[:20] or "empty",
)
def test_only_a_json_object_that_says_so_is_poison(consumer: Consumer, body: str) -> None:
    assert consumer.failures(message("a", body)) == []


def test_of_a_fifo_queue_nothing_is_tried_behind_what_failed_in_its_group(
    consumer: Consumer,
) -> None:
    group = {"m1": "a", "m2": "a", "m3": "b", "m4": "a"}
    records = [message(one, '{"poison": true}' if one == "m1" else "{}") for one in group]
    for record in records:
        record["eventSourceARN"] += ".fifo"
        record["attributes"]["MessageGroupId"] = group[record["messageId"]]

    assert consumer.failures(*records) == ["m1", "m2", "m4"]
    assert consumer.processed() == ["m3"]


def test_while_the_dependency_is_down_every_message_fails_and_none_is_remembered(
    consumer: Consumer,
) -> None:
    consumer.set_down(True)

    failures = consumer.failures(message("a"), message("bad", POISON))

    assert failures == ["a", "bad"]
    assert consumer.records() == []


def test_while_payments_are_down_messages_with_a_payment_fail_for_a_cause_of_their_own(
    consumer: Consumer,
) -> None:
    consumer.set_down(False, payments=True)

    failures = consumer.failures(message("a"), message("paid", PAYMENT), message("bad", POISON))

    assert failures == ["paid", "bad"]
    causes = {one.message_id: one.error_class for one in consumer.reported()}
    assert causes == {
        "paid": "consumer.work.PaymentsDownError",
        "bad": "consumer.work.PoisonMessageError",
    }
    consumer.set_down(False)
    assert consumer.failures(message("paid", PAYMENT)) == []
    assert consumer.processed() == ["a", "paid"]


def test_what_comes_beyond_its_capacity_in_a_minute_fails_as_overload(
    consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("consumer.handler.time.time", lambda: 6_000.0)
    consumer.set_down(False, capacity=2)

    failures = consumer.failures(message("a"), message("b"), message("c"))
    monkeypatch.setattr("consumer.handler.time.time", lambda: 6_060.0)

    assert failures == ["c"]
    assert [one.error_class for one in consumer.reported()] == ["consumer.work.OverloadedError"]
    assert consumer.failures(message("c")) == []


def test_a_dependency_that_is_up_again_is_noticed_by_the_next_invocation(
    consumer: Consumer,
) -> None:
    consumer.set_down(True)
    consumer.failures(message("a"))

    consumer.set_down(False)

    assert consumer.failures(message("a")) == []
    assert consumer.processed() == ["a"]


def test_a_redriven_message_that_had_failed_is_tried_again(consumer: Consumer) -> None:
    consumer.set_down(True)
    consumer.failures(message("a"))
    consumer.set_down(False)

    failures = consumer.failures(message("a2", metadata=metadata_of("a")))

    assert failures == []
    assert consumer.processed() == ["a"]
    assert consumer.log() == [("message.failed", "a"), ("message.processed", "a")]


def test_a_redriven_message_that_had_succeeded_is_not_worked_twice(consumer: Consumer) -> None:
    consumer.failures(message("a"))
    consumer.set_down(True)

    failures = consumer.failures(message("a2", metadata=metadata_of("a")))

    assert failures == []
    assert consumer.log() == [("message.processed", "a"), ("message.already_processed", "a")]


def test_two_copies_of_a_message_in_one_batch_are_worked_once(consumer: Consumer) -> None:
    failures = consumer.failures(
        message("a"), message("a2", metadata=metadata_of("a")), message("a")
    )

    assert failures == []
    assert [event for event, _ in consumer.log()].count("message.processed") == 1


@pytest.mark.parametrize(
    "metadata",
    [
        "",
        "not JSON",
        "[]",
        "{}",
        f'{{"queue":"{QUEUE}"}}',
        f'{{"queue":"{QUEUE}","id":""}}',
        f'{{"queue":"{QUEUE}","id":7}}',
        "[" * 200_000,
    ],
    ids=lambda metadata: metadata[:30] or "empty",
)
def test_a_malformed_metadata_counts_as_absent(consumer: Consumer, metadata: str) -> None:
    consumer.failures(message("a", metadata=metadata))

    assert consumer.processed() == ["a"]


def test_binary_metadata_counts_as_absent(consumer: Consumer) -> None:
    record = message("a", metadata="")
    record["messageAttributes"][METADATA_ATTRIBUTE] = {"binaryValue": "e30=", "dataType": "Binary"}

    consumer.failures(record)

    assert consumer.processed() == ["a"]


def test_messages_that_inherited_metadata_from_another_queue_are_each_processed(
    consumer: Consumer,
) -> None:
    inherited = metadata_of("order", queue="another-queue")

    consumer.failures(message("a", metadata=inherited), message("b", metadata=inherited))

    assert consumer.processed() == ["a", "b"]


def test_a_known_id_over_another_body_fails_rather_than_being_skipped(consumer: Consumer) -> None:
    consumer.failures(message("a", '{"step": 1}'))

    failures = consumer.failures(message("b", '{"step": 2}', metadata=metadata_of("a")))

    assert failures == ["b"]


def test_a_message_is_remembered_longer_than_it_can_wait_in_two_queues(consumer: Consumer) -> None:
    consumer.failures(message("a"))

    (record,) = consumer.records()
    assert int(record["expiration"]["N"]) - time.time() > 2 * 14 * DAY_SECONDS


@pytest.mark.parametrize(
    ("remaining_millis", "failures"),
    [(-1, []), (60_000, ["a"])],
    ids=["taken over when its time is up", "left alone before that"],
)
def test_an_invocation_that_was_killed_blocks_its_message_for_no_longer_than_it_could_have_run(
    consumer: Consumer,
    monkeypatch: pytest.MonkeyPatch,
    remaining_millis: int,
    failures: list[str],
) -> None:
    def die(*_: Any, **__: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(consumer.module, "work", die)
        with pytest.raises(Killed):
            consumer.failures(message("a"), remaining_millis=remaining_millis)

    assert consumer.failures(message("a")) == failures


def test_what_becomes_of_messages_is_reported(consumer: Consumer) -> None:
    consumer.failures(
        message("a"), message("a2", metadata=metadata_of("b")), message("bad", POISON)
    )

    redriven, failed = consumer.reported()
    assert (redriven.original_id, redriven.result, redriven.batch) == ("b", "succeeded", 1)
    assert (failed.original_id, failed.result) == ("bad", "failed")
    assert failed.error_class == "consumer.work.PoisonMessageError"
    assert failed.consumer.request_id == "request"


def test_a_permanent_failure_is_parked_and_not_tried_again(consumer: Consumer) -> None:
    failures = consumer.failures(
        message("a"), message("bad2", PERMANENT, metadata=metadata_of("bad"))
    )

    assert failures == []
    assert consumer.processed() == ["a"]
    [parked] = consumer.received(PARKING_LOT)
    metadata = RedriveMetadata.decode(
        parked["MessageAttributes"][METADATA_ATTRIBUTE]["StringValue"]
    )
    assert (parked["Body"], metadata.original_id) == (PERMANENT, "bad")
    [outcome] = consumer.reported()
    assert (outcome.result, outcome.parked_id) == ("permanent", parked["MessageId"])


def test_an_example_that_is_told_no_queues_reports_nothing_and_parks_nothing(
    environment: pytest.MonkeyPatch,
) -> None:
    environment.delenv("OUTCOME_QUEUE_URL")
    environment.delenv("PARKING_LOT_URL")
    with mock_aws():
        consumer = Consumer()

        assert consumer.failures(message("bad", PERMANENT)) == ["bad"]
        assert (consumer.received(PARKING_LOT), consumer.reported()) == ([], [])


def test_the_control_item_is_read_once_for_the_whole_batch(consumer: Consumer) -> None:
    reads: list[str] = []

    def count(model: Any, **_: Any) -> None:
        reads.append(model.name)

    consumer.module.dynamodb.meta.events.register("before-call.dynamodb.GetItem", count)

    consumer.failures(*(message(str(n)) for n in range(10)))

    assert len(reads) == 1


def test_an_unreadable_control_table_returns_the_whole_batch_unworked(consumer: Consumer) -> None:
    consumer.dynamodb.delete_table(TableName=CONTROL_TABLE)

    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        consumer.failures(message("a"))

    assert consumer.records() == []


def test_no_log_line_holds_a_body(consumer: Consumer) -> None:
    secret = '{"card": "4111"}'
    consumer.failures(message("a", secret), message("bad", '{"poison": true, "card": "4111"}'))
    consumer.failures(message("a2", secret, metadata=metadata_of("a")))
    consumer.set_down(True)
    consumer.failures(message("b", secret))

    assert "4111" not in consumer.log_stream.getvalue()
    assert consumer.log() == [
        ("message.processed", "a"),
        ("message.failed", "bad"),
        ("message.already_processed", "a"),
        ("message.failed", "b"),
    ]


def test_a_cold_start_names_every_variable_that_is_missing(
    environment: pytest.MonkeyPatch,
) -> None:
    environment.delenv("CONTROL_TABLE_NAME")
    environment.setenv("IDEMPOTENCY_TABLE_NAME", "")

    with pytest.raises(RuntimeError, match="IDEMPOTENCY_TABLE_NAME, CONTROL_TABLE_NAME"):
        importlib.import_module("consumer.handler")
