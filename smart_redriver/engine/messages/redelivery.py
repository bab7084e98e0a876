"""Makes the delivery that a target gets for a letter: the same as before, as far as the letter shows. Pure.

Nothing new is added; the metadata stays in the ledger. Each function says what can't be the same. A letter that does
not hold what its target needs raises ValueError: `origins` finds most of these before, and the others are a fault of
the letter's content.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, urlsplit

from smart_redriver.engine.config.targets import Origin, Target
from smart_redriver.engine.messages.letter import Attribute, Letter
from smart_redriver.engine.messages.origins import (
    Envelope,
    Request,
    read_envelope,
    read_record,
    read_request,
    text_of,
)
from smart_redriver.engine.messages.outgoing import Outgoing

#: The attribute that each letter of these origins carries.
_MARKS = {Origin.EVENTBRIDGE: "RULE_ARN", Origin.SCHEDULER: "SCHEDULE_ARN"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """An execution to start. `is_named_by_us`: its name is this delivery's, so one of that name is this one."""

    name: str
    input: str
    is_named_by_us: bool


def message_for_queue(letter: Letter, origin: Origin) -> Letter:
    """The message of a queue, as a letter: body and the publisher's attributes as they are.

    Rules and schedules add attributes about the failure to the letter; the queue gets only the body. A letter that SQS
    moved from the queue is the queue's own message. A schedule's own SendMessage gives body, attributes and group; its
    delay applied to the first try, and is over. New: MessageId, time of sending, receive count.
    """
    if (mark := _MARKS.get(origin)) is None or text_of(letter.attributes, mark) is None:
        return letter
    request = _request(letter, origin)
    if request is None:
        return replace(letter, attributes={})
    group_id = request.fields.get("MessageGroupId")
    return replace(
        letter,
        body=_content(request),
        attributes=attributes_of(request.fields.get("MessageAttributes")),
        group_id=group_id if isinstance(group_id, str) else None,
    )


def event_for_function(letter: Letter, origin: Origin, target: Target) -> bytes:
    """The event of a function, JSON.

    For an asynchronous invocation, its own event, character by character; for SNS, its event with the envelope's
    content; for a rule or schedule, the letter's content. New: the request id, and no client context.
    """
    if origin is Origin.SNS:
        return _sns_event(letter, target)
    if origin is Origin.LAMBDA and text_of(letter.attributes, "RequestID") is None:
        record = read_record(letter.body)
        if record is None or record.payload is None:
            raise ValueError("no record of an invocation with its payload")
        return record.payload.encode()
    request = _request(letter, origin)
    return (letter.body if request is None else request.content or "{}").encode()


def record_for_stream(letter: Letter) -> bytes:
    """The record of a delivery stream: the envelope, or the raw message, as it is in the letter."""
    return letter.body.encode()


def execution_of(one: Outgoing, origin: Origin) -> Execution:
    """The execution that a rule or a schedule was supposed to start.

    Its name is the same for the same letter and redrive count, so that a standard workflow refuses a start that a crash
    repeats; an express workflow does not. If a schedule's own call named it, that name stays. A digest's 64 characters
    fit into a name.
    https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html
    """
    ours = one.deduplication_id
    request = _request(one.letter, origin)
    if request is None:
        return Execution(name=ours, input=one.letter.body, is_named_by_us=True)
    name = request.fields.get("Name")
    is_named = isinstance(name, str) and bool(name)
    return Execution(
        name=str(name) if is_named else ours,
        input=request.content or "{}",
        is_named_by_us=not is_named,
    )


def publication_of(letter: Letter, origin: Origin) -> dict[str, Any]:
    """The parameters of Publish, except for the topic. SNS gives a new message id and timestamp."""
    request = _request(letter, origin)
    if request is None:
        return {"Message": letter.body}
    publication: dict[str, Any] = {"Message": _content(request)}
    for name in ("Subject", "MessageStructure", "MessageGroupId"):
        if isinstance(value := request.fields.get(name), str):
            publication[name] = value
    if attributes := attributes_of(request.fields.get("MessageAttributes")):
        publication["MessageAttributes"] = attributes
    return publication


def _sns_event(letter: Letter, target: Target) -> bytes:
    """The event that SNS makes of its envelope for a function; its names differ a little from the envelope's."""
    envelope = read_envelope(letter.body)
    subscription = _subscription(envelope, target)
    if envelope is None or not envelope.is_notification or subscription is None:
        raise ValueError("no envelope of SNS that names its subscription")
    event = {
        "Records": [
            {
                "EventSource": "aws:sns",
                "EventVersion": "1.0",
                "EventSubscriptionArn": subscription,
                "Sns": _sns_part(envelope),
            }
        ]
    }
    return _json(event)


def _subscription(envelope: Envelope | None, target: Target) -> str | None:
    """The subscription that the envelope names, or else the one that is listed with the target."""
    return (envelope.subscription if envelope else None) or target.subscription


def _sns_part(envelope: Envelope) -> dict[str, Any]:
    """Version and signature stay together unchanged: for a topic with version 2 signatures, SNS itself gives 1."""
    fields = envelope.fields
    return {
        "Type": fields["Type"],
        "MessageId": fields["MessageId"],
        "TopicArn": fields["TopicArn"],
        "Subject": fields.get("Subject"),
        "Message": fields["Message"],
        "Timestamp": fields["Timestamp"],
        "SignatureVersion": fields.get("SignatureVersion", "1"),
        "Signature": fields.get("Signature"),
        "SigningCertUrl": fields.get("SigningCertURL"),
        "UnsubscribeUrl": fields.get("UnsubscribeURL"),
        "MessageAttributes": fields.get("MessageAttributes") or {},
    }


def _json(value: object) -> bytes:
    """Compact JSON, without NaN, which is not JSON.

    Half a surrogate pair, which JSON may hold but UTF-8 may not, stays as it was written.
    """
    try:
        return json.dumps(
            value, ensure_ascii=False, allow_nan=False, separators=(",", ":")
        ).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()
    except RecursionError as fault:
        raise ValueError("too deep to be written") from fault


def _request(letter: Letter, origin: Origin) -> Request | None:
    """The call of a schedule's universal target; None if the body itself is the content."""
    if origin is not Origin.SCHEDULER:
        return None
    return read_request(text_of(letter.attributes, "TARGET_ARN") or "", letter.body)


def _content(request: Request) -> str:
    """The content that the call sends. Raises ValueError if it is empty: SQS and SNS take no empty message."""
    if not request.content:
        raise ValueError("the call has no content")
    return request.content


#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-metadata.html
#: https://docs.aws.amazon.com/sns/latest/dg/sns-message-attributes.html
_NAME = re.compile(r"(?!(?i:aws|amazon)\.)(?!\.)(?!.*\.\.)[A-Za-z0-9_.-]{1,256}(?<!\.)")
_TYPE = re.compile(r"(String|Number|Binary)(\.[^\ud800-\udfff]+)?")


def attributes_of(given: object) -> dict[str, Attribute]:
    """The attributes. Raises ValueError for anything else."""
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise ValueError("message attributes that are none")  # noqa: TRY004 - the letter's fault, not a caller's
    return {_name(name): _attribute(value) for name, value in given.items()}


def _name(given: str) -> str:
    if not _NAME.fullmatch(given):
        raise ValueError("a message attribute with a name that none may have")
    return given


def _attribute(given: object) -> Attribute:
    """One attribute. An empty value is none: AWS refuses it."""
    fields = given if isinstance(given, dict) else {}
    kind = fields.get("DataType")
    named = _TYPE.fullmatch(kind) if isinstance(kind, str) else None
    is_binary = named is not None and named[1] == "Binary"
    value = fields.get("BinaryValue" if is_binary else "StringValue")
    if named is None or not isinstance(value, str) or not value:
        raise ValueError("a message attribute that is none")
    if is_binary:
        return {"DataType": named[0], "BinaryValue": base64.b64decode(value, validate=True)}
    return {"DataType": named[0], "StringValue": value}


#: The sender that SNS's posts name. https://docs.aws.amazon.com/sns/latest/dg/sns-http-https-endpoint-as-subscriber.html
USER_AGENT = "Amazon Simple Notification Service Agent"


#: Values that a header may have.
_PLAIN = re.compile(r"[\x21-\x7e]{1,512}")
#: Characters that stay unchanged in a path with its query; all others are not ASCII.
_IN_PATHS = "".join(map(chr, range(0x21, 0x7F)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """A POST: the path with its query, and the content."""

    path: str
    headers: Mapping[str, str]
    body: bytes


def post_of(letter: Letter, target: Target) -> Post:
    """The POST that SNS makes of a letter: its body, and SNS's headers.

    A raw letter does not hold SNS's message id, so the letter's own takes its place. Other missing names are left out.
    Raises ValueError for an SNS envelope that is no notification.
    https://docs.aws.amazon.com/sns/latest/dg/sns-message-and-json-formats.html#http-header
    """
    headers = {
        **_headers(letter, target),
        "Content-Type": "text/plain; charset=UTF-8",
        "User-Agent": USER_AGENT,
    }
    parts = urlsplit(target.place)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Post(path=quote(path, safe=_IN_PATHS), headers=headers, body=letter.body.encode())


def _headers(letter: Letter, target: Target) -> dict[str, str]:
    envelope = read_envelope(letter.body)
    if envelope and not envelope.is_notification:
        raise ValueError("no notification")
    subscription = _subscription(envelope, target) or ""
    if envelope:
        told = {
            "x-amz-sns-message-id": envelope.fields["MessageId"],
            "x-amz-sns-topic-arn": envelope.topic,
            "x-amz-sns-subscription-arn": subscription,
        }
    else:
        told = {
            "x-amz-sns-message-id": letter.original_id,
            "x-amz-sns-topic-arn": subscription.rpartition(":")[0],
            "x-amz-sns-subscription-arn": subscription,
            "x-amz-sns-rawdelivery": "true",
        }
    plain = {name: value for name, value in told.items() if _PLAIN.fullmatch(value)}
    return {"x-amz-sns-message-type": "Notification", **plain}
