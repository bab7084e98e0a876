"""The queues of one deployment together, as the `redrive` command works with them."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from redrive.aws.sqs import Queues
from redrive.core.queue_facts import Sources
from redrive.settings import Deployment
from tests.unit.examples import QUEUE, a_letter, a_trail
from tests.unit.sqs_client import RecordingSqs, letters, outgoing

DEPLOYMENT = Deployment(
    queue_name=QUEUE,
    table_name="table",
    dlq_url="https://sqs/orders-dlq",
    source_queue_url="https://sqs/orders",
    parking_lot_url="https://sqs/parking-lot",
)

ORDERS_ARN, INVOICES_ARN = (f"arn:aws:sqs:eu-west-1:1:{name}" for name in ("orders", "invoices"))


@pytest.fixture
def sqs() -> RecordingSqs:
    return RecordingSqs()


@pytest.fixture
def queues(sqs: RecordingSqs) -> Queues:
    return Queues(sqs, DEPLOYMENT)


def test_a_parked_letter_goes_to_the_parking_lot_without_a_delay(
    sqs: RecordingSqs, queues: Queues
) -> None:
    queues.park([outgoing()])

    ((_, request),) = sqs.calls
    assert request["QueueUrl"] == "https://sqs/parking-lot"
    assert "DelaySeconds" not in request["Entries"][0]


# Several source queues that share the DLQ.

SHARED = replace(DEPLOYMENT, further_source_urls=("https://sqs/invoices",))


def test_each_letter_goes_back_to_the_source_queue_that_its_trail_names(sqs: RecordingSqs) -> None:
    letters = [
        outgoing(a_letter(message_id="o", body="order"), trail=a_trail(queue="orders")),
        outgoing(a_letter(message_id="i", body="invoice"), trail=a_trail(queue="invoices")),
        outgoing(a_letter(message_id="p", body="order 2"), trail=a_trail(queue="orders")),
    ]

    sent = Queues(sqs, SHARED).redrive(letters)

    went = {
        request["QueueUrl"]: [entry["MessageBody"] for entry in request["Entries"]]
        for _, request in sqs.calls
    }
    assert went == {
        "https://sqs/orders": ["order", "order 2"],
        "https://sqs/invoices": ["invoice"],
    }
    assert sent.new_ids == {"o": "new order", "i": "new invoice", "p": "new order 2"}


@pytest.mark.parametrize(
    ("arn", "name"),
    [
        (INVOICES_ARN, "invoices"),
        (ORDERS_ARN, "orders"),
        ("arn:aws:sqs:eu-west-1:1:unknown", "orders"),
        (None, "orders"),
    ],
)
def test_a_letter_of_no_served_source_goes_by_the_name_of_the_first(
    sqs: RecordingSqs, arn: str | None, name: str
) -> None:
    assert Queues(sqs, SHARED).name_of(arn) == name


def test_of_several_sources_the_most_careful_figure_counts() -> None:
    facts = facts_of()
    slow = replace(
        facts,
        arn="arn:slow",
        visible=5,
        max_receive_count=None,
        visibility_timeout=timedelta(minutes=5),
        retention=timedelta(days=2),
        max_message_size=1_024,
    )

    sources = Sources((facts, slow))

    assert (sources.arns, sources.default_arn) == (["arn:orders", "arn:slow"], "arn:orders")
    assert sources.size_limits == {"arn:orders": 262_144, "arn:slow": 1_024}
    assert sources.backlog == 8
    assert sources.retention == timedelta(days=14)
    assert sources.max_receive_count(otherwise=9) == 9
    assert sources.time_to_fail(otherwise=3) == timedelta(minutes=15)


# The facts of each.


FACTS = {
    "QueueArn": "arn:orders",
    "ApproximateNumberOfMessages": "3",
    "ApproximateNumberOfMessagesNotVisible": "2",
    "ApproximateNumberOfMessagesDelayed": "1",
    "VisibilityTimeout": "30",
    "MessageRetentionPeriod": "1209600",
    "MaximumMessageSize": "262144",
    "RedrivePolicy": '{"deadLetterTargetArn":"arn:orders-dlq","maxReceiveCount":"5"}',
}


def facts_of(**changes: str | None) -> Any:
    attributes = {name: value for name, value in (FACTS | changes).items() if value is not None}
    sqs = RecordingSqs(get_queue_attributes={"Attributes": attributes})
    return Queues(sqs, DEPLOYMENT).dead_letter_queue()


@pytest.mark.parametrize(
    ("call", "url"),
    [
        (Queues.dead_letter_queue, "https://sqs/orders-dlq"),
        (Queues.source_queues, "https://sqs/orders"),
        (Queues.parking_lot, "https://sqs/parking-lot"),
    ],
)
def test_each_queue_is_asked_by_its_own_url(call: Callable[[Queues], Any], url: str) -> None:
    sqs = RecordingSqs(get_queue_attributes={"Attributes": FACTS})

    call(Queues(sqs, DEPLOYMENT))

    assert sqs.calls[0][1]["QueueUrl"] == url


def test_letters_are_taken_from_the_dlq_or_where_it_says_so_from_the_parking_lot() -> None:
    for queues, url in (
        (Queues, "orders-dlq"),
        (lambda *of: Queues(*of).out_of_parking_lot(), "parking-lot"),
    ):
        sqs = RecordingSqs()
        one = queues(sqs, DEPLOYMENT)

        one.receive(1, hidden_for=timedelta())
        one.delete(letters(1))
        one.hide([(letter, timedelta()) for letter in letters(1)])

        assert {request["QueueUrl"] for _, request in sqs.calls} == {f"https://sqs/{url}"}
