"""What SQS refuses: the limits of a message, of a batch and of its entries.

Each check raises the fault that SQS answers with. The limits name their sources. Messages are worded as in AWS where
that is known, and are no contract.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from fakes.boto_client import Fault
from fakes.sqs.message_attributes import Attributes, check_text, invalid

MAX_MESSAGE_BYTES = 1_048_576  # also for a whole batch [botocore SendMessageBatch]
MAX_BATCH_ENTRIES = 10
MAX_DELAY_SECONDS = 900  # [botocore SendMessage]
MAX_VISIBILITY_SECONDS = 43_200  # [botocore ChangeMessageVisibility]
MAX_WAIT_SECONDS = 20

_ENTRY_ID = re.compile(r"[A-Za-z0-9_-]{1,80}")
_GROUP_ID = re.compile(r"[!-~]{1,128}")  # also a deduplication id [botocore SendMessage]


def check_range(name: str, value: int, low: int, high: int) -> None:
    """Refuse a number outside `low`..`high`."""
    if not low <= value <= high:
        reason = f"Reason: {name} must be >= {low} and <= {high}."
        raise invalid(f"Value {value} for parameter {name} is invalid. {reason}")


def check_message(
    body: str,
    attributes: Attributes,
    system_attributes: Mapping[str, Mapping[str, Any]],
    group_id: str | None,
) -> None:
    """Refuse a message that breaks a limit other than its size."""
    if not body:
        missing = "The request must contain the parameter MessageBody."
        raise Fault("MissingParameter", missing)
    check_text(body)
    attributes.check()
    for name in system_attributes:
        if name != "AWSTraceHeader":
            raise invalid(f"Message system attribute name '{name}' is invalid.")
    if group_id is not None and not _GROUP_ID.fullmatch(group_id):
        raise invalid(f"Value {group_id} for parameter MessageGroupId is invalid.")


def check_deduplication_id(given: str) -> None:
    """Refuse a MessageDeduplicationId that is too long, is empty, or has characters that are not allowed."""
    if not _GROUP_ID.fullmatch(given):
        raise invalid(f"Value {given} for parameter MessageDeduplicationId is invalid.")


def message_bytes(body: str, attributes: Attributes) -> int:
    """Bytes that count towards the size limit: body and attributes; the trace header is free [botocore SendMessage]."""
    return (len(body) if body.isascii() else len(body.encode())) + attributes.weight


def check_size(size: int, limit: int) -> None:
    """Refuse a message larger than its queue's MaximumMessageSize."""
    if size > limit:
        reason = f"Reason: Message must be shorter than {limit} bytes."
        raise invalid(f"One or more parameters are invalid. {reason}")


def check_batch(entries: Sequence[Mapping[str, Any]]) -> None:
    """Refuse a whole batch: it is empty, has too many entries, or has malformed or repeated ids."""
    if not entries:
        raise _batch_fault("EmptyBatchRequest", "There should be at least one entry.")
    if len(entries) > MAX_BATCH_ENTRIES:
        limit = f"Maximum number of entries per request are {MAX_BATCH_ENTRIES}."
        excess = f"{limit} You have sent {len(entries)}."
        raise _batch_fault("TooManyEntriesInBatchRequest", excess)
    seen: set[str] = set()
    for entry in entries:
        entry_id = entry["Id"]
        if not _ENTRY_ID.fullmatch(entry_id):
            rule = "A batch entry id can only contain alphanumeric characters, - and _."
            raise _batch_fault("InvalidBatchEntryId", f"{rule} At most 80.")
        if entry_id in seen:
            raise _batch_fault("BatchEntryIdsNotDistinct", f"Id {entry_id} repeated.")
        seen.add(entry_id)


def check_batch_size(size: int) -> None:
    """Refuse a batch whose messages together exceed the size limit of one message."""
    if size > MAX_MESSAGE_BYTES:
        limit = f"Batch requests cannot be longer than {MAX_MESSAGE_BYTES} bytes."
        raise _batch_fault("BatchRequestTooLong", f"{limit} You have sent {size} bytes.")


def _batch_fault(code: str, message: str) -> Fault:
    return Fault(code, message, query_code=f"AWS.SimpleQueueService.{code}")
