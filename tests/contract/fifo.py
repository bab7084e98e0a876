"""FIFO queues for contract tests: how they are made, fed and read."""

import json
from typing import Any

from tests.contract.conftest import Aws

#: Recorded on AWS by LocalStack's own tests.
RECORDED = "[localstack tests/aws/services/sqs, recorded on AWS]"


def fifo(aws: Aws, name: str = "orders", **attributes: str) -> str:
    """A FIFO queue; its URL."""
    return aws.queue(f"{name}.fifo", FifoQueue="true", **attributes)


def fifo_pair(aws: Aws, max_receive_count: int = 2, **attributes: str) -> tuple[str, str]:
    """A FIFO queue and its DLQ; their URLs."""
    dlq = fifo(aws, "orders-dlq")
    policy = {"deadLetterTargetArn": aws.arn(dlq), "maxReceiveCount": max_receive_count}
    return fifo(aws, RedrivePolicy=json.dumps(policy), **attributes), dlq


def put(aws: Aws, url: str, *bodies: str, group: str = "a", **fields: Any) -> list[dict[str, Any]]:
    """Send a message for each body, by itself the deduplication id; what SQS answers."""
    return [
        aws.sqs.send_message(
            QueueUrl=url,
            MessageBody=body,
            **({"MessageGroupId": group, "MessageDeduplicationId": body} | fields),
        )
        for body in bodies
    ]


def bodies(messages: list[dict[str, Any]]) -> list[str]:
    return [message["Body"] for message in messages]


def delete(aws: Aws, url: str, *messages: dict[str, Any]) -> None:
    for message in messages:
        aws.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])


def hide(aws: Aws, url: str, message: dict[str, Any], seconds: int) -> None:
    aws.sqs.change_message_visibility(
        QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=seconds
    )
