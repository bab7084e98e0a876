"""A message on its way from its consumer to the parking lot: body and attributes unchanged, trail and reason with it."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from redrive.core.letter import (
    MAX_MESSAGE_ATTRIBUTES,
    TRAIL_ATTRIBUTE,
    Trail,
    attribute_size,
    bytes_of,
    without_lineage,
)
from smart_redriver.consumer.delivery import Delivery
from smart_redriver.consumer.failure import Failure

_MAX_MESSAGE_BYTES = 1_048_576
#: In a parked message's trail, beside what the re-driver reads.
_WHY = "why"


def parking_request(
    url: str, delivery: Delivery, failure: Failure, now: datetime
) -> dict[str, Any]:
    """The SendMessage that parks a message, with its trail where it has room for one."""
    attributes = {
        name: dict(value) for name, value in delivery.attributes.items() if name != TRAIL_ATTRIBUTE
    }
    size = bytes_of(delivery.body) + sum(attribute_size(*one) for one in attributes.items())
    trail = {"DataType": "String", "StringValue": _trail(delivery, failure, now)}
    has_room = size + attribute_size(TRAIL_ATTRIBUTE, trail) <= _MAX_MESSAGE_BYTES
    if has_room and len(attributes) < MAX_MESSAGE_ATTRIBUTES:
        attributes[TRAIL_ATTRIBUTE] = trail
    request: dict[str, Any] = {"QueueUrl": url, "MessageBody": delivery.body}
    if attributes:
        request["MessageAttributes"] = attributes
    if trace_header := without_lineage(delivery.system.get("AWSTraceHeader")):
        request["MessageSystemAttributes"] = {
            "AWSTraceHeader": {"DataType": "String", "StringValue": trace_header}
        }
    return request | _group(url, delivery)


def _trail(delivery: Delivery, failure: Failure, now: datetime) -> str:
    """The message's own, or one for a message that was never redriven; with the reason, which lasts as long."""
    trail = delivery.trail or Trail(
        queue=delivery.queue,
        original_id=delivery.message_id,
        redrive_count=0,
        first_seen=delivery.sent_at or now,
        batch=0,
        generation=0,
    )
    why = f"PERMANENT: {failure.error_class}: {failure.first_line}"
    return json.dumps(json.loads(trail.encode()) | {_WHY: why}, separators=(",", ":"))


def _group(url: str, delivery: Delivery) -> dict[str, str]:
    group = delivery.system.get("MessageGroupId")
    if url.endswith(".fifo"):
        # Parked twice within five minutes, by a consumer that was killed in between, it is there once.
        return {
            "MessageGroupId": group or delivery.queue,
            "MessageDeduplicationId": delivery.message_id,
        }
    return {"MessageGroupId": group} if group else {}
