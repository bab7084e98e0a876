"""Receipt handles: only the handle of the last receive affects a message; older ones succeed and do nothing.

Sources: botocore sqs DeleteMessage ("if you don't provide the most recent receipt handle, the request succeeds but the
message might not be deleted"). For a standard queue, LocalStack recorded on AWS that after the visibility timeout
ChangeMessageVisibility and DeleteMessage succeed, even with an older handle, and that both fail for text that is no
handle; ChangeMessageVisibility also fails for a deleted message. (localstack tests/aws/services/sqs,
test_change_message_visibility_after_visibility_timeout_expiration, test_remove_message_with_old_receipt_handle.) What a
change after the timeout does to the message was not recorded: here it hides the message again, as in moto.

In a FIFO queue, a handle ends with its visibility timeout, even if no one received the message again: DeleteMessage is
refused with InvalidParameterValue (test_fifo_delete_after_visibility_timeout), and an entry of a batch fails, as users
report, with ReceiptHandleIsInvalid. Two assumptions: ChangeMessageVisibility is refused likewise, and a second delete
succeeds, as in a standard queue.
"""

from fakes.boto_client import Fault, Response
from fakes.sqs.message import Message, Rest
from fakes.sqs.message_attributes import invalid
from fakes.sqs.queue import Queue
from fakes.sqs.validation import (
    MAX_VISIBILITY_SECONDS,
    check_range,
)


def receipt_handle(queue: Queue, message: Message) -> str:
    """The handle of the receive that just took place."""
    return f"{queue.name}/{message.message_id}/{message.receipt_number}"


def _find(queue: Queue, handle: str) -> tuple[Message | None, bool]:
    """The handle's message (None if it is gone), and whether it was received again since."""
    queue_name, _, rest = handle.partition("/")
    message_id, _, receipt_number = rest.partition("/")
    if queue_name != queue.name or not receipt_number.isdecimal():
        raise Fault("ReceiptHandleIsInvalid", "The input receipt handle is invalid.")
    message = queue.messages.get(message_id)
    if message is None:
        return None, False
    is_stale = message.receipt_number != int(receipt_number)
    if queue.is_fifo and (is_stale or message.rest is not Rest.IN_FLIGHT):
        reason = "Reason: The receipt handle has expired."
        raise Fault(
            "InvalidParameterValue",
            f"Value {handle} for parameter ReceiptHandle is invalid. {reason}",
            entry_code="ReceiptHandleIsInvalid",
        )
    return message, is_stale


def delete(queue: Queue, handle: str, now: float) -> Response:
    """Delete by the handle of the last receive. The request counts, whether or not it deletes anything.

    Raises a fault if the handle is none, or if in a FIFO queue it has ended with its timeout.

    NumberOfMessagesDeleted counts "every successful deletion operation that uses a valid receipt handle, including
    duplicate deletions". [SQS Developer Guide, sqs-available-cloudwatch-metrics]
    """
    message, is_stale = _find(queue, handle)
    queue.metrics.deleted(now)
    if message is not None and not is_stale:
        queue.delete(message, now)
    return {}


def change_visibility(queue: Queue, handle: str, visibility_timeout: int, now: float) -> Response:
    """Set when the message of a current handle becomes visible again."""
    check_range("VisibilityTimeout", visibility_timeout, 0, MAX_VISIBILITY_SECONDS)
    message, is_stale = _find(queue, handle)
    if message is None:
        reason = "Message does not exist or is not available for visibility timeout change."
        raise invalid(f"Value for parameter ReceiptHandle is invalid. Reason: {reason}")
    if not is_stale:
        queue.change_visibility(message, visibility_timeout, now)
    return {}
