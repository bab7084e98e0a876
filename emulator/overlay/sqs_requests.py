"""What all SQS patches share: requests, refusals, and one lock around all queues."""

import functools
import threading
from collections.abc import Callable
from typing import Any

from ministack.services import sqs

Request = dict[str, Any]


def queue_of(request: Request, path_url: str) -> dict[str, Any]:
    """The queue that a request names in its body, or in its path."""
    queue: dict[str, Any] = sqs._get_q(request.get("QueueUrl", path_url))
    return queue


def refuse(message: str) -> None:
    raise sqs._Err("InvalidParameterValue", message)


def failed_entry(entry: Request, fault: Any) -> dict[str, Any]:
    """One element of `Failed` in the answer to a batch call."""
    return {
        "Id": entry["Id"],
        "Code": fault.code,
        "Message": fault.message,
        "SenderFault": True,
    }


def serialise_access() -> None:
    """Use one lock for API calls (event loop) and event source mappings (threads).

    MiniStack locks only the latter, so a list that one of them rebuilds could lose a message that the other appends
    meanwhile. Call this when all other SQS patches are in.
    """
    lock = sqs._queues_lock = threading.RLock()

    def locked(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def holding_the_lock(*args: Any, **kwargs: Any) -> Any:
            with lock:
                return function(*args, **kwargs)

        return holding_the_lock

    for name in ("_collect_msgs", "_dlq_sweep", "_expire_retained", "_act_send_message"):
        setattr(sqs, name, locked(getattr(sqs, name)))
    for action, handler in sqs._HANDLERS.items():
        if action != "ReceiveMessage":  # a coroutine: it may wait, and locks in its parts
            sqs._HANDLERS[action] = locked(handler)
