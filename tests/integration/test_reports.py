"""A pass that reads what the consumer reports: ledger, verdicts, circuit and the reports themselves."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from fakes.faults import Wire, on, refuse
from smart_redriver.engine.aws.items import failure_key
from smart_redriver.engine.model.circuit import State
from smart_redriver.engine.report import Outcome
from smart_redriver.engine.reports.outcomes import Result
from smart_redriver.engine.triage.ledger import Status
from tests.integration.conftest import Account, Message
from tests.integration.reporting import (
    consumer_reports,
    declines,
    fails_and_reports,
    give_outcome_queue,
    outcome_of,
    report,
    succeeds,
    unread,
)

FIVE = ["one", "two", "three", "four", "five"]


@pytest.fixture
def reporting(account: Account) -> Account:
    """An account whose consumer reports."""
    give_outcome_queue(account)
    return account


def redriven(account: Account, *bodies: str) -> list[str]:
    """Letters that have been redriven and can be received now; their original ids. No producer sends any more."""
    ids = account.dead_letters(*bodies)
    account.advance(minutes=20)
    assert account.run_pass(initial_window=len(bodies)).redriven == len(bodies)
    account.advance(seconds=60)
    return ids


def test_a_batch_whose_successes_are_reported_is_judged_at_the_next_look(
    reporting: Account,
) -> None:
    ids = redriven(reporting, *FIVE)
    consumer_reports(reporting)

    told = reporting.run_pass()

    assert [one["verdict"] for one in told.verdicts] == ["SUCCESS"]
    assert told.heard == Counter(succeeded=5)
    assert {reporting.entry(one).status for one in ids} == {Status.SUCCEEDED}
    assert unread(reporting) == (0, 0)
    assert reporting.told("outcomes.heard") == [{"succeeded": 5}]


def test_a_batch_whose_failures_are_reported_is_judged_before_its_letters_are_back(
    reporting: Account,
) -> None:
    redriven(reporting, *FIVE)
    consumer_reports(reporting, declines)

    told = reporting.run_pass()

    assert [one["verdict"] for one in told.verdicts] == ["FAILURE"]
    assert told.heard == Counter(failed=5)
    assert told.returned == 0


def test_how_a_letter_failed_for_good_is_kept_with_its_traceback(reporting: Account) -> None:
    (letter,) = redriven(reporting, "hello")
    fails_and_reports(reporting)

    reporting.run_pass()

    kept = reporting.store.load_failure(letter)
    assert kept is not None
    assert (kept.outcome.error_class, kept.outcome.traceback) == (
        "PaymentDeclined",
        'File "pay.py", line 7',
    )
    assert (kept.outcome.receive_count, kept.outcome.original_id) == (3, letter)
    assert kept.outcome.consumer.log_group == "/aws/lambda/orders-consumer"
    entry = reporting.entry(letter)
    assert entry is not None
    assert (entry.cause, entry.error) == ("PaymentDeclined", "PaymentDeclined: no funds")


def test_why_a_letter_died_at_its_first_visit_is_known_when_it_is_parked(
    reporting: Account,
) -> None:
    letter = reporting.send("never")
    fails_and_reports(reporting, lambda _: declines(_) | {"permanent": True})

    told = reporting.run_pass()

    assert told.parked == Counter(PERMANENT=1)
    entry = reporting.entry(letter)
    assert entry is not None
    assert (entry.park_reason, entry.error) == ("PERMANENT", "PaymentDeclined: no funds")
    assert [one["Body"] for one in reporting.parked()] == ["never"]


def test_letters_that_their_consumer_parked_are_not_letters_any_more(reporting: Account) -> None:
    redriven(reporting, *FIVE)
    consumer_reports(
        reporting,
        lambda one: {
            "result": Result.PERMANENT,
            "permanent": True,
            "parked_id": f"p-{one['Body']}",
        },
    )

    told = reporting.run_pass()

    assert told.heard == Counter(permanent=5)
    assert [one["verdict"] for one in told.verdicts] == ["FAILURE"]


def test_a_letter_that_its_consumer_claims_to_have_parked_and_that_comes_back_is_the_same_letter(
    reporting: Account,
) -> None:
    (letter,) = redriven(reporting, "hello")
    (message,) = reporting.receive()
    claim = {"result": Result.PERMANENT, "permanent": True, "parked_id": "nowhere"}
    report(reporting, outcome_of(message, **claim))
    reporting.run_pass()
    reporting.consumer_fails()
    reporting.live_messages_stay_away()

    told = reporting.run_pass()

    assert told.returned == 1
    entry = reporting.entry(letter)
    assert entry is not None
    assert (entry.status, entry.redrive_count) == (Status.REDRIVEN, 2)


def test_a_copy_without_room_for_its_metadata_is_reported_by_its_own_id_and_stays_the_letter(
    reporting: Account,
) -> None:
    """The entry must not be written over the metadata that the ledger keeps for the copy."""
    ten = {f"n{n}": {"DataType": "String", "StringValue": "x"} for n in range(10)}
    (letter,) = reporting.dead_letters("hello", MessageAttributes=ten)
    reporting.run_pass()
    reporting.advance(seconds=60)
    fails_and_reports(reporting)

    told = reporting.run_pass()

    assert told.heard == Counter(failed=3)
    entry = reporting.entry(letter)
    assert entry is not None
    assert (entry.cause, entry.redrive_count) == ("PaymentDeclined", 1)
    reporting.live_messages_stay_away()
    reporting.run_pass()
    reporting.advance(minutes=30)
    reporting.run_pass()
    again = reporting.entry(letter)
    assert again is not None
    assert again.redrive_count == 2


# Who may not take reports in.


def test_a_pass_that_is_refused_the_lease_leaves_the_reports_to_the_one_that_has_it(
    reporting: Account,
) -> None:
    redriven(reporting, *FIVE)
    consumer_reports(reporting)
    wire = Wire(on("PutItem", refuse(_error("ConditionalCheckFailedException"))))
    told = _over(reporting, dynamodb=wire)

    assert told.outcome is Outcome.LEASE_HELD
    assert told.heard == Counter()
    assert unread(reporting) == (1, 0)
    assert reporting.run_pass().heard == Counter(succeeded=5)


def test_a_dry_run_says_what_it_hears_and_leaves_everything_as_it_is(reporting: Account) -> None:
    ids = redriven(reporting, *FIVE)
    consumer_reports(reporting)
    before = reporting.circuit

    told = reporting.run_pass(mode="dry_run")

    assert (told.outcome, told.heard) == (Outcome.DRY_RUN, Counter(succeeded=5))
    assert [one["verdict"] for one in told.verdicts] == ["SUCCESS"]
    assert {reporting.entry(one).status for one in ids} == {Status.REDRIVEN}
    assert reporting.circuit == before
    assert unread(reporting) == (1, 0)


def test_a_paused_pass_listens_and_redrives_nothing(reporting: Account) -> None:
    redriven(reporting, *FIVE)
    consumer_reports(reporting)
    reporting.dead_letters("waits")

    told = reporting.run_pass(mode="paused")

    assert (told.outcome, told.redriven) == (Outcome.PAUSED, 0)
    assert told.heard == Counter(succeeded=5)
    assert reporting.run_pass().verdicts[0]["verdict"] == "SUCCESS"


def test_while_a_native_move_is_running_reports_wait(reporting: Account) -> None:
    redriven(reporting, *FIVE)
    consumer_reports(reporting)
    reporting.moves.append({"Status": "RUNNING"})

    told = reporting.run_pass()

    assert (told.outcome, told.heard) == (Outcome.MOVE_TASK_RUNNING, Counter())
    assert unread(reporting) == (1, 0)
    reporting.moves.clear()
    assert [one["verdict"] for one in reporting.run_pass().verdicts] == ["SUCCESS"]


# AWS refuses a call.


def _error(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "no"}}, "Operation")


def _over(account: Account, *, sqs: Wire | None = None, dynamodb: Wire | None = None) -> Any:
    """A pass over bad wires."""
    bad = replace(
        account,
        sqs=sqs.to(account.sqs) if sqs else account.sqs,
        dynamodb=dynamodb.to(account.dynamodb) if dynamodb else account.dynamodb,
    )
    return bad.run_pass()


def _about_reports(account: Account, operation: str) -> Wire:
    """A wire that refuses an operation on the outcome queue."""
    url, refused = account.deployment.outcome_queue_url, refuse(_error("AccessDenied"))

    def script(call: Any) -> Any:
        is_meant = call.operation == operation and call.request.get("QueueUrl") == url
        return refused if is_meant else None

    return Wire(script)


@pytest.mark.parametrize("operation", ["BatchGetItem", "BatchWriteItem"])
def test_reports_that_could_not_be_taken_in_stay_and_the_pass_goes_on(
    reporting: Account, operation: str
) -> None:
    redriven(reporting, *FIVE)
    consumer_reports(reporting)

    told = _over(reporting, dynamodb=Wire(on(operation, refuse(_error("Throttled")))))

    assert told.faults[f"{operation}:Throttled"] > 0
    assert (told.outcome, told.heard) == (Outcome.DONE, Counter())
    assert told.look_again_seconds <= 60
    assert unread(reporting) == (1, 0)
    assert reporting.run_pass().heard == Counter(succeeded=5)


def test_reports_that_cannot_be_deleted_are_heard_once(reporting: Account) -> None:
    redriven(reporting, *FIVE)
    consumer_reports(reporting)

    told = _over(reporting, sqs=_about_reports(reporting, "DeleteMessageBatch"))
    reporting.advance(minutes=10)
    again = reporting.run_pass()

    assert told.faults == Counter({"DeleteMessageBatch:AccessDenied": 1})
    assert told.heard == Counter(succeeded=5)
    assert again.heard == Counter({"heard before": 5})
    assert unread(reporting) == (0, 0)


def test_without_leave_to_receive_reports_all_else_goes_on(reporting: Account) -> None:
    reporting.dead_letters("hello")

    told = _over(reporting, sqs=_about_reports(reporting, "ReceiveMessage"))

    assert told.redriven == 1
    assert told.faults["ReceiveMessage:AccessDenied"] > 0


def test_reports_that_cannot_be_released_come_back_by_themselves(reporting: Account) -> None:
    redriven(reporting, *FIVE)
    consumer_reports(reporting)
    reporting.moves.append({"Status": "RUNNING"})

    told = _over(reporting, sqs=_about_reports(reporting, "ChangeMessageVisibilityBatch"))

    assert told.faults["ChangeMessageVisibilityBatch:AccessDenied"] == 1
    assert unread(reporting) == (0, 1)
    reporting.advance(minutes=10)
    assert unread(reporting) == (1, 0)


# Letters of one cause.


def test_letters_that_fail_for_one_cause_while_others_succeed_wait_for_its_canary(
    reporting: Account,
) -> None:
    needy = [f"needs it {n}" for n in range(4)]
    redriven(reporting, *needy, *[f"plain {n}" for n in range(16)])

    def partly(message: Message) -> dict[str, Any]:
        return declines(message) if message["Body"] in needy else {"result": Result.SUCCEEDED}

    fails_and_reports(reporting, partly)
    told = reporting.run_pass()

    circuit = reporting.circuit
    assert circuit is not None
    assert circuit.state is State.CLOSED
    assert [(one.cause, one.is_held) for one in circuit.causes] == [("PaymentDeclined", True)]
    assert told.held == Counter(CAUSE=4)
    reporting.advance(minutes=2)
    canary = reporting.run_pass()
    assert (canary.redriven, canary.held) == (1, Counter(CAUSE=3))
    reporting.advance(seconds=1)
    consumer_reports(reporting)
    reporting.advance(minutes=1)
    healed = reporting.run_pass()
    assert healed.redriven == 3
    assert not any(one.is_held for one in reporting.circuit.causes)


def test_a_letter_whose_error_named_a_time_waits_until_then_and_has_no_strike(
    reporting: Account,
) -> None:
    """Others of its batch succeed, so that it would have one."""
    ids = redriven(reporting, *FIVE)

    def too_many(message: Message) -> dict[str, Any]:
        return (
            declines(message) | {"retry_after": 7200}
            if message["Body"] == "one"
            else succeeds(message)
        )

    fails_and_reports(reporting, too_many)
    reporting.run_pass()
    reporting.advance(minutes=90)
    early = reporting.run_pass()
    entry = reporting.entry(ids[0])

    assert entry is not None
    assert (entry.strikes, entry.redrive_count) == (0, 1)
    assert early.redriven == 0
    reporting.advance(minutes=31)
    assert reporting.run_pass().redriven == 1


@pytest.mark.parametrize("days", [7, 0])
def test_how_a_letter_failed_is_kept_for_as_long_as_the_team_says(
    reporting: Account, days: int
) -> None:
    (letter,) = redriven(reporting, "hello")
    fails_and_reports(reporting)

    before = reporting.now() - timedelta(seconds=1)
    reporting.run_pass(failure_details_days=days)

    item = reporting.dynamodb.get_item(
        TableName=reporting.deployment.table_name, Key=failure_key(letter)
    ).get("Item")
    assert (item is not None) == (days > 0)
    if item:
        until = datetime.fromtimestamp(int(item["TTL"]["N"]), UTC)
        assert before <= until - timedelta(days=days) <= reporting.now()
