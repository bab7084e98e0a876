"""SNS's envelope, as a letter of SNS may be one: a claim, like all that letters say. Pure, and never raises."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

from smart_redriver.engine.messages.letter_shapes import read_object

_NOTIFICATION = "Notification"
_CONFIRMATIONS = ("SubscriptionConfirmation", "UnsubscribeConfirmation")
_NEEDED = ("MessageId", "TopicArn", "Message", "Timestamp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """What SNS puts around a message: `fields` as they are in the body, `subscription` whose delivery it is.

    `is_notification`: it is whole, holds a message, and names no subscription of another topic. What is not is for
    nobody: neither an envelope that can be given, nor a raw message.
    """

    fields: Mapping[str, Any]
    subscription: str | None
    is_notification: bool

    @property
    def topic(self) -> str:
        """The ARN that it names as its topic; of a notification never empty."""
        named = self.fields.get("TopicArn")
        return named if isinstance(named, str) else ""


def read_envelope(body: str) -> Envelope | None:
    """SNS's envelope; None where the body is none, as a raw message is.

    A body that asks for a confirmation is an envelope whatever else it holds: an endpoint may act on it.
    https://docs.aws.amazon.com/sns/latest/dg/sns-message-and-json-formats.html
    """
    fields = read_object(body)
    kind = fields.get("Type") if fields else None
    if fields is None or kind not in (_NOTIFICATION, *_CONFIRMATIONS):
        return None
    topic, subscription = fields.get("TopicArn"), _subscription(fields.get("UnsubscribeURL"))
    if kind == _NOTIFICATION and not isinstance(topic, str):
        return None
    is_whole = kind == _NOTIFICATION and all(isinstance(fields.get(one), str) for one in _NEEDED)
    is_of_topic = subscription is None or subscription.startswith(f"{topic}:")
    return Envelope(
        fields=fields, subscription=subscription, is_notification=is_whole and is_of_topic
    )


def _subscription(unsubscribe_url: object) -> str | None:
    """The ARN in the query of SNS's link."""
    if not isinstance(unsubscribe_url, str):
        return None
    try:
        named = parse_qs(urlsplit(unsubscribe_url).query).get("SubscriptionArn", [])
    except ValueError:
        return None
    return named[0] if len(named) == 1 else None
