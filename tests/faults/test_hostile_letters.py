"""Letters that somebody forged or that were cut short, through a whole pass: parked with the reason,
and nobody called.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from fakes.faults import Call, Mishap, refuse
from smart_redriver.engine.config.settings import Mode
from smart_redriver.engine.config.targets import Origin, Target
from tests.faults.stage import DLQ, FUNCTION, LOT, MACHINE, PLACE, QUEUE, TOPIC, WEB, Stage
from tests.faults.stories import RULE, SCHEDULE, SUBSCRIPTIONS, envelope, record

NAME = "letter-hostile-0"
EVENT = json.dumps({"detail": NAME})
LINK_LOCAL = "http://169.254.169.254/latest/meta-data/iam/security-credentials/"
STRANGER = f"arn:aws:sns:{PLACE}:orders:ffffffff-0000-4000-8000-000000000000"

SUBSCRIBERS = tuple(Target.parse(f"{arn}={place}") for place, arn in SUBSCRIPTIONS.items())
OF_RULES = tuple(map(Target.parse, (QUEUE, FUNCTION, MACHINE, TOPIC)))
ORIGINS = {
    Origin.SNS: SUBSCRIBERS,
    Origin.LAMBDA: (Target.parse(FUNCTION),),
    Origin.EVENTBRIDGE: OF_RULES,
    Origin.SCHEDULER: OF_RULES,
}


def with_fields(text: str, **fields: Any) -> str:
    return json.dumps(json.loads(text) | fields)


def of_rule(target: str, **more: str) -> tuple[Origin, str, dict[str, str]]:
    return Origin.EVENTBRIDGE, EVENT, {"RULE_ARN": RULE, "TARGET_ARN": target} | more


def of_schedule(target: str, body: str = EVENT, **more: str) -> tuple[Origin, str, dict[str, str]]:
    return Origin.SCHEDULER, body, {"SCHEDULE_ARN": SCHEDULE, "TARGET_ARN": target} | more


def universal(call: str, **fields: Any) -> tuple[Origin, str, dict[str, str]]:
    return of_schedule(f"arn:aws:scheduler:::aws-sdk:{call}", json.dumps(fields | {"was": NAME}))


_RECORD = json.loads(record(NAME))
del _RECORD["requestPayload"]

HOSTILE: dict[str, tuple[tuple[Origin, str, dict[str, str]], str]] = {
    "a rule's letter with a target of another account": (
        of_rule(FUNCTION.replace("123456789012", "210987654321")),
        "UNKNOWN_ORIGIN",
    ),
    "with a target of another region": (
        of_rule(FUNCTION.replace("eu-west-1", "us-east-1")),
        "UNKNOWN_ORIGIN",
    ),
    "with a function that is not listed": (of_rule(f"{FUNCTION}-admin"), "UNKNOWN_ORIGIN"),
    "with a version of the function that is not listed": (
        of_rule(f"{FUNCTION}:7"),
        "UNKNOWN_ORIGIN",
    ),
    "with a file for a target": (of_rule("file:///etc/passwd"), "UNKNOWN_ORIGIN"),
    "with the metadata service for a target": (of_rule(LINK_LOCAL), "UNKNOWN_ORIGIN"),
    "of nobody": ((Origin.EVENTBRIDGE, EVENT, {}), "UNKNOWN_ORIGIN"),
    "of no rule": ((Origin.EVENTBRIDGE, EVENT, {"TARGET_ARN": FUNCTION}), "UNKNOWN_ORIGIN"),
    "of a custom bus, without its event": (
        of_rule(FUNCTION, BUS_ARN=f"arn:aws:events:{PLACE}:event-bus/custom"),
        "INCOMPLETE",
    ),
    "a schedule's letter that was cut short": (
        of_schedule(FUNCTION, EVENT[:-2], IS_PAYLOAD_TRUNCATED="true"),
        "INCOMPLETE",
    ),
    "with a file for a target of a schedule": (of_schedule("file:///etc/passwd"), "UNKNOWN_ORIGIN"),
    "a call of a schedule's that is not served": (
        universal("iam:createUser", UserName="mallory"),
        "UNKNOWN_ORIGIN",
    ),
    "a call of a schedule's with an empty message": (
        universal(
            "sqs:sendMessage",
            QueueUrl="https://sqs.eu-west-1.amazonaws.com/123456789012/orders",
            MessageBody="",
        ),
        "INCOMPLETE",
    ),
    "with an attribute that SQS takes from nobody": (
        universal(
            "sqs:sendMessage",
            QueueUrl="https://sqs.eu-west-1.amazonaws.com/123456789012/orders",
            MessageBody=NAME,
            MessageAttributes={"a": {"DataType": "String", "StringValue": ""}},
        ),
        "UNDELIVERABLE",
    ),
    "with an attribute that is named like the topic": (
        universal(
            "sns:publish",
            TopicArn=TOPIC,
            Message=NAME,
            MessageAttributes={"TopicArn": {"DataType": "String", "StringValue": ""}},
        ),
        "UNDELIVERABLE",
    ),
    "a call of a schedule's for another queue": (
        universal("sqs:sendMessage", QueueUrl=LINK_LOCAL, MessageBody=NAME),
        "UNKNOWN_ORIGIN",
    ),
    "a call of a schedule's for another function": (
        universal("lambda:invoke", FunctionName="admin", Payload=EVENT, InvocationType="Event"),
        "UNKNOWN_ORIGIN",
    ),
    "an envelope of another subscription": (
        (Origin.SNS, envelope(NAME, STRANGER), {}),
        "UNKNOWN_ORIGIN",
    ),
    "an envelope of another topic": (
        (
            Origin.SNS,
            with_fields(
                envelope(NAME, STRANGER), TopicArn=f"arn:aws:sns:{PLACE}:admin", UnsubscribeURL=None
            ),
            {},
        ),
        "UNKNOWN_ORIGIN",
    ),
    "what wants a subscription confirmed": (
        (Origin.SNS, with_fields(envelope(NAME, STRANGER), Type="SubscriptionConfirmation"), {}),
        "UNKNOWN_ORIGIN",
    ),
    "an envelope whose links lead to a file": (
        (
            Origin.SNS,
            with_fields(envelope(NAME, STRANGER), UnsubscribeURL="file:///etc/passwd"),
            {},
        ),
        "UNKNOWN_ORIGIN",
    ),
    "an envelope whose links lead to the metadata service": (
        (
            Origin.SNS,
            with_fields(
                envelope(NAME, STRANGER), UnsubscribeURL=f"{LINK_LOCAL}?SubscriptionArn={STRANGER}"
            ),
            {},
        ),
        "UNKNOWN_ORIGIN",
    ),
    "an address in the place of an envelope": (
        (Origin.SNS, f"{LINK_LOCAL} {NAME}", {}),
        "UNKNOWN_ORIGIN",
    ),
    "the record of another function": (
        (Origin.LAMBDA, record(NAME, of=f"{FUNCTION}-admin"), {}),
        "UNKNOWN_ORIGIN",
    ),
    "the record of another account's function": (
        (Origin.LAMBDA, record(NAME, of=FUNCTION.replace("123456789012", "210987654321")), {}),
        "UNKNOWN_ORIGIN",
    ),
    "a record without its payload": (
        (Origin.LAMBDA, json.dumps(_RECORD | {"was": NAME}), {}),
        "INCOMPLETE",
    ),
    "an event without attributes and record": ((Origin.LAMBDA, EVENT, {}), "UNKNOWN_ORIGIN"),
}


@pytest.mark.parametrize(("letter", "reason"), HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_letter_is_parked_for_its_reason_and_nobody_is_called(
    letter: tuple[Origin, str, dict[str, str]], reason: str
) -> None:
    origin, body, attributes = letter
    stage = Stage(origin=origin, targets=ORIGINS[origin])
    stage.put(NAME, body, **attributes)

    for _ in range(3):
        _, report = stage.run_pass()

    assert report is not None
    assert stage.taken() == {}
    assert stage.lambdas.held == 0
    assert (stage.resting(DLQ), stage.resting(LOT)) == ({}, {NAME: 1})
    assert stage.parked_for() == {NAME: reason}
    (parked,) = stage.sqs.inspect.messages(LOT)
    assert parked.body == body
    assert (
        attributes.items()
        <= {name: one["StringValue"] for name, one in parked.attributes.items()}.items()
    )


@pytest.mark.parametrize(
    "links",
    [
        {"UnsubscribeURL": "file:///etc/passwd"},
        {"SigningCertURL": LINK_LOCAL},
        {"Message": LINK_LOCAL},
    ],
)
def test_what_a_letter_says_leads_nobody_elsewhere(links: dict[str, str]) -> None:
    """Where one endpoint is listed, a letter is of it, whatever addresses it holds:
    they are posted and not followed.
    """
    stage = Stage(origin=Origin.SNS, targets=(Target.parse(WEB),))
    stage.put(NAME, with_fields(envelope(NAME, STRANGER), **{"Message": NAME} | links))

    wire, _ = stage.run_pass()

    assert sum(call.operation == "Post" for call in wire.calls) == 1
    assert [json.loads(one) | links for one in stage.web.taken] == [
        json.loads(one) for one in stage.web.taken
    ]
    assert sum(stage.taken().values()) == 1


def test_a_letter_of_a_target_that_was_removed_is_listed_with_those_that_are_left() -> None:
    """Its entry was of the removed target, so `redrive parked` and `causes` did not list it."""
    stage = Stage(origin=Origin.EVENTBRIDGE, targets=tuple(map(Target.parse, (FUNCTION, QUEUE))))
    stage.put(NAME, EVENT, RULE_ARN=RULE, TARGET_ARN=QUEUE)
    bounced = ClientError({"Error": {"Code": "SomethingNew", "Message": "no"}}, "SendMessageBatch")
    stage.run_pass(lambda call: refuse(bounced) if call.operation == "SendMessageBatch" else None)
    (tried,) = stage.ledger()

    stage.targets = (Target.parse(FUNCTION),)
    stage.run_pass()

    (entry,) = stage.ledger()
    assert tried.queue == "sqs:orders"
    assert (entry.park_reason, entry.queue) == ("UNKNOWN_ORIGIN", "lambda:orders")


@pytest.mark.parametrize("code", ["MissingParameter", "SomethingNew"])
def test_a_letter_that_its_queue_refuses_for_itself_keeps_no_other_back(code: str) -> None:
    """It is the oldest: were the circuit opened for it, it would be the canary of every trial."""
    stage = Stage(origin=Origin.SCHEDULER, targets=(Target.parse(QUEUE),))
    told = {"SCHEDULE_ARN": SCHEDULE, "TARGET_ARN": QUEUE}
    stage.put("letter-bad-0", "letter-bad-0", **told)
    refused = ClientError({"Error": {"Code": code, "Message": "no"}}, "SendMessageBatch")

    def script(call: Call) -> Mishap | None:
        bodies = [one.get("MessageBody") for one in call.request.get("Entries", ())]
        is_to_queue = str(call.request.get("QueueUrl", "")).endswith("/orders")
        return refuse(refused) if is_to_queue and "letter-bad-0" in bodies else None

    for number in range(300):
        if number % 10 == 1 and number < 120:
            name = f"letter-sqs-{number}"
            stage.put(name, name, **told)
        stage.run_pass(script)

    assert sum(stage.taken().values()) == 12
    assert not any(name.startswith("letter-sqs") for name in stage.resting(DLQ))
    reason = "UNDELIVERABLE" if code == "MissingParameter" else "GAVE_UP"
    assert stage.parked_for() == {"letter-bad-0": reason}


@pytest.mark.parametrize(
    "changes", [{"TopicArn": f"arn:aws:sns:{PLACE}:admin"}, {"Type": "SubscriptionConfirmation"}]
)
def test_an_only_endpoint_is_posted_nothing_of_others(changes: dict[str, str]) -> None:
    stage = Stage(origin=Origin.SNS, targets=(SUBSCRIBERS[-1],))
    stage.put(NAME, with_fields(envelope(NAME, SUBSCRIPTIONS[WEB]), **changes))

    stage.run_pass()

    assert stage.web.taken == []
    assert stage.parked_for() == {NAME: "UNKNOWN_ORIGIN"}


def test_a_letter_near_its_expiry_is_renewed_in_the_pass_whose_target_refuses_it() -> None:
    """The next pass may be minutes later; a letter that each pass tried, and that was refused each time, expired."""
    stage = Stage(origin=Origin.EVENTBRIDGE, targets=(Target.parse(FUNCTION),))
    for number in range(30):
        stage.put(f"letter-{number}", EVENT, RULE_ARN=RULE, TARGET_ARN=FUNCTION)
    stage.clock.advance(4 * 86_400 - 1_200)
    stage.lambdas.outage = "AccessDeniedException"

    _, report = stage.run_pass()

    assert report is not None
    assert (report.renewed, report.parked) == (30, {})
    assert stage.taken() == {}


def test_a_letter_of_nobody_is_not_renewed() -> None:
    """Its copy would have redrive metadata, and redrive metadata says whose it is."""
    stage = Stage(origin=Origin.EVENTBRIDGE, targets=(Target.parse(QUEUE),))
    stage.settings = replace(stage.settings, mode=Mode.PAUSED)
    stage.put(NAME, "somebody's own")
    stage.clock.advance(4 * 86_400 - 1_200)

    _, report = stage.run_pass()

    assert report is not None
    assert (report.renewed, report.parked) == (0, {"EXPIRING": 1})


def test_a_renewed_letter_goes_to_the_target_that_failed() -> None:
    stage = Stage(origin=Origin.EVENTBRIDGE, targets=(Target.parse(FUNCTION),))
    stage.put(NAME, EVENT, RULE_ARN=RULE, TARGET_ARN=FUNCTION)
    stage.clock.advance(4 * 86_400 - 1_200)
    stage.lambdas.outage = "AccessDeniedException"
    stage.run_pass()
    stage.lambdas.outage = None
    stage.clock.advance(4 * 86_400 - 1_200)

    _, report = stage.run_pass()

    assert report is not None
    assert (report.redriven, report.renewed) == (1, 0)
    assert list(stage.taken()) == [("lambda:orders", NAME)]
