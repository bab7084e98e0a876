"""Receipt handles: only the one of the last receive has power over a message.

Source: botocore sqs DeleteMessage ("if you don't provide the most recent receipt handle, the
request succeeds but the message might not be deleted") and ChangeMessageVisibility.
"""

from fakes.boto_client import Fault, Response
from fakes.sqs.message import Message
from fakes.sqs.queue import Queue
from fakes.sqs.validation import MAX_VISIBILITY_SECONDS, check_range, invalid


def receipt_handle(queue: Queue, message: Message) -> str:
    """The handle of the receive that just took place."""
    return f"{queue.name}/{message.message_id}/{message.receipt_number}"


def _find(queue: Queue, handle: str) -> Message | None:
    """The message a handle still holds; None when it is gone, or was received again since."""
    queue_name, _, rest = handle.partition("/")
    message_id, _, receipt_number = rest.partition("/")
    if queue_name != queue.name or not receipt_number.isdecimal():
        raise Fault("ReceiptHandleIsInvalid", "The input receipt handle is invalid.")
    message = queue.messages.get(message_id)
    is_current = message is not None and message.receipt_number == int(receipt_number)
    return message if is_current else None


def delete(queue: Queue, handle: str, now: float) -> Response:
    """Delete by the handle of the last receive; an older one deletes nothing and tells nobody."""
    message = _find(queue, handle)
    if message is not None:
        queue.delete(message, now)
    return {}


def change_visibility(queue: Queue, handle: str, visibility_timeout: int, now: float) -> Response:
    """Set when the message of a current handle is seen again."""
    check_range("VisibilityTimeout", visibility_timeout, 0, MAX_VISIBILITY_SECONDS)
    message = _find(queue, handle)
    if message is None:
        reason = "Message does not exist or is not available for visibility timeout change."
        raise invalid(f"Value for parameter ReceiptHandle is invalid. Reason: {reason}")
    queue.change_visibility(message, visibility_timeout, now)
    return {}
