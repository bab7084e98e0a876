"""`status` says that letters flow only where they do, and nothing that is over."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from fakes.faults import on, refuse
from simulator.world import SOURCE
from smart_redriver.engine.config.settings import Mode, Settings
from smart_redriver.engine.model.batch import Batch, Heard, Judged, Verdict
from smart_redriver.engine.model.breaker import force, new_circuit
from smart_redriver.engine.model.circuit import Circuit, State
from smart_redriver.oncall.status.outlook import last_canary
from tests.oncall.desk import Desk
from tests.oncall.fakes import STACK, lose

FLOW = "No letter waits: the DLQ is empty."


def told(desk: Desk) -> dict[str, Any]:
    (one,) = desk("status", "--json").json["queues"]
    return one


def test_letters_of_a_paused_queue_do_not_flow(desk: Desk) -> None:
    desk("pause", "--reason", "migration", "--for", "1h", "--yes")

    paused = desk("status").out
    desk.world.clock.advance(3601)
    over = desk("status").out

    assert "Circuit:     CLOSED, but paused: nothing is redriven" in paused
    assert FLOW not in paused
    assert FLOW in over
    assert "Paused" not in over
    assert (told(desk)["paused"], told(desk)["paused_until"]) == (False, None)


@pytest.mark.parametrize("mode", [Mode.DRY_RUN, Mode.PAUSED])
def test_letters_do_not_flow_where_the_setting_says_so(mode: Mode) -> None:
    desk = Desk(Settings(mode=mode))

    out = desk("status").out

    assert f"CLOSED, but the setting `mode` is {mode.value}: nothing is redriven" in out
    assert FLOW not in out
    assert told(desk)["mode"] == mode.value


def end_a_pass(desk: Desk, reason: str) -> None:
    desk.logs.note({"outcome": "FAILED", "reason": reason})


def test_the_last_pass_having_failed_is_said_before_the_next_is_promised(desk: Desk) -> None:
    """The parking lot was gone: "1 letter waits. The next pass looks at it.", and nothing to do."""
    desk.dead_letters("a")
    end_a_pass(desk, "GetQueueAttributes: NonExistentQueue: The specified queue does not exist.")

    out = desk("status", script=lose("lot")).out

    assert (
        "Now:         The last pass failed: GetQueueAttributes: NonExistentQueue. 1 letter waits."
    ) in out
    assert "Do:          `redrive doctor` says what is missing" in out
    assert "Next:        nothing: the last pass failed" in out


def test_a_pass_that_failed_for_what_passes_by_itself_is_no_headline(desk: Desk) -> None:
    desk.dead_letters("a")
    end_a_pass(desk, "ReceiveMessage: ThrottlingException: Rate exceeded: slow down")

    assert "Now:         1 letter waits. The next pass looks at it." in desk("status").out


@pytest.mark.parametrize("is_new", [True, False])
def test_a_function_that_is_gone_makes_no_passes(desk: Desk, is_new: bool) -> None:
    if not is_new:
        desk("close", "--reason", "new", "--yes")
    desk.dead_letters("a")

    ran = desk("status", script=lose("function"))

    assert (
        "Now:         No pass runs by itself: the function does not exist. 1 letter waits."
    ) in ran.out
    assert "Do:          `redrive doctor` names it, and the remedy." in ran.out
    assert "Function:    does not exist, so no pass runs: `redrive doctor`" in ran.out
    assert ("CLOSED, but no pass runs by itself" in ran.out) is not is_new


@pytest.mark.parametrize(("state", "word"), [("DISABLED", "DISABLED"), (None, "missing")])
def test_a_schedule_that_is_off_is_seen(desk: Desk, state: str | None, word: str) -> None:
    desk.dead_letters("a")
    desk.clients["scheduler"].state = state

    out = desk("status").out

    assert "Circuit:     CLOSED, but no pass runs by itself" in out
    assert f"Schedule:    {word}, so no pass runs by itself: `redrive doctor`" in out
    assert "Next:        nothing: the schedule is off" in out
    assert "Next look" not in out
    assert (told(desk)["schedule"], told(desk)["look_again_seconds"]) == (state, None)


def test_a_schedule_that_may_not_be_read_is_not_called_off(desk: Desk) -> None:
    error = ClientError({"Error": {"Code": "AccessDeniedException"}}, "ListSchedules")
    denied = on("ListSchedules", refuse(error))

    out = desk("status", script=denied).out

    assert FLOW in out
    assert "Not read:    schedule (ListSchedules: AccessDeniedException)" in out


def test_a_drain_is_shown_while_it_has_something_to_drain(desk: Desk) -> None:
    desk.dead_letters("a")
    desk("drain", "--for", "1h", "--no-follow", "--yes")
    during, until = desk("status").out, told(desk)["draining_until"]

    desk("run", "--yes")
    drained, none = desk("status").out, told(desk)["draining_until"]

    assert f"Draining:    until {until}, by kim" in during
    assert "Draining" not in drained
    assert none is None


def test_a_drain_that_is_over_is_not_shown(desk: Desk) -> None:
    desk.dead_letters("a")
    desk("drain", "--for", "1h", "--no-follow", "--yes")
    desk.world.clock.advance(3601)

    assert "Draining" not in desk("status").out
    assert told(desk)["draining_until"] is None


def test_the_last_change_by_a_person_is_shown(desk: Desk) -> None:
    before = desk("status").out
    desk("open", "--reason", "the provider is down", "--yes")
    desk.world.clock.advance(120)

    after = desk("status").out

    assert "Last change: none in the last seven days" in before
    assert "Last change: 2 min ago, kim: force orders OPEN: done (the provider is down)" in after
    assert told(desk)["last_change"] == {
        "at": "2026-01-01T00:00:00Z",
        "who": "arn:aws:iam::123456789012:user/kim",
        "what": "force orders OPEN",
        "outcome": "done",
        "why": "the provider is down",
    }


# Canaries.


def judged(circuit: Circuit, generation: int, verdict: Verdict = Verdict.FAILURE) -> Circuit:
    one = Judged(
        id=7,
        generation=generation,
        verdict=verdict,
        is_strike=False,
        sent_at=circuit.changed_at - timedelta(minutes=4),
        size=1,
    )
    return replace(circuit, judged=(*circuit.judged, one))


def test_the_last_canary_is_shown(desk: Desk) -> None:
    now = desk.world.clock.now()
    circuit = new_circuit(SOURCE, desk.redriver.settings, now)
    opened = replace(
        force(circuit, State.OPEN, "a canary failed", now), generation=5, consecutive_opens=2
    )
    desk.store.save_circuit(judged(opened, 4))

    assert "Last canary: FAILURE, sent 4 min ago as batch 7 (1 letter)" in desk("status").out
    (source,) = told(desk)["sources"]
    assert source["last_canary"]["verdict"] == "FAILURE"


def test_what_the_first_edition_did_not_keep_of_a_canary_is_unknown(desk: Desk) -> None:
    """After a roll-back and an upgrade `status` told of a canary that was sent in 1970."""
    now = desk.world.clock.now()
    circuit = new_circuit(SOURCE, desk.redriver.settings, now)
    opened = replace(
        force(circuit, State.OPEN, "a canary failed", now), generation=5, consecutive_opens=2
    )
    told_of = judged(opened, 4)
    undated = replace(told_of.judged[-1], sent_at=datetime.fromtimestamp(0, UTC), size=0)
    desk.store.save_circuit(replace(told_of, judged=(undated,)))

    shown = desk("status").out

    assert "Last canary: FAILURE, sent at an unknown time as batch 7 (size unknown)" in shown
    (source,) = told(desk)["sources"]
    canary = source["last_canary"]
    assert (canary["sent_at"], canary["letters"]) == (None, None)


@pytest.mark.parametrize(
    ("state", "generation", "opens", "reason", "is_canary"),
    [
        (State.HALF_OPEN, 5, 1, "a canary", True),
        (State.HALF_OPEN, 4, 1, "what opened it", False),
        (State.OPEN, 4, 2, "a canary failed", True),
        (State.OPEN, 4, 1, "3 failed batches in a row", False),
        (State.CLOSED, 4, 0, "2 canaries succeeded", True),
        (State.CLOSED, 4, 0, "forced by kim", False),
        (State.CLOSED, 5, 0, "2 canaries succeeded", False),
    ],
)
def test_a_canary_is_what_a_half_open_circuit_sent(
    state: State, generation: int, opens: int, reason: str, is_canary: bool, desk: Desk
) -> None:
    fresh = new_circuit(SOURCE, Settings(), desk.world.clock.now())
    circuit = replace(fresh, state=state, generation=5, consecutive_opens=opens, reason=reason)

    assert (last_canary(judged(circuit, generation)) is not None) is is_canary


# Alarms and links.

POISON = f"{STACK} PoisonParked"
TEXT = (
    "Letters that keep failing wait in the parking lot for a decision. First: group them by cause with "
    "`redrive parked`. Queue: orders. Runbook: https://example.com#poison"
)


def test_an_alarm_has_a_short_name_and_says_what_it_means(desk: Desk) -> None:
    desk.alarms.in_alarm, desk.alarms.descriptions = [POISON], {POISON: TEXT}

    short, full = desk("status").out, desk("status", "--full-names").out

    line = "Alarms:      PoisonParked: Letters that keep failing wait in the parking lot"
    assert line in short
    assert POISON not in short
    assert line in full
    assert POISON in full
    assert told(desk)["alarms"] == [POISON]
    assert told(desk)["alarm_details"] == [
        {
            "name": POISON,
            "short": "PoisonParked",
            "meaning": "Letters that keep failing wait in the parking lot for a decision.",
            "first": "group them by cause with `redrive parked`.",
        }
    ]


def test_links_lead_to_the_aws_console_when_asked_for(desk: Desk) -> None:
    ran = desk("status", "--links")

    queue = "https%3A%2F%2Fsqs.us-east-1.amazonaws.com%2F123456789012%2Forders-dlq"
    home = "https://us-east-1.console.aws.amazon.com"
    assert f"DLQ: {home}/sqs/v3/home?region=us-east-1#/queues/{queue}" in ran.out
    assert f"{home}/lambda/home?region=us-east-1#/functions/redriver-function" in ran.out
    assert "https://" not in desk("status").out
    assert set(told(desk)["links"]) == {
        "DLQ", "parking lot", "alarms", "stack", "function and log",
    }  # fmt: skip


def test_letters_whose_fate_is_known_await_no_verdict(desk: Desk) -> None:
    """`status` contradicted itself about the letters that are out."""
    now = desk.world.clock.now()
    heard = Heard(succeeded=3, parked=1, failed=2)
    old = Batch(
        id=4, generation=0, sent_at=now, first_try_at=now, due_at=now, size=10, returned=1,
        heard=heard,
    )  # fmt: skip
    new = replace(old, id=5, size=2, returned=0, heard=Heard())
    circuit = new_circuit(SOURCE, desk.redriver.settings, now)
    desk.store.save_circuit(replace(circuit, window=2, pending=(old, new)))

    out = desk("status").out

    assert "Out:         6 letters await a verdict; for 6 others the outcome is known" in out
    assert "batch 4: 10 letters, 1 returned, 4 reported as done" in out
    pending = told(desk)["circuit"]["awaiting_verdict"]
    assert [(one["batch"], one["letters"], one["fate_unknown"]) for one in pending] == [
        (4, 10, 4),
        (5, 2, 2),
    ]


def test_letters_of_failed_batches_that_the_consumer_still_has_are_told(desk: Desk) -> None:
    now = desk.world.clock.now()
    failed = Judged(
        id=4, generation=0, verdict=Verdict.FAILURE, is_strike=False, sent_at=now, size=10,
        returned=6,
    )  # fmt: skip
    circuit = new_circuit(SOURCE, desk.redriver.settings, now)
    desk.store.save_circuit(replace(circuit, failure_count=1, judged=(failed,)))

    assert (
        "0 letters await a verdict; 4 letters of failed batches are still with the consumer"
        in desk("status").out
    )
