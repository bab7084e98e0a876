"""Reads names, ARNs and URLs of queues. Standard library only, like all that synth imports."""

import re

#: What a queue that is none of SQS may be called.
PLAIN = "1 to 80 letters, digits, hyphens and underscores"
_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,80}")


def is_plain(name: str) -> bool:
    """Whether circuit, trails and reports can call a queue so that is none of SQS."""
    return _PLAIN.fullmatch(name) is not None


def within(name: str, queue: str) -> str:
    """A queue's name within another name; the queue's alone where that is empty."""
    return f"{name}/{queue}" if name else queue


def is_fifo(name: str) -> bool:
    """Whether this is the name, ARN or URL of a FIFO queue.

    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/creating-sqs-queues-fifo.html
    """
    return name.endswith(".fifo")


def queue_name(arn: str) -> str:
    """The name of the queue with this ARN."""
    return arn.rpartition(":")[2]
