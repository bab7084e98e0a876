"""What the consumer's reports bring on the deployed stack, seen in the story; then a hostile sender, and repeats."""

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from demo.event_log import Event
from demo.stack import DeployedStack, Depths
from demo.story import Played
from demo.summary import Summary

#: Causes: the error, the consumer's own code that raised it, and what it says without the message's id.
PAYMENTS = "PaymentsDownError in work.work: Payments are down, message * must wait"
PERMANENT = "PermanentError in work.work: Message * asks for what does not exist"
_MINUTE = 60.0
#: By default settings an idle queue is looked at this often.
_NEXT_LOOK = 6 * _MINUTE
_FEWEST_OF_A_CAUSE = 3


def heard_in(events: list[Event]) -> Counter[str]:
    """Outcomes by result, or by why they were left out, as the reports of passes have them."""
    heard: Counter[str] = Counter()
    for event in events:
        if event.name == "pass.finished":
            heard.update(event.fields["heard"])
    return heard


# In the story.


def test_letters_whose_payments_are_down_are_held_together_while_others_flow(
    played: Played,
) -> None:
    fell, rose = played.payments_fell, played.payments_rose
    assert fell is not None
    assert rose is not None
    seen = [one for one in played.snapshots if fell < one.at <= rose]
    held = [one for one in seen if PAYMENTS in one.circuit.held_causes]
    by_then = {
        str(event.fields["original_id"]): event.at
        for event in played.events("letter.redriven")
        if fell < event.at <= rose
    }

    # Some were tried until it was sure what they have in common, none oftener than its backoff allows; most of the
    # others are done.
    assert held
    tries = Counter(
        event.fields["original_id"]
        for event in played.events("letter.redriven")
        if fell < event.at <= rose and event.fields["original_id"] in played.payments
    )
    backoff_allows = 1 + math.log2((rose - fell) / timedelta(minutes=1))
    assert tries.total() >= _FEWEST_OF_A_CAUSE
    assert max(tries.values()) <= backoff_allows
    assert len(by_then.keys() - played.payments) > len(played.payments)
    assert {one.circuit.state for one in seen} == {"CLOSED"}


def test_letters_of_a_cause_flow_when_what_they_need_is_back(
    stack: DeployedStack, played: Played, summary: Summary
) -> None:
    assert summary.problems == ()
    assert played.payments <= stack.processed()
    assert PAYMENTS not in played.snapshots[-1].circuit.held_causes


def test_a_permanent_error_is_parked_by_the_consumer_and_known_within_one_pass(
    stack: DeployedStack, played: Played
) -> None:
    first_seen_parked = next(one for one in played.snapshots if one.depths.parked)
    heard = next(one for one in played.events("outcomes.heard") if one.fields.get("permanent"))
    looked = [one.at for one in played.events("pass.finished")]

    assert first_seen_parked.depths.parked == len(played.permanent)
    assert heard.fields["permanent"] == len(played.permanent)
    for message_id in played.permanent:
        entry = stack.state_item(f"MESSAGE#{message_id}") or {}
        assert (entry["Status"], entry["ParkReason"]) == ("PARKED", "PERMANENT")
        assert entry["Cause"] == PERMANENT
        assert (entry["RedriveCount"], entry["Strikes"]) == (0, 0)
        parked_at = datetime.fromisoformat(entry["ParkedTimestamp"])
        assert not [at for at in looked if parked_at < at < heard.at]


def test_every_cause_in_the_ledger_says_where_the_consumer_logged_it(
    stack: DeployedStack, played: Played
) -> None:
    logs = stack.aws.client("logs")
    for original_id in played.hopeless:
        entry = stack.state_item(f"MESSAGE#{original_id}") or {}
        failure = stack.state_item(f"FAILURE#{original_id}") or {}

        raised = str(failure["ErrorClass"])
        assert str(entry["Error"]).startswith(f"{raised}: ")
        assert str(entry["Cause"]).startswith(f"{raised.rpartition('.')[2]} in work.work: ")
        assert failure["Cause"] == entry["Cause"]
        assert "in work" in failure["Traceback"]
        function = stack.functions.get_function_configuration(
            FunctionName=failure["Consumer"]["Name"]
        )
        lines = logs.get_log_events(
            logGroupName=function["LoggingConfig"]["LogGroup"],
            logStreamName=failure["Consumer"]["LogStream"],
        )["events"]
        assert any(original_id in one["message"] for one in lines)


def test_the_backlog_goes_back_within_minutes_of_the_circuit_closing(played: Played) -> None:
    """One window after another: from 5, if the circuit closes with that, by 20, 80 and 320.

    A consumer that fell right after a success has the letters of each spread over a minute,
    and its verdict a minute later.
    """
    assert played.outage_began is not None
    assert played.outage_ended is not None
    (closed,) = played.events("circuit.closed")
    backlog = max(one.depths.dead_letters for one in played.snapshots if one.is_down)
    soon = closed.at + timedelta(minutes=5)

    sent_back = {
        one.fields["original_id"]
        for one in played.events("letter.redriven")
        if played.outage_ended <= one.at <= soon
    }

    assert closed.at - played.outage_ended < timedelta(minutes=10)
    assert len(sent_back) >= 0.95 * backlog


# After it: whoever may send to the outcome queue may send anything.


@dataclass(frozen=True, slots=True, kw_only=True)
class Assault:
    """What hostile reports did: the ledger of those whom they are about before and after, and what passes said."""

    before: Mapping[str, Any]
    after: Mapping[str, Any]
    depths: tuple[Depths, Depths]
    events: list[Event]


@pytest.fixture(scope="module")
def assault(stack: DeployedStack, played: Played, summary: Summary) -> Assault:
    assert summary.waiting == 0
    stack.aws.pass_time(_MINUTE)  # the summary's look hides parked letters
    stack.redriver_log.fresh()
    known = [*sorted(played.hopeless), *sorted(played.payments)]
    before, depths = {one: stack.state_item(f"MESSAGE#{one}") for one in known}, stack.depths()
    for body in hostile_reports(stack, known):
        stack.sqs.send_message(QueueUrl=stack.outputs["OutcomeQueueUrl"], MessageBody=body)
    stack.aws.pass_time(_NEXT_LOOK)
    return Assault(
        before=before,
        after={one: stack.state_item(f"MESSAGE#{one}") for one in known},
        depths=(depths, stack.depths()),
        events=stack.redriver_log.fresh(),
    )


def hostile_reports(stack: DeployedStack, known: list[str]) -> list[str]:
    def outcome(**fields: Any) -> dict[str, Any]:
        return {
            "queue": stack.queue_name,
            "message_id": str(uuid4()),
            "result": "succeeded",
            **fields,
        }

    in_a_batch = {"batch": 7, "generation": 0}
    forged = [
        outcome(queue="somebody-elses"),
        outcome(original_id=str(uuid4()), **in_a_batch),
        outcome(message_id="../../etc/passwd"),
        *(outcome(original_id=one, **in_a_batch) for one in known),
        *(outcome(original_id=one, result="failed", permanent=True) for one in known),
        *(
            outcome(original_id=one, result="permanent", parked_id=str(uuid4()), **in_a_batch)
            for one in known
        ),
    ]
    return [
        "no JSON at all",
        "[]",
        '{"version": 99, "outcomes": []}',
        json.dumps({"version": True, "outcomes": [], "junk": "x" * 1_000_000}),
        "[" * 100_000,
        json.dumps({"version": 1, "outcomes": forged}),
    ]


def test_forged_and_broken_reports_change_nothing(assault: Assault) -> None:
    assert assault.after == assault.before
    assert assault.depths[0] == assault.depths[1]


def test_forged_and_broken_reports_are_named_in_the_report_of_the_pass(assault: Assault) -> None:
    known = len(assault.before)

    assert heard_in(assault.events) == {
        "unreadable: not JSON": 2,
        "unreadable: not a report": 1,
        "unreadable: version": 2,
        "unreadable: message_id": 1,
        "of another queue": 1,
        "of a letter that the ledger does not know": 1,
        "of an earlier copy, or none of ours": 3 * known,
    }


def test_forged_and_broken_reports_fail_no_pass(assault: Assault) -> None:
    reports = [one.fields for one in assault.events if one.name == "pass.finished"]

    assert {one["outcome"] for one in reports} <= {"DONE", "IDLE", "WAITING"}
    assert not any(one["faults"] or one["redriven"] or one["parked"] for one in reports)


def test_a_letter_that_is_delivered_twice_is_worked_once(
    stack: DeployedStack, played: Played, summary: Summary
) -> None:
    """As it happens where the answer to a send is lost: a copy too many, with the metadata of the letter."""
    assert summary.repeated == 0
    original_id = min(played.payments)
    entry = stack.state_item(f"MESSAGE#{original_id}") or {}
    metadata = {
        "queue": stack.queue_name,
        "id": original_id,
        "n": int(entry["RedriveCount"]),
        "seen": int(datetime.fromisoformat(entry["FirstSeenTimestamp"]).timestamp()),
        "batch": int(entry["Batch"]),
        "gen": int(entry["Generation"]),
    }
    stack.aws.settle()
    log, done = stack.consumer_log(), stack.processed()
    log.fresh()
    stack.redriver_log.fresh()

    for _ in range(2):
        stack.sqs.send_message(
            QueueUrl=stack.source_url,
            MessageBody=played.sent[original_id].body,
            MessageAttributes={
                "RedriveTrail": {"DataType": "String", "StringValue": json.dumps(metadata)}
            },
        )
    stack.aws.pass_time(_NEXT_LOOK)

    said = [event.name for event in log.fresh() if event.fields.get("original_id") == original_id]
    assert said == ["message.already_processed"] * 2
    assert stack.processed() == done
    assert heard_in(stack.redriver_log.fresh())["of an earlier copy, or none of ours"] == 2
    assert stack.state_item(f"MESSAGE#{original_id}") == entry
