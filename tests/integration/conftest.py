"""One deployment on moto, through real boto3 clients, in virtual time.

moto lacks four things that a pass meets, and each stub says so: DeadLetterQueueSourceArn (as in the contract
tests), ListMessageMoveTasks, a queue's metrics in CloudWatch, and a long poll that does not need real time.
"""

import itertools
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from unittest.mock import patch

import boto3
import botocore.client
import pytest
import time_machine
from moto import mock_aws
from moto.sqs.models import Queue

from smart_redriver.engine.aws import clients
from smart_redriver.engine.aws.state_table import StateStore
from smart_redriver.engine.config.deployment import Deployment
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.model.circuit import Circuit
from smart_redriver.engine.model.verdict import LIVE_PATIENCE
from smart_redriver.engine.passes.redrive_pass import run_pass
from smart_redriver.engine.report import Report
from smart_redriver.engine.triage.ledger import Entry
from smart_redriver.engine.wiring import Queues, make_tools
from tests.contract.moto_dlq import dead_letter_source_arns
from tests.integration.queue_metrics import SourceMetrics

START = datetime(2026, 1, 10, 12, tzinfo=UTC)
QUEUE = "orders"
TABLE = "redriver-state"
FORTNIGHT = "1209600"
VISIBILITY_TIMEOUT = 30
MAX_RECEIVE_COUNT = 3
PASS_TIME = timedelta(seconds=225)

Message = dict[str, Any]


@dataclass
class Account:
    """A source queue, its DLQ, a parking lot and the state table, and a hand on their clock."""

    clock: time_machine.Traveller
    sqs: Any
    dynamodb: Any
    cloudwatch: Any
    deployment: Deployment
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    moves: list[dict[str, Any]] = field(default_factory=list)
    passes: Iterator[int] = field(default_factory=itertools.count)

    # The world.

    def advance(self, **units: float) -> None:
        self.clock.shift(timedelta(**units))

    def now(self) -> datetime:
        return datetime.now(UTC)

    def send(self, body: str, **fields: Any) -> str:
        url = self.deployment.source_queue_url
        sent = self.sqs.send_message(QueueUrl=url, MessageBody=body, **fields)
        message_id: str = sent["MessageId"]
        return message_id

    def receive(self, url: str | None = None) -> list[Message]:
        """All that is visible in the source queue, or in another."""
        found: list[Message] = []
        while messages := self.sqs.receive_message(
            QueueUrl=url or self.deployment.source_queue_url,
            MaxNumberOfMessages=10,
            MessageAttributeNames=["All"],
            MessageSystemAttributeNames=["All"],
        ).get("Messages"):
            found += messages
        return found

    def consumer_fails(self) -> None:
        """Let the consumer receive and not delete until SQS has moved all there is to the DLQ."""
        for _ in range(MAX_RECEIVE_COUNT + 1):
            self.receive()
            self.advance(seconds=VISIBILITY_TIMEOUT + 1)

    def consumer_works(self) -> list[Message]:
        """Let the consumer receive and delete all that is visible."""
        messages = self.receive()
        for message in messages:
            self._delete(message)
        return messages

    def fail_only(self, body: str) -> None:
        """Let the consumer succeed on all that is visible but the messages with this body."""
        for message in self.receive():
            if message["Body"] != body:
                self._delete(message)
        for _ in range(MAX_RECEIVE_COUNT):
            self.advance(seconds=VISIBILITY_TIMEOUT + 1)
            self.receive()

    def live_messages_stay_away(self) -> None:
        """Let the time pass for which a failure waits for producers' messages to speak for the consumer.

        The letters' own first sends make them expected here: they are a few minutes old.
        """
        self.advance(seconds=LIVE_PATIENCE.total_seconds())

    def _delete(self, message: Message) -> None:
        self.sqs.delete_message(
            QueueUrl=self.deployment.source_queue_url, ReceiptHandle=message["ReceiptHandle"]
        )

    def dead_letters(self, *bodies: str, **fields: Any) -> list[str]:
        """Let messages with these bodies fail; their ids."""
        ids = [self.send(body, **fields) for body in bodies]
        self.consumer_fails()
        return ids

    def dead_letters_of(self, queue: str, *bodies: str) -> None:
        """Let messages with these bodies fail in another queue that has the same DLQ."""
        told = self.sqs.get_queue_attributes(
            QueueUrl=self.deployment.source_queue_url, AttributeNames=["RedrivePolicy"]
        )
        url = self.sqs.create_queue(QueueName=queue, Attributes=told["Attributes"])["QueueUrl"]
        for body in bodies:
            self.sqs.send_message(QueueUrl=url, MessageBody=body)
        for _ in range(MAX_RECEIVE_COUNT + 1):
            self.receive(url)
            self.advance(seconds=VISIBILITY_TIMEOUT + 1)

    def counts(self, url: str) -> tuple[int, int]:
        """Messages that are visible, and those that are in flight or delayed."""
        told = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        hidden = int(told["ApproximateNumberOfMessagesNotVisible"])
        delayed = int(told["ApproximateNumberOfMessagesDelayed"])
        return int(told["ApproximateNumberOfMessages"]), hidden + delayed

    def parked(self) -> list[Message]:
        return self.receive(self.deployment.parking_lot_url)

    # The re-driver.

    @property
    def store(self) -> StateStore:
        return StateStore(self.dynamodb, self.deployment.table_name, QUEUE)

    @property
    def circuit(self) -> Circuit | None:
        return self.store.load_circuit()

    def entry(self, message_id: str) -> Entry | None:
        return self.store.read_ledger([message_id]).entries.get(message_id)

    def run_pass(self, **settings: Any) -> Report:
        tools = make_tools(
            Queues(self.deployment, sqs=self.sqs, cloudwatch=self.cloudwatch),
            self.deployment,
            dynamodb=self.dynamodb,
            journal=lambda event, /, **fields: self.events.append((event, fields)),
            clock=self.now,
            rng=Random(0),
            owner=f"pass-{next(self.passes)}",
        )
        return run_pass(tools, Settings.parse(settings), deadline=self.now() + PASS_TIME)

    def told(self, event: str) -> list[dict[str, Any]]:
        """The fields of every event of this name."""
        return [fields for name, fields in self.events if name == event]


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    # An emulator's endpoint in the environment would take these calls out of moto's hands.
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    # Importing the handler is its cold start, and every test has its own.
    monkeypatch.delitem(sys.modules, "redrive.handler", raising=False)
    return monkeypatch


@pytest.fixture
def account(environment: pytest.MonkeyPatch) -> Iterator[Account]:
    with (
        time_machine.travel(START, tick=False) as clock,
        mock_aws(),
        dead_letter_source_arns(),
        patch.object(Queue, "wait_for_messages", lambda _queue, seconds: clock.shift(seconds + 1)),
    ):
        sqs = clients.sqs_client()
        dynamodb = clients.dynamodb_client()
        cloudwatch = clients.cloudwatch_client()
        account = Account(clock, sqs, dynamodb, cloudwatch, _deploy(sqs, dynamodb))
        with _what_moto_lacks(account):
            yield account


def _deploy(sqs: Any, dynamodb: Any) -> Deployment:
    retention = {"MessageRetentionPeriod": FORTNIGHT}
    dlq = sqs.create_queue(QueueName="orders-dlq", Attributes=retention)["QueueUrl"]
    told = sqs.get_queue_attributes(QueueUrl=dlq, AttributeNames=["QueueArn"])
    policy = {
        "deadLetterTargetArn": told["Attributes"]["QueueArn"],
        "maxReceiveCount": MAX_RECEIVE_COUNT,
    }
    source = {
        "VisibilityTimeout": str(VISIBILITY_TIMEOUT),
        "RedrivePolicy": json.dumps(policy),
    }
    dynamodb.create_table(
        TableName=TABLE,
        KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "PK", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return Deployment(
        queue_name=QUEUE,
        table_name=TABLE,
        dlq_url=dlq,
        source_queue_url=sqs.create_queue(QueueName=QUEUE, Attributes=retention | source)[
            "QueueUrl"
        ],
        parking_lot_url=sqs.create_queue(QueueName="orders-parking-lot", Attributes=retention)[
            "QueueUrl"
        ],
    )


def _what_moto_lacks(account: Account) -> Any:
    """Answer ListMessageMoveTasks with the account's moves, and GetMetricData with what was seen of the source queue.

    moto 5.2.5 raises NotImplementedError for the one, and has no metrics of SQS.
    """
    make_api_call = botocore.client.BaseClient._make_api_call  # type: ignore[attr-defined]
    source_url = account.deployment.source_queue_url

    def ask() -> dict[str, str]:
        asked = {"QueueUrl": source_url, "AttributeNames": ["All"]}
        told: dict[str, str] = make_api_call(account.sqs, "GetQueueAttributes", asked)["Attributes"]
        return told

    metrics = SourceMetrics(source_url, ask)

    def call(client: Any, operation: str, request: dict[str, Any]) -> Any:
        if operation == "ListMessageMoveTasks":
            return {"Results": account.moves[: request.get("MaxResults", 1)]}
        if operation == "GetMetricData":
            return metrics.answer(request)
        answer = make_api_call(client, operation, request)
        metrics.hear(operation, request, answer)
        return answer

    return patch.object(botocore.client.BaseClient, "_make_api_call", call)


@pytest.fixture
def plain_sqs(account: Account) -> Any:
    """An SQS client of another application in the same account."""
    return boto3.client("sqs")
