"""One AWS for every contract test, twice: our fakes, and moto in this process.

A test that holds on both is evidence that the fakes behave as others understand AWS. Where moto is
known to differ from AWS the test is marked `moto_differs` with the behaviour's source; it then has
to fail on moto, so that we hear of it when moto catches up.
"""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any, Literal

import boto3
import pytest
import time_machine
from botocore.exceptions import ClientError
from moto import mock_aws

from fakes.clock import START, VirtualClock
from fakes.dynamodb import FakeDynamoDb
from fakes.sqs import FakeSqs
from tests.contract.moto_dlq import dead_letter_source_arns


@dataclass
class Aws:
    """The clients under test, and the hand on their clock."""

    sqs: Any
    dynamodb: Any
    advance: Callable[[float], None]

    def queue(self, name: str, **attributes: str) -> str:
        url: str = self.sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
        return url

    def arn(self, url: str) -> str:
        arn: str = self.attributes(url)["QueueArn"]
        return arn

    def attributes(self, url: str) -> dict[str, str]:
        told: dict[str, str] = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])[
            "Attributes"
        ]
        return told

    def counts(self, url: str) -> tuple[int, int, int]:
        """Visible, in flight, delayed."""
        told = self.attributes(url)
        kinds = ("", "NotVisible", "Delayed")
        visible, in_flight, delayed = (
            int(told[f"ApproximateNumberOfMessages{kind}"]) for kind in kinds
        )
        return visible, in_flight, delayed

    def source_and_dlq(self, max_receive_count: int = 2, **attributes: str) -> tuple[str, str]:
        dlq = self.queue("orders-dlq")
        policy = {"deadLetterTargetArn": self.arn(dlq), "maxReceiveCount": max_receive_count}
        return self.queue("orders", RedrivePolicy=json.dumps(policy), **attributes), dlq

    def send(self, url: str, body: str = "a body", **fields: Any) -> str:
        message_id: str = self.sqs.send_message(QueueUrl=url, MessageBody=body, **fields)[
            "MessageId"
        ]
        return message_id

    def receive(self, url: str, **fields: Any) -> list[dict[str, Any]]:
        asked = {
            "MaxNumberOfMessages": 10,
            "MessageAttributeNames": ["All"],
            "MessageSystemAttributeNames": ["All"],
        }
        answer = self.sqs.receive_message(QueueUrl=url, **(asked | fields))
        messages: list[dict[str, Any]] = answer.get("Messages", [])
        return messages

    def fail_until_dead(self, source: str, max_receive_count: int = 2) -> None:
        """Receive without deleting until the next attempt has moved what there is to the DLQ."""
        for _ in range(max_receive_count + 1):
            self.receive(source)
            self.advance(31)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "moto_differs(reason): fails on moto, unlike on AWS")


@pytest.fixture(params=["fake", "moto"])
def aws(request: pytest.FixtureRequest) -> Iterator[Aws]:
    if request.param == "fake":
        yield fakes(VirtualClock())
        return
    for marker in request.node.iter_markers("moto_differs"):
        request.applymarker(pytest.mark.xfail(strict=True, reason=marker.args[0]))
    session: boto3.Session = request.getfixturevalue("boto3_session")
    with (
        time_machine.travel(START, tick=False) as traveller,
        mock_aws(),
        dead_letter_source_arns(),
    ):
        yield Aws(_client(session, "sqs"), _client(session, "dynamodb"), traveller.shift)


@pytest.fixture(scope="session")
def boto3_session() -> Iterator[boto3.Session]:
    """A session that can reach nothing but moto, whatever the environment says."""
    with pytest.MonkeyPatch.context() as environment:
        # An emulator's endpoint in the environment would take the calls out of moto's hands.
        for name in list(os.environ):
            if name.startswith(("AWS_ENDPOINT_URL", "AWS_PROFILE")):
                environment.delenv(name)
        yield boto3.Session("testing", "testing", region_name="us-east-1")


@cache
def _client(session: boto3.Session, service: Literal["sqs", "dynamodb"]) -> Any:
    # One client for all tests: making one takes longer than most tests do.
    return session.client(service)


@pytest.fixture
def fake() -> Aws:
    """The fakes alone, for what moto has no notion of."""
    return fakes(VirtualClock())


def fakes(clock: VirtualClock) -> Aws:
    sqs = FakeSqs(clock, Random(7), count_lag_seconds=0)
    return Aws(sqs, FakeDynamoDb(clock), clock.advance)


def code_of(error: pytest.ExceptionInfo[ClientError]) -> str:
    """The code an adapter would decide by."""
    return error.value.response["Error"]["Code"]
