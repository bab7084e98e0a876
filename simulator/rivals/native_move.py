"""SQS's own redrive."""

from __future__ import annotations

from datetime import timedelta

from simulator.world import DLQ, World


class NativeMove:
    """SQS's own redrive (`StartMessageMoveTask`) of everything, started by a schedule when the DLQ is not empty.

    It moves 500 messages a second, the most that SQS allows.
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
