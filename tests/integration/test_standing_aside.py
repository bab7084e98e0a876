"""When a pass leaves the letters alone."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.model.breaker import new_circuit, order
from smart_redriver.engine.model.circuit import Lease, Orders
from smart_redriver.engine.report import Outcome
from tests.integration.conftest import Account
from tests.integration.wires import Client


def test_a_pause_that_a_person_ordered_ends_by_itself(account: Account) -> None:
    account.dead_letters("a")
    fresh = new_circuit("orders", Settings(), account.now())
    orders = Orders(
        is_paused=True, paused_until=account.now() + timedelta(minutes=9), by="ann", reason="deploy"
    )
    account.store.save_circuit(order(fresh, orders, account.now()))

    reports = [account.run_pass() for _ in range(2)]
    account.advance(minutes=10)
    after = account.run_pass()

    assert {report.outcome for report in reports} == {Outcome.PAUSED}
    assert "ann" in reports[1].reason
    assert sum(report.redriven for report in reports) == 0
    assert after.redriven == 1


def test_a_paused_pass_redrives_nothing_and_says_so(account: Account) -> None:
    account.dead_letters("a")

    reports = [account.run_pass(mode="paused") for _ in range(2)]

    assert {report.outcome for report in reports} == {Outcome.PAUSED}
    assert sum(report.redriven + report.parked.total() for report in reports) == 0
    assert sum(account.counts(account.deployment.dlq_url)) == 1
    assert account.counts(account.deployment.source_queue_url) == (0, 0)


def test_an_empty_dlq_costs_no_lease_and_leaves_no_circuit(account: Account) -> None:
    report = account.run_pass()

    assert report.outcome is Outcome.IDLE
    assert account.dynamodb.scan(TableName=account.deployment.table_name)["Items"] == []


def test_a_pass_stands_aside_while_a_native_move_runs(account: Account) -> None:
    account.dead_letters("a")
    account.moves.append({"Status": "RUNNING"})

    report = account.run_pass()

    assert report.outcome is Outcome.MOVE_TASK_RUNNING
    assert report.examined == 0
    account.moves.clear()
    assert account.run_pass().redriven == 1


def test_a_pass_leaves_the_queue_to_the_holder_of_the_lease_and_gives_its_own_back(
    account: Account,
) -> None:
    account.dead_letters("a")
    held = Lease(owner="another", expires_at=account.now() + timedelta(minutes=4))
    account.store.acquire_lease(held, account.now())

    refused = account.run_pass()
    account.store.release_lease(held)
    granted = account.run_pass()

    assert (refused.outcome, refused.examined) == (Outcome.LEASE_HELD, 0)
    assert granted.redriven == 1
    assert account.store.acquire_lease(held, account.now())


def test_a_pass_that_runs_out_of_time_stops_by_itself_and_loses_nothing(account: Account) -> None:
    account.dead_letters("a")

    class Slow(Client):
        def receive_message(self, **request: Any) -> Any:
            account.advance(minutes=4)
            return self._sqs.receive_message(**request)

    report = replace(account, sqs=Slow(account.sqs)).run_pass()

    assert (report.outcome, report.redriven) == (Outcome.OUT_OF_TIME, 0)
    account.advance(minutes=1)
    assert account.run_pass().redriven == 1
