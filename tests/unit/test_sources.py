"""What letters go back to, and which letters are whose."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from smart_redriver.engine.aws.queues import SqsSource, owner_of
from smart_redriver.engine.aws.sqs import SqsQueue
from smart_redriver.engine.messages.letter import RedriveMetadata
from smart_redriver.engine.messages.queue_facts import QueueFacts
from tests.unit.examples import some_metadata
from tests.unit.sqs_client import RecordingSqs, numbered

ARN = "arn:aws:sqs:eu-west-1:123456789012:"
COUNTS = ("", "NotVisible", "Delayed")
FACTS = QueueFacts(
    arn=f"{ARN}orders",
    visible=3,
    in_flight=0,
    delayed=0,
    visibility_timeout=timedelta(seconds=30),
    retention=timedelta(days=4),
    max_message_size=262_144,
    max_receive_count=5,
)


def source(name: str, sqs: RecordingSqs | None = None) -> SqsSource:
    queue = SqsQueue(sqs or RecordingSqs(), f"https://sqs/1/{name}")
    return SqsSource(queue, name, "orders-dlq")


ORDERS, REFUNDS = source("orders"), source("refunds")


def test_letters_are_delivered_to_the_sources_own_queue() -> None:
    sqs = RecordingSqs()

    sent = source("refunds", sqs).deliver(numbered(2))

    assert [request["QueueUrl"] for _, request in sqs.calls] == ["https://sqs/1/refunds"]
    assert sent.new_ids == {"m0": "new b0", "m1": "new b1"}


def policy(dlq: str | None) -> dict[str, str]:
    names = json.dumps({"deadLetterTargetArn": f"{ARN}{dlq}", "maxReceiveCount": "5"})
    counts = dict.fromkeys((f"ApproximateNumberOfMessages{one}" for one in COUNTS), "0")
    times = {"VisibilityTimeout": "30", "MessageRetentionPeriod": "345600"}
    told = {"QueueArn": f"{ARN}orders", "MaximumMessageSize": "262144", **counts, **times}
    return told | ({"RedrivePolicy": names} if dlq else {})


def test_a_queue_whose_failed_messages_go_elsewhere_refuses_letters() -> None:
    sqs = RecordingSqs(get_queue_attributes={"Attributes": policy("payments-dlq")})
    orders = source("orders", sqs)
    orders.facts()

    sent = orders.deliver(numbered(2))

    assert sent.new_ids == {}
    assert [(one.key, one.code) for one in sent.faults] == [
        ("m0", "RedrivePolicyLeadsElsewhere"),
        ("m1", "RedrivePolicyLeadsElsewhere"),
    ]
    assert (
        sent.faults[0].detail == "failed messages of orders go to payments-dlq, not to orders-dlq"
    )
    assert sent.faults[0].is_refusal
    assert [name for name, _ in sqs.calls] == ["get_queue_attributes"]


@pytest.mark.parametrize("dlq", ["orders-dlq", None])
def test_a_queue_whose_failed_messages_go_to_the_dlq_or_stay_takes_letters(dlq: str | None) -> None:
    orders = source("orders", RecordingSqs(get_queue_attributes={"Attributes": policy(dlq)}))
    orders.facts()

    assert orders.deliver(numbered(2)).new_ids == {"m0": "new b0", "m1": "new b1"}


def test_a_message_has_failed_when_every_receive_has_timed_out() -> None:
    assert ORDERS.time_to_fail(FACTS, 3) == timedelta(seconds=150)


def test_a_queue_that_does_not_say_its_receives_is_taken_to_have_those_of_the_settings() -> None:
    assert ORDERS.time_to_fail(replace(FACTS, max_receive_count=None), 3) == timedelta(seconds=90)


@pytest.mark.parametrize(
    ("moved_from", "sent_to", "owner"),
    [
        ("orders", None, ORDERS),
        ("refunds", None, REFUNDS),
        (None, "refunds", REFUNDS),
        ("refunds", "orders", REFUNDS),
        (None, None, ORDERS),
        (None, "closed-last-year", ORDERS),
        ("strangers", None, None),
        ("strangers", "orders", None),
    ],
)
def test_a_letter_belongs_to_whom_sqs_says_else_its_metadata_else_to_the_first(
    moved_from: str | None, sent_to: str | None, owner: SqsSource | None
) -> None:
    arn = f"{ARN}{moved_from}" if moved_from else None
    metadata: RedriveMetadata | None = some_metadata(queue=sent_to) if sent_to else None

    assert owner_of((ORDERS, REFUNDS), source_arn=arn, metadata=metadata) is owner
