"""Other ways to redrive, in the same world: what the benchmark compares ours with.

Each does what its source describes, with its source's defaults, over the same fakes. They are written here from
that description; no code of theirs is in this file. Where a source leaves something open, the choice that serves
it best was made, and said.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from random import Random
from typing import Any

from botocore.exceptions import ClientError

from redrive.core.pacing import MAX_SQS_DELAY, Pacer, backoff
HARD_CAP_FACTOR = 3
from redrive.settings import Settings
from simulator.world import DLQ, PARKING_LOT, SOURCE, TABLE, World

Message = dict[str, Any]


class PublishedPattern:
    """The pattern as blogs show it: a breaker in DynamoDB fed by the re-driver's own calls, a count by MessageId.

    Five letters a pass, every five minutes; exponential `DelaySeconds`, at most 900; attributes not asked for; a
    letter that was redriven five times goes to the parking lot; an empty DLQ counts as a success.
    https://devtechtools.org/en/blog/advanced-sqs-dlq-redrive-patterns-lambda-circuit-breaker describes it; the
    five faults that its description leads to are in section 2 of the design.
    """

    every = timedelta(minutes=5)

    LETTERS_A_PASS = 5
    MAX_ATTEMPTS = 5
    BASE_DELAY_SECONDS = 60
    FAILURE_THRESHOLD = 3
    SUCCESS_THRESHOLD = 2
    COOL_DOWN = timedelta(seconds=60)

    def __init__(self, world: World, _seed: int = 0) -> None:
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
            delay = min(self.BASE_DELAY_SECONDS * 2**attempts, int(MAX_SQS_DELAY.total_seconds()))
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


class NativeMove:
    """SQS's own redrive (`StartMessageMoveTask`) of everything, started by a schedule when the DLQ is not empty.

    At the 500 messages a second that SQS allows at most.
    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_StartMessageMoveTask.html
    """

    every = timedelta(minutes=5)

    MESSAGES_A_SECOND = 500

    def __init__(self, world: World, _seed: int = 0) -> None:
        self._world = world
        self._dlq = world.url(DLQ)

    def tick(self) -> None:
        """Start a move task unless one is running or there is nothing to move."""
        sqs = self._world.sqs
        told = sqs.get_queue_attributes(QueueUrl=self._dlq, AttributeNames=["All"])["Attributes"]
        if told["ApproximateNumberOfMessages"] == "0":
            return
        latest = sqs.list_message_move_tasks(SourceArn=told["QueueArn"])["Results"]
        if latest and latest[0]["Status"] == "RUNNING":
            return
        sqs.start_message_move_task(
            SourceArn=told["QueueArn"], MaxNumberOfMessagesPerSecond=self.MESSAGES_A_SECOND
        )


class EventSource:
    """A function with the DLQ as its event source, which sends each letter back at once with a growing delay.

    As aws-samples/amazon-sqs-dlq-replay-backoff describes it, with the defaults of its template: the attempts are
    counted in a message attribute, the n-th delay is uniform between 0 and 2 x 2^n seconds, and after three
    attempts the function fails, so that SQS moves the letter to the DLQ's own DLQ. Here that is the parking lot.
    https://github.com/aws-samples/amazon-sqs-dlq-replay-backoff
    """

    every = timedelta(seconds=10)

    COUNTER = "sqs-dlq-replay-nb"
    MAX_ATTEMPTS = 3
    BACKOFF_RATE = 2
    #: How often the function may fail on a letter before SQS gives it up.
    MAX_RECEIVE_COUNT = 3

    def __init__(self, world: World, seed: int = 0) -> None:
        self._world = world
        self._rng = Random(seed)
        self._dlq = world.url(DLQ)
        world.let_dead_letters_end_in(PARKING_LOT, of=DLQ, after=self.MAX_RECEIVE_COUNT)

    def tick(self) -> None:
        """What the event source mapping does: take all there is, and delete what the function did not fail on."""
        for letter in _receive_all(self._world, self._dlq):
            attempt = _number(letter, self.COUNTER) + 1
            if attempt > self.MAX_ATTEMPTS:
                continue  # the function fails: the letter stays
            _send(
                self._world,
                SOURCE,
                letter,
                delay=int(self._rng.uniform(0, self.BACKOFF_RATE * 2**attempt)),
                counter=(self.COUNTER, attempt),
            )


class NoBreaker:
    """Ours without a breaker: the same schedule, backoff, pace and count that travels; everything in every pass.

    With no verdicts there are no strikes, so that only our hard cap on redrives parks a letter.
    """

    every = timedelta(minutes=5)

    COUNTER = "RedriveCount"

    def __init__(self, world: World, seed: int = 0) -> None:
        self._world = world
        self._rng = Random(seed)
        self._settings = Settings()

    def tick(self) -> None:
        """Redrive all there is."""
        pacer = Pacer(self._settings.max_rate)
        for letter in _receive_all(self._world, self._world.url(DLQ)):
            redrives = _number(letter, self.COUNTER)
            if redrives >= HARD_CAP_FACTOR * self._settings.max_attempts:
                _send(self._world, PARKING_LOT, letter, delay=0, counter=(self.COUNTER, redrives))
                continue
            delay = backoff(redrives, self._rng.random(), self._settings)
            slot = pacer.slot(delay, self._world.clock.now())
            if slot is None:
                return  # what is left is visible again before the next pass
            seconds = int(slot.total_seconds())
            _send(self._world, SOURCE, letter, delay=seconds, counter=(self.COUNTER, redrives + 1))


def _receive_all(world: World, url: str) -> Iterator[Message]:
    """All visible messages, with all their attributes; what is not deleted is visible again in 30 s."""
    while letters := world.sqs.receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
    ).get("Messages"):
        yield from letters


def _number(letter: Message, attribute: str) -> int:
    value = letter.get("MessageAttributes", {}).get(attribute, {"StringValue": "0"})
    return int(value["StringValue"])


def _send(
    world: World, queue: str, letter: Message, *, delay: int, counter: tuple[str, int]
) -> None:
    """Send a letter from the DLQ on, then delete it there."""
    name, count = counter
    attributes = letter.get("MessageAttributes", {})
    world.sqs.send_message(
        QueueUrl=world.url(queue),
        MessageBody=letter["Body"],
        DelaySeconds=delay,
        MessageAttributes=attributes | {name: {"DataType": "Number", "StringValue": str(count)}},
    )
    world.sqs.delete_message(QueueUrl=world.url(DLQ), ReceiptHandle=letter["ReceiptHandle"])
