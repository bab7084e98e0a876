"""Receiving, deleting and hiding messages: with the answers of the real SQS, counted for its metrics."""

import asyncio
import json
import re
import time
from typing import Any

from ministack.services import sqs

from . import metrics
from .flights import flights
from .patching import wrap
from .sqs_requests import Request, failed_entry, queue_of, refuse

MAX_VISIBILITY_SECONDS = 43_200
MAX_WAIT_SECONDS = 20
_LOOK_EVERY_SECONDS = 0.05

#: MiniStack's handles are UUIDs. A handle of that form was real once; any other never was.
_ONCE_VALID_HANDLE = re.compile(r"[0-9a-f-]{36}")


def install() -> None:
    _receive()
    _dead_letter()
    _delete()
    _change_visibility()


def _receive() -> None:
    receive_now = sqs._HANDLERS["ReceiveMessage"]

    async def receive(request: Request, path_url: str) -> Any:
        """Refuse to wait longer than 20 seconds. The wait takes real seconds: virtual ones may be far longer."""
        wait = _wait_seconds(request, path_url)
        ends = time.monotonic() + wait
        while True:
            answer = await receive_now({**request, "WaitTimeSeconds": 0}, path_url)
            # A function that is under way is most likely the one that asks. While it runs, virtual time stands still,
            # so nothing that this could wait for is going to come.
            if answer or flights.under_way() or time.monotonic() >= ends:
                return answer
            await asyncio.sleep(_LOOK_EVERY_SECONDS)

    sqs._HANDLERS["ReceiveMessage"] = receive

    @wrap(sqs, "_collect_msgs")
    def collect(take: Any, queue: dict[str, Any], *args: Any) -> Any:
        """Take messages, for ReceiveMessage and for the polls of event source mappings."""
        taken = take(queue, *args)
        metrics.count(queue, "NumberOfMessagesReceived", len(taken))
        return taken


def _wait_seconds(request: Request, path_url: str) -> int:
    asked = request.get("WaitTimeSeconds")
    if asked is None:
        attributes = queue_of(request, path_url)["attributes"]
        return int(attributes.get("ReceiveMessageWaitTimeSeconds", 0))
    wait = int(asked)
    if not 0 <= wait <= MAX_WAIT_SECONDS:
        refuse(
            f"Value {wait} for parameter WaitTimeSeconds is invalid. "
            f"Reason: Must be >= 0 and <= {MAX_WAIT_SECONDS}, if provided."
        )
    return wait


def _dead_letter() -> None:
    @wrap(sqs, "_dlq_sweep")
    def sweep(move: Any, queue: dict[str, Any]) -> None:
        """Note when a message reached its dead-letter queue, where its age metric restarts."""
        before = len(queue["messages"])
        move(queue)
        if len(queue["messages"]) == before:
            return
        target = json.loads(queue["attributes"]["RedrivePolicy"])["deadLetterTargetArn"]
        now = time.time()
        for message in sqs._queue_by_arn(target)["messages"]:
            if "DeadLetterQueueSourceArn" in message.get("sys", {}):
                message.setdefault("dead_since", now)


def _delete() -> None:
    @wrap(sqs, "_act_delete_message")
    def delete(remove: Any, request: Request, path_url: str) -> Any:
        """Delete by handle. An outdated handle succeeds and deletes nothing."""
        try:
            answer = remove(request, path_url)
        except sqs._Err as fault:
            if fault.code == "ReceiptHandleIsInvalid" and _is_outdated(request):
                return {}
            raise
        metrics.count(queue_of(request, path_url), "NumberOfMessagesDeleted", 1)
        return answer

    @wrap(sqs, "_act_delete_message_batch")
    def delete_batch(remove: Any, request: Request, path_url: str) -> Any:
        """Treat each entry as a single delete."""
        answer = remove(request, path_url)
        deleted = len(answer["Successful"])
        metrics.count(queue_of(request, path_url), "NumberOfMessagesDeleted", deleted)
        outdated = {entry["Id"] for entry in request["Entries"] if _is_outdated(entry)}
        spared = [{"Id": f["Id"]} for f in answer["Failed"] if f["Id"] in outdated]
        refused = [f for f in answer["Failed"] if f["Id"] not in outdated]
        return {"Successful": answer["Successful"] + spared, "Failed": refused}

    @wrap(sqs, "_delete_messages_for_esm")
    def delete_for_mapping(remove: Any, url: str, handles: set[str]) -> None:
        """Delete what a function has processed, on behalf of its event source mapping."""
        with sqs._queues_lock:
            queue = sqs._get_q(url)
            before = len(queue["messages"])
            remove(url, handles)
            metrics.count(queue, "NumberOfMessagesDeleted", before - len(queue["messages"]))

    sqs._HANDLERS["DeleteMessage"] = delete
    sqs._HANDLERS["DeleteMessageBatch"] = delete_batch


def _change_visibility() -> None:
    @wrap(sqs, "_act_change_visibility")
    def change(apply: Any, request: Request, path_url: str) -> Any:
        """Refuse more than 12 hours, and a message that is visible again."""
        _refuse_bad_visibility(request, queue_of(request, path_url))
        return apply(request, path_url)

    @wrap(sqs, "_act_change_visibility_batch")
    def change_batch(apply: Any, request: Request, path_url: str) -> Any:
        """Treat each entry as a single change."""
        queue = queue_of(request, path_url)
        good: list[Request] = []
        failed: list[dict[str, Any]] = []
        sqs._validate_batch_entries(
            request.get("Entries", []), "ChangeMessageVisibilityBatchRequestEntry"
        )
        for entry in request["Entries"]:
            try:
                _refuse_bad_visibility(entry, queue)
                good.append(entry)
            except sqs._Err as fault:
                failed.append(failed_entry(entry, fault))
        answer = (
            apply({**request, "Entries": good}, path_url)
            if good
            else {"Successful": [], "Failed": []}
        )
        return {"Successful": answer["Successful"], "Failed": answer["Failed"] + failed}

    sqs._HANDLERS["ChangeMessageVisibility"] = change
    sqs._HANDLERS["ChangeMessageVisibilityBatch"] = change_batch


def _refuse_bad_visibility(request: Request, queue: dict[str, Any]) -> None:
    seconds = int(request.get("VisibilityTimeout", 30))
    if not 0 <= seconds <= MAX_VISIBILITY_SECONDS:
        refuse(
            f"Value {seconds} for parameter VisibilityTimeout is invalid. "
            f"Reason: Must be between 0 and {MAX_VISIBILITY_SECONDS}."
        )
    handle = request.get("ReceiptHandle")
    for message in queue["messages"]:
        if message.get("receipt_handle") == handle and message["visible_at"] <= time.time():
            raise sqs._Err("MessageNotInflight", "The specified message isn't in flight.")


def _is_outdated(request: Request) -> bool:
    return bool(_ONCE_VALID_HANDLE.fullmatch(request.get("ReceiptHandle", "")))
