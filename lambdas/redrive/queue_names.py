"""What the name of a queue tells. Standard library only, as all that synth imports."""


def is_fifo(name: str) -> bool:
    """Whether this is the name, ARN or URL of a FIFO queue.

    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/creating-sqs-queues-fifo.html
    """
    return name.endswith(".fifo")


def queue_name(arn: str) -> str:
    """The name of the queue with this ARN."""
    return arn.rpartition(":")[2]
