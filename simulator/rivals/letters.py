"""How a rival takes letters from the DLQ and sends them on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from simulator.world import DLQ, World

Message = dict[str, Any]


def receive_all(world: World, url: str) -> Iterator[Message]:
    """Receive all visible messages, with all their attributes. What is not deleted is visible again in 30 s."""
    while letters := world.sqs.receive_message(
        QueueUrl=url,
        MaxNumberOfMessages=10,
        MessageAttributeNames=["All"],
        MessageSystemAttributeNames=["DeadLetterQueueSourceArn"],
    ).get("Messages"):
        yield from letters


def number(letter: Message, attribute: str) -> int:
    value = letter.get("MessageAttributes", {}).get(attribute, {"StringValue": "0"})
    return int(value["StringValue"])


def source_of(letter: Message) -> str:
    """The source queue in which a letter died."""
    arn: str = letter["Attributes"]["DeadLetterQueueSourceArn"]
    return arn.rpartition(":")[2]


def send(
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
