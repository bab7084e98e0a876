"""The widely published pattern."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from botocore.exceptions import ClientError

from simulator.rivals.letters import Message
from simulator.world import DLQ, PARKING_LOT, SOURCE, TABLE, World


class PublishedPattern:
    """The pattern as blogs show it: a breaker in DynamoDB fed by the re-driver's own calls, and a count by MessageId.

    It redrives five letters a pass, every five minutes, with exponential `DelaySeconds` of at most 900. It does not ask
    for attributes. A letter that was redriven five times goes to the parking lot, and an empty DLQ counts as a success.
    https://devtechtools.org/en/blog/advanced-sqs-dlq-redrive-patterns-lambda-circuit-breaker describes it; section 2 of
    the design lists the five faults that follow from that description.
    """

    every = timedelta(minutes=5)

    LETTERS_A_PASS = 5
    MAX_ATTEMPTS = 5
    BASE_DELAY_SECONDS = 60
    LONGEST_DELAY_SECONDS = 900
    FAILURE_THRESHOLD = 3
    SUCCESS_THRESHOLD = 2
    COOL_DOWN = timedelta(seconds=60)

    def __init__(self, world: World, _seed: int = 0) -> None:
        self.was_ever_open = False
        self._world = world
        self._dlq = world.url(DLQ)
        self._circuit_key = {"PK": {"S": f"CIRCUIT_BREAKER#{SOURCE}"}}
        world.dynamodb.create_table(
            TableName=TABLE,
            KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "PK", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )

    @property
    def state(self) -> str:
        """The breaker's state as it stands in the table."""
        return str(self._read(self._circuit_key).get("State", {"S": "CLOSED"})["S"])

    def tick(self) -> None:
        """One pass."""
        if self.state == "OPEN":
            if not self._has_cooled_down():
                return
            self._change_to("HALF_OPEN")
        letters = self._world.sqs.receive_message(
            QueueUrl=self._dlq, MaxNumberOfMessages=self.LETTERS_A_PASS
        ).get("Messages", [])
        if not letters:
            self._succeeded()
        for letter in letters:
            try:
                self._move(letter)
            except ClientError:
                self._failed()
            else:
                self._succeeded()

    def _move(self, letter: Message) -> None:
        key = {"PK": {"S": f"MESSAGE#{letter['MessageId']}"}}
        attempts = int(self._read(key).get("RedriveCount", {"N": "0"})["N"])
        if attempts >= self.MAX_ATTEMPTS:
            self._world.sqs.send_message(
                QueueUrl=self._world.url(PARKING_LOT), MessageBody=letter["Body"]
            )
        else:
            delay = min(self.BASE_DELAY_SECONDS * 2**attempts, self.LONGEST_DELAY_SECONDS)
            self._world.sqs.send_message(
                QueueUrl=self._world.url(SOURCE), MessageBody=letter["Body"], DelaySeconds=delay
            )
            self._write(key | {"RedriveCount": {"N": str(attempts + 1)}})
        self._world.sqs.delete_message(QueueUrl=self._dlq, ReceiptHandle=letter["ReceiptHandle"])

    def _succeeded(self) -> None:
        if self.state == "HALF_OPEN" and self._count("SuccessCount") >= self.SUCCESS_THRESHOLD:
            self._change_to("CLOSED")

    def _failed(self) -> None:
        is_canary = self.state == "HALF_OPEN"
        if self._count("FailureCount") >= self.FAILURE_THRESHOLD or is_canary:
            self._change_to("OPEN")

    def _count(self, counter: str) -> int:
        """Read, add one, write."""
        circuit = self._read(self._circuit_key)
        count = int(circuit.get(counter, {"N": "0"})["N"]) + 1
        self._write(self._circuit_key | circuit | {counter: {"N": str(count)}})
        return count

    def _change_to(self, state: str) -> None:
        self.was_ever_open |= state == "OPEN"
        since = {"LastStateChangeTimestamp": {"S": self._world.clock.now().isoformat()}}
        self._write(self._circuit_key | {"State": {"S": state}} | since)

    def _has_cooled_down(self) -> bool:
        since = self._read(self._circuit_key)["LastStateChangeTimestamp"]["S"]
        return self._world.clock.now() - datetime.fromisoformat(since) >= self.COOL_DOWN

    def _read(self, key: dict[str, Any]) -> dict[str, Any]:
        item: dict[str, Any] = self._world.dynamodb.get_item(TableName=TABLE, Key=key).get(
            "Item", {}
        )
        return item

    def _write(self, item: dict[str, Any]) -> None:
        self._world.dynamodb.put_item(TableName=TABLE, Item=item)
