"""What a message says and what the consumer does about it. Knows nothing of Lambda or DynamoDB.

`read_message` owns the identity of a message. A redriven message has a new MessageId; the id it
started with travels in the `RedriveTrail` attribute, and is what makes the work idempotent.
"""

import json
from dataclasses import dataclass
from typing import Any

from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

TRAIL_ATTRIBUTE = "RedriveTrail"
TRAIL_QUEUE = "queue"
TRAIL_ORIGINAL_ID = "id"


class PoisonMessageError(Exception):
    """The message itself asks to fail, and does so at every attempt."""


class DependencyDownError(Exception):
    """The dependency is down; the same message may well succeed later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message, under the id it had before any redrive."""

    original_id: str
    body: str


def read_message(record: SQSRecord) -> Message:
    """Identify a message by its trail, or else by its own MessageId.

    A trail from another queue does not count: consumers that copy attributes on would otherwise
    give all the messages they derive from one the same id, and all but the first would be skipped.
    """
    attribute = record.message_attributes[TRAIL_ATTRIBUTE]
    trail = _json_object(attribute.get("stringValue")) if attribute else {}
    queue_name = record.event_source_arn.rpartition(":")[2]
    original_id = trail.get(TRAIL_ORIGINAL_ID)
    if trail.get(TRAIL_QUEUE) != queue_name or not isinstance(original_id, str) or not original_id:
        original_id = record.message_id
    return Message(original_id=original_id, body=record.body)


def work(message: Message, *, dependency_is_down: bool) -> dict[str, str]:
    """Do what the message asks, and return what is worth remembering about it.

    A real consumer's work goes here. An error means that nothing is remembered, so that the message
    is tried again when it comes back.
    """
    if dependency_is_down:
        raise DependencyDownError(
            f"The dependency is down, message {message.original_id} must wait"
        )
    if _json_object(message.body).get("poison") is True:
        raise PoisonMessageError(f"Message {message.original_id} is poison and can never succeed")
    return {"original_id": message.original_id}


def _json_object(text: str | None) -> dict[str, Any]:
    """Parse a JSON object; anything else, however malformed or deeply nested, is an empty one."""
    try:
        value = json.loads(text or "")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
