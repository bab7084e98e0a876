"""What SQS refuses: the limits of a message, of a batch and of its entries.

Each check raises the fault SQS answers with. Sources are named at the limits; the wording of
messages follows AWS where it is known and is no contract.
"""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from fakes.boto_client import Fault
from fakes.sqs.message import MessageAttributes

MAX_MESSAGE_BYTES = 1_048_576  # also for a whole batch [botocore SendMessageBatch]
MAX_ATTRIBUTES = 10  # [SQS Developer Guide, quotas-messages]
MAX_BATCH_ENTRIES = 10
MAX_DELAY_SECONDS = 900  # [botocore SendMessage]
MAX_VISIBILITY_SECONDS = 43_200  # [botocore ChangeMessageVisibility]
MAX_WAIT_SECONDS = 20
MAX_NUMBER_DIGITS = 38  # [SQS Developer Guide, sqs-message-metadata]

# XML 1.0 characters; anything else is InvalidMessageContents. [botocore SendMessage]
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ENTRY_ID = re.compile(r"[A-Za-z0-9_-]{1,80}")
_ATTRIBUTE_NAME = re.compile(r"(?!\.)(?!.*\.\.)[A-Za-z0-9_.-]{1,256}(?<!\.)")
_RESERVED_NAME = re.compile(r"(aws|amazon)\.", re.IGNORECASE)
_DATA_TYPE = re.compile(r"(String|Number|Binary)(\..+)?", re.DOTALL)
_NUMBER = re.compile(r"([+-]?)0*(\d*?)(?:\.(\d*?)0*)?")
_GROUP_ID = re.compile(r"[!-~]{1,128}")  # [botocore SendMessage]


def invalid(reason: str) -> Fault:
    """The fault for most of what is out of range."""
    return Fault("InvalidParameterValue", reason)


def check_range(name: str, value: int, low: int, high: int) -> None:
    """Refuse a number outside `low`..`high`."""
    if not low <= value <= high:
        reason = f"Reason: {name} must be >= {low} and <= {high}."
        raise invalid(f"Value {value} for parameter {name} is invalid. {reason}")


def check_text(text: str) -> None:
    """Refuse characters that XML 1.0 has no place for."""
    if _FORBIDDEN.search(text):
        message = "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | ..."
        raise Fault("InvalidMessageContents", message)


def check_message(
    body: str,
    attributes: MessageAttributes,
    system_attributes: Mapping[str, Mapping[str, Any]],
    group_id: str | None,
) -> None:
    """Refuse a message that breaks a limit other than its size."""
    if not body:
        missing = "The request must contain the parameter MessageBody."
        raise Fault("MissingParameter", missing)
    check_text(body)
    if len(attributes) > MAX_ATTRIBUTES:
        count = f"Number of message attributes [{len(attributes)}]"
        raise invalid(f"{count} exceeds the allowed maximum [{MAX_ATTRIBUTES}].")
    for name, attribute in attributes.items():
        _check_attribute(name, attribute)
    for name in system_attributes:
        if name != "AWSTraceHeader":
            raise invalid(f"Message system attribute name '{name}' is invalid.")
    if group_id is not None and not _GROUP_ID.fullmatch(group_id):
        raise invalid(f"Value {group_id} for parameter MessageGroupId is invalid.")


def message_bytes(body: str, attributes: MessageAttributes) -> int:
    """What counts towards the size limit: the body, and name, type and value of attributes.

    The trace header is free. [botocore SendMessage, MessageSystemAttributes]
    """
    size = len(body.encode())
    for name, attribute in attributes.items():
        value = attribute.get("BinaryValue") or attribute.get("StringValue", "").encode()
        size += len(name.encode()) + len(attribute["DataType"].encode()) + len(value)
    return size


def check_size(size: int, limit: int) -> None:
    """Refuse a message larger than its queue's MaximumMessageSize."""
    if size > limit:
        reason = f"Reason: Message must be shorter than {limit} bytes."
        raise invalid(f"One or more parameters are invalid. {reason}")


def normalised(attributes: MessageAttributes) -> MessageAttributes:
    """The attributes as SQS stores them: a Number loses zeros that say nothing.

    Source: SQS Developer Guide, sqs-message-metadata. So a Number need not come back as the
    same text, while every other value and every DataType does.
    """
    return {
        name: {**attribute, "StringValue": _plain_number(attribute["StringValue"])}
        if attribute["DataType"].startswith("Number")
        else dict(attribute)
        for name, attribute in attributes.items()
    }


def check_batch(entries: Sequence[Mapping[str, Any]]) -> None:
    """Refuse a batch as a whole: empty, too many entries, ids malformed or repeated."""
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
    """Refuse a batch whose messages together are larger than one message may be."""
    if size > MAX_MESSAGE_BYTES:
        limit = f"Batch requests cannot be longer than {MAX_MESSAGE_BYTES} bytes."
        raise _batch_fault("BatchRequestTooLong", f"{limit} You have sent {size} bytes.")


def _check_attribute(name: str, attribute: Mapping[str, Any]) -> None:
    if not _ATTRIBUTE_NAME.fullmatch(name) or _RESERVED_NAME.match(name):
        raise invalid(f"Message (user) attribute name '{name}' is invalid.")
    data_type = attribute["DataType"]
    matched = _DATA_TYPE.fullmatch(data_type)
    if not matched:
        raise invalid(f"The type of message (user) attribute '{name}' is invalid: '{data_type}'.")
    kind = matched[1]
    value = attribute.get("BinaryValue" if kind == "Binary" else "StringValue")
    if not value:
        lacks = f"must contain a non-empty value of type '{kind}'"
        raise invalid(f"Message (user) attribute '{name}' {lacks}.")
    if kind != "Binary":
        check_text(value)
    if kind == "Number" and not _is_number(value):
        raise invalid(f"Can't cast the value of message (user) attribute '{name}' to a number.")


def _is_number(text: str) -> bool:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return False
    return number.is_finite() and len(number.as_tuple().digits) <= MAX_NUMBER_DIGITS


def _plain_number(text: str) -> str:
    matched = _NUMBER.fullmatch(text)
    if not matched:
        return text  # an exponent: how SQS writes that back is not documented
    sign, whole, fraction = matched[1], matched[2] or "0", matched[3] or ""
    number = f"{whole}.{fraction}" if fraction else whole
    return f"-{number}" if sign == "-" and number != "0" else number


def _batch_fault(code: str, message: str) -> Fault:
    return Fault(code, message, query_code=f"AWS.SimpleQueueService.{code}")
