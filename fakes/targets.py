# ruff: noqa: N803 - the parameters have boto3's names
"""Fakes of the boto3 clients of Firehose, Step Functions and SNS, as far as letters are sent to them.

Each keeps what it accepted, and refuses every call with the code of its `outage` while that is set. What it accepts:
botocore's models of PutRecord, StartExecution and Publish, with their limits.
"""

import json
from collections.abc import Collection
from dataclasses import dataclass
from random import Random
from typing import Any

from fakes.boto_client import FakeClient, Fault, Response, operation
from fakes.sqs.message import new_message_id

MOST_OF_A_RECORD = 1_024_000
MOST_OF_AN_INPUT = 262_144
MOST_OF_A_PUBLICATION = 262_144


class FakeFirehose(FakeClient):
    """Delivery streams by name; `records` are what they accepted."""

    def __init__(self, rng: Random, streams: Collection[str] = ()) -> None:
        super().__init__("firehose")
        self._rng = rng
        self.streams = set(streams)
        self.records: list[tuple[str, bytes]] = []
        self.outage: str | None = None

    @operation
    def put_record(self, *, DeliveryStreamName: str, Record: dict[str, bytes]) -> Response:
        """Accept one record."""
        if self.outage:
            raise Fault(self.outage, "as scripted")
        if DeliveryStreamName not in self.streams:
            raise Fault("ResourceNotFoundException", f"Firehose {DeliveryStreamName} not found")
        if len(Record["Data"]) > MOST_OF_A_RECORD:
            raise Fault("InvalidArgumentException", "The record is too large.")
        self.records.append((DeliveryStreamName, Record["Data"]))
        return {"RecordId": new_message_id(self._rng) * 5, "Encrypted": False}


@dataclass(slots=True)
class Execution:
    """An execution that was started. While it runs, another start with its name and input returns it."""

    machine: str
    name: str
    input: str
    is_running: bool = True


class FakeStates(FakeClient):
    """State machines by ARN; `executions` are what they started."""

    def __init__(self, machines: Collection[str] = ()) -> None:
        super().__init__("stepfunctions")
        self.machines = set(machines)
        self.executions: list[Execution] = []
        self.outage: str | None = None

    @operation
    def start_execution(
        self,
        *,
        stateMachineArn: str,
        name: str,
        input: str = "{}",  # noqa: A002
    ) -> Response:
        """Start an execution. A used name is accepted only for the very same execution while it still runs."""
        if self.outage:
            raise Fault(self.outage, "as scripted")
        if stateMachineArn not in self.machines:
            missing = f"State Machine Does Not Exist: '{stateMachineArn}'"
            raise Fault("StateMachineDoesNotExist", missing)
        if len(input.encode()) > MOST_OF_AN_INPUT:
            raise Fault("ValidationException", "Value at 'input' is too long")
        try:
            json.loads(input)
        except ValueError:
            raise Fault("InvalidExecutionInput", "Invalid State Machine Execution Input") from None
        arn = f"{stateMachineArn.replace(':stateMachine:', ':execution:')}:{name}"
        ours = Execution(stateMachineArn, name, input)
        for one in self.executions:
            if (one.machine, one.name) == (stateMachineArn, name):
                if one != ours:
                    raise Fault("ExecutionAlreadyExists", f"Execution Already Exists: '{arn}'")
                return {"executionArn": arn}
        self.executions.append(ours)
        return {"executionArn": arn}


class FakeSns(FakeClient):
    """Topics by ARN; `published` are the parameters of the messages that they accepted."""

    def __init__(self, rng: Random, topics: Collection[str] = ()) -> None:
        super().__init__("sns")
        self._rng = rng
        self.topics = set(topics)
        self.published: list[dict[str, Any]] = []
        self.outage: str | None = None

    @operation
    def publish(self, /, *, TopicArn: str, Message: str, **more: Any) -> Response:
        """Publish a message."""
        if self.outage:
            raise Fault(self.outage, "as scripted")
        if TopicArn not in self.topics:
            raise Fault("NotFound", "Topic does not exist")
        if not Message:
            raise Fault("InvalidParameter", "Invalid parameter: Empty message")
        if len(Message.encode()) > MOST_OF_A_PUBLICATION:
            raise Fault("InvalidParameter", "Invalid parameter: Message too long")
        self.published.append({"TopicArn": TopicArn, "Message": Message, **more})
        return {"MessageId": new_message_id(self._rng)}
