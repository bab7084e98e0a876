"""The shapes of letters of other origins than SQS: Lambda's record, Scheduler's request. Pure.

Whoever may send to a DLQ may write anything into a letter, so that reading never raises, and what it yields is a
claim: which target it means is for `origins` to look up among those that are listed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from smart_redriver.engine.config.targets import TargetKind
from smart_redriver.engine.messages.letter import Attribute

#: As ids of letters are checked in a trail: the ledger has to be able to store them.
_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")
_UNIVERSAL = re.compile(r"arn:aws[a-z-]*:scheduler:::aws-sdk:([a-z0-9]+):([A-Za-z0-9]+)")

#: The APIs that are served of a schedule's universal target: what they call, the field that names it, and the one
#: that holds what it is given.
#: https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-targets-universal.html
_SERVED_CALLS = {
    "sqs:sendmessage": (TargetKind.QUEUE, "QueueUrl", "MessageBody"),
    "lambda:invoke": (TargetKind.FUNCTION, "FunctionName", "Payload"),
    "sfn:startexecution": (TargetKind.STATE_MACHINE, "StateMachineArn", "Input"),
    "sns:publish": (TargetKind.TOPIC, "TopicArn", "Message"),
}
#: What these calls do without.
_OPTIONAL = frozenset({"Payload", "Input"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What Lambda sends to a destination. `payload` is the event's text, to the letter; None where it was left out."""

    function_arn: str
    condition: str
    request_id: str | None
    payload: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A call that a schedule was to make: of what, as it is named there, with which parameters.

    `content` is what the call hands over; `is_complete` false where that is missing, empty or no text.
    """

    kind: TargetKind
    resource: str
    content: str | None
    is_complete: bool
    fields: Mapping[str, Any]


def text_of(attributes: Mapping[str, Attribute], name: str) -> str | None:
    """The text of a message attribute; None where there is none."""
    attribute = attributes.get(name)
    text = attribute.get("StringValue") if isinstance(attribute, Mapping) else None
    return text if isinstance(text, str) and text else None


def well_formed_id(text: object) -> str | None:
    """The id where it is one that can be stored, else None."""
    return text if isinstance(text, str) and _ID.fullmatch(text) else None


def read_record(body: str) -> Record | None:
    """The record of an invocation; None where the body is none."""
    fields = read_object(body)
    context = fields.get("requestContext") if fields else None
    if fields is None or not isinstance(context, dict) or "version" not in fields:
        return None
    arn, condition = context.get("functionArn"), context.get("condition")
    if not isinstance(arn, str) or not isinstance(condition, str):
        return None
    return Record(
        function_arn=arn,
        condition=condition,
        request_id=well_formed_id(context.get("requestId")),
        payload=_payload(body),
    )


def _payload(body: str) -> str | None:
    try:
        return _member_text(body, "requestPayload")
    except RecursionError:  # as deep as could just be read
        return None


def is_universal(target_arn: str) -> bool:
    """Whether a schedule's target is an API and not a resource."""
    return _UNIVERSAL.fullmatch(target_arn) is not None


def read_request(target_arn: str, body: str) -> Request | None:
    """The call of a universal target; None for a call that is not served, or whose parameters can't be read."""
    named = _UNIVERSAL.fullmatch(target_arn)
    served = _SERVED_CALLS.get(f"{named[1]}:{named[2].lower()}") if named else None
    fields = read_object(body) if served else None
    if served is None or fields is None:
        return None
    # Scheduler takes QueueUrl as well as queueUrl.
    fields = {name[:1].upper() + name[1:]: value for name, value in fields.items()}
    kind, place, content_field = served
    content = fields.get(content_field)
    is_complete = (isinstance(content, str) and content != "") or (
        content in (None, "") and content_field in _OPTIONAL
    )
    return Request(
        kind=kind,
        resource=_resource(fields, place),
        content=content if isinstance(content, str) else None,
        is_complete=is_complete,
        fields=fields,
    )


def _resource(fields: Mapping[str, Any], place: str) -> str:
    """What the call names, with the qualifier of a function that is named beside it."""
    name, qualifier = fields.get(place), fields.get("Qualifier")
    if not isinstance(name, str):
        return ""
    is_apart = place == "FunctionName" and isinstance(qualifier, str)
    return (f"{name}:{qualifier}" if is_apart else name).removesuffix(":$LATEST")


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_number)
_BETWEEN = re.compile(r"[ \t\n\r]*")


def read_object(text: str) -> dict[str, Any] | None:
    """The JSON object that a text is; None where it is anything else."""
    try:
        read = _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) else None


def _member_text(text: str, name: str) -> str | None:
    """The text of one member of the JSON object that `text` is, the last of its name, as it stands there.

    Reading and writing it again would change numbers that Python has no exact value for.
    """
    found = None
    place = _after_blanks(text, _after_blanks(text, 0) + 1)
    while text[place] == '"':
        member, place = _DECODER.raw_decode(text, place)
        start = _after_blanks(text, _after_blanks(text, place) + 1)  # behind the colon
        _, end = _DECODER.raw_decode(text, start)
        if member == name:
            found = text[start:end]
        place = _after_blanks(text, end)
        place = _after_blanks(text, place + 1) if text[place] == "," else place
    return found


def _after_blanks(text: str, place: int) -> int:
    return place + len(_BETWEEN.match(text, place)[0])  # type: ignore[index]  # it matches nothing, too
