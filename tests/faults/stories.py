"""DLQs of other origins than SQS, each a story from its letters to its end:
what a strike at any call has to leave whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from smart_redriver.engine.config.targets import Origin, Target
from tests.faults.stage import FUNCTION, MACHINE, PLACE, QUEUE, STREAM, TOPIC, WEB, Stage

SUBSCRIPTIONS = {
    place: f"arn:aws:sns:{PLACE}:orders:00000000-0000-4000-8000-00000000000{number}"
    for number, place in enumerate((QUEUE, FUNCTION, STREAM, WEB))
}
RULE = f"arn:aws:events:{PLACE}:rule/orders"
SCHEDULE = f"arn:aws:scheduler:{PLACE}:schedule/default/orders"

#: What fails for ever is parked so, whether others were there to compare it with or not.
HOPELESS = "MAX_ATTEMPTS or GAVE_UP"

#: Of each target in a DLQ of several, and of the only one of another.
FEW, SOME = 2, 3


def envelope(name: str, subscription: str) -> str:
    """A notification as SNS leaves it in a DLQ."""
    link = f"https://sns.eu-west-1.amazonaws.com/?Action=Unsubscribe&SubscriptionArn={subscription}"
    return json.dumps(
        {
            "Type": "Notification",
            "MessageId": "d3f0b7f0-8f5d-5c2b-9b7a-ea1d9f5f0c11",
            "TopicArn": f"arn:aws:sns:{PLACE}:orders",
            "Message": name,
            "Timestamp": "2026-01-10T11:00:00.000Z",
            "SignatureVersion": "1",
            "Signature": "c2lnbmF0dXJl",
            "SigningCertURL": "https://sns.eu-west-1.amazonaws.com/cert.pem",
            "UnsubscribeURL": link,
        }
    )


def _subscribed(place: str) -> Target:
    return Target.parse(f"{SUBSCRIPTIONS[place]}={place}")


def _letters(stage: Stage, place: str, count: int) -> None:
    """Letters that the target at this place failed."""
    target = Target.parse(place)
    for number in range(count):
        name = f"letter-{target.kind.value}-{number}"
        stage.of[name] = target.name
        event = json.dumps({"detail": name})
        match stage.origin:
            case Origin.SNS:
                stage.put(name, envelope(name, SUBSCRIPTIONS[place]))
            case Origin.LAMBDA:
                stage.put(name, event, RequestID=f"0000000{number}-0000-4000-8000-000000000000")
            case Origin.EVENTBRIDGE:
                stage.put(name, event, RULE_ARN=RULE, TARGET_ARN=place)
            case _:
                stage.put(name, event, SCHEDULE_ARN=SCHEDULE, TARGET_ARN=place)


def _doom(stage: Stage, name: str, body: str, reason: str, **attributes: str) -> None:
    stage.doomed[name] = reason
    stage.put(name, body, **attributes)


def subscribers_of_a_topic() -> Stage:
    """Four of them share a DLQ, and one letter is of a subscription that nobody listed."""
    stage = Stage(origin=Origin.SNS, targets=tuple(map(_subscribed, SUBSCRIPTIONS)))
    for place in SUBSCRIPTIONS:
        _letters(stage, place, FEW)
    stranger = f"arn:aws:sns:{PLACE}:orders:ffffffff-0000-4000-8000-000000000000"
    _doom(stage, "letter-stranger-0", envelope("letter-stranger-0", stranger), "UNKNOWN_ORIGIN")
    return stage


def targets_of_rules() -> Stage:
    """Four of them share a DLQ, and one letter is of none."""
    places = (QUEUE, FUNCTION, MACHINE, TOPIC)
    stage = Stage(origin=Origin.EVENTBRIDGE, targets=tuple(map(Target.parse, places)))
    for place in places:
        _letters(stage, place, FEW)
    _doom(
        stage,
        "letter-stranger-0",
        json.dumps({"detail": "letter-stranger-0"}),
        "UNKNOWN_ORIGIN",
        RULE_ARN=RULE,
        TARGET_ARN=f"{FUNCTION}-admin",
    )
    return stage


def a_schedule_and_its_machine() -> Stage:
    """One target; one letter was cut short, one is larger than an execution takes."""
    stage = Stage(origin=Origin.SCHEDULER, targets=(Target.parse(MACHINE),))
    _letters(stage, MACHINE, SOME)
    told = {"SCHEDULE_ARN": SCHEDULE, "TARGET_ARN": MACHINE}
    _doom(
        stage,
        "letter-cut-0",
        '{"detail": "letter-cut-0',
        "INCOMPLETE",
        **told,
        IS_PAYLOAD_TRUNCATED="true",
    )
    large = json.dumps({"detail": "letter-large-0" + "." * 262_144})
    _doom(stage, "letter-large-0", large, "UNDELIVERABLE", **told)
    return stage


def a_stream() -> Stage:
    """One target, one subscription, which need not be told from others."""
    stage = Stage(origin=Origin.SNS, targets=(_subscribed(STREAM),))
    _letters(stage, STREAM, SOME)
    return stage


def an_endpoint_that_is_down_at_first(pill: str = "") -> Stage:
    """It takes letters and fails for three minutes, with the pill for ever."""
    stage = Stage(origin=Origin.SNS, targets=(Target.parse(WEB),))
    _letters(stage, WEB, SOME)
    up_at = stage.clock.time() + 180
    _swallow(stage, pill)

    def answers(body: bytes) -> str | None:
        if stage.clock.time() < up_at:
            return "HTTP 503"
        return "HTTP 400" if pill and pill.encode() in body else None

    stage.web.answers = answers
    return stage


def a_function_that_is_down_at_first(pill: str = "") -> Stage:
    """Its letters come back with other ids, the pill for ever."""
    stage = Stage(origin=Origin.LAMBDA, targets=(Target.parse(FUNCTION),))
    _letters(stage, FUNCTION, SOME)
    up_at = stage.clock.time() + 240
    _swallow(stage, pill)
    stage.fails = lambda name: stage.clock.time() < up_at or name == pill
    return stage


def _swallow(stage: Stage, pill: str) -> None:
    if pill:
        del stage.of[pill]
        stage.doomed[pill] = HOPELESS


def records_of_a_function() -> Stage:
    """Its on-failure records; one is of another function, one has lost its payload."""
    stage = Stage(origin=Origin.LAMBDA, targets=(Target.parse(FUNCTION),))
    name = "letter-lambda-0"
    stage.of[name] = "lambda:orders"
    stage.put(name, record(name))
    _doom(
        stage, "letter-other-0", record("letter-other-0", of=f"{FUNCTION}-admin"), "UNKNOWN_ORIGIN"
    )
    without = json.loads(record("letter-without-0"))
    del without["requestPayload"]
    _doom(
        stage, "letter-without-0", json.dumps(without | {"was": "letter-without-0"}), "INCOMPLETE"
    )
    return stage


def record(name: str, of: str = FUNCTION) -> str:
    """An on-failure record as Lambda leaves it."""
    return json.dumps(
        {
            "version": "1.0",
            "timestamp": "2026-01-10T11:00:00.000Z",
            "requestContext": {
                "requestId": "9f3c9f0e-6a4b-4f6e-9d55-0d3b4a8f1c22",
                "functionArn": f"{of}:$LATEST",
                "condition": "RetriesExhausted",
                "approximateInvokeCount": 3,
            },
            "requestPayload": {"detail": name},
            "responseContext": {"statusCode": 200, "functionError": "Unhandled"},
            "responsePayload": {"errorMessage": "boom"},
        }
    )


STORIES: tuple[Callable[[], Stage], ...] = (
    subscribers_of_a_topic,
    targets_of_rules,
    a_schedule_and_its_machine,
    a_stream,
    an_endpoint_that_is_down_at_first,
    a_function_that_is_down_at_first,
    records_of_a_function,
)
