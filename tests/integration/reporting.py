"""A consumer with the kit on moto: it works through its queue and reports, and an outcome queue for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from smart_redriver.consumer import Consumer
from smart_redriver.consumer.report import reports
from smart_redriver.engine.messages.letter import METADATA_ATTRIBUTE, RedriveMetadata
from smart_redriver.engine.reports.outcomes import DeliveryOutcome, Result, report_fields
from tests.integration.conftest import QUEUE, Account, Message

AUTHOR = Consumer(name="orders-consumer", version="1", log_group="/aws/lambda/orders-consumer")

#: What a consumer says of one delivery: the fields of an outcome beside its ids.
Says = Callable[[Message], dict[str, Any]]


def succeeds(_: Message) -> dict[str, Any]:
    return {"result": Result.SUCCEEDED}


def declines(_: Message) -> dict[str, Any]:
    return {
        "result": Result.FAILED,
        "error_class": "PaymentDeclined",
        "first_line": "no funds",
        "traceback": 'File "pay.py", line 7',
    }


def give_outcome_queue(account: Account) -> str:
    """An outcome queue for the account's deployment; its URL."""
    url: str = account.sqs.create_queue(QueueName="orders-outcomes")["QueueUrl"]
    account.deployment = replace(account.deployment, outcome_queue_url=url)
    return url


def outcome_of(message: Message, **says: Any) -> DeliveryOutcome:
    """What a consumer that says this reports of a message that it has received."""
    carried = message.get("MessageAttributes", {}).get(METADATA_ATTRIBUTE)
    metadata = RedriveMetadata.decode(carried["StringValue"]) if carried else None
    return DeliveryOutcome(
        queue=QUEUE,
        message_id=message["MessageId"],
        original_id=metadata.original_id if metadata else message["MessageId"],
        batch=metadata.batch if metadata else None,
        generation=metadata.generation if metadata else None,
        receive_count=int(message["Attributes"]["ApproximateReceiveCount"]),
        **says,
    )


def report(account: Account, *outcomes: DeliveryOutcome) -> None:
    """Send outcomes to the outcome queue as the kit does."""
    for body in reports(AUTHOR, map(report_fields, outcomes)):
        send_report(account, body)


def send_report(account: Account, body: str | dict[str, Any]) -> None:
    text = body if isinstance(body, str) else json.dumps(body)
    account.sqs.send_message(QueueUrl=account.deployment.outcome_queue_url, MessageBody=text)


def consumer_reports(account: Account, says: Says = succeeds) -> list[Message]:
    """Let the consumer receive all that is visible, delete what it is done with, and report all of it."""
    messages = account.receive()
    outcomes = [outcome_of(one, **says(one)) for one in messages]
    for message, outcome in zip(messages, outcomes, strict=True):
        if outcome.result is Result.SUCCEEDED:
            account.sqs.delete_message(
                QueueUrl=account.deployment.source_queue_url,
                ReceiptHandle=message["ReceiptHandle"],
            )
    report(account, *outcomes)
    return messages


def fails_and_reports(account: Account, says: Says = declines) -> None:
    """Let all that is in the source queue fail for good, each try reported."""
    for _ in range(4):
        consumer_reports(account, says)
        account.advance(seconds=31)


def unread(account: Account) -> tuple[int, int]:
    """Reports that anybody can receive, a second after they were released, and those that are hidden."""
    account.advance(seconds=1)
    return account.counts(account.deployment.outcome_queue_url)
