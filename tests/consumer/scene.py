"""A source queue with its DLQ, a parking lot, an outcome queue, and a consumer's reporter on a wire that can go bad."""

import base64
from collections.abc import Sequence
from datetime import UTC, datetime
from random import Random
from typing import Any

from fakes.clock import VirtualClock
from fakes.faults import Script, Wire, nothing
from fakes.sqs import FakeSqs
from smart_redriver.consumer import Consumer, Reporter
from smart_redriver.engine.messages.letter import (
    METADATA_ATTRIBUTE,
    RedriveMetadata,
    metadata_attribute,
)
from smart_redriver.engine.reports.outcomes import DeliveryOutcome, parse_outcomes

NOW = datetime(2026, 1, 10, 12, tzinfo=UTC)
QUEUE = "orders"
LOT = "parking-lot"
OUTCOMES = "outcomes"
CONSUMER = Consumer(name="billing", version="4", log_group="/aws/lambda/billing", log_stream="[1]")

Message = dict[str, Any]


def some_metadata(**changes: Any) -> RedriveMetadata:
    usual: dict[str, Any] = {
        "queue": QUEUE,
        "original_id": "first",
        "redrive_count": 2,
        "first_seen": datetime(2026, 1, 1, tzinfo=UTC),
        "batch": 7,
        "generation": 3,
    }
    return RedriveMetadata(**usual | changes)


class Unhurried(Reporter):
    """Gives up no call because this machine is busy."""

    deadline = 600.0


class Scene:
    """What there is, and what can be asked of it afterwards."""

    def __init__(self) -> None:
        self.clock = VirtualClock(NOW)
        self.sqs = FakeSqs(self.clock, Random(7), count_lag_seconds=0)
        self.urls = {
            name: self.sqs.create_queue(QueueName=name)["QueueUrl"]
            for name in (QUEUE, LOT, OUTCOMES)
        }
        self.wire = Wire()

    def reporter(self, script: Script = nothing, **changes: Any) -> Reporter:
        """The consumer's, over a wire with this script."""
        self.wire = Wire(script)
        usual: dict[str, Any] = {
            "outcome_queue_url": self.urls[OUTCOMES],
            "parking_lot_url": self.urls[LOT],
            "consumer": CONSUMER,
        }
        return Unhurried(client=self.wire.to(self.sqs), **usual | changes)

    def message(
        self, body: str = "a body", *, metadata: RedriveMetadata | None = None, **more: Any
    ) -> Message:
        """A message of the source queue, as `ReceiveMessage` gives it."""
        attributes = dict(more.pop("attributes", {}))
        if metadata:
            attributes[METADATA_ATTRIBUTE] = metadata_attribute(metadata)
        url = self.urls[QUEUE]
        sent = self.sqs.send_message(
            QueueUrl=url, MessageBody=body, MessageAttributes=attributes or None, **more
        )
        return next(one for one in self.receive(QUEUE) if one["MessageId"] == sent["MessageId"])

    def record(self, body: str = "a body", **more: Any) -> Message:
        """A message as Lambda's event has it."""
        return record_of(self.message(body, **more))

    def receive(self, name: str) -> list[Message]:
        """All that can be received of a queue."""
        found: list[Message] = []
        while some := self.sqs.receive_message(
            QueueUrl=self.urls[name],
            MaxNumberOfMessages=10,
            MessageAttributeNames=["All"],
            MessageSystemAttributeNames=["All"],
        ).get("Messages"):
            found += some
        return found

    @property
    def calls(self) -> list[str]:
        """Which queues the consumer called, in order; it only sends."""
        assert {call.operation for call in self.wire.calls} <= {"SendMessage"}
        return [str(call.request["QueueUrl"]).rpartition("/")[2] for call in self.wire.calls]

    def bodies(self) -> list[str]:
        """The reports in the outcome queue."""
        return [message.body for message in self.sqs.inspect.messages(OUTCOMES)]

    def outcomes(self) -> list[DeliveryOutcome]:
        """All that was reported, in order; every report can be read."""
        parsed = [parse_outcomes(body) for body in self.bodies()]
        assert [one.faults for one in parsed] == [{}] * len(parsed)
        return [outcome for one in parsed for outcome in one.outcomes]


def record_of(message: Message) -> Message:
    """What Lambda makes of a message of `ReceiveMessage`."""
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message["Attributes"],
        "messageAttributes": {
            name: _attribute(value) for name, value in message.get("MessageAttributes", {}).items()
        },
        "md5OfBody": "",
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:eu-west-1:123456789012:{QUEUE}",
        "awsRegion": "eu-west-1",
    }


def _attribute(value: Message) -> Message:
    kept: Message = {"dataType": value["DataType"], "stringListValues": [], "binaryListValues": []}
    if "BinaryValue" in value:
        return kept | {"binaryValue": base64.b64encode(value["BinaryValue"]).decode()}
    return kept | {"stringValue": value["StringValue"]}


def results(outcomes: Sequence[DeliveryOutcome]) -> list[tuple[str, str]]:
    """Original id and result of each."""
    return [(one.original_id, one.result.value) for one in outcomes]
