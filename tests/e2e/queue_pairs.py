"""Queues that somebody has already, each with its DLQ: what a re-driver adopts."""

import json

from emulator.environments import ACCOUNT, REGION
from emulator.process import LocalAws


def make_pairs(aws: LocalAws, *names: str) -> None:
    """A queue of each name, whose messages go to NAME-dlq after three receives."""
    sqs = aws.client("sqs")
    for name in names:
        sqs.create_queue(QueueName=f"{name}-dlq")
        policy = {
            "deadLetterTargetArn": f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name}-dlq",
            "maxReceiveCount": 3,
        }
        sqs.create_queue(QueueName=name, Attributes={"RedrivePolicy": json.dumps(policy)})
