"""What became of redriven letters, and what follows for circuit and letters."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.model.breaker import force, new_circuit
from smart_redriver.engine.model.circuit import State
from smart_redriver.engine.report import Outcome
from smart_redriver.engine.triage.ledger import Status
from smart_redriver.engine.triage.triage import TRIES_BEFORE_LAST_CHANCE
from tests.integration.conftest import Account
from tests.integration.letters import ATTRIBUTES, metadata_of, without_metadata
from tests.integration.wires import Client


def test_a_letter_that_was_processed_makes_its_batch_a_success(account: Account) -> None:
    account.dead_letters("a", "b")
    account.run_pass()
    account.advance(seconds=60)
    account.consumer_works()
    account.advance(minutes=10)

    report = account.run_pass()

    (verdict,) = report.verdicts
    assert (verdict["verdict"], verdict["size"], verdict["returned"]) == ("SUCCESS", 2, 0)
    assert report.circuit_after == "CLOSED"
    assert account.circuit is not None
    assert account.circuit.pending == ()
    assert account.run_pass().outcome is Outcome.IDLE


def test_a_return_is_counted_and_fails_its_batch(account: Account) -> None:
    (message_id,) = account.dead_letters("hello")
    account.run_pass()
    account.advance(seconds=60)
    account.consumer_fails()

    early = account.run_pass()
    account.live_messages_stay_away()
    report = account.run_pass()

    assert (early.returned, early.verdicts, early.held) == (1, [], {"AWAITING_VERDICT": 1})
    (verdict,) = report.verdicts
    assert (report.returned, verdict["returned"]) == (0, 1)
    assert verdict["verdict"] == "FAILURE"
    assert account.circuit is not None
    assert account.circuit.failure_count == 1
    assert report.redriven == 1
    entry = account.entry(message_id)
    assert entry is not None
    assert (entry.redrive_count, entry.strikes) == (2, 0)


def test_a_consumer_that_stays_down_opens_the_circuit_and_gets_only_canaries(
    account: Account,
) -> None:
    account.dead_letters("a", "b", "c")

    reports = []
    for _ in range(8):
        reports.append(account.run_pass())
        account.advance(minutes=16)
        account.consumer_fails()

    opened = next(n for n, report in enumerate(reports) if report.circuit_after != "CLOSED")
    assert all(report.redriven <= 1 for report in reports[opened + 1 :])
    assert sum(report.parked.total() for report in reports) == 0
    assert account.told("circuit.open")


def test_a_return_is_charged_once_though_it_is_received_again_while_it_waits_for_its_verdict(
    account: Account,
) -> None:
    account.dead_letters("a", "b", "c", "d")
    account.run_pass()
    account.advance(seconds=60)
    account.fail_only("d")

    early = account.run_pass()
    account.advance(minutes=10)
    due = account.run_pass()

    assert (early.returned, early.held) == (1, {"AWAITING_VERDICT": 1})
    assert due.examined == 1
    assert due.returned == 0
    assert [verdict["returned"] for verdict in due.verdicts] == [1]


def test_a_pill_that_fails_while_others_succeed_earns_a_strike_and_is_parked_at_the_limit(
    account: Account,
) -> None:
    settings = {"max_attempts": 1, "last_chance_seconds": 0}
    account.dead_letters("a", "b", "c", "poison")
    account.run_pass(**settings)
    account.advance(seconds=60)
    account.fail_only("poison")
    account.advance(minutes=10)

    report = account.run_pass(**settings)

    assert report.parked == {"MAX_ATTEMPTS": 1}
    assert [message["Body"] for message in account.parked()] == ["poison"]
    assert report.circuit_after == "CLOSED"


def test_a_suspect_is_tried_time_and_again_and_parked_only_after_its_last_chance(
    account: Account,
) -> None:
    last_chance = timedelta(hours=2)
    settings = {"max_attempts": 1, "last_chance_seconds": int(last_chance.total_seconds())}
    message_id, *_ = account.dead_letters("suspect", "a", "b", "c")
    account.run_pass(**settings)
    account.advance(seconds=60)
    account.fail_only("suspect")
    account.advance(minutes=10)

    tries = 0
    for _ in range(200):
        report = account.run_pass(**settings)
        tries += report.redriven
        if report.parked:
            break
        account.advance(minutes=1)
        account.receive()

    entry = account.entry(message_id)
    assert entry is not None
    assert entry.first_strike is not None
    assert entry.last_redrive is not None
    assert (entry.strikes, entry.park_reason) == (1, "MAX_ATTEMPTS")
    assert entry.last_redrive >= entry.first_strike + last_chance
    # An outage of what it needs may be over at any of them.
    assert 2 < tries <= TRIES_BEFORE_LAST_CHANCE + 1


def test_a_letter_that_met_no_working_consumer_for_its_time_is_given_up_unchanged(
    account: Account,
) -> None:
    """Alone in its queue: nobody can tell a poison pill from an outage, and no strike is given."""
    (message_id,) = account.dead_letters("poison", MessageAttributes=ATTRIBUTES)
    for _ in range(9):
        account.run_pass(give_up_seconds=3600)
        account.advance(minutes=8)
        account.consumer_fails()
        account.advance(minutes=3)

    (parked,) = account.parked()
    entry = account.entry(message_id)
    assert parked["Body"] == "poison"
    assert without_metadata(parked) == ATTRIBUTES
    assert metadata_of(parked).original_id == message_id
    assert account.counts(account.deployment.dlq_url) == (0, 0)
    assert entry is not None
    assert (entry.status, entry.park_reason, entry.strikes) == (Status.PARKED, "GAVE_UP", 0)


def test_a_long_backoff_is_held_in_the_dlq_and_its_time_remembered(account: Account) -> None:
    slow = {"base_delay_seconds": 900, "max_delay_seconds": 43_200}
    message_id, *_ = account.dead_letters("a", "b", "c", "d")
    account.run_pass()
    account.advance(seconds=60)
    account.fail_only("a")

    reports = []
    for _ in range(12):
        account.advance(minutes=3)
        reports.append(account.run_pass(**slow))

    held = [report for report in reports if report.held]
    entry = account.entry(message_id)
    assert [report.held for report in held] == [{"BACKOFF": 1}], "hidden until 900 s remain"
    assert sum(report.redriven for report in reports) == 1
    assert entry is not None
    assert (entry.redrive_count, entry.strikes) == (2, 1)


def test_an_open_circuit_that_cools_down_lets_nothing_through(account: Account) -> None:
    account.dead_letters("a")
    circuit = force(new_circuit("orders", Settings(), account.now()), State.OPEN, "", account.now())
    account.store.save_circuit(circuit)

    reports = [account.run_pass() for _ in range(2)]

    assert reports[1].outcome is Outcome.WAITING
    assert sum(report.redriven for report in reports) == 0
    account.advance(minutes=6)
    canary = account.run_pass()
    assert (canary.redriven, canary.circuit_after) == (1, "HALF_OPEN")


def test_an_order_given_while_a_pass_runs_stands(account: Account) -> None:
    """A person opens the circuit between the pass's first read and its first write."""
    account.dead_letters("a")

    class Overruled(Client):
        def receive_message(self, **request: Any) -> Any:
            if account.circuit is None:
                fresh = new_circuit("orders", Settings(), account.now())
                account.store.save_circuit(force(fresh, State.OPEN, "by hand", account.now()))
            return self._sqs.receive_message(**request)

    report = replace(account, sqs=Overruled(account.sqs)).run_pass()

    assert report.outcome is Outcome.LOST_RACE
    assert report.redriven == 0
    assert account.circuit is not None
    assert (account.circuit.state, account.circuit.reason) == (State.OPEN, "by hand")
    assert sum(account.counts(account.deployment.dlq_url)) == 1
