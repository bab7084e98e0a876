"""A person's command meets a letter that a pass renews: nothing is lost or repeated, and what was not done is said.

Exhaustive: every place of a letter, every command that moves it, renewed before the plan, between plan and work, and by
    a pass that dies between send, record and delete.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fakes.faults import Script, Wire, die_after, die_before, meanwhile, nothing, nth
from simulator.world import DLQ, PARKING_LOT, SOURCE
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.triage.ledger import Status
from smart_redriver.oncall.console.cache import Notepad
from tests.oncall.browsing import Browsing
from tests.oncall.desk import Desk

PAUSED = Settings.parse({"mode": "paused"})
DAY = 86_400
A_MOMENT = 600
IN_HAND = "hidden: a pass or a person is working on it; try again in five minutes"

SWAP = ("--with", "sed s/broken/mended/")


@pytest.fixture(autouse=True)
def editor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", "sed -i s/broken/mended/")


# A letter that the next pass renews.


def first_visit(desk: Desk) -> str:
    (message_id,) = desk.dead_letters("broken")
    desk.world.clock.advance(12 * DAY + 3600)
    return message_id


def returned(desk: Desk) -> str:
    (message_id,) = desk.dead_letters("broken")
    assert desk("replay", message_id, "--from-dlq", "--yes").code == 0
    desk.fail_again()
    desk.world.clock.advance(12 * DAY + 3600)
    return message_id


def parked(desk: Desk) -> str:
    (message_id,) = desk.park("broken")
    desk.world.clock.advance(8 * DAY)
    return message_id


PLACES = (first_visit, returned, parked)

Place = Callable[[Desk], str]


def renew(desk: Desk, *, then: float = 0, script: Script = nothing) -> None:
    """Let a pass renew the letter, or die of the script, and so many seconds go by."""
    report = desk.redriver.pass_over(Wire(script), settings=PAUSED)
    assert report is None or report.renewed == 1
    desk.world.clock.advance(then)


def command(verb: str, place: Place, message_id: str) -> tuple[str, ...]:
    """What a person types, who has the letter's original id."""
    from_dlq = () if place is parked or verb == "park" else ("--from-dlq",)
    name, *how = {"edit with": ("edit", *SWAP)}.get(verb, (verb,))
    file = ("--export", "kept.jsonl") if name in ("edit", "delete") else ()
    return (name, message_id, *how, *from_dlq, *file, "--yes")


def everywhere(desk: Desk) -> list[str]:
    """All copies, in queues and in the file of what was deleted."""
    file = Path("kept.jsonl")
    kept = file.read_text().splitlines() if file.exists() else []
    there = [body for queue in (SOURCE, DLQ, PARKING_LOT) for body in desk.bodies(queue)]
    return there or [json.loads(line)["body"] for line in kept]


def has_moved(desk: Desk, verb: str) -> bool:
    """Whether the command has done what it is for."""
    if verb == "delete":
        return Path("kept.jsonl").exists()
    return bool(desk.bodies(PARKING_LOT if verb == "park" else SOURCE))


CASES = [
    (place, verb)
    for place in PLACES
    for verb in ("replay", "edit", "edit with", "delete", "park")
    if (place, verb) != (parked, "park")
]


@pytest.mark.parametrize(("place", "verb"), CASES)
@pytest.mark.parametrize("is_planned", [False, True], ids=["before the plan", "after the plan"])
def test_a_renewed_letter_is_moved_by_its_original_id_or_said_to_be_hidden(
    desk: Desk, place: Place, verb: str, is_planned: bool
) -> None:
    message_id = place(desk)
    typed = command(verb, place, message_id)
    script: Script = nothing
    if is_planned:
        script = nth("PutItem", 0, meanwhile(lambda: renew(desk)))
    else:
        renew(desk)

    at_once = desk(*typed, script=script)
    is_hidden = IN_HAND in desk("show", message_id).out
    desk.world.clock.advance(A_MOMENT)
    later = desk(*typed)

    assert at_once.code == 1
    assert "This is a bug" not in at_once.said
    assert message_id in at_once.err
    assert is_hidden
    assert later.code == 0, later.said
    assert len(everywhere(desk)) == 1


@pytest.mark.parametrize(("place", "verb"), CASES)
def test_a_letter_that_was_renewed_long_enough_after_the_plan_is_moved(
    desk: Desk, place: Place, verb: str
) -> None:
    message_id = place(desk)
    script = nth("PutItem", 0, meanwhile(lambda: renew(desk, then=A_MOMENT)))

    ran = desk(*command(verb, place, message_id), script=script)

    assert ran.code == 0, ran.said
    assert len(everywhere(desk)) == 1


@pytest.mark.parametrize(("place", "verb"), CASES)
@pytest.mark.parametrize("seconds_later", [0, 290, A_MOMENT])
def test_where_the_renewing_pass_died_before_its_delete_nothing_is_repeated_or_falsely_done(
    desk: Desk, place: Place, verb: str, seconds_later: int
) -> None:
    message_id = place(desk)
    typed = command(verb, place, message_id)
    renew(desk, then=seconds_later, script=nth("DeleteMessageBatch", 0, die_before))

    is_said = desk(*typed).code == 0
    is_done = has_moved(desk, verb)
    desk.world.clock.advance(A_MOMENT)
    later = None if is_said else desk(*typed)
    desk.world.clock.advance(A_MOMENT)
    desk.redriver.pass_over(Wire(), settings=PAUSED)

    assert is_said == is_done
    assert later is None or later.code == 0, later.said
    assert len(everywhere(desk)) == 1


@pytest.mark.parametrize(("place", "verb"), CASES)
def test_where_the_renewing_pass_died_before_its_record_nothing_is_lost(
    desk: Desk, place: Place, verb: str
) -> None:
    """Nobody knows of the copy, so that the letter may be done twice, as after any send that was not recorded."""
    message_id = place(desk)
    renew(desk, then=A_MOMENT, script=nth("SendMessageBatch", 0, die_after))

    ran = desk(*command(verb, place, message_id))

    assert ran.code == 0, ran.said
    assert everywhere(desk)


# What is said.


@pytest.mark.parametrize(("place", "verb"), [(returned, "park"), (parked, "replay")])
def test_a_letter_that_was_renewed_meanwhile_was_taken_by_nobody(
    desk: Desk, place: Place, verb: str
) -> None:
    place(desk)
    script = nth("PutItem", 0, meanwhile(lambda: renew(desk)))

    ran = desk(verb, "--all", "--yes", "--json", script=script)

    assert (ran.code, ran.json["not_met"], ran.json["gone"]) == (1, 1, 0)


def test_a_letter_that_came_back_and_was_renewed_is_in_the_dlq_and_not_out(desk: Desk) -> None:
    message_id = returned(desk)
    renew(desk, then=A_MOMENT)

    ran = desk("show", message_id)

    assert f"{message_id} is in the DLQ." in ran.out
    assert "broken" in ran.out
    assert desk("letters", "--json").json["letters"][0]["original_id"] == message_id


def test_a_renewed_letter_is_parked_since_and_for_what_it_was(desk: Desk) -> None:
    """Renewed, one that a person had parked was called EXPIRING, parked now, and not found by its reason."""
    (message_id,) = desk.dead_letters("a")
    assert desk("park", message_id, "--yes", "--reason", "ask the shop").code == 0
    before = desk.entry(message_id)
    desk.world.clock.advance(8 * DAY)
    renew(desk, then=A_MOMENT)

    after = desk.entry(message_id)
    ran = desk("replay", "--parked-as", "by_hand", "--yes")

    assert (after.park_reason, after.parked_at) == ("BY_HAND", before.parked_at)
    assert after.history[-1].endswith(" renewed")
    assert (ran.code, desk.bodies(SOURCE)) == (0, ["a"])


def test_letters_wait_in_the_dlq_however_many_are_renewed_in_the_parking_lot(desk: Desk) -> None:
    desk.park("parked 1", "parked 2", "parked 3")
    desk.world.clock.advance(8 * DAY)
    desk.dead_letters("a", "b")

    report = desk.redriver.pass_over(Wire(), settings=PAUSED)

    assert report is not None
    assert report.renewed == 3
    assert "2 letters wait" in report.headline


# Edits of others, and undo.


@pytest.mark.parametrize("is_renewed", [True, False], ids=["renewed", "redriven, and back"])
def test_an_edit_by_a_filter_leaves_a_letter_alone_of_which_a_left_over_copy_is_there(
    desk: Desk, is_renewed: bool
) -> None:
    """The copy has the original id, by which the letter itself was taken, too."""
    desk.dead_letters("broken 1")
    if is_renewed:
        desk.world.clock.advance(12 * DAY + 3600)
        renew(desk, script=nth("DeleteMessageBatch", 0, die_before))
    else:
        assert desk.redriver.pass_over(Wire(nth("DeleteMessageBatch", 0, die_before))) is None
        desk.world.clock.advance(A_MOMENT)
        desk.fail_again()
    desk.world.clock.advance(A_MOMENT)
    desk.dead_letters("broken 2")

    ran = desk("edit", "--contains", "broken 2", "--from-dlq", *SWAP, "--yes")

    assert "Sent edited copies of 1 letter." in ran.out
    assert (desk.bodies(SOURCE), desk.bodies(DLQ)) == (["mended 2"], ["broken 1"])


@pytest.mark.parametrize("is_parked", [True, False], ids=["parked", "in the DLQ"])
def test_undo_finds_a_copy_that_was_renewed_since_its_plan(desk: Desk, is_parked: bool) -> None:
    desk.park("broken")
    assert desk("edit", "--all", *SWAP, "--export", "edits.jsonl", "--yes").code == 0
    desk.fail_again()
    if is_parked:
        desk.park()
    desk.world.clock.advance((8 if is_parked else 12) * DAY + 3600)
    script = nth("PutItem", 0, meanwhile(lambda: renew(desk, then=A_MOMENT)))

    ran = desk("undo", "edits.jsonl", "--yes", script=script)

    assert ran.code == 0, ran.said
    assert (desk.bodies(PARKING_LOT), desk.bodies(DLQ)) == (["broken"], [])


@pytest.mark.parametrize("place", PLACES)
def test_undo_brings_back_what_was_renewed_before_it_was_deleted(desk: Desk, place: Place) -> None:
    message_id = place(desk)
    renew(desk, then=A_MOMENT)
    assert desk(*command("delete", place, message_id)).code == 0

    ran = desk("undo", "kept.jsonl", "--yes")

    assert (ran.code, desk.bodies(PARKING_LOT)) == (0, ["broken"])
    assert desk.entry(message_id).status is Status.PARKED


def test_the_page_edits_a_letter_that_was_renewed_while_it_asked(desk: Desk) -> None:
    message_id = parked(desk)
    page = Browsing(desk.session(Wire(), Notepad()))
    opened = page.get(f"/api/queues/{SOURCE}/letters/{message_id}")["message"]
    mended = {"was": opened["fingerprint"], "attributes": opened["attributes"], "body": "mended"}
    task = page.order(SOURCE, "edit", id=message_id, **mended)
    renew(desk)

    too_soon = page.answer(task)
    seen = page.get(f"/api/queues/{SOURCE}/letters/{message_id}")
    desk.world.clock.advance(A_MOMENT)
    done = page.done(SOURCE, "edit", id=message_id, **mended)
    page.console.tasks.close()

    assert (too_soon["exit_code"], too_soon["result"]["missing"]) == (1, [message_id])
    assert seen["where"] == f"in the parking lot, {IN_HAND}"
    assert (done["exit_code"], desk.bodies(SOURCE)) == (0, ["mended"])
