"""Reads a message and does what it says. Knows nothing about Lambda or DynamoDB."""

import json
from dataclasses import dataclass
from typing import Any

from smart_redriver.consumer import PermanentError


class PoisonMessageError(Exception):
    """The message itself asks to fail, and fails at every attempt. The consumer does not know that."""


class DependencyDownError(Exception):
    """The dependency is down. The same message may well succeed later."""


class PaymentsDownError(Exception):
    """Payments are down. Only messages with a payment need them; the others succeed meanwhile."""


class OverloadedError(Exception):
    """More messages came within this minute than the consumer has capacity for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """An outage during a batch: of a dependency of all messages, or of payments alone.

    `capacity`: how many messages can be processed in a minute; None for no limit.
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

    A real consumer's work goes here. After an error nothing is remembered, so the message is tried
    again when it comes back. After a PermanentError it is parked and does not come back.
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
    """Parse a JSON object. Anything else, even malformed or deeply nested text, gives an empty one."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
