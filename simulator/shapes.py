"""How letters of each origin look in a DLQ, and what is in them.

As recorded on AWS (docs/origins.md has the sources).
"""

from __future__ import annotations

import json
from typing import Any

from smart_redriver.engine.config.targets import Origin, Target

ACCOUNT_PLACE = "eu-west-1:123456789012"
TOPIC = f"arn:aws:sns:{ACCOUNT_PLACE}:orders"
SUBSCRIPTION = f"{TOPIC}:2bcfbf39-05c3-41de-beaa-fcfcc21c8f55"

#: The targets to which letters of each origin go back in a simulated world.
TARGETS = {
    Origin.SNS: Target.parse("https://hooks.example.com/orders"),
    Origin.LAMBDA: Target.parse(f"arn:aws:lambda:{ACCOUNT_PLACE}:function:orders"),
    Origin.EVENTBRIDGE: Target.parse(f"arn:aws:lambda:{ACCOUNT_PLACE}:function:orders"),
    Origin.SCHEDULER: Target.parse(f"arn:aws:states:{ACCOUNT_PLACE}:stateMachine:orders"),
}

Attributes = dict[str, dict[str, str]]


def letter(origin: Origin, payload: str, request_id: str) -> tuple[str, Attributes]:
    """Body and message attributes of the letter that a failed delivery of `payload` leaves."""
    place = TARGETS[origin].place
    match origin:
        case Origin.SNS:
            return _envelope(payload, request_id), {}
        case Origin.LAMBDA:
            code = {"DataType": "Number", "StringValue": "200"}
            texts = _texts(RequestID=request_id, ErrorMessage="connection refused")
            return event(payload), texts | {"ErrorCode": code}
        case Origin.EVENTBRIDGE:
            rule = f"arn:aws:events:{ACCOUNT_PLACE}:rule/orders"
            return event(payload), _texts(
                RULE_ARN=rule, TARGET_ARN=place, ERROR_CODE="THROTTLING", ERROR_MESSAGE="no"
            )
        case Origin.SCHEDULER:
            schedule = f"arn:aws:scheduler:{ACCOUNT_PLACE}:schedule/default/orders"
            return event(payload), _texts(
                SCHEDULE_ARN=schedule, TARGET_ARN=place, IS_PAYLOAD_TRUNCATED="false"
            )
        case Origin.SQS | Origin.POSTGRES | Origin.KAFKA:
            return payload, {}


def event(payload: str) -> str:
    """An event that holds the payload."""
    return json.dumps({"detail": payload})


def payload_of(text: str) -> str:
    """The payload of an event, an envelope, or the request that a target gets for either; else the text itself."""
    try:
        told = json.loads(text)
    except ValueError:
        return text
    if not isinstance(told, dict):
        return text
    inner = told.get("Message") or told.get("detail")
    return inner if isinstance(inner, str) else text


def _envelope(message: str, message_id: str) -> str:
    """The envelope that SNS delivers if raw delivery is off."""
    unsubscribe = (
        f"https://sns.eu-west-1.amazonaws.com/?Action=Unsubscribe&SubscriptionArn={SUBSCRIPTION}"
    )
    fields: dict[str, Any] = {
        "Type": "Notification",
        "MessageId": message_id,
        "TopicArn": TOPIC,
        "Message": message,
        "Timestamp": "2026-01-10T12:00:00.000Z",
        "SignatureVersion": "1",
        "Signature": "c2lnbmF0dXJl",
        "SigningCertURL": "https://sns.eu-west-1.amazonaws.com/cert.pem",
        "UnsubscribeURL": unsubscribe,
    }
    return json.dumps(fields)


def _texts(**values: str) -> Attributes:
    return {name: {"DataType": "String", "StringValue": value} for name, value in values.items()}
