"""Letters that are there and can't be taken now: every command says so, and alike."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from fakes.faults import meanwhile, nth, on, refuse
from simulator.world import DLQ, PARKING_LOT, SOURCE
from smart_redriver.engine.triage.ledger import Entry, Status
from tests.faults.errors import refusal
from tests.oncall.desk import Desk

IN_HAND = "hidden: a pass or a person is working on it; try again in five minutes"


def hide(desk: Desk, queue: str) -> None:
    """What a pass does that looks through a queue."""
    url = desk.world.url(queue)
    while desk.world.sqs.receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=300
    ).get("Messages"):
        pass


def returned(desk: Desk, *, held_for: timedelta) -> str:
    """A letter of the DLQ that waits hidden, as a pass leaves it; its id."""
    (message_id,) = desk.dead_letters("a")
    now = desk.world.clock.now()
    entry = Entry(
        original_id=message_id,
        current_id=message_id,
        queue=SOURCE,
        status=Status.RETURNED,
        first_seen=now,
        not_before=now + held_for,
    )
    desk.store.write_ledger([entry], [], now)
    hide(desk, DLQ)
    return message_id


@pytest.mark.parametrize(
    ("held_for", "words"),
    [
        (timedelta(minutes=9), "hidden until 2026-01-01T00:11:04Z (in 9 min)"),
        (timedelta(), IN_HAND),
    ],
)
def test_show_says_of_a_hidden_letter_what_park_says(
    desk: Desk, held_for: timedelta, words: str
) -> None:
    message_id = returned(desk, held_for=held_for)

    shown, parked = desk("show", message_id), desk("park", message_id, "--yes")

    sentence = f"{message_id} is in the DLQ, {words}."
    assert sentence in shown.out
    assert sentence in parked.err
    assert (parked.code, "it is hidden" in shown.out) == (1, True)
    assert desk("show", message_id, "--json").json["where"] == f"in the DLQ, {words}"


def test_a_parked_letter_in_a_passs_hands_is_said_to_be_there_by_show_replay_and_delete(
    desk: Desk,
) -> None:
    (message_id,) = desk.park("a")
    hide(desk, PARKING_LOT)

    sentence = f"{message_id} is in the parking lot, {IN_HAND}."
    assert sentence in desk("show", message_id).out
    for verb in ("replay", "delete"):
        ran = desk(verb, message_id, "--contains", "a", "--yes")
        assert (ran.code, sentence in ran.err) == (1, True)


def test_an_export_is_not_complete_while_some_letters_are_hidden(desk: Desk) -> None:
    """Someone else was at work: a file with 33 of 183 letters was called complete."""
    desk.park("a", "b", "c")
    desk.world.sqs.receive_message(
        QueueUrl=desk.world.url(PARKING_LOT), MaxNumberOfMessages=2, VisibilityTimeout=300
    )

    ran = desk("export", "some.jsonl", "--json")

    assert ran.code == 3
    assert (ran.json["count"], ran.json["is_complete"]) == (1, False)
    assert "2 letters hidden, until their next try or while a pass or a person" in ran.err


def test_a_plan_says_how_many_letters_could_not_be_looked_at(desk: Desk) -> None:
    desk.park('{"n": 1}', '{"n": 2}', '{"n": 3}')
    desk.world.sqs.receive_message(
        QueueUrl=desk.world.url(PARKING_LOT), MaxNumberOfMessages=2, VisibilityTimeout=300
    )
    where = ("--where", "n > `0`", "--dry-run")

    plan, told = desk("delete", *where), desk("delete", *where, "--json").json["plan"]

    assert (
        "      2  hidden, until their next try or while a pass or a person works on them"
        in plan.out
    )
    assert (told["count"], told["hidden"]) == (1, 2)


@pytest.mark.parametrize("verb", ["delete", "replay"])
def test_a_command_that_could_not_look_at_all_letters_is_partly_done(desk: Desk, verb: str) -> None:
    """It took one of three, and ended with 0 as if that were all that it was asked for."""
    desk.park('{"n": 1}', '{"n": 2}', '{"n": 3}')
    desk.world.sqs.receive_message(
        QueueUrl=desk.world.url(PARKING_LOT), MaxNumberOfMessages=2, VisibilityTimeout=300
    )

    ran = desk(verb, "--where", "n > `0`", "--yes", "--json")

    assert ran.code == 3
    assert (ran.json["done"], ran.json["hidden"]) == (1, 2)
    assert "2 letters hidden, until their next try or while a pass or a person" in ran.err


def test_a_letter_that_is_visible_is_called_nothing_else(desk: Desk) -> None:
    (message_id,) = desk.park("a")

    assert f"{message_id} is in the parking lot.\n" in desk("show", message_id).out
    assert desk("show", "--look", "0", message_id, "--json").json["where"] == "in the parking lot"


def test_a_letter_that_is_not_there_is_not_said_to_be_hidden(desk: Desk) -> None:
    (gone,) = desk.park("a")
    desk("delete", "--all", "--yes")
    desk.park("b")
    hide(desk, PARKING_LOT)

    ran = desk("replay", gone, "--yes")

    assert ran.code == 1
    assert "None of these was found." in ran.err


def test_parked_says_that_letters_could_not_be_searched_while_a_pass_has_them(desk: Desk) -> None:
    desk.park("a", "b")
    hide(desk, PARKING_LOT)

    during = desk("parked", "--contains", "a")
    desk.world.clock.advance(301)
    after = desk("parked", "--contains", "a")

    assert "No parked letters match." in during.out
    assert "2 letters could not be looked at: a pass or a person is working on them" in during.err
    assert "try again in five minutes" in during.err
    assert "1 letter parked" in after.out
    assert "could not be looked at" not in after.err


def test_parked_says_so_too_where_the_ledger_knows_none_of_them(desk: Desk) -> None:
    desk.world.sqs.send_message(QueueUrl=desk.world.url(PARKING_LOT), MessageBody="by hand")
    nothing_hidden = desk("parked")
    hide(desk, PARKING_LOT)

    hidden = desk("parked")

    assert nothing_hidden.err == ""
    assert nothing_hidden.out == (
        "No parked letters match.\n"
        "1 message in the parking lot is not in the ledger as parked: `redrive replay --all --dry-run` shows them.\n"
    )
    assert (
        "1 letter of the parking lot can't be looked at now: a pass or a person is working on them"
        in hidden.err
    )


def test_parked_counts_what_the_ledger_does_not_know_beside_what_it_does(desk: Desk) -> None:
    """The state table had been made anew: "No parked letters match.", over a full parking lot."""
    desk.park("a", "b")
    for body in ("c", "d", "e"):
        desk.world.sqs.send_message(QueueUrl=desk.world.url(PARKING_LOT), MessageBody=body)

    unmatched = desk("parked", "--parked-as", "EXPIRING")
    as_json = [desk("parked", *more, "--json").json for more in (("--parked-as", "EXPIRING"), ())]

    assert "3 messages in the parking lot are not in the ledger as parked" in unmatched.out
    assert [(one["count"], one["not_in_ledger"]) for one in as_json] == [(0, 3), (2, None)]


@pytest.mark.parametrize("verb", ["replay", "delete", "park", "edit"])
def test_a_plan_whose_letters_are_hidden_before_its_work_is_not_called_done(
    desk: Desk, verb: str
) -> None:
    command = ("edit", "--with", "sed s/$/!/") if verb == "edit" else (verb,)
    if verb == "park":
        desk.dead_letters("a", "b")
    else:
        desk.park("a", "b")
    queue = DLQ if verb == "park" else PARKING_LOT
    pass_comes = meanwhile(lambda: hide(desk, queue))

    ran = desk(*command, "--all", "--yes", "--json", script=nth("PutItem", 0, pass_comes))

    assert ran.code == 1
    assert (ran.json["done"], ran.json["not_met"]) == (0, 2)
    assert "Not met: 2 letters." in ran.err
    assert len(desk.bodies(queue)) == 2


def test_what_somebody_else_took_meanwhile_is_not_missed_but_told(desk: Desk) -> None:
    desk.park("a", "b")

    def another() -> None:
        assert desk("delete", "--all", "--yes").code == 0

    ran = desk("replay", "--all", "--yes", "--json", script=nth("PutItem", 0, meanwhile(another)))

    assert (ran.code, ran.json["done"], ran.json["not_met"], ran.json["gone"]) == (1, 0, 0, 2)


@pytest.mark.parametrize("choice", [("--all",), ("--contains", "broken")])
def test_letters_that_somebody_took_during_an_edit_are_counted_and_not_listed(
    desk: Desk, choice: tuple[str, ...]
) -> None:
    """Nobody named them, so a line for each says nothing."""
    first, second, _, _ = desk.park("broken 1", "broken 2", "broken 3", "fine, not broken")
    another = meanwhile(lambda: desk("delete", first, second, "--yes"))
    command = ("edit", *choice, "--with", "sed s/^broken/mended/")

    ran = desk(*command, "--yes", "--json", script=nth("PutItem", 0, another))

    assert (ran.json["done"], ran.json["gone"], ran.json["missing"]) == (1, 2, [])
    assert "Gone: 2 letters of the plan, which somebody else took meanwhile" in ran.err
    assert "Not among them" not in ran.err


def test_history_names_no_file_where_no_letter_was_kept(desk: Desk) -> None:
    desk.park("a")
    hidden = nth("PutItem", 0, meanwhile(lambda: hide(desk, PARKING_LOT)))
    desk("delete", "--all", "--yes", "--export", "gone.jsonl", script=hidden)
    before = desk.history()
    desk.world.clock.advance(301)
    desk("delete", "--all", "--yes", "--export", "gone.jsonl")

    assert before[-1] == "delete all: deleted 0 letters"
    assert desk.history()[-1] == "delete all: deleted 1 letter; kept in gone.jsonl"


def take_away(desk: Desk, queue: str) -> None:
    """What another tool does that empties a queue."""
    url = desk.world.url(queue)
    for one in desk.world.sqs.receive_message(QueueUrl=url)["Messages"]:
        desk.world.sqs.delete_message(QueueUrl=url, ReceiptHandle=one["ReceiptHandle"])


MISSING = "but was not met there: it may have expired, or another tool may have removed it"


@pytest.mark.parametrize("others", [(), ("b",)], ids=["in an empty queue", "beside another"])
@pytest.mark.parametrize("queue", [PARKING_LOT, DLQ])
def test_a_letter_that_a_look_through_all_does_not_meet_is_not_said_to_be_there(
    desk: Desk, queue: str, others: tuple[str, ...]
) -> None:
    """The ledger says so for as long as nobody tells it of a purge."""
    put = desk.park if queue == PARKING_LOT else desk.dead_letters
    (message_id,) = put("a")
    if queue == DLQ:
        desk.store.write_ledger([desk.suspect(message_id)], [], desk.world.clock.now())
    take_away(desk, queue)
    if others:
        put(*others)

    ran, short = desk("show", message_id), desk("show", message_id, "--look", "0")

    where = f"{message_id} is in the {'parking lot' if queue == PARKING_LOT else 'DLQ'}"
    assert f"{where}, {MISSING}." in ran.out
    assert "it is hidden" not in ran.out
    assert f"{where}." in short.out


def test_a_letter_that_may_be_on_its_way_is_not_said_to_be_missing(desk: Desk) -> None:
    (message_id,) = desk.dead_letters("a")
    entry = replace(desk.suspect(message_id), status=Status.FAILED)
    desk.store.write_ledger([entry], [], desk.world.clock.now())
    take_away(desk, DLQ)

    ran = desk("show", message_id)

    assert "in the DLQ, or on its way there: its consumer reported its last failure." in ran.out


@pytest.mark.parametrize("verb", [("export", "kept.jsonl", "--from-dlq"), ("letters",)])
def test_a_look_that_fails_hides_nothing(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    desk.dead_letters("a", "b")
    gone = refuse(refusal("BatchGetItem", "ResourceNotFoundException"))

    ran = desk(*verb, script=on("BatchGetItem", gone))

    assert ran.code == 1
    assert desk.visible(DLQ) == 2
