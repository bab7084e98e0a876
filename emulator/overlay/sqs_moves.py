"""The native redrive: StartMessageMoveTask and related calls, and ListDeadLetterSourceQueues.

Each turn moves messages, at the task's rate in virtual time. A moved message is a new message: new id, new enqueue
time, no receives.
"""

import itertools
import json
import time
from dataclasses import dataclass, field
from typing import Any

from ministack.core import responses
from ministack.services import sqs

from .sqs_requests import Request, queue_of, refuse

#: The most messages that AWS moves in a second, and the default.
MAX_MESSAGES_PER_SECOND = 500
_LISTED_TASKS = 10


@dataclass(kw_only=True)
class MoveTask:
    """One move of all messages that were in a dead-letter queue."""

    source_arn: str
    destination_arn: str | None
    messages_per_second: int
    to_move: int
    account: str
    region: str
    started: float = field(default_factory=time.time)
    handle: str = field(default_factory=responses.new_uuid)
    status: str = "RUNNING"
    moved: int = 0

    def describe(self) -> dict[str, Any]:
        entry = {
            "Status": self.status,
            "SourceArn": self.source_arn,
            "MaxNumberOfMessagesPerSecond": self.messages_per_second,
            "ApproximateNumberOfMessagesMoved": self.moved,
            "ApproximateNumberOfMessagesToMove": self.to_move,
            "StartedTimestamp": int(self.started * 1000),
        }
        if self.destination_arn:
            entry["DestinationArn"] = self.destination_arn
        if self.status == "RUNNING":  # only a running task can be cancelled by its handle
            entry["TaskHandle"] = self.handle
        return entry


_tasks: list[MoveTask] = []


def move_messages(now: float) -> None:
    """Move the messages that the running tasks may have moved by `now`."""
    for task in _tasks:
        allowed = int((now - task.started) * task.messages_per_second)
        if task.status != "RUNNING" or allowed <= 0:
            continue
        responses.set_request_account_id(task.account)
        responses.set_request_region(task.region)
        with sqs._queues_lock:
            _move(task, allowed - task.moved, now)


def _move(task: MoveTask, allowed: int, now: float) -> None:
    dead_letters = sqs._queue_by_arn(task.source_arn)
    if dead_letters is None:
        task.status = "FAILED"
        return
    left = task.to_move - task.moved
    due = [m for m in dead_letters["messages"] if m["visible_at"] <= now][: min(left, allowed)]
    for message in due:
        origin = message["sys"].get("DeadLetterQueueSourceArn", "")
        destination = sqs._queue_by_arn(task.destination_arn or origin)
        if destination is None:  # SQS stops at a message whose source queue is gone
            task.status = "FAILED"
            return
        dead_letters["messages"].remove(message)
        destination["messages"].append(_as_new(message, now))
        task.moved += 1
    if task.moved >= task.to_move or not due:
        task.status = "COMPLETED"
    sqs.esm_wake.set()


def _as_new(message: dict[str, Any], now: float) -> dict[str, Any]:
    system = {k: v for k, v in message["sys"].items() if k != "DeadLetterQueueSourceArn"}
    kept = {k: v for k, v in message.items() if k not in ("dead_since", "enqueued_at")}
    return {
        **kept,
        "id": responses.new_uuid(),
        "sys": {**system, "SentTimestamp": str(int(now * 1000))},
        "sent_at": now,
        "visible_at": now,
        "receive_count": 0,
        "first_receive_at": None,
        "receipt_handle": None,
    }


def start(request: Request, _path_url: str) -> dict[str, Any]:
    source_arn = request.get("SourceArn", "")
    source = _existing(source_arn)
    if not _sources_of(source_arn):
        refuse("Source queue must be configured as a Dead Letter Queue.")
    if any(t.source_arn == source_arn and t.status == "RUNNING" for t in _tasks):
        refuse("There is already a task running. Only one active task is allowed for a source.")
    if destination_arn := request.get("DestinationArn"):
        _existing(destination_arn)
    task = MoveTask(
        source_arn=source_arn,
        destination_arn=destination_arn,
        messages_per_second=int(
            request.get("MaxNumberOfMessagesPerSecond") or MAX_MESSAGES_PER_SECOND
        ),
        to_move=sum(1 for m in source["messages"] if m["visible_at"] <= time.time()),
        account=responses.get_account_id(),
        region=responses.get_region(),
    )
    _tasks.append(task)
    return {"TaskHandle": task.handle}


def list_tasks(request: Request, _path_url: str) -> dict[str, Any]:
    _existing(request.get("SourceArn", ""))
    wanted = min(int(request.get("MaxResults") or 1), _LISTED_TASKS)
    newest_first = (t for t in reversed(_tasks) if t.source_arn == request["SourceArn"])
    return {"Results": [t.describe() for t in itertools.islice(newest_first, wanted)]}


def cancel(request: Request, _path_url: str) -> dict[str, Any]:
    for task in _tasks:
        if task.handle == request.get("TaskHandle") and task.status == "RUNNING":
            task.status = "CANCELLED"
            return {"ApproximateNumberOfMessagesMoved": task.moved}
    raise sqs._Err("ResourceNotFoundException", "The resource that you specified doesn't exist.")


def list_sources(request: Request, path_url: str) -> dict[str, Any]:
    """ListDeadLetterSourceQueues."""
    return {"queueUrls": _sources_of(queue_of(request, path_url)["attributes"]["QueueArn"])}


def _sources_of(dead_letter_arn: str) -> list[str]:
    return [
        url
        for url, queue in sqs._queues.items()
        if (policy := queue["attributes"].get("RedrivePolicy"))
        and json.loads(policy)["deadLetterTargetArn"] == dead_letter_arn
    ]


def _existing(arn: str) -> dict[str, Any]:
    queue: dict[str, Any] | None = sqs._queue_by_arn(arn)
    if queue is None:
        raise sqs._Err(
            "ResourceNotFoundException", "The resource that you specified doesn't exist."
        )
    return queue


def install() -> None:
    sqs._HANDLERS.update(
        StartMessageMoveTask=start,
        ListMessageMoveTasks=list_tasks,
        CancelMessageMoveTask=cancel,
        ListDeadLetterSourceQueues=list_sources,
    )
