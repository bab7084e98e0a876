"""Letters near their expiry get a new clock, whatever the circuit and people say."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from smart_redriver.engine.aws.queue_metrics import SqsMetricsReader
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.model.breaker import force, new_circuit
from smart_redriver.engine.model.circuit import State
from smart_redriver.engine.model.queue_metrics import Minute, QueueMetrics
from smart_redriver.engine.passes import guard
from smart_redriver.engine.triage.ledger import Status
from tests.integration.conftest import Account
from tests.integration.letters import metadata_of

COLOUR = {"colour": {"DataType": "String", "StringValue": "red"}}
TWELVE_DAYS = timedelta(days=12).total_seconds()


def opened(account: Account, *, for_days: float = 0) -> None:
    now = account.now()
    circuit = force(new_circuit("orders", Settings(), now), State.OPEN, "", now)
    if for_days:
        circuit = replace(circuit, cools_until=now + timedelta(days=for_days))
    account.store.save_circuit(circuit)


def refusing_sends_to_the_dlq(account: Account, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """The DLQ is a person's, and its policy lets nobody send to it; all else is as it was."""
    refusing_sends_to(account, monkeypatch, account.deployment.dlq_url, code)


def refusing_sends_to(
    account: Account, monkeypatch: pytest.MonkeyPatch, url: str, code: str
) -> None:
    send = account.sqs.send_message_batch

    def refused(**request: Any) -> Any:
        if request["QueueUrl"] == url:
            raise ClientError({"Error": {"Code": code, "Message": "no"}}, "SendMessageBatch")
        return send(**request)

    monkeypatch.setattr(account.sqs, "send_message_batch", refused)


def test_an_expiring_letter_waits_on_with_a_new_clock_while_the_circuit_is_open(
    account: Account,
) -> None:
    (message_id,) = account.dead_letters("old", MessageAttributes=COLOUR)
    account.advance(days=12, hours=1)
    opened(account)

    report = account.run_pass()

    account.advance(days=12)  # long after the letter would have expired
    (renewed,) = account.receive(account.deployment.dlq_url)
    entry = account.entry(message_id)
    assert (report.circuit_before, report.circuit_after) == ("OPEN", "OPEN")
    assert (report.renewed, report.parked) == (1, {})
    assert (renewed["Body"], renewed["MessageAttributes"]["colour"]) == ("old", COLOUR["colour"])
    assert metadata_of(renewed).original_id == message_id
    assert entry is not None
    assert (entry.status, entry.current_id) == (Status.RETURNED, renewed["MessageId"])


def test_a_renewed_letter_pages_nobody(account: Account) -> None:
    account.dead_letters("old")
    account.advance(days=12, hours=1)
    opened(account)

    report = account.run_pass()

    assert report.least_seconds_to_expiry is not None
    assert report.least_seconds_to_expiry > TWELVE_DAYS


def test_a_renewed_letter_goes_back_as_what_it_was(account: Account) -> None:
    (message_id,) = account.dead_letters("old")
    account.advance(days=12, hours=1)
    account.run_pass(mode="paused")
    account.advance(minutes=2)

    report = account.run_pass()
    account.advance(minutes=3)  # its backoff

    (back,) = account.consumer_works()
    entry = account.entry(message_id)
    assert (report.redriven, back["Body"]) == (1, "old")
    assert metadata_of(back).redrive_count == 1
    assert entry is not None
    assert (entry.redrive_count, entry.strikes) == (1, 0)


def test_a_return_is_charged_once_however_often_its_letter_is_renewed(account: Account) -> None:
    account.dead_letters("old")
    account.run_pass()
    account.advance(minutes=1)
    account.consumer_fails()
    account.advance(days=12, hours=1)

    reports = [account.run_pass(mode="paused")]
    for _ in range(3):
        account.advance(minutes=5)
        reports.append(account.run_pass(initial_window=1, max_window=1))

    assert sum(one.renewed for one in reports) == 1
    assert sum(one.returned for one in reports) == 1


@pytest.mark.parametrize("code", ["AccessDenied", "KMS.DisabledException", "InvalidParameterValue"])
def test_an_expiring_letter_that_the_dlq_does_not_take_is_parked(
    account: Account, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    account.dead_letters(*"abc")
    account.advance(days=12, hours=1)
    opened(account)
    refusing_sends_to_the_dlq(account, monkeypatch, code)

    report = account.run_pass()

    assert (report.renewed, report.parked) == (0, {"EXPIRING": 3})
    assert sorted(one["Body"] for one in account.parked()) == [*"abc"]


def test_an_expiring_letter_stays_where_aws_fails_for_a_moment(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    account.dead_letters("old")
    account.advance(days=12, hours=1)
    with monkeypatch.context() as trouble:
        refusing_sends_to_the_dlq(account, trouble, "RequestThrottled")
        first = account.run_pass(mode="paused")
    account.advance(minutes=6)

    second = account.run_pass(mode="paused")

    assert (first.renewed, first.parked, second.renewed) == (0, {}, 1)
    assert account.parked() == []


@pytest.mark.parametrize("mode", ["dry_run", "automatic"])
def test_an_expiring_letter_that_was_not_renewed_pages(
    account: Account, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    account.dead_letters("old")
    account.advance(days=13, hours=20)
    opened(account)
    refusing_sends_to_the_dlq(account, monkeypatch, "RequestThrottled")

    report = account.run_pass(mode=mode)

    assert report.least_seconds_to_expiry is not None
    assert report.least_seconds_to_expiry < 5 * 3600


def test_a_letter_waits_since_it_died_however_often_it_is_renewed(account: Account) -> None:
    account.dead_letters("old")
    opened(account, for_days=20)
    account.advance(days=11)
    before = account.run_pass()
    account.advance(days=1, hours=1)
    renewed = account.run_pass()
    account.advance(days=1)

    after = account.run_pass()

    assert (before.renewed, renewed.renewed, after.renewed) == (0, 1, 0)
    waited = [one.oldest_waiting_seconds or 0 for one in (before, renewed, after)]
    assert waited == sorted(waited)
    assert waited[2] - waited[0] >= 2 * 86_400


def test_a_letter_of_a_queue_that_is_not_served_is_parked_for_that(account: Account) -> None:
    """SQS forgets where a renewed letter came from: a copy of it would go to this queue's consumer."""
    account.dead_letters_of("refunds", "of refunds")
    account.advance(days=12, hours=1)

    report = account.run_pass(mode="paused")

    assert (report.renewed, report.parked) == (0, {"UNKNOWN_SOURCE": 1})


def test_a_letter_that_can_not_carry_its_metadata_is_parked(account: Account) -> None:
    """Its copy would be anybody's once the ledger is lost."""
    ten = {f"n{n}": {"DataType": "Number", "StringValue": str(n)} for n in range(10)}
    account.dead_letters("old", MessageAttributes=ten)
    account.advance(days=12, hours=1)

    report = account.run_pass(mode="paused")

    assert (report.renewed, report.parked) == (0, {"EXPIRING": 1})


def test_in_a_dlq_that_keeps_letters_for_less_than_an_hour_they_are_parked(
    account: Account,
) -> None:
    """A renewed one could expire before the next pass meets it."""
    account.sqs.set_queue_attributes(
        QueueUrl=account.deployment.dlq_url, Attributes={"MessageRetentionPeriod": "3599"}
    )
    account.dead_letters("old")
    account.advance(minutes=50)

    report = account.run_pass(mode="paused")

    assert (report.renewed, report.parked) == (0, {"EXPIRING": 1})


def test_a_source_that_refuses_letters_does_not_have_the_dlq_looked_through_each_time(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    account.dead_letters(*(f"letter-{n}" for n in range(60)))
    account.run_pass(mode="paused")
    url = account.deployment.source_queue_url
    refusing_sends_to(account, monkeypatch, url, "RequestThrottled")

    examined = []
    for _ in range(3):
        examined.append(account.run_pass(initial_window=1, max_window=1).examined)
        account.advance(minutes=1)

    assert max(examined) < 10


def test_a_parked_letter_gets_a_new_clock_before_it_expires(account: Account) -> None:
    (message_id,) = account.dead_letters("x" * 2_000)
    account.sqs.set_queue_attributes(
        QueueUrl=account.deployment.source_queue_url, Attributes={"MaximumMessageSize": "1024"}
    )
    parking = account.run_pass()
    account.advance(days=12, hours=1)

    account.run_pass()

    account.advance(days=12)
    (renewed,) = account.parked()
    entry = account.entry(message_id)
    assert parking.parked == {"UNDELIVERABLE": 1}
    assert renewed["Body"] == "x" * 2_000
    assert metadata_of(renewed).original_id == message_id
    assert entry is not None
    assert (entry.status, entry.park_reason) == (Status.PARKED, "UNDELIVERABLE")
    assert entry.current_id == renewed["MessageId"]


def test_a_letter_that_expires_while_the_re_driver_is_paused_is_renewed(account: Account) -> None:
    account.dead_letters("old")
    account.advance(days=12, hours=1)

    report = account.run_pass(mode="paused")

    assert (report.renewed, report.parked) == (1, {})
    assert account.counts(account.deployment.dlq_url) == (0, 1)


def test_of_a_deep_dlq_a_sweep_looks_at_a_part_and_the_next_ones_at_the_rest(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQS promises no order: the first letters that it shows need not be the oldest."""
    monkeypatch.setattr(guard, "SWEEP_LIMIT", 2)
    monkeypatch.setattr(guard, "ROUND_SIZE", 2)
    account.dead_letters(*"abcde")
    account.store.save_circuit(
        force(new_circuit("orders", Settings(), account.now()), State.OPEN, "", account.now())
    )

    report = account.run_pass()

    assert report.examined == 2
    assert account.circuit is not None
    assert account.circuit.dlq_sweep_at is not None
    assert account.circuit.dlq_sweep_at <= account.now() + timedelta(minutes=30)


def test_a_dry_run_reads_as_many_letters_as_a_sweep_and_leaves_all(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "SWEEP_LIMIT", 4)
    monkeypatch.setattr(guard, "ROUND_SIZE", 2)
    account.dead_letters(*"abcdefghijklm")

    report = account.run_pass(mode="dry_run", initial_window="1")

    account.advance(seconds=1)

    assert (report.examined, len(report.decisions)) == (5, 1)
    assert account.counts(account.deployment.dlq_url) == (13, 0)


def test_an_age_that_no_pass_has_seen_is_told_and_brings_the_next_sweep(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The alarm on expiry looks at what the pass reports: so a letter that only SQS has seen pages, too."""
    monkeypatch.setattr(guard, "SWEEP_LIMIT", 2)
    monkeypatch.setattr(guard, "ROUND_SIZE", 2)
    account.dead_letters(*"abcde")
    age = timedelta(days=13).total_seconds()
    asked: list[str] = []

    def since(_metrics: object, start: datetime, _now: datetime, queue: str) -> QueueMetrics:
        asked.append(queue)
        is_dlq = queue == "orders-dlq"
        return (
            QueueMetrics((Minute(at=start, oldest_age_seconds=age),)) if is_dlq else QueueMetrics()
        )

    monkeypatch.setattr(SqsMetricsReader, "since", since)
    account.store.save_circuit(
        force(new_circuit("orders", Settings(), account.now()), State.OPEN, "", account.now())
    )

    report = account.run_pass()

    assert "orders-dlq" in asked
    assert report.oldest_letter_seconds == age
    assert report.least_seconds_to_expiry == timedelta(days=1).total_seconds()
