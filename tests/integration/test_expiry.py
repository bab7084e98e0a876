"""Letters near their expiry get a new clock, whatever the circuit and people say."""

from redrive.core.breaker import new_circuit
from redrive.core.by_hand import force
from redrive.core.circuit import State
from redrive.core.ledger import Status
from redrive.settings import Settings
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
