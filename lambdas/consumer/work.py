"""Reads a message and does what it says. Knows nothing of Lambda or DynamoDB."""

import json
from dataclasses import dataclass
from typing import Any

from smart_redriver.consumer import PermanentError


class PoisonMessageError(Exception):
    """The message itself asks to fail, and does so at every attempt; the consumer does not know that."""


class DependencyDownError(Exception):
    """The dependency is down; the same message may well succeed later."""


class PaymentsDownError(Exception):
    """Payments are down, which only messages with a payment need; the others succeed meanwhile."""


class OverloadedError(Exception):
    """More messages came within this minute than the consumer has capacity for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """An outage while a batch is worked on: of what every message needs, or of payments alone.

    `capacity`: messages that can be worked on in a minute; None for any number.
    """

    everything: bool = False
    payments: bool = False
    capacity: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message, under the id it had before any redrive."""

    original_id: str
    body: str


def work(message: Message, outage: Outage) -> dict[str, str]:
    """Do what the message asks, and return what is worth remembering about it.

    A real consumer's work goes here. An error means that nothing is remembered, so that the message
    is tried again when it comes back; a PermanentError, that it is parked and does not come back.
    """
    if outage.everything:
        raise DependencyDownError(
            f"The dependency is down, message {message.original_id} must wait"
        )
    asked = _json_object(message.body)
    if asked.get("permanent") is True:
        raise PermanentError(f"Message {message.original_id} asks for what does not exist")
    if asked.get("poison") is True:
        raise PoisonMessageError(f"Message {message.original_id} is poison and can never succeed")
    if outage.payments and asked.get("payment") is True:
        raise PaymentsDownError(f"Payments are down, message {message.original_id} must wait")
    return {"original_id": message.original_id}


def _json_object(text: str) -> dict[str, Any]:
    """Parse a JSON object; anything else, however malformed or deeply nested, is an empty one."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
