"""Sending to SQS: the limits of the real service, per message and per batch."""

from typing import Any

from ministack.services import sqs

from . import metrics
from .patching import wrap
from .sqs_requests import Request, failed_entry, queue_of, refuse

MAX_DELAY_SECONDS = 900
MAX_MESSAGE_ATTRIBUTES = 10
MAX_BATCH_BYTES = 1_048_576


def size_in_bytes(message: Request) -> int:
    """The bytes that SQS counts: the body, and each attribute's name, data type and value."""
    size = len((message.get("MessageBody") or "").encode())
    for name, attribute in (message.get("MessageAttributes") or {}).items():
        value = attribute.get("StringValue") or attribute.get("BinaryValue") or ""
        size += len(name.encode()) + len(attribute.get("DataType", "")) + len(str(value).encode())
    return size


def install() -> None:
    @wrap(sqs, "_act_send_message")
    def send(accept: Any, request: Request, path_url: str) -> Any:
        """Refuse a bad delay, an eleventh attribute, and a message that its attributes make too large."""
        queue = queue_of(request, path_url)
        delay = request.get("DelaySeconds")
        if delay is not None and not 0 <= int(delay) <= MAX_DELAY_SECONDS:
            refuse(
                f"Value {delay} for parameter DelaySeconds is invalid. "
                f"Reason: DelaySeconds must be >= 0 and <= {MAX_DELAY_SECONDS}."
            )
        attributes = len(request.get("MessageAttributes") or {})
        if attributes > MAX_MESSAGE_ATTRIBUTES:
            refuse(
                f"Number of message attributes [{attributes}] "
                f"exceeds the allowed maximum [{MAX_MESSAGE_ATTRIBUTES}]."
            )
        limit = int(queue["attributes"]["MaximumMessageSize"])
        if size_in_bytes(request) > limit:
            refuse(
                "One or more parameters are invalid. "
                f"Reason: Message must be shorter than {limit} bytes."
            )
        answer = accept(request, path_url)
        metrics.count(queue, "NumberOfMessagesSent", 1)
        return answer

    def send_batch(request: Request, path_url: str) -> dict[str, Any]:
        """Count attributes in the size, too, and keep each entry's system attributes (AWSTraceHeader)."""
        url = request.get("QueueUrl", path_url)
        sqs._get_q(url, "sqs:SendMessage")
        entries = request.get("Entries", [])
        sqs._validate_batch_entries(entries, "SendMessageBatchRequestEntry")
        total = sum(map(size_in_bytes, entries))
        if total > MAX_BATCH_BYTES:
            raise sqs._Err(
                "BatchRequestTooLong",
                f"Batch requests cannot be longer than {MAX_BATCH_BYTES} bytes. "
                f"You have sent {total} bytes.",
            )
        accepted: list[dict[str, Any]] = []
        failed: list[dict[str, Any]] = []
        for entry in entries:
            try:
                accepted.append({**send({**entry, "QueueUrl": url}, url), "Id": entry["Id"]})
            except sqs._Err as fault:
                failed.append(failed_entry(entry, fault))
        return {"Successful": accepted, "Failed": failed}

    sqs._HANDLERS["SendMessage"] = send
    sqs._HANDLERS["SendMessageBatch"] = send_batch
