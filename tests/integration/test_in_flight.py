"""SQS lets 120,000 messages be in flight. Beyond that a long poll is empty without an error,
and nothing may follow from it.
"""

from datetime import timedelta
from typing import Any, cast

import pytest

from smart_redriver.engine.aws.sqs import SqsQueue
from smart_redriver.engine.messages import queue_facts
from smart_redriver.engine.passes.apply import Holding
from smart_redriver.engine.passes.ports import DeadLetters, Ledger
from smart_redriver.engine.triage.decision import Hold, HoldReason
from tests.integration.conftest import Account
from tests.unit.examples import NOW
from tests.unit.situations import a_case


def test_an_empty_answer_at_the_limit_is_not_the_end_of_the_dlq(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    account.dead_letters(*"abcde")
    monkeypatch.setattr(queue_facts, "MANY_IN_FLIGHT", 2)
    account.sqs.receive_message(
        QueueUrl=account.deployment.dlq_url, MaxNumberOfMessages=2, VisibilityTimeout=43_200
    )
    monkeypatch.setattr(SqsQueue, "receive", lambda *_, **__: [])

    account.run_pass()
    account.advance(minutes=10)
    report = account.run_pass()

    assert report.examined == 0
    assert report.oldest_waiting_seconds == 600  # three letters wait, though nobody saw them
    assert account.told("dlq.seems_empty") == [{"in_flight": 2}] * 2
    assert account.circuit is not None
    assert account.circuit.dlq_sweep_at is not None
    assert account.circuit.dlq_sweep_at <= account.now() + timedelta(minutes=30)


def test_an_empty_answer_far_from_the_limit_is_the_end(account: Account) -> None:
    account.dead_letters("a")
    hidden: Any = account.receive(account.deployment.dlq_url)

    account.run_pass()

    assert hidden
    assert account.told("dlq.seems_empty") == []


class Letters:
    """A queue that notes what it is asked to hide."""

    def __init__(self) -> None:
        self.hidden: list[timedelta] = []

    def hide(self, letters: Any) -> list[Any]:
        self.hidden += [time for _, time in letters]
        return []


def test_no_more_letters_are_hidden_for_later_than_leave_room_below_the_limit() -> None:
    letters, hour = Letters(), timedelta(hours=1)
    here = Holding(
        cast("DeadLetters", letters), cast("Ledger", None), lambda _: "orders", room_to_hide=3
    )
    holds = [
        (a_case(), Hold(reason=HoldReason.BACKOFF, until=NOW + hour, strikes=0)) for _ in range(2)
    ]

    first = here.hold(holds, None, NOW)
    second = here.hold(holds, None, NOW)
    third = here.hold(holds, None, NOW)

    assert letters.hidden == [hour] * 3
    assert first.held == second.held == third.held == {"BACKOFF": 2}


def test_the_room_to_hide_is_half_of_what_sqs_allows_less_what_is_in_flight() -> None:
    def facts(in_flight: int) -> queue_facts.QueueFacts:
        return queue_facts.QueueFacts(
            arn="arn:aws:sqs:eu-west-1:111122223333:dlq",
            visible=30_000,
            in_flight=in_flight,
            delayed=0,
            visibility_timeout=timedelta(seconds=30),
            retention=timedelta(days=14),
            max_message_size=1_048_576,
        )

    rooms = [facts(in_flight).room_to_hide for in_flight in (0, 59_000, 60_000, 120_000)]
    seeming = [facts(in_flight).can_seem_empty for in_flight in (60_000, 99_999, 100_000)]

    assert rooms == [60_000, 1_000, 0, 0]
    assert seeming == [False, False, True]
