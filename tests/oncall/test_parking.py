"""`redrive park`: letters of the DLQ are set aside, whole, and come back by a replay."""

from __future__ import annotations

import pytest

from fakes.faults import fail_entries, on
from simulator.world import DLQ, PARKING_LOT, SOURCE
from smart_redriver.engine.messages.letter import METADATA_ATTRIBUTE
from smart_redriver.engine.triage.ledger import Status
from tests.faults.scenes import SOME
from tests.oncall.desk import Desk

KEY_ERROR = {"ErrorType": {"DataType": "String", "StringValue": "KeyError: price"}}


def test_a_letter_is_parked_whole_and_says_by_whom_and_why(desk: Desk) -> None:
    (message_id,) = desk.dead_letters("a", MessageAttributes=SOME, MessageGroupId="tenant-7")

    ran = desk("park", message_id, "--yes", "--reason", "until 2.4.2 is out")

    assert ran.code == 0, ran.said
    assert desk.bodies(DLQ) == []
    (message,) = desk.world.sqs.inspect.messages(PARKING_LOT)
    own = {name: one for name, one in message.attributes.items() if name != METADATA_ATTRIBUTE}
    assert (message.body, own, message.group_id) == ("a", SOME, "tenant-7")
    entry = desk.entry(message_id)
    assert (entry.status, entry.park_reason, entry.strikes) == (Status.PARKED, "BY_HAND", 0)
    assert entry.history[-1].endswith("parked BY_HAND by " + ME + ": until 2.4.2 is out")
    assert "BY_HAND: was set aside by a person." in desk("parked").out


ME = "arn:aws:iam::123456789012:user/kim"


@pytest.mark.parametrize(
    ("chosen", "parked"),
    [
        (("--all",), ["a bad one", "bad", "good"]),
        (("--contains", "bad"), ["a bad one", "bad"]),
        (("--cause", "keyerror"), ["a bad one"]),
        (("--error", "price"), ["a bad one"]),
        (("--cause", "no json"), ["bad", "good"]),
    ],
)
def test_letters_are_chosen_by_filter_and_cause(
    desk: Desk, chosen: tuple[str, ...], parked: list[str]
) -> None:
    desk.dead_letters("good", "bad")
    desk.dead_letters("a bad one", MessageAttributes=KEY_ERROR)

    ran = desk("park", *chosen, "--yes")

    assert ran.code == 0, ran.said
    assert desk.bodies(PARKING_LOT) == parked
    assert desk.visible(DLQ) == 3 - len(parked)


def test_a_parked_letter_knows_its_error_and_comes_back_by_a_replay(desk: Desk) -> None:
    desk.dead_letters("a", MessageAttributes=KEY_ERROR)
    desk("park", "--all", "--yes")

    ran = desk("replay", "--error", "KeyError", "--parked-as", "BY_HAND", "--yes")

    assert ran.code == 0, ran.said
    assert desk.bodies(SOURCE) == ["a"]


def test_park_shows_its_plan_and_takes_no_for_an_answer(desk: Desk) -> None:
    desk.dead_letters("a", "b")

    ran = desk("park", "--all", answer="no")

    assert ran.code == 1
    assert "Plan: park 2 letters of the DLQ as BY_HAND" in ran.out
    assert ran.out.count("such as ") == 2
    assert desk.visible(DLQ) == 2


def test_a_dry_run_parks_nothing(desk: Desk) -> None:
    desk.dead_letters("a")

    told = desk("park", "--all", "--dry-run", "--json").json

    assert told["plan"]["count"] == 1
    assert desk.visible(DLQ) == 1


@pytest.mark.parametrize("arguments", [(), ("an-id", "--all")])
def test_nothing_and_everything_are_never_mixed_up(desk: Desk, arguments: tuple[str, ...]) -> None:
    desk.dead_letters("a")

    assert desk("park", *arguments, "--yes").code == 2


def test_an_empty_dlq_and_a_choice_without_match_end_alike(desk: Desk) -> None:
    empty = desk("park", "--all", "--yes")
    desk.dead_letters("a")

    assert (empty.code, desk("park", "--contains", "zzz", "--yes").code) == (1, 1)


def test_what_the_parking_lot_refuses_stays(desk: Desk) -> None:
    desk.dead_letters("a")
    refused = on("SendMessageBatch", fail_entries([0], "InternalError"))

    ran = desk("park", "--all", "--yes", script=refused)

    assert ran.code == 1
    assert desk.bodies(DLQ) == ["a"]
    assert "Refused 1: SendMessageBatch: InternalError." in ran.err
