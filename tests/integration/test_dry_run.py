"""A dry run changes nothing that it can avoid changing: every call that it makes, and what it leaves behind.

Looking is not free on SQS: a receive hides a letter and raises its count. So a dry run looks at what the pass would
look at, and then releases it. That it says what the pass does is for `tests/engine/test_rehearsals.py` to show.
"""

import json
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from smart_redriver.engine.aws.metrics import LETTERS_PARKED, LETTERS_REDRIVEN, values
from smart_redriver.engine.passes.reporting import DECISIONS_LISTED
from smart_redriver.engine.report import Outcome
from tests.integration.conftest import FORTNIGHT, Account

READS = {"GetItem", "BatchGetItem", "GetQueueAttributes"}


@pytest.fixture
def calls(account: Account) -> Iterator[list[tuple[str, dict[str, Any]]]]:
    """Every request that the account's clients make from here on."""
    made: list[tuple[str, dict[str, Any]]] = []

    def note(model: Any, params: dict[str, Any], **_: Any) -> None:
        body = params["body"]
        made.append((model.name, json.loads(body) if body else {}))

    clients = (account.sqs, account.dynamodb)
    for client in clients:
        client.meta.events.register("before-call", note, unique_id="note")
    yield made
    for client in clients:
        client.meta.events.unregister("before-call", unique_id="note")


def test_it_reads_receives_and_releases_and_makes_no_other_call(
    account: Account, calls: list[tuple[str, dict[str, Any]]]
) -> None:
    account.dead_letters("a", "b", "c")
    calls.clear()

    account.run_pass(mode="dry_run")

    made = Counter(name for name, _ in calls)
    assert set(made) == READS | {"ReceiveMessage", "ChangeMessageVisibilityBatch"}
    assert made["ChangeMessageVisibilityBatch"] == 1
    released = [
        entry["VisibilityTimeout"]
        for name, request in calls
        if name == "ChangeMessageVisibilityBatch"
        for entry in request["Entries"]
    ]
    assert released == [0, 0, 0]


def test_an_empty_dlq_costs_three_reads(
    account: Account, calls: list[tuple[str, dict[str, Any]]]
) -> None:
    account.run_pass(mode="dry_run")

    assert sorted(name for name, _ in calls) == [
        "GetItem",
        "GetQueueAttributes",
        "GetQueueAttributes",
    ]


def test_it_counts_all_decisions_lists_a_hundred_and_releases_every_letter(
    account: Account,
) -> None:
    account.dead_letters(*(f"letter {number}" for number in range(120)))

    report = account.run_pass(mode="dry_run", initial_window=120)

    assert (report.redriven, report.examined) == (120, 120)
    assert len(report.decisions) == DECISIONS_LISTED == 100
    account.advance(seconds=1)  # moto shows what was released from the next second on
    assert account.counts(account.deployment.dlq_url) == (120, 0)


def test_it_leaves_letters_lease_circuit_and_ledger_as_they_were(account: Account) -> None:
    account.dead_letters("a", "b")
    account.run_pass()
    account.advance(minutes=5)  # their backoff
    account.consumer_fails()
    before = items(account)

    report = account.run_pass(mode="dry_run")

    assert report.outcome is Outcome.DRY_RUN
    assert items(account) == before
    account.advance(seconds=1)
    assert len(account.receive(account.deployment.dlq_url)) == len(report.decisions) > 0


def test_it_tells_of_letters_that_would_be_renewed_before_they_expire(account: Account) -> None:
    account.dead_letters("old", "too")
    account.advance(seconds=int(FORTNIGHT) - timedelta(minutes=30).total_seconds())

    report = account.run_pass(mode="dry_run", initial_window=1)

    assert (report.redriven, report.renewed, report.parked) == (1, 1, {})
    assert account.parked() == []
    assert sum(account.counts(account.deployment.dlq_url)) == 2


def test_it_tells_each_letter_by_its_ids_and_what_would_become_of_it(account: Account) -> None:
    (message_id,) = account.dead_letters("a")

    report = account.run_pass(mode="dry_run")

    assert (report.outcome, report.redriven) == (Outcome.DRY_RUN, 1)
    assert report.decisions == [
        {
            "message_id": message_id,
            "original_id": message_id,
            "decision": "redrive",
            "reason": "DUE",
        }
    ]
    assert account.told("letter.redriven") == []


def test_it_tells_of_verdicts_and_of_the_circuit_after_them(account: Account) -> None:
    account.dead_letters("a", "b")
    account.run_pass()
    account.advance(seconds=60)
    account.consumer_fails()
    account.live_messages_stay_away()
    before = items(account)

    report = account.run_pass(mode="dry_run", failure_threshold=1)

    assert [verdict["verdict"] for verdict in report.verdicts] == ["FAILURE"]
    assert (report.circuit_before, report.circuit_after) == ("CLOSED", "OPEN")
    assert items(account) == before


def test_its_report_and_metrics_tell_of_nothing_done(account: Account) -> None:
    account.dead_letters("a", "b")

    report = account.run_pass(mode="dry_run")

    told = report.to_json()
    assert (told["redriven"], told["parked"]) == (0, {})
    assert told["would"] == {"redriven": 2, "discarded": 0, "renewed": 0, "parked": {}}
    assert LETTERS_REDRIVEN not in values(report)["orders"]
    assert "would" not in account.run_pass().to_json()


def test_letters_that_it_would_park_ring_no_alarm(account: Account) -> None:
    account.dead_letters("old")
    account.advance(seconds=int(FORTNIGHT) - timedelta(minutes=30).total_seconds())

    report = account.run_pass(mode="dry_run", initial_window=1, canary_size=1)

    assert report.parked or report.redriven
    assert values(report)["orders"][LETTERS_PARKED] == [0]


@pytest.mark.parametrize("schedule_minutes", [5, 15])
def test_it_looks_no_oftener_than_its_schedule_says(
    account: Account, schedule_minutes: int
) -> None:
    """Each look counts as a receive, and SQS leaves a letter out of its age metric from the third on."""
    account.dead_letters("a", "b", "c", "d", "e", "f")

    report = account.run_pass(mode="dry_run", initial_window=1, schedule_minutes=schedule_minutes)

    assert report.held["NO_PERMIT"] or report.redriven
    assert report.look_again_seconds == 60 * schedule_minutes


def items(account: Account) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = account.dynamodb.scan(TableName=account.deployment.table_name)[
        "Items"
    ]
    return sorted(found, key=lambda item: str(item["PK"]))
