"""Which queues a deployment's adapters are over, and by what names."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from smart_redriver.engine.config.deployment import Deployment
from smart_redriver.engine.messages.letter import METADATA_ATTRIBUTE
from smart_redriver.engine.wiring import dead_letters_of, parking_lot_of, sources_of
from tests.unit.examples import some_metadata

DEPLOYMENT = Deployment(
    queue_name="orders",
    table_name="table",
    dlq_url="https://sqs/1/orders-dlq",
    source_queue_url="https://sqs/1/orders-8XJ2",
    parking_lot_url="https://sqs/1/parking-lot",
    further_source_urls=("https://sqs/1/invoices", "https://sqs/1/refunds"),
)


class OneMessage:
    """An SQS client whose queues hold one message with redrive metadata of this queue's."""

    def __init__(self, metadata_of: str) -> None:
        self.asked: list[str] = []
        metadata = {"DataType": "String", "StringValue": some_metadata(queue=metadata_of).encode()}
        self._message = {
            "MessageId": "m1",
            "ReceiptHandle": "h1",
            "Body": "hello",
            "Attributes": {"SentTimestamp": "0"},
            "MessageAttributes": {METADATA_ATTRIBUTE: metadata},
        }

    def receive_message(self, **request: Any) -> dict[str, Any]:
        self.asked.append(request["QueueUrl"])
        return {"Messages": [self._message]}


def test_the_first_source_goes_by_the_deployments_name_for_it_and_others_by_their_own() -> None:
    sources = sources_of(DEPLOYMENT, OneMessage("orders"))  # type: ignore[arg-type]

    assert tuple(source.name for source in sources) == ("orders", "invoices", "refunds")
    assert DEPLOYMENT.source_names == ("orders", "invoices", "refunds")


@pytest.mark.parametrize(
    ("of", "url"),
    [(dead_letters_of, DEPLOYMENT.dlq_url), (parking_lot_of, DEPLOYMENT.parking_lot_url)],
)
@pytest.mark.parametrize(("queue", "is_believed"), [("refunds", True), ("strangers", False)])
def test_letters_are_taken_out_of_their_queue_and_every_sources_metadata_is_believed(
    of: Any, url: str, queue: str, is_believed: bool
) -> None:
    sqs = OneMessage(queue)

    (letter,) = of(DEPLOYMENT, sqs).receive(1, hidden_for=timedelta())

    assert sqs.asked == [url]
    assert (letter.metadata is not None) is is_believed
