"""The POST that SNS makes of a letter for a web target. Pure; the rest of what targets are given is in `redelivery`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from redrive.core.letter import Letter
from redrive.core.sns_envelope import read_envelope
from redrive.targets import Target

#: What SNS's posts say they are of. https://docs.aws.amazon.com/sns/latest/dg/sns-http-https-endpoint-as-subscriber.html
USER_AGENT = "Amazon Simple Notification Service Agent"


#: What may stand in a header.
_PLAIN = re.compile(r"[\x21-\x7e]{1,512}")
#: What stays as it is in a path with its query; all else is no ASCII.
_IN_PATHS = "".join(map(chr, range(0x21, 0x7F)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """A POST: the path with its query, and what is sent."""

    path: str
    headers: Mapping[str, str]
    body: bytes


def post_of(letter: Letter, target: Target) -> Post:
    """The POST that SNS makes of a letter: its body, and SNS's headers.

    A raw letter does not tell SNS's message id: the letter's own stands for it. Names that it does not tell either
    are left out. Raises ValueError for what SNS's own words make more than a message of. https://docs.aws.amazon.com/sns/latest/dg/sns-message-and-json-formats.html#http-header
    """
    parts = urlsplit(target.place)
    envelope = read_envelope(letter.body)
    if envelope and not envelope.is_notification:
        raise ValueError("no notification")
    subscription = (envelope.subscription if envelope else None) or target.subscription
    told = {
        "x-amz-sns-message-id": envelope.fields["MessageId"] if envelope else letter.original_id,
        "x-amz-sns-topic-arn": (subscription or "").rpartition(":")[0],
        "x-amz-sns-subscription-arn": subscription or "",
    }
    if envelope:
        told["x-amz-sns-topic-arn"] = envelope.topic
    else:
        told["x-amz-sns-rawdelivery"] = "true"
    headers = {
        "x-amz-sns-message-type": "Notification",
        **{name: value for name, value in told.items() if _PLAIN.fullmatch(value)},
        "Content-Type": "text/plain; charset=UTF-8",
        "User-Agent": USER_AGENT,
    }
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Post(path=quote(path, safe=_IN_PATHS), headers=headers, body=letter.body.encode())
