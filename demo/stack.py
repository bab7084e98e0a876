"""Handles on what was deployed: the queues, the tables and the logs of one stack."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from boto3.dynamodb.types import TypeDeserializer

from emulator import cdk
from emulator.process import LocalAws

from .event_log import EventLog
from .orders import Order

APP_DIR = Path(__file__).resolve().parent.parent

_ENTRIES_PER_CALL = 10
#: Parked letters that are looked at stay hidden from others for a minute.
_HIDDEN_SECONDS = 60

_deserialize = TypeDeserializer().deserialize


@dataclass(frozen=True, slots=True, kw_only=True)
class Depths:
    """How many messages each queue holds: visible, in flight and delayed together."""

    source: int
    dead_letters: int
    parked: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitNow:
    """The circuit as it stands in the state table; as a new one before the first pass wrote it."""

    state: str = "CLOSED"
    window: int | None = None
    reason: str = "new"
    held_causes: tuple[str, ...] = ()


class DeployedStack:
    """One deployed `SmartRedriver`, seen from outside: nothing here knows the re-driver's code."""

    def __init__(self, aws: LocalAws, outputs: Mapping[str, str]) -> None:
        self.aws = aws
        self.outputs = dict(outputs)
        self.sqs = aws.client("sqs")
        self.dynamodb = aws.client("dynamodb")
        self.functions = aws.client("lambda")
        self._schedules = aws.client("scheduler")
        self.redriver_log = self._log_of(outputs["RedriveFunctionName"])

    @property
    def source_url(self) -> str:
        return self.outputs["SourceQueueUrl"]

    @property
    def dead_letter_url(self) -> str:
        return self.outputs["DeadLetterQueueUrl"]

    @property
    def parking_lot_url(self) -> str:
        return self.outputs["ParkingLotQueueUrl"]

    @property
    def queue_name(self) -> str:
        return self.source_url.rpartition("/")[2]

    def now(self) -> datetime:
        """The time on the virtual clock."""
        return datetime.fromtimestamp(self.aws.clock.now(), UTC)

    def consumer_log(self) -> EventLog:
        """The consumer's log, from its beginning."""
        return self._log_of(self.outputs["SampleConsumerFunctionName"])

    def send(self, orders: Sequence[Order]) -> dict[str, Order]:
        """Send orders to the source queue; each by the MessageId that it got."""
        sent: dict[str, Order] = {}
        for start in range(0, len(orders), _ENTRIES_PER_CALL):
            few = orders[start : start + _ENTRIES_PER_CALL]
            answer = self.sqs.send_message_batch(
                QueueUrl=self.source_url,
                Entries=[_entry(index, order) for index, order in enumerate(few)],
            )
            if answer.get("Failed"):
                raise RuntimeError(f"not accepted: {answer['Failed']}")
            sent |= {one["MessageId"]: few[int(one["Id"])] for one in answer["Successful"]}
        return sent

    def set_dependency(
        self, *, is_down: bool, payments_down: bool = False, capacity: int | None = None
    ) -> None:
        """Throw the switches that make the consumer fail on every message, or on those with a payment.

        With a `capacity`, it fails on what comes beyond so many messages a minute.
        """
        self.dynamodb.put_item(
            TableName=self.outputs["SampleControlTableName"],
            Item=control_item(is_down=is_down, payments_down=payments_down, capacity=capacity),
        )

    def stop_schedule(self) -> None:
        """From now on, passes run only when somebody invokes the function."""
        function = self.outputs["RedriveFunctionName"]
        listed = self._schedules.list_schedules()["Schedules"]
        own = [one["Name"] for one in listed if one["Target"]["Arn"].endswith(f":{function}")]
        if not own:
            raise RuntimeError(f"no schedule invokes {function}: {listed}")
        for name in own:
            self._schedules.delete_schedule(Name=name)

    def depths(self) -> Depths:
        return Depths(
            source=self._depth(self.source_url),
            dead_letters=self._depth(self.dead_letter_url),
            parked=self._depth(self.parking_lot_url),
        )

    def circuit(self) -> CircuitNow:
        item = self.state_item(f"CIRCUIT_BREAKER#{self.queue_name}")
        if item is None:
            return CircuitNow()
        return CircuitNow(
            state=item["State"],
            window=int(item["Window"]),
            reason=item["Reason"],
            held_causes=tuple(one["Cause"] for one in item["Causes"] if "HeldSince" in one),
        )

    def state_item(self, key: str) -> dict[str, Any] | None:
        """One item of the state table, as plain values."""
        answer = self.dynamodb.get_item(
            TableName=self.outputs["StateTableName"], Key={"PK": {"S": key}}, ConsistentRead=True
        )
        return _plain(answer["Item"]) if "Item" in answer else None

    def processed(self) -> set[str]:
        """Original ids of the messages whose work the consumer remembers as done."""
        table = self.outputs["SampleIdempotencyTableName"]
        pages = self.dynamodb.get_paginator("scan").paginate(TableName=table, ConsistentRead=True)
        records = (_plain(item) for page in pages for item in page["Items"])
        return {
            json.loads(record["data"])["original_id"]
            for record in records
            if record.get("status") == "COMPLETED"
        }

    def ringing(self) -> dict[str, str]:
        """The descriptions of the alarms that ring, by their names."""
        pages = self.aws.client("cloudwatch").get_paginator("describe_alarms")
        found = [
            alarm
            for page in pages.paginate(
                StateValue="ALARM", AlarmTypes=["MetricAlarm", "CompositeAlarm"]
            )
            for alarm in (*page.get("MetricAlarms", ()), *page.get("CompositeAlarms", ()))
        ]
        return {one["AlarmName"]: one.get("AlarmDescription", "") for one in found}

    def is_deleted(self, original_id: str) -> bool:
        """Whether a person deleted the letter, by the ledger."""
        item = self.state_item(f"MESSAGE#{original_id}")
        return item is not None and item["Status"] == "DELETED"

    def parked(self) -> dict[str, dict[str, Any]]:
        """The messages in the parking lot, by their original ids. Looking hides them for a minute."""
        return {_original_id(message): message for message in self._receive_all()}

    def _receive_all(self) -> Iterator[dict[str, Any]]:
        while messages := self.sqs.receive_message(
            QueueUrl=self.parking_lot_url,
            MaxNumberOfMessages=_ENTRIES_PER_CALL,
            VisibilityTimeout=_HIDDEN_SECONDS,
            MessageAttributeNames=["All"],
            MessageSystemAttributeNames=["All"],
        ).get("Messages"):
            yield from messages

    def _depth(self, url: str) -> int:
        answer = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
        kinds = ("", "NotVisible", "Delayed")
        return sum(
            int(answer["Attributes"][f"ApproximateNumberOfMessages{kind}"]) for kind in kinds
        )

    def _log_of(self, function: str) -> EventLog:
        settings = self.functions.get_function_configuration(FunctionName=function)
        return EventLog(self.aws.client("logs"), settings["LoggingConfig"]["LogGroup"])


def deploy(aws: LocalAws, **context: str) -> DeployedStack:
    """Deploy the app with the real CDK command line, by default settings and what `context` says.

    The account must have been bootstrapped (`emulator.cdk.bootstrap`).
    """
    return DeployedStack(aws, cdk.deploy(aws, APP_DIR, context, deployment_of(aws)))


def deployment_of(aws: LocalAws) -> Path:
    """Where cloud assembly, outputs and log of the deployment are."""
    return aws.work_dir / "deployment"


def control_item(
    *, is_down: bool, payments_down: bool = False, capacity: int | None = None
) -> dict[str, Any]:
    """The switches of the sample consumer."""
    item: dict[str, Any] = {
        "PK": {"S": "DEPENDENCY"},
        "Down": {"BOOL": is_down},
        "PaymentsDown": {"BOOL": payments_down},
    }
    if capacity is not None:
        item["CapacityPerMinute"] = {"N": str(capacity)}
    return item


def _entry(index: int, order: Order) -> dict[str, Any]:
    entry: dict[str, Any] = {"Id": str(index), "MessageBody": order.body}
    if order.attributes:
        entry["MessageAttributes"] = order.attributes
    if order.group_id:
        entry["MessageGroupId"] = order.group_id
    return entry


def _original_id(message: Mapping[str, Any]) -> str:
    metadata = message.get("MessageAttributes", {}).get("RedriveTrail")
    return str(json.loads(metadata["StringValue"])["id"] if metadata else message["MessageId"])


def _plain(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _deserialize(value) for name, value in item.items()}
