"""StartMessageMoveTask in virtual time: the native redrive that the re-driver stands aside for.

Source: botocore sqs StartMessageMoveTask and ListMessageMoveTasks. A moved message gets a new
MessageId and enqueue time; one active task per queue; at most 500 messages a second.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from fakes.boto_client import Fault
from fakes.sqs.message import Message
from fakes.sqs.message_attributes import invalid
from fakes.sqs.queue import Queue
from fakes.sqs.validation import (
    check_range,
)

MAX_MESSAGES_PER_SECOND = 500
MAX_LISTED = 10


@dataclass(slots=True, kw_only=True)
class MoveTask:
    """One native redrive and how far it has come."""

    handle: str
    source: Queue
    destination: Queue | None
    rate: int
    started_at: float
    to_move: int
    moved: int = 0
    status: str = "RUNNING"
    failure_reason: str | None = None

    def describe(self) -> dict[str, Any]:
        """The task in ListMessageMoveTasks' form: only a running task shows its handle."""
        told = {
            "TaskHandle": self.handle if self.status == "RUNNING" else None,
            "Status": self.status,
            "SourceArn": self.source.arn,
            "DestinationArn": self.destination.arn if self.destination else None,
            "MaxNumberOfMessagesPerSecond": self.rate,
            "ApproximateNumberOfMessagesMoved": self.moved,
            "ApproximateNumberOfMessagesToMove": self.to_move,
            "FailureReason": self.failure_reason,
            "StartedTimestamp": int(self.started_at * 1000),
        }
        return {name: value for name, value in told.items() if value is not None}


class MoveTasks:
    """All tasks of an account, newest last."""

    def __init__(
        self, find_by_arn: Callable[[str], Queue], renew: Callable[[Message, float], Message]
    ) -> None:
        self._find_by_arn = find_by_arn
        self._renew = renew
        self._tasks: list[MoveTask] = []

    def start(
        self, source_arn: str, destination_arn: str | None, rate: int | None, now: float
    ) -> MoveTask:
        """Begin to move the visible messages of a dead-letter queue."""
        source = self._find_by_arn(source_arn)
        if rate is not None:
            check_range("MaxNumberOfMessagesPerSecond", rate, 1, MAX_MESSAGES_PER_SECOND)
        if any(task.source is source for task in self._running()):
            raise invalid("There is already a task running for this source queue.")
        destination = self._find_by_arn(destination_arn) if destination_arn else None
        if destination is not None and destination.is_fifo != source.is_fifo:
            raise invalid("The destination queue must be same type of queue as the source.")
        task = MoveTask(
            handle=f"task-{len(self._tasks) + 1}",
            source=source,
            destination=destination,
            rate=rate or MAX_MESSAGES_PER_SECOND,
            started_at=now,
            to_move=source.counts().visible,
        )
        self._tasks.append(task)
        return task

    def cancel(self, handle: str) -> MoveTask:
        """Stop a running task; what it moved stays moved."""
        for task in self._running():
            if task.handle == handle:
                task.status = "CANCELLED"
                return task
        raise Fault("ResourceNotFoundException", "Task does not exist.")

    def of(self, source_arn: str, limit: int) -> list[MoveTask]:
        """The latest tasks of one queue, newest first."""
        check_range("MaxResults", limit, 1, MAX_LISTED)
        source = self._find_by_arn(source_arn)
        return [task for task in reversed(self._tasks) if task.source is source][:limit]

    def advance(self, now: float) -> None:
        """Let every running task move what its rate allowed until `now`."""
        for task in self._running():
            while task.status == "RUNNING":
                at = task.started_at + (task.moved + 1) / task.rate
                if task.moved < task.to_move and at > now:
                    break
                self._move_one(task, min(at, now))

    def _move_one(self, task: MoveTask, at: float) -> None:
        task.source.settle(at)
        message = task.source.draw_visible() if task.moved < task.to_move else None
        if message is None:
            task.status = "COMPLETED"
            return
        source_arn = message.dead_letter_source_arn
        if task.destination is None and source_arn is None:
            task.source.put_back(message)
            task.status, task.failure_reason = "FAILED", "CouldNotDetermineMessageSource"
            return
        destination = task.destination or self._find_by_arn(str(source_arn))
        destination.settle(at)
        task.source.move_away(message, at)
        task.source.observe(at)
        destination.send(self._renew(message, at), destination.settings.delay, at)
        destination.observe(at)
        task.moved += 1

    def _running(self) -> Iterable[MoveTask]:
        return [task for task in self._tasks if task.status == "RUNNING"]
