"""One DLQ with several sources: whose letter is whose, and which figure counts where they differ."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from redrive.aws.traffic import LiveTraffic

from redrive.aws.sqs import Outgoing, Queues
from redrive.core.letter import Letter, Trail, trail_attribute
from redrive.core.queue_facts import QueueFacts, Sources
from redrive.core.verdict import Traffic
from redrive.settings import Deployment

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
ARN = "arn:aws:sqs:eu-west-1:123456789012:"
SQS_URL = "https://sqs/1/"
DEPLOYMENT = Deployment(
    queue_name="orders",
    table_name="state",
    dlq_url=f"{SQS_URL}dlq",
    source_queue_url=f"{SQS_URL}orders",
    parking_lot_url=f"{SQS_URL}parking",
    further_source_urls=(f"{SQS_URL}refunds",),
)
ORDERS = QueueFacts(
    arn=f"{ARN}orders",
    visible=3,
    in_flight=0,
    delayed=0,
    visibility_timeout=timedelta(seconds=30),
    retention=timedelta(days=4),
    max_message_size=262_144,
    max_receive_count=5,
)
REFUNDS = replace(
    ORDERS,
    arn=f"{ARN}refunds",
    visible=4,
    visibility_timeout=timedelta(seconds=100),
    retention=timedelta(days=14),
    max_message_size=1_048_576,
    max_receive_count=2,
)


def trail_of(queue: str) -> Trail:
    return Trail(
        queue=queue, original_id="first", redrive_count=1, first_seen=NOW, batch=1, generation=0
    )


class RecordingSqs:
    """Accepts what is sent and remembers it; receives one message with the attributes given."""

    def __init__(self, system: dict[str, str] | None = None, trail: Trail | None = None) -> None:
        self.sent: dict[str, list[str]] = {}
        self._system = system or {}
        self._trail = trail

    def send_message_batch(self, *, QueueUrl: str, Entries: list[dict[str, Any]]) -> Any:  # noqa: N803
        self.sent.setdefault(QueueUrl, []).extend(entry["MessageBody"] for entry in Entries)
        return {
            "Successful": [
                {"Id": entry["Id"], "MessageId": f"new {entry['MessageBody']}"} for entry in Entries
            ]
        }

    def receive_message(self, **_: Any) -> Any:
        message = {
            "MessageId": "id",
            "ReceiptHandle": "handle",
            "Body": "body",
            "Attributes": {"SentTimestamp": "0", **self._system},
            "MessageAttributes": {"RedriveTrail": trail_attribute(self._trail)}
            if self._trail
            else {},
        }
        return {"Messages": [message]}


def received(trail: Trail, **system: str) -> Letter:
    queues = Queues(RecordingSqs(system, trail), DEPLOYMENT)  # type: ignore[arg-type]
    [letter] = queues.receive(1, hidden_for=timedelta())
    return letter


def outgoing(message_id: str, queue: str) -> Outgoing:
    letter = Letter(message_id=message_id, receipt_handle="", body=message_id, sent_at=NOW)
    return Outgoing(letter=letter, trail=trail_of(queue), size_limit=262_144)


def test_each_letter_goes_back_to_the_queue_that_its_trail_names() -> None:
    sqs = RecordingSqs()
    letters = [outgoing("a", "orders"), outgoing("b", "refunds"), outgoing("c", "orders")]

    sent = Queues(sqs, DEPLOYMENT).redrive(letters)  # type: ignore[arg-type]

    assert sqs.sent == {f"{SQS_URL}orders": ["a", "c"], f"{SQS_URL}refunds": ["b"]}
    assert sent.new_ids == {"a": "new a", "b": "new b", "c": "new c"}


@pytest.mark.parametrize(
    ("arn", "name"),
    [
        (f"{ARN}orders", "orders"),
        (f"{ARN}refunds", "refunds"),
        (f"{ARN}strangers", "orders"),
        (None, "orders"),
    ],
)
def test_a_letter_of_no_served_queue_goes_by_the_name_of_the_first(
    arn: str | None, name: str
) -> None:
    assert Queues(RecordingSqs(), DEPLOYMENT).name_of(arn) == name  # type: ignore[arg-type]


@pytest.mark.parametrize("queue", ["orders", "refunds"])
def test_a_trail_is_believed_on_a_letter_of_the_queue_that_it_names(queue: str) -> None:
    letter = received(trail_of(queue), DeadLetterQueueSourceArn=f"{ARN}{queue}")

    assert letter.original_id == "first"


def test_a_trail_that_was_copied_on_from_one_source_to_the_other_counts_as_absent() -> None:
    letter = received(trail_of("orders"), DeadLetterQueueSourceArn=f"{ARN}refunds")

    assert letter.trail is None
    assert letter.trail_fault == "the trail names another queue"


def test_a_letter_that_was_sent_and_not_moved_may_be_of_any_served_queue() -> None:
    assert received(trail_of("refunds")).original_id == "first"
    assert received(trail_of("strangers")).trail is None


def test_where_sources_differ_the_most_careful_figure_counts() -> None:
    sources = Sources((ORDERS, REFUNDS))

    assert sources.default_arn == ORDERS.arn
    assert sources.size_limits == {ORDERS.arn: 262_144, REFUNDS.arn: 1_048_576}
    assert sources.backlog == 7
    assert sources.retention == timedelta(days=14)
    assert sources.max_receive_count(3) == 5
    assert sources.time_to_fail(3) == timedelta(seconds=200)  # 2 x 100 s, over 5 x 30 s


def test_a_source_that_does_not_say_its_receives_is_taken_to_have_those_of_the_settings() -> None:
    sources = Sources((replace(REFUNDS, max_receive_count=None),))

    assert sources.max_receive_count(3) == 3
    assert sources.time_to_fail(3) == timedelta(seconds=300)


class RecordingCloudWatch:
    def __init__(self, **values: list[float]) -> None:
        self.queues: list[str] = []
        self._values = values

    def get_metric_data(self, *, MetricDataQueries: list[dict[str, Any]], **_: Any) -> Any:  # noqa: N803
        metrics = [query["MetricStat"]["Metric"] for query in MetricDataQueries]
        self.queues = [metric["Dimensions"][0]["Value"] for metric in metrics]
        return {
            "MetricDataResults": [
                {"Id": name, "Values": values} for name, values in self._values.items()
            ]
        }


def test_the_consumer_that_does_worst_speaks_for_all_sources() -> None:
    """Added up, the healthy consumer's 900 deletes would make poison of every letter of the other."""
    cloudwatch = RecordingCloudWatch(
        received0=[900], deleted0=[900], oldest0=[2], received1=[30], deleted1=[0], oldest1=[70]
    )

    traffic = LiveTraffic(cloudwatch).since(NOW, NOW, [ORDERS.arn, REFUNDS.arn])

    assert traffic == Traffic(received=30, deleted=0, oldest_age_seconds=70)
    assert cloudwatch.queues == ["orders"] * 3 + ["refunds"] * 3


def test_a_source_that_nobody_uses_does_not_testify() -> None:
    cloudwatch = RecordingCloudWatch(received0=[], deleted0=[], received1=[30], deleted1=[29])

    traffic = LiveTraffic(cloudwatch).since(NOW, NOW, [ORDERS.arn, REFUNDS.arn])

    assert (traffic.received, traffic.deleted) == (30, 29)
