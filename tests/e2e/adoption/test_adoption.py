"""Three dead-letter queues that existed before: one encrypted, one with two sources, one without room for metadata."""

import json
from typing import Any

import pytest

from tests.e2e.adoption.adopted import metadata_in
from tests.e2e.adoption.conftest import Town

NAMES = ("orders", "refunds", "mails")
each_queue = pytest.mark.parametrize("name", NAMES)


@each_queue
def test_every_message_is_processed_or_parked_and_none_is_lost(town: Town, name: str) -> None:
    summary = town.summaries[name]

    assert summary.problems == ()
    assert summary.sent == summary.processed + summary.parked
    assert (summary.lost, town.repeats[name]) == (0, 0)


@each_queue
def test_exactly_the_poison_pills_are_parked(town: Town, name: str) -> None:
    played = town.lives[name].played

    parked = {event.fields["original_id"] for event in played.events("letter.parked")}

    assert parked == played.poison
    assert town.summaries[name].parked_for == {"MAX_ATTEMPTS": len(parked)}
    assert not played.during_outage("letter.parked")


def test_a_queues_own_setting_counts_for_that_queue_alone(town: Town) -> None:
    entries = {
        name: [
            entry
            for original_id in life.played.poison
            if (entry := life.stack.state_item(f"MESSAGE#{original_id}"))
        ]
        for name, life in town.lives.items()
    }
    strikes = {name: [int(entry["Strikes"]) for entry in found] for name, found in entries.items()}
    tries = {
        name: [int(entry["RedriveCount"]) for entry in found] for name, found in entries.items()
    }

    # A suspect that nobody could be compared with is convicted by its tries, with fewer strikes than that.
    for name, allowed in (("refunds", 3), ("mails", 5)):
        assert max(strikes[name]) <= allowed <= min(tries[name])
    # Its consumer says that they fail of one cause: they share the tries that it takes.
    assert max(strikes["orders"]) <= 5 <= sum(strikes["orders"])


@each_queue
def test_the_circuit_opens_in_the_queues_own_outage_and_closes_after_it(
    town: Town, name: str
) -> None:
    played = town.lives[name].played
    assert played.outage_ended is not None

    assert played.during_outage("circuit.open")
    closed = [event.at for event in played.events("circuit.closed")]
    assert closed
    assert all(at > played.outage_ended for at in closed)
    assert played.snapshots[-1].circuit.state == "CLOSED"


@each_queue
def test_an_outage_elsewhere_leaves_circuit_and_window_alone(town: Town, name: str) -> None:
    own = town.lives[name].played
    assert own.outage_began is not None
    before = [seen.circuit for seen in own.snapshots if seen.at <= own.outage_began]
    since = [seen.circuit.state for seen in own.snapshots if seen.at > own.outage_began]

    assert {(circuit.state, circuit.window) for circuit in before} <= {
        ("CLOSED", None),
        ("CLOSED", 5),
    }
    recovered = since[since.index("CLOSED", since.index("OPEN")) :]
    assert set(recovered) == {"CLOSED"}


def test_queues_are_down_while_others_are_not_and_while_others_drain(town: Town) -> None:
    """What the test above relies on."""
    first, second, third = (town.lives[name].played for name in NAMES)
    moments = [
        first.outage_began,
        second.outage_began,
        first.outage_ended,
        third.outage_began,
        second.outage_ended,
        third.outage_ended,
    ]

    assert moments == sorted(moments)  # type: ignore[type-var]
    # All that time, another queue is down. How soon the first one is drained depends on what its consumer reports.
    redriven = [event.at for event in first.events("letter.redriven")]
    assert any(first.outage_ended < at < third.outage_ended for at in redriven)  # type: ignore[operator]


@each_queue
def test_no_pass_is_refused_anything_with_iam_enforced(town: Town, name: str) -> None:
    reports = [event.fields for event in town.lives[name].played.events("pass.finished")]

    assert any(report["redriven"] for report in reports)
    # A tick that meets an invocation leaves it alone.
    assert {report["outcome"] for report in reports} <= {"DONE", "IDLE", "WAITING", "LEASE_HELD"}
    assert not [fault for report in reports for fault in report["faults"]]


def test_each_letter_of_a_shared_dlq_goes_back_to_its_own_source(town: Town) -> None:
    """Each source has a consumer of its own, which remembers what it did."""
    life = town.lives["refunds"]
    redriven = {event.fields["original_id"] for event in life.played.events("letter.redriven")}
    sources = {
        original_id: str(entry["SourceQueueArn"]).rpartition(":")[2]
        for original_id in redriven - life.played.poison
        if (entry := life.stack.state_item(f"MESSAGE#{original_id}"))
    }

    assert set(sources.values()) == {
        town.shop[f"{name}SourceQueueUrl"].rpartition("/")[2] for name in ("Refunds", "Returns")
    }
    for name in ("Refunds", "Returns"):
        queue = town.shop[f"{name}SourceQueueUrl"].rpartition("/")[2]
        done = completed(town, town.shop[f"{name}SampleIdempotencyTableName"])
        assert {one for one, source in sources.items() if source == queue} <= done


def test_a_message_with_ten_attributes_is_redriven_and_parked_untouched(town: Town) -> None:
    life = town.lives["mails"]
    town.aws.pass_time(120)  # adding up has looked at them, which hides them for a while

    parked = life.stack.parked()

    assert set(parked) == life.played.poison
    for original_id, message in parked.items():
        sent = life.played.sent[original_id]
        assert metadata_in(message) is None
        assert message["Body"] == sent.body
        assert message["MessageAttributes"] == sent.attributes
        assert len(message["MessageAttributes"]) == 10


def test_the_parking_lot_of_an_encrypted_queue_has_its_key(town: Town) -> None:
    def key_of(url: str) -> Any:
        answer = town.aws.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
        return answer["Attributes"].get("KmsMasterKeyId")

    assert key_of(town.redriver["OrdersParkingLotQueueUrl"]) == town.shop["KeyArn"]
    assert key_of(town.redriver["MailsParkingLotQueueUrl"]) is None


def test_the_deployment_prints_what_owners_must_allow(town: Town) -> None:
    log = town.deploy_log

    for arn in ("KeyArn", "OrdersSourceArn", "ReturnsSourceArn", "MailsDeadLetterArn"):
        assert f'"{town.shop[arn]}": {{' in log


def test_no_log_holds_a_body_or_an_attribute_value(town: Town) -> None:
    logs = town.aws.client("logs")
    lives = town.lives.values()
    groups = {life.stack.redriver_log._group for life in lives}
    text = "\n".join(
        line["message"]
        for group in groups
        for page in logs.get_paginator("filter_log_events").paginate(logGroupName=group)
        for line in page["events"]
    )
    orders = [order for life in lives for order in life.played.sent.values()]

    assert text.count("letter.redriven") > 50
    for order in orders:
        assert order.body not in text
        assert json.dumps(order.body)[1:-1] not in text
    assert "brûlée" not in text
    assert "br\\u00fbl" not in text
    for value in ("12.50", '"vip"', "web"):
        assert f'"{value}"' not in text


def completed(town: Town, table: str) -> set[str]:
    """Original ids that a consumer remembers as done."""
    pages = town.aws.client("dynamodb").get_paginator("scan").paginate(TableName=table)
    return {
        json.loads(item["data"]["S"])["original_id"]
        for page in pages
        for item in page["Items"]
        if item["status"]["S"] == "COMPLETED"
    }
