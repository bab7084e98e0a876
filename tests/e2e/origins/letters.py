"""Letters as SNS, rules and schedules leave them in a DLQ, in the shapes that `tests.unit.origin_letters` has with
their sources.

Lambda's are not here: the local AWS makes them of invocations that fail.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from emulator.environments import ACCOUNT, REGION
from smart_redriver.engine.messages.letter import Letter
from tests.e2e.origins.endpoint import POISON
from tests.e2e.origins.places import (
    MACHINE_ARN,
    TARGET_TOPIC_ARN,
    TOPIC_ARN,
    function_arn,
    queue_arn,
)
from tests.unit import origin_letters as shapes

#: Good ones for each target.
EACH = 3
#: For the endpoint: what it bounces is known as poison by others that it takes at the same time.
HOOKS = 12
#: More than a state machine takes, and than the queue of raw messages does.
_TOO_MUCH = "x" * 300_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Dead:
    """A letter that is in the DLQ of an entry, and why it ends in the parking lot; empty for one that goes back."""

    entry: str
    body: str
    attributes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    parked_for: str = ""


def of_sns(subscriptions: Mapping[str, str]) -> Iterator[Dead]:
    """In SNS's envelope, by what is subscribed; then one that says of no subscription whose it is."""
    for name, subscription in subscriptions.items():
        for number in range(EACH if name != "hook" else HOOKS):
            yield Dead(entry="order-events", body=envelope(subscription, f"{name}-{number}"))
    poison = envelope(subscriptions["hook"], POISON)
    yield Dead(entry="order-events", body=poison, parked_for="MAX_ATTEMPTS")
    foreign = f"{TOPIC_ARN}:00000000-0000-4000-8000-000000000000"
    for body in ("a raw message", envelope(foreign, "of nobody who is listed")):
        yield Dead(entry="order-events", body=body, parked_for="UNKNOWN_ORIGIN")


def raw_of_sns() -> Iterator[Dead]:
    """With the publisher's attributes and no envelope: the origin is known by the configuration alone."""
    told: dict[str, dict[str, Any]] = {
        "Channel": {"DataType": "String", "StringValue": "web"},
        "Amount": {"DataType": "Number", "StringValue": "12.50"},
        "Signature": {"DataType": "Binary", "BinaryValue": b"\x00\xff"},
    }
    for number in range(EACH):
        yield Dead(entry="news", body=f"news-{number}", attributes=told)
    yield Dead(entry="news", body=_TOO_MUCH, parked_for="UNDELIVERABLE")


def of_rules() -> Iterator[Dead]:
    for name, arn in (
        ("routing", function_arn("routing")),
        ("parcels", MACHINE_ARN),
        ("returns", queue_arn("returns")),
        ("heard", TARGET_TOPIC_ARN),
    ):
        for number in range(EACH):
            yield _of_rule(arn, f"{name}-{number}")
    yield _of_rule(MACHINE_ARN, _TOO_MUCH, parked_for="UNDELIVERABLE")
    yield _of_rule(function_arn("bystander"), "forged", parked_for="UNKNOWN_ORIGIN")


def of_schedules() -> Iterator[Dead]:
    report = function_arn("report")
    for number in range(EACH):
        yield _of_schedule(shapes.of_schedule(report, json.dumps({"run": f"report-{number}"})))
        yield _of_schedule(_send_message(f"chores-{number}"))
    broken = _send_message(POISON, MessageAttributes={"Kind": {"DataType": "String"}})
    yield _of_schedule(broken, parked_for="UNDELIVERABLE")
    cut = shapes.of_schedule(report, '{"run": "rep', IS_PAYLOAD_TRUNCATED="true")
    yield _of_schedule(cut, parked_for="INCOMPLETE")
    yield _of_schedule(
        shapes.of_schedule(function_arn("bystander"), "{}"), parked_for="UNKNOWN_ORIGIN"
    )


def envelope(subscription: str, message: str) -> str:
    """What SNS put around a message for one subscription."""
    link = f"https://sns.{REGION}.amazonaws.com/?Action=Unsubscribe&SubscriptionArn={subscription}"
    return json.dumps(
        shapes.envelope(TopicArn=TOPIC_ARN, Message=message, UnsubscribeURL=link, Subject="Order")
    )


def _of_rule(target_arn: str, detail: str, parked_for: str = "") -> Dead:
    letter = shapes.of_rule(target_arn, json.dumps({"source": "shop", "detail": detail}))
    return Dead(
        entry="parcels", body=letter.body, attributes=letter.attributes, parked_for=parked_for
    )


def _send_message(body: str, **parameters: Any) -> Letter:
    """What a schedule's universal target was to do."""
    url = f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/chores"
    told = {"MessageAttributes": {"Kind": {"DataType": "String", "StringValue": "night"}}}
    return shapes.universal(
        "sqs:sendMessage", QueueUrl=url, MessageBody=body, **(told | parameters)
    )


def _of_schedule(letter: Letter, parked_for: str = "") -> Dead:
    return Dead(
        entry="nightly", body=letter.body, attributes=letter.attributes, parked_for=parked_for
    )
