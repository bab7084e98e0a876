"""The kit's messages: outcomes in as few bodies as possible, and messages for the parking lot."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from smart_redriver.consumer.delivery import METADATA_ATTRIBUTE, Attribute, Delivery
from smart_redriver.consumer.failure import Failure

#: One outcome as in `outcomes.schema.json`.
Outcome = dict[str, Any]

_VERSION = 1
MAX_OUTCOMES = 1000
#: The limit of queues that were not raised to SQS's new 1 MiB. A reader can hold ten such messages.
MAX_BYTES = 262_144

SUCCEEDED = "succeeded"
FAILED = "failed"
PERMANENT = "permanent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumer:
    """The consumer that reports, and where its log is."""

    name: str | None = None
    version: str | None = None
    log_group: str | None = None
    log_stream: str | None = None
    request_id: str | None = None


def outcome_of(
    delivery: Delivery,
    result: str,
    *,
    failure: Failure | None = None,
    permanent: bool = False,
    parked_id: str | None = None,
    interrupted: bool = False,
    retry_after: int | None = None,
) -> Outcome:
    """Return the outcome of one delivery: its non-empty fields, in the order of the schema."""
    metadata = delivery.metadata
    return _telling(
        {
            "queue": delivery.queue,
            "message_id": delivery.message_id,
            "original_id": delivery.original_id if metadata else None,
            "result": result,
            "batch": metadata.batch if metadata else None,
            "generation": metadata.generation if metadata else None,
            "receive_count": delivery.receive_count,
            "permanent": permanent or None,
            "parked_id": parked_id,
            "interrupted": interrupted or None,
            "retry_after": retry_after,
            **(_fields_of(failure) if failure else {}),
        }
    )


def _fields_of(failure: Failure) -> dict[str, Any]:
    return {
        "error_class": failure.error_class,
        "first_line": failure.first_line or None,
        "cause": failure.cause or None,
        "traceback": failure.traceback or None,
    }


def reports(consumer: Consumer, outcomes: Iterable[Outcome]) -> Iterator[str]:
    """Yield bodies with all `outcomes`, in order; nothing for none. They are ASCII, so characters are bytes."""
    head = f'{{"version":{_VERSION},"consumer":{_json(_telling(asdict(consumer)))},"outcomes":['
    few: list[str] = []
    size = len(head)
    for one in outcomes:
        text = _json(one)
        if few and (len(few) == MAX_OUTCOMES or size + len(text) > MAX_BYTES - len("]}")):
            yield _body(head, few)
            few, size = [], len(head)
        few.append(text)
        size += len(text) + len(",")
    if few:
        yield _body(head, few)


def _telling(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _body(head: str, outcomes: list[str]) -> str:
    return f"{head}{','.join(outcomes)}]}}"


def _json(fields: dict[str, object]) -> str:
    return json.dumps(fields, separators=(",", ":"))


#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
_MAX_MESSAGE_BYTES = 1_048_576
_MAX_MESSAGE_ATTRIBUTES = 10


def parking_request(
    url: str, delivery: Delivery, failure: Failure, now: datetime
) -> dict[str, Any]:
    """The SendMessage request that parks a message, with its metadata if there is room for the attribute."""
    attributes = {
        name: dict(value)
        for name, value in delivery.attributes.items()
        if name != METADATA_ATTRIBUTE
    }
    size = _bytes_of(delivery.body) + sum(_attribute_size(*one) for one in attributes.items())
    metadata = {"DataType": "String", "StringValue": _metadata(delivery, failure, now)}
    has_room = size + _attribute_size(METADATA_ATTRIBUTE, metadata) <= _MAX_MESSAGE_BYTES
    if has_room and len(attributes) < _MAX_MESSAGE_ATTRIBUTES:
        attributes[METADATA_ATTRIBUTE] = metadata
    request: dict[str, Any] = {"QueueUrl": url, "MessageBody": delivery.body}
    if attributes:
        request["MessageAttributes"] = attributes
    if trace_header := _without_lineage(delivery.system.get("AWSTraceHeader")):
        request["MessageSystemAttributes"] = {
            "AWSTraceHeader": {"DataType": "String", "StringValue": trace_header}
        }
    return request | _group(url, delivery)


def _metadata(delivery: Delivery, failure: Failure, now: datetime) -> str:
    """The message's own metadata, or new metadata if it was never redriven. The reason is in it, to last as long."""
    fresh = {
        "queue": delivery.queue,
        "id": delivery.message_id,
        "n": 0,
        "seen": int((delivery.sent_at or now).timestamp()),
        "batch": 0,
        "gen": 0,
    }
    why = f"PERMANENT: {failure.error_class}: {failure.first_line}"
    fields = (delivery.metadata.fields if delivery.metadata else fresh) | {"why": why}
    return json.dumps(fields, separators=(",", ":"))


def _group(url: str, delivery: Delivery) -> dict[str, str]:
    group = delivery.system.get("MessageGroupId")
    if url.endswith(".fifo"):
        # If a consumer is killed and parks it again within five minutes, it is still there only once.
        return {
            "MessageGroupId": group or delivery.queue,
            "MessageDeduplicationId": delivery.message_id,
        }
    return {"MessageGroupId": group} if group else {}


def _without_lineage(trace_header: str | None) -> str:
    """The X-Ray trace header without the part in which Lambda's recursion guard counts hops. It stops after 16.

    https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html
    """
    parts = (trace_header or "").split(";")
    return ";".join(part for part in parts if part and not part.startswith("Lineage="))


def _attribute_size(name: str, attribute: Attribute) -> int:
    """The bytes of one message attribute that count towards the size limit."""
    value = attribute.get("StringValue")
    size = _bytes_of(value) if value is not None else len(attribute.get("BinaryValue") or b"")
    return _bytes_of(name) + _bytes_of(str(attribute.get("DataType", ""))) + size


def _bytes_of(text: str) -> int:
    # Python knows whether text is ASCII, so a megabyte does not have to be copied to be counted.
    return len(text) if text.isascii() else len(text.encode())
