"""An invocation of several passes: one window after the other within one invocation, while the consumer reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from botocore.exceptions import ClientError

from fakes.faults import Wire
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.model.breaker import order
from smart_redriver.engine.model.circuit import Orders
from smart_redriver.engine.model.rate import AHEAD, LOOKS_EVERY
from smart_redriver.engine.passes.redrive_pass import STOPPING_TIME, run_invocation
from smart_redriver.engine.passes.reporting import LISTENING_SECONDS
from smart_redriver.engine.report import Outcome, Report
from smart_redriver.engine.wiring import Queues, make_tools
from tests.integration.conftest import PASS_TIME, Account
from tests.integration.reporting import consumer_reports, give_outcome_queue, send_report, unread
from tests.integration.test_handler import Function
from tests.integration.wires import Client

#: Enough for several windows; moto counts all messages of a queue for each that it hands out.
LETTERS = 60
SETTINGS = Settings(initial_window=5)


@pytest.fixture
def reporting(account: Account) -> Account:
    """An account whose consumer is known to report, and forty letters of an outage that is over."""
    give_outcome_queue(account)
    account.dead_letters("first")
    account.run_pass()
    account.advance(seconds=60)
    consumer_reports(account)
    account.run_pass()
    account.dead_letters(*[f"letter-{n}" for n in range(LETTERS)])
    account.advance(minutes=5)
    return account


class Invocation:
    """One invocation over a watched wire; in its pauses the consumer works, or something else happens."""

    def __init__(
        self,
        account: Account,
        meanwhile: Callable[[], object] | None = None,
        *,
        time: timedelta = PASS_TIME,
    ) -> None:
        self._account = account
        self._meanwhile = meanwhile or (lambda: consumer_reports(account))
        self.table, self.pauses = Wire(), 0
        deadline = account.now() + time
        tools = make_tools(
            Queues(account.deployment, sqs=account.sqs, cloudwatch=account.cloudwatch),
            account.deployment,
            dynamodb=self.table.to(account.dynamodb),
            journal=lambda event, /, **fields: account.events.append((event, fields)),
            clock=account.now,
            rng=Random(0),
            owner="the invocation",
        )
        self.reports: list[Report] = list(
            run_invocation(tools, SETTINGS, deadline=deadline, pause=self._pause)
        )

    def _pause(self, seconds: float) -> None:
        self.pauses += 1
        self._account.advance(seconds=seconds)
        self._meanwhile()

    def calls(self, operation: str) -> list[Any]:
        """The calls of one operation that are about the lease."""
        return [
            call
            for call in self.table.calls
            if call.operation == operation and "LEASE#" in str(call.request)
        ]


def test_a_healthy_consumer_gets_all_its_letters_back_within_one_visit(reporting: Account) -> None:
    invocation = Invocation(reporting)

    assert sum(one.redriven for one in invocation.reports) == LETTERS
    assert sum((one.heard for one in invocation.reports), Counter()) == Counter(succeeded=LETTERS)
    assert len(invocation.reports) == invocation.pauses + 1 > 3
    verdicts = [one["verdict"] for report in invocation.reports for one in report.verdicts]
    assert set(verdicts) == {"SUCCESS"}


def test_the_lease_is_taken_once_and_given_back_at_the_end(reporting: Account) -> None:
    invocation = Invocation(reporting)

    assert len(invocation.reports) > 1
    assert (len(invocation.calls("PutItem")), len(invocation.calls("DeleteItem"))) == (1, 1)
    assert reporting.run_pass().outcome is not Outcome.LEASE_HELD


def test_a_lease_that_cannot_be_given_back_is_in_the_last_report(reporting: Account) -> None:
    """The next passes find it taken for minutes, and say that by then no pass may be at work."""

    class KeepsTheLease(Client):
        def delete_item(self, **_: Any) -> Any:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "DeleteItem")

    invocation = Invocation(replace(reporting, dynamodb=KeepsTheLease(reporting.dynamodb)))
    reporting.sqs.send_message(QueueUrl=reporting.deployment.dlq_url, MessageBody="b")
    held = reporting.run_pass()

    assert [one.faults for one in invocation.reports[:-1]] == [Counter()] * (
        len(invocation.reports) - 1
    )
    assert invocation.reports[-1].faults == {"DeleteItem:AccessDenied": 1}
    assert held.outcome is Outcome.LEASE_HELD
    assert "or ended without giving its lease back" in held.reason


def test_nobody_else_gets_the_lease_between_its_passes(reporting: Account) -> None:
    others: list[Report] = []

    def somebody_else() -> None:
        consumer_reports(reporting)
        others.append(reporting.run_pass())
        reporting.advance(seconds=1)  # and what it has released can be received

    invocation = Invocation(reporting, somebody_else)

    assert {one.outcome for one in others} == {Outcome.LEASE_HELD}
    assert sum(one.redriven for one in invocation.reports) == LETTERS


def test_a_visit_ends_before_its_deadline_and_the_next_goes_on(reporting: Account) -> None:
    began, time = reporting.now(), timedelta(seconds=10)

    first = Invocation(reporting, time=time)
    took = reporting.now() - began
    second = Invocation(reporting)

    assert took < time + STOPPING_TIME
    assert first.reports[-1].look_again_seconds <= LOOKS_EVERY.total_seconds()
    assert 0 < sum(one.redriven for one in first.reports) < LETTERS
    assert sum(one.redriven for one in [*first.reports, *second.reports]) == LETTERS


def test_a_visit_ends_when_the_consumer_reports_no_more(reporting: Account) -> None:
    invocation = Invocation(reporting, meanwhile=lambda: None)

    assert invocation.reports[0].redriven > 0
    assert invocation.reports[-1].look_again_seconds == 60
    assert invocation.pauses <= (60 + AHEAD.total_seconds()) / LISTENING_SECONDS + 1


def test_a_consumer_that_never_reported_gets_one_pass_a_visit(account: Account) -> None:
    give_outcome_queue(account)
    account.dead_letters(*[f"letter-{n}" for n in range(LETTERS)])

    invocation = Invocation(account)

    assert (len(invocation.reports), invocation.pauses) == (1, 0)


def test_an_order_to_pause_that_is_given_during_a_visit_holds_from_its_next_pass_on(
    reporting: Account,
) -> None:
    def pause() -> None:
        circuit = reporting.circuit
        assert circuit is not None
        orders = Orders(is_paused=True, by="a person")
        reporting.store.save_circuit(order(circuit, orders, reporting.now()))

    invocation = Invocation(reporting, pause)

    assert [one.outcome for one in invocation.reports][1] is Outcome.PAUSED
    assert len(invocation.reports) == 2


# Through the handler.


def test_the_handlers_answer_is_the_report_of_all_passes_together(
    reporting: Account, environment: pytest.MonkeyPatch
) -> None:
    function = Function(reporting, environment, INITIAL_WINDOW="5")
    environment.setattr(
        "redrive.handler.time.sleep",
        lambda seconds: (reporting.advance(seconds=seconds), consumer_reports(reporting)),  # type: ignore[func-returns-value]
    )

    answer = function.invoke({})

    passes = [one for one in function.log if one["message"] == "pass.finished"]
    assert len(passes) > 3
    assert answer["redriven"] == sum(one["redriven"] for one in passes) == LETTERS
    assert answer["heard"] == {"succeeded": LETTERS}
    assert len(answer["verdicts"]) == sum(len(one["verdicts"]) for one in passes)
    assert answer["outcome"] == passes[-1]["outcome"]


def test_reports_that_never_end_keep_no_visit_from_its_end(reporting: Account) -> None:
    def flood() -> None:
        for _ in range(5):
            send_report(reporting, {"version": 1, "outcomes": []})

    invocation = Invocation(reporting, flood)

    assert sum(one.redriven for one in invocation.reports) > 0
    assert invocation.reports[-1].look_again_seconds >= 60
    assert unread(reporting) == (0, 0)
