"""Letters near their expiry get a new clock, whatever the circuit and people say."""

from datetime import datetime, timedelta

import pytest

from smart_redriver.engine.aws.queue_metrics import SourceBooks
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.model.books import Books, Minute
from smart_redriver.engine.model.breaker import force, new_circuit
from smart_redriver.engine.model.circuit import State
from smart_redriver.engine.passes import guard
from smart_redriver.engine.triage.ledger import Status
from tests.integration.conftest import Account
from tests.integration.letters import trail_of


def test_an_expiring_letter_is_parked_while_the_circuit_is_open_and_cools_down(
    account: Account,
) -> None:
    account.dead_letters("old")
    account.advance(days=12, hours=1)
    circuit = force(new_circuit("orders", Settings(), account.now()), State.OPEN, "", account.now())
    account.store.save_circuit(circuit)

    report = account.run_pass()

    assert (report.circuit_before, report.circuit_after) == ("OPEN", "OPEN")
    assert report.parked == {"EXPIRING": 1}
    assert [message["Body"] for message in account.parked()] == ["old"]


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
    assert trail_of(renewed).original_id == message_id
    assert entry is not None
    assert (entry.status, entry.park_reason) == (Status.PARKED, "UNDELIVERABLE")
    assert entry.current_id == renewed["MessageId"]


def test_a_letter_that_expires_while_the_re_driver_is_paused_is_parked(account: Account) -> None:
    account.dead_letters("old")
    account.advance(days=12, hours=1)

    report = account.run_pass(mode="paused")

    assert report.parked == {"EXPIRING": 1}
    assert [message["Body"] for message in account.parked()] == ["old"]


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


def test_an_age_that_no_pass_has_seen_is_told_and_brings_the_next_sweep(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The alarm on expiry looks at what the pass reports: so a letter that only SQS has seen pages, too."""
    monkeypatch.setattr(guard, "SWEEP_LIMIT", 2)
    monkeypatch.setattr(guard, "ROUND_SIZE", 2)
    account.dead_letters(*"abcde")
    age = timedelta(days=13).total_seconds()
    asked: list[str] = []

    def since(_books: object, start: datetime, _now: datetime, queue: str) -> Books:
        asked.append(queue)
        is_dlq = queue == "orders-dlq"
        return Books((Minute(at=start, oldest_age_seconds=age),)) if is_dlq else Books()

    monkeypatch.setattr(SourceBooks, "since", since)
    account.store.save_circuit(
        force(new_circuit("orders", Settings(), account.now()), State.OPEN, "", account.now())
    )

    report = account.run_pass()

    assert "orders-dlq" in asked
    assert report.oldest_letter_seconds == age
    assert report.least_seconds_to_expiry == timedelta(days=1).total_seconds()
