"""Finds the listed target that failed a letter, from the letter alone. Pure, and never raises.

Only listed targets are ever returned: a letter's own words are compared with the list, and not followed. The forms of
letters come first (docs/origins.md): Lambda's record, Scheduler's request. `read_envelope` reads the envelope that SNS
puts around its messages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

from smart_redriver.engine.config.targets import Origin, Target, TargetKind
from smart_redriver.engine.messages.letter import Attribute, Letter, Unfit

#: The same check as for letter ids in redrive metadata: the ledger must be able to store them.
_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")
_UNIVERSAL = re.compile(r"arn:aws[a-z-]*:scheduler:::aws-sdk:([a-z0-9]+):([A-Za-z0-9]+)")

#: The APIs that are served for a schedule's universal target: the kind of resource, the field that names it, and the
#: field that holds its content.
#: https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-targets-universal.html
_SERVED_CALLS = {
    "sqs:sendmessage": (TargetKind.QUEUE, "QueueUrl", "MessageBody"),
    "lambda:invoke": (TargetKind.FUNCTION, "FunctionName", "Payload"),
    "sfn:startexecution": (TargetKind.STATE_MACHINE, "StateMachineArn", "Input"),
    "sns:publish": (TargetKind.TOPIC, "TopicArn", "Message"),
}
#: Parameters that these calls may leave out.
_OPTIONAL = frozenset({"Payload", "Input"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Lambda's record for a destination. `payload` is the event's exact text; None if it was left out."""

    function_arn: str
    condition: str
    request_id: str | None
    payload: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A call that a schedule was supposed to make: its resource, by the name used there, and its parameters.

    `content` is what the call hands over; `is_complete` is false if that is missing, empty or not a text.
    """

    kind: TargetKind
    resource: str
    content: str | None
    is_complete: bool
    fields: Mapping[str, Any]


def text_of(attributes: Mapping[str, Attribute], name: str) -> str | None:
    """The text of a message attribute; None if there is none."""
    attribute = attributes.get(name)
    text = attribute.get("StringValue") if isinstance(attribute, Mapping) else None
    return text if isinstance(text, str) and text else None


def well_formed_id(text: object) -> str | None:
    """The id if it can be stored, else None."""
    return text if isinstance(text, str) and _ID.fullmatch(text) else None


def read_record(body: str) -> Record | None:
    """The record of an invocation; None if the body is none."""
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
    except RecursionError:  # nested as deeply as could just be read
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
    is_left_out = content in (None, "")
    is_complete = content_field in _OPTIONAL if is_left_out else isinstance(content, str)
    return Request(
        kind=kind,
        resource=_resource(fields, place),
        content=content if isinstance(content, str) else None,
        is_complete=is_complete,
        fields=fields,
    )


def _resource(fields: Mapping[str, Any], place: str) -> str:
    """The resource that the call names, with a function's qualifier, which is in another field."""
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
    """The JSON object in a text; None if the text is anything else."""
    try:
        read = _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) else None


def _member_text(text: str, name: str) -> str | None:
    """The exact text of one member of the JSON object in `text`: the last with this name.

    To parse and write it again would change numbers for which Python has no exact value.
    """
    found = None
    place = _after_blanks(text, _after_blanks(text, 0) + 1)
    while text[place] == '"':
        member, place = _DECODER.raw_decode(text, place)
        start = _after_blanks(text, _after_blanks(text, place) + 1)  # after the colon
        _, end = _DECODER.raw_decode(text, start)
        if member == name:
            found = text[start:end]
        place = _after_blanks(text, end)
        place = _after_blanks(text, place + 1) if text[place] == "," else place
    return found


def _after_blanks(text: str, place: int) -> int:
    return place + len(_BETWEEN.match(text, place)[0])  # type: ignore[index]  # it matches nothing, too


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The findings about a letter: the target that failed, if listed, and why the letter still can't go back."""

    target: Target | None = None
    request_id: str | None = None
    unfit: Unfit | None = None


_NOBODY = Found(unfit=Unfit.UNKNOWN_ORIGIN)


def _found(
    target: Target | None, *, lacks_some: bool = False, request_id: str | None = None
) -> Found:
    """The findings about a letter of this target, if there is one. `lacks_some`: part of what it needs is missing."""
    if target is None:
        return _NOBODY
    unfit = Unfit.INCOMPLETE if lacks_some else None
    return Found(target=target, request_id=request_id, unfit=unfit)


def recognise(letter: Letter, origin: Origin, targets: Sequence[Target]) -> Letter:
    """The letter with the place of the target that failed it as its `source_arn`, or with the reason why it is `unfit`.

    A letter that SQS moved here belongs to the queue that SQS names, which is served if it is one of the targets. A
    queue's letters are left unchanged.
    """
    if origin not in _FINDERS:
        return letter
    if letter.source_arn is not None:
        is_listed = any(letter.source_arn == one.place for one in targets)
        return letter if is_listed else replace(letter, unfit=Unfit.UNKNOWN_ORIGIN)
    found = _FINDERS[origin](letter, targets)
    return replace(
        letter,
        failed_at=letter.sent_at,
        source_arn=found.target.place if found.target else None,
        request_id=found.request_id,
        unfit=found.unfit,
    )


def _of_sns(letter: Letter, targets: Sequence[Target]) -> Found:
    """A raw letter holds nothing from SNS: its target is known only if there is just one."""
    envelope = read_envelope(letter.body)
    if envelope is None:
        target = _only(targets)
    elif envelope.is_notification:
        target = _only(one for one in targets if _subscribes(one, envelope))
    else:
        target = None
    if target is None or target.kind is not TargetKind.FUNCTION:
        return _found(target)
    # SNS delivers to functions only in its envelope.
    names_subscription = envelope and (envelope.subscription or target.subscription)
    return _found(target, lacks_some=not names_subscription)


def _subscribes(target: Target, envelope: Envelope) -> bool:
    """Whether the envelope is from the target's topic and subscription; if none is listed, any subscription fits."""
    if target.subscription is None:
        return True
    topic = target.subscription.rpartition(":")[0]
    return envelope.topic == topic and envelope.subscription in (None, target.subscription)


def _of_lambda(letter: Letter, targets: Sequence[Target]) -> Found:
    """An event may look like the record of an invocation: a letter with Lambda's attributes is never read as one."""
    request_id = text_of(letter.attributes, "RequestID")
    if request_id is not None:
        return _found(_only(targets), request_id=well_formed_id(request_id))
    record = read_record(letter.body)
    if record is None:
        return _NOBODY
    target = _only(one for one in targets if _covers(one, record.function_arn))
    lacks_some = record.payload is None or record.condition.lower() == "success"
    return _found(target, lacks_some=lacks_some, request_id=record.request_id)


def _of_rule(letter: Letter, targets: Sequence[Target]) -> Found:
    """A custom event bus leaves a record of failures, without the event."""
    if any(text_of(letter.attributes, name) for name in ("SUBSCRIBER_ARN", "BUS_ARN")):
        return Found(unfit=Unfit.INCOMPLETE)
    arn = text_of(letter.attributes, "TARGET_ARN")
    if text_of(letter.attributes, "RULE_ARN") is None:
        return _of_queue(letter, targets)
    return _found(_only(one for one in targets if arn and _covers(one, arn)))


def _of_schedule(letter: Letter, targets: Sequence[Target]) -> Found:
    arn = text_of(letter.attributes, "TARGET_ARN")
    if text_of(letter.attributes, "SCHEDULE_ARN") is None:
        return _of_queue(letter, targets)
    if arn is None:
        return _NOBODY
    cut = (text_of(letter.attributes, "IS_PAYLOAD_TRUNCATED") or "").strip().lower() == "true"
    if is_universal(arn):
        found = _of_universal_target(arn, letter, targets)
        # A truncated letter may no longer be JSON, and does not name its target.
        return replace(found, unfit=Unfit.INCOMPLETE) if cut else found
    return _found(_only(one for one in targets if _covers(one, arn)), lacks_some=cut)


def _of_queue(letter: Letter, targets: Sequence[Target]) -> Found:
    """A parked message that a target queue's own consumer failed: only its metadata shows where it belongs.

    A letter of the other service, from before the origin was changed, is no message of the queue.
    """
    if text_of(letter.attributes, "TARGET_ARN"):
        return _NOBODY
    named = letter.metadata.queue if letter.metadata else None
    return _found(
        _only(one for one in targets if one.kind is TargetKind.QUEUE and one.name == named)
    )


def _of_universal_target(arn: str, letter: Letter, targets: Sequence[Target]) -> Found:
    request = read_request(arn, letter.body)
    if request is None:
        return _NOBODY
    schedule = text_of(letter.attributes, "SCHEDULE_ARN") or ""
    target = _only(
        one
        for one in targets
        if one.kind is request.kind and request.resource in _spellings(one, schedule)
    )
    return _found(target, lacks_some=not request.is_complete)


def _only(targets: Iterable[Target]) -> Target | None:
    """The target if it is the only one."""
    found = list(targets)
    return found[0] if len(found) == 1 else None


def _covers(target: Target, arn: str) -> bool:
    """Whether the ARN is of this target; `$LATEST` is what a function without a qualifier runs."""
    if target.kind is not TargetKind.FUNCTION:
        return arn == target.place
    return arn.removesuffix(":$LATEST") == target.place


#: SQS's hosts in a Region: with IPv6 and FIPS, in China, and as older SDKs wrote them.
#: https://docs.aws.amazon.com/general/latest/gr/sqs-service.html
_HOSTS_OF_QUEUES = (
    "sqs.{}.amazonaws.com",
    "sqs.{}.api.aws",
    "sqs-fips.{}.amazonaws.com",
    "sqs-fips.{}.api.aws",
    "sqs.{}.amazonaws.com.cn",
    "sqs.{}.api.amazonwebservices.com.cn",
    "{}.queue.amazonaws.com",
    "{}.queue.amazonaws.com.cn",
)


def _spellings(target: Target, schedule_arn: str) -> set[str]:
    """Return the names that a call of this schedule may use for this target: a local function needs no full ARN."""
    arn = target.place
    if target.kind is TargetKind.FUNCTION:
        _, _, _, region, account, _, name = arn.split(":", 6)
        home = schedule_arn.split(":")[3:5]
        by_account = {f"{account}:function:{name}"} if home[:1] == [region] else set()
        return {arn} | by_account | ({name} if home == [region, account] else set())
    if target.kind is TargetKind.QUEUE:
        _, _, _, region, account, name = arn.split(":")
        hosts = {one.format(region) for one in _HOSTS_OF_QUEUES}
        if region == "us-east-1":
            hosts.add("queue.amazonaws.com")
        return {f"https://{host}/{account}/{name}" for host in hosts}
    return {arn}


_FINDERS: dict[Origin, Callable[[Letter, Sequence[Target]], Found]] = {
    Origin.SNS: _of_sns,
    Origin.LAMBDA: _of_lambda,
    Origin.EVENTBRIDGE: _of_rule,
    Origin.SCHEDULER: _of_schedule,
}


_NOTIFICATION = "Notification"
_CONFIRMATIONS = ("SubscriptionConfirmation", "UnsubscribeConfirmation")
_NEEDED = ("MessageId", "TopicArn", "Message", "Timestamp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """SNS's envelope around a message: `fields` as they are in the body, and the `subscription` of the delivery.

    `is_notification`: it is complete, holds a message, and names no subscription of another topic. Any other envelope
    can't be delivered, neither as an envelope nor as a raw message.
    """

    fields: Mapping[str, Any]
    subscription: str | None
    is_notification: bool

    @property
    def topic(self) -> str:
        """The ARN that it names as its topic; never empty for a notification."""
        named = self.fields.get("TopicArn")
        return named if isinstance(named, str) else ""


def read_envelope(body: str) -> Envelope | None:
    """SNS's envelope; None if the body is none, but a raw message.

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
