"""The command on FIFO queues: groups keep their order, and no letter is taken whose copy is out."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from botocore.exceptions import EndpointConnectionError

from fakes.faults import Wire, die_after, fail_entries, lose_answer, nth, on
from fakes.sqs import Rest
from simulator.world import DLQ, PARKING_LOT, SOURCE
from smart_redriver.engine.config.settings import FifoPoison, Settings
from smart_redriver.engine.triage.ledger import Status
from tests.oncall.desk import Desk
from tests.oncall.reported import declined, report

LOST = EndpointConnectionError(endpoint_url="https://aws.invalid")
OUT = "its copy is out, and its outcome is not known yet"
BEHIND = "it would overtake an earlier letter of its message group"
TWELVE = [f"a-{number:02}" for number in range(12)]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.chdir(tmp_path)  # where originals are kept
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", "sed -i s/broken/mended/")
    return Desk(fifo=True)


@pytest.fixture
def out(desk: Desk) -> str:
    """The id of a letter whose copy a pass has sent; `a-2` is behind it."""
    original_id, *_ = desk.dead_letters("a-1", "a-2")
    desk("run", "--yes")  # its backoff is a hold
    desk.sleep(120)
    desk("run", "--yes")
    assert desk.entry(original_id).kept_id == original_id
    assert desk.in_order(SOURCE) == ["a-1"]
    return original_id


# Order.


@pytest.mark.parametrize("from_dlq", [False, True])
def test_all_letters_of_a_group_are_replayed_in_their_order(desk: Desk, from_dlq: bool) -> None:
    bodies = [*TWELVE, "b-1", "b-2", "c-1"]
    (desk.dead_letters if from_dlq else desk.park)(*bodies)
    where = ["--from-dlq"] if from_dlq else []

    ran = desk("replay", "--all", "--yes", *where)

    assert ran.code == 0, ran.said
    sent = desk.in_order(SOURCE)
    assert sorted(sent) == sorted(bodies)
    for group in "abc":
        assert [one for one in sent if one[0] == group] == [
            one for one in bodies if one[0] == group
        ]


def test_groups_go_side_by_side(desk: Desk) -> None:
    desk.park("a-1", "a-2", "b-1", "b-2", "c-1")

    desk("replay", "--all", "--yes", "--reason", "fixed")

    assert desk.calls.count("SendMessageBatch") == 2


def test_a_plan_says_what_order_is_kept_and_what_can_not_be(desk: Desk) -> None:
    desk.park("a-1")

    ran = desk("replay", "--all", "--dry-run")

    assert "Letters of one message group go in their order" in ran.said
    assert "Messages of their groups that were processed meanwhile have overtaken them." in ran.said


def test_a_plan_of_standard_queues_speaks_of_no_groups() -> None:
    desk = Desk()
    desk.park("a")

    assert "group" not in desk("replay", "--all", "--dry-run").said


def test_a_tenant_of_a_standard_queue_is_no_group_that_keeps_an_order() -> None:
    desk = Desk()
    desk.dead_letters("a", "b x", MessageGroupId="tenant")

    assert "overtake" not in desk("replay", "--from-dlq", "--contains", "x", "--dry-run").said


def test_letters_out_of_the_middle_of_a_group_are_counted_before_they_go(desk: Desk) -> None:
    desk.dead_letters("a-1", "a-2 x", "a-3 x", "b-1 x")

    ran = desk("replay", "--from-dlq", "--contains", "x", "--yes")

    assert "2  overtake earlier letters of their message group, which stay" in ran.said
    assert sorted(desk.in_order(SOURCE)) == ["a-2 x", "a-3 x", "b-1 x"]
    assert desk.in_order(DLQ) == ["a-1"]


def test_what_follows_a_refused_letter_in_its_group_stays(desk: Desk) -> None:
    desk.park("a-1", "a-2", "a-3", "b-1", "b-2")

    ran = desk(
        "replay",
        "--all",
        "--yes",
        script=nth("SendMessageBatch", 0, fail_entries({0}, "InvalidMessageContents")),
    )

    assert desk.in_order(PARKING_LOT) == ["a-1", "a-2", "a-3"]
    assert desk.in_order(SOURCE) == ["b-1", "b-2"]
    assert f"Skipped 2: {BEHIND}" in ran.said


def test_what_follows_a_letter_that_is_not_valid_stays(desk: Desk) -> None:
    desk.park("a-bad", "a-2", "b-1")

    ran = desk("replay", "--all", "--yes", "--validate", "grep -v bad")

    assert desk.in_order(SOURCE) == ["b-1"]
    assert f"Skipped 1: {BEHIND}" in ran.said


def test_letters_of_a_long_group_that_an_edit_could_not_see_are_counted(desk: Desk) -> None:
    desk.park(*(f"a-{number:02} broken" for number in range(25)), "b-1 broken")
    mend = ("edit", "--all", "--with", "sed s/broken/mended/")
    left = "hidden, or behind the first ten of their message group: not looked at."

    plan = desk(*mend, "--dry-run", "--json")
    first = desk(*mend, "--yes", "--json")
    second = desk(*mend, "--yes")
    third = desk(*mend, "--yes")

    assert plan.json == {"plan": {"count": 11, "staying": {}, "hidden": 15}}
    assert f"15 letters {left}" in plan.err
    assert (first.code, first.json["done"], first.json["hidden"]) == (3, 11, 15)
    assert first.err.count(f"15 letters {left}") == 2
    assert (second.code, third.code) == (3, 0)
    assert f"5 letters {left}" in second.err
    assert desk.messages(PARKING_LOT) == []


def test_an_edit_of_a_group_of_ten_leaves_none(desk: Desk) -> None:
    desk.park(*(f"a-{number} broken" for number in range(10)))

    ran = desk("edit", "--all", "--with", "sed s/broken/mended/", "--yes")

    assert ran.code == 0, ran.said
    assert "not looked at" not in ran.said


def test_letters_that_an_edit_could_not_see_of_a_standard_queue_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    desk = Desk()
    desk.park("broken 1", "broken 2")
    desk.world.sqs.receive_message(QueueUrl=desk.world.url(PARKING_LOT), VisibilityTimeout=600)

    ran = desk("edit", "--all", "--with", "sed s/broken/mended/", "--yes", "--json")

    assert (ran.code, ran.json["done"], ran.json["hidden"]) == (3, 1, 1)
    assert "1 letter hidden, until their next try" in ran.err


def test_of_a_long_group_the_plan_says_that_its_end_is_out_of_sight(desk: Desk) -> None:
    desk.dead_letters(*TWELVE)

    ran = desk("replay", "--from-dlq", "--contains", "a", "--dry-run")

    assert "replay at least 10 letters" in ran.said
    assert "SQS hands out ten letters" in ran.said


@pytest.mark.parametrize("command", [["delete", "--from-dlq"], ["replay", "--from-dlq"], ["park"]])
def test_letters_of_a_short_group_are_taken_beside_a_long_one(
    desk: Desk, command: list[str]
) -> None:
    """Letters behind the long group's first ten may match, too, and nobody knows."""
    long = [f"a-{number:02}" for number in range(25)]
    desk.dead_letters(*long, "b-1 x", "b-2 x", "b-3")

    ran = desk(*command, "--contains", "x", "--yes", "--json")

    assert ran.code == 3, ran.said
    assert (ran.json["done"], ran.json["hidden"]) == (2, 15)
    assert "15 letters hidden, or behind the first ten of their message group" in ran.err
    assert desk.bodies(DLQ) == [*long, "b-3"]
    assert desk.visible(DLQ) == 26


def test_all_of_a_long_group_are_replayed_by_what_they_have_in_common(desk: Desk) -> None:
    desk.park(*(f"a-{number:02}" for number in range(25)), "b-1")

    ran = desk("replay", "--contains", "a-", "--yes", "--json")

    assert (ran.code, ran.json["done"], ran.json["hidden"]) == (0, 25, 0)


@pytest.mark.parametrize("contains", ["a-0", "-"])
def test_a_part_of_a_long_group_is_not_deleted_by_a_count(desk: Desk, contains: str) -> None:
    bodies = [*(f"a-{number:02}" for number in range(25)), "b-1"]
    desk.park(*bodies)

    ran = desk("delete", "--contains", contains, "--yes")

    assert ran.code == 1
    assert "Name those that are seen by their ids, or use --all. Nothing was changed." in ran.err
    assert desk.bodies(PARKING_LOT) == bodies


# Letters whose copies are out.


@pytest.mark.parametrize(
    "command",
    [
        ["replay", "--from-dlq"],
        ["edit", "--from-dlq"],
        ["park"],
        ["delete", "--from-dlq"],
    ],
    ids=lambda command: command[0],
)
def test_a_letter_whose_copy_is_out_is_left_where_it_is(
    desk: Desk, out: str, command: list[str]
) -> None:
    name, *options = command

    ran = desk(name, out, *options, "--yes", answer="1")

    assert ran.code != 0
    assert OUT in ran.said
    assert desk.in_order(SOURCE) == ["a-1"]
    assert desk.in_order(DLQ) == ["a-1", "a-2"]
    assert desk.in_order(PARKING_LOT) == []
    assert desk.entry(out).status is Status.REDRIVEN


def test_what_is_behind_a_letter_whose_copy_is_out_does_not_overtake_it(
    desk: Desk, out: str
) -> None:
    ran = desk("replay", "--all", "--from-dlq", "--yes")

    assert desk.in_order(SOURCE) == ["a-1"]
    assert f"Skipped 1: {OUT}" in ran.said
    assert f"Skipped 1: {BEHIND}" in ran.said


def test_parking_takes_the_rest_of_the_group_and_leaves_the_letter_whose_copy_is_out(
    desk: Desk, out: str
) -> None:
    ran = desk("park", "--all", "--yes")

    assert f"Skipped 1: {OUT}" in ran.said
    assert (desk.in_order(DLQ), desk.in_order(PARKING_LOT)) == (["a-1"], ["a-2"])


def test_a_letter_whose_copy_came_back_is_replayed_from_its_place_and_is_there_once(
    desk: Desk, out: str
) -> None:
    desk.fail_again()
    assert desk.in_order(DLQ) == ["a-1", "a-2", "a-1"]

    ran = desk("replay", "--all", "--from-dlq", "--yes")

    assert desk.in_order(SOURCE) == ["a-1", "a-2"]
    assert desk.entry(out).status is Status.REPLAYED
    assert ran.code == 0, ran.said
    assert desk.in_order(DLQ) == []
    assert "removed 1 left-over copies" in ran.said.lower()


def test_show_says_that_a_letter_is_out_and_of_which_group(desk: Desk, out: str) -> None:
    ran = desk("show", out)

    assert f"{out} is out, and at its place in the DLQ" in ran.said
    assert "Message group: a" in ran.said


def test_a_letter_at_its_place_is_not_said_to_be_out_once_the_failure_of_its_copy_is_reported(
    desk: Desk, out: str
) -> None:
    sent, now = desk.entry(out), desk.world.clock.now()
    failed = declined(sent.current_id, queue=sent.queue, original_id=out, batch=sent.batch)
    report(desk, failed)
    on_backoff = replace(desk.entry(out), not_before=now + timedelta(minutes=20))
    desk.store.write_ledger([on_backoff], [], now)

    shown, held = desk("show", out, "--look", "0"), desk("letters", "--held")

    assert f"{out} is in the DLQ, or on its way there: its consumer reported" in shown.out
    assert "Waits for:   its backoff, until" in shown.out
    assert "1 letter held in the DLQ" in held.out
    assert out in held.out


def test_a_copy_that_came_back_is_not_written_to_a_file_beside_its_letter(
    desk: Desk, out: str
) -> None:
    desk.fail_again()

    desk("export", "kept.jsonl", "--from-dlq")

    lines = [json.loads(line) for line in Path("kept.jsonl").read_text().splitlines()]
    assert [(one["body"], one["group_id"]) for one in lines] == [("a-1", "a"), ("a-2", "a")]


# Poison that blocks its group.


def test_status_says_that_poison_blocks_its_group_until_a_person_parks_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    desk = Desk(Settings(fifo_poison=FifoPoison.BLOCK), fifo=True)
    pill, _ = desk.dead_letters("a-pill", "a-2")
    failed = declined(pill, queue=desk.deployment.queue_name, permanent=True)
    report(desk, failed)
    desk("run", "--yes")

    blocked, names = desk("status"), desk("run", "--dry-run")
    desk("park", pill, "--yes")
    desk("run", "--yes")

    assert "1 letter blocks its message group until a person acts. 2 letters wait." in blocked.out
    assert re.search(rf"{pill} +hold +BLOCKED", names.out)
    assert "blocks" not in desk("status").out


def test_causes_promises_no_look_at_letters_behind_poison_that_blocks_their_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    desk = Desk(Settings(fifo_poison=FifoPoison.BLOCK), fifo=True)
    pill, *_ = desk.dead_letters("a-pill", *(f"a-{number}" for number in range(2, 15)))
    failed = declined(pill, queue=desk.deployment.queue_name, permanent=True)
    report(desk, failed)
    desk("run", "--yes")

    behind = desk("causes").out

    assert "which no pass has looked at yet" in behind
    assert (
        "the next pass looks at those that are not behind a letter that blocks its message group"
        in behind
    )


# Files, and the rest.


def test_an_edited_letter_keeps_its_group_and_undo_puts_the_original_into_the_parking_lot(
    desk: Desk,
) -> None:
    (original_id,) = desk.park("a-broken")

    desk("edit", original_id, "--yes")

    (message,) = desk.world.sqs.inspect.messages(desk.world.queue_name(SOURCE))
    assert (message.body, message.group_id) == ("a-mended", "a")
    desk.fail_again()
    (kept,) = Path().glob("*.jsonl")
    ran = desk("undo", str(kept), "--yes")
    assert ran.code == 0, ran.said
    (message,) = desk.world.sqs.inspect.messages(desk.world.queue_name(PARKING_LOT))
    assert (message.body, message.group_id) == ("a-broken", "a")


@pytest.mark.parametrize("by_a_pass", [True, False])
def test_an_edit_of_attributes_alone_is_sent_although_the_letter_just_was_and_nobody_noted_it(
    desk: Desk, by_a_pass: bool
) -> None:
    (original_id,) = desk.dead_letters(
        "a-1", MessageAttributes={"kind": {"DataType": "String", "StringValue": "broken"}}
    )
    if by_a_pass:
        desk.sleep(300)
        desk.redriver.pass_over(Wire(nth("SendMessageBatch", 0, die_after)))
        desk.sleep(270)  # what the pass had in hand is visible again
    else:
        lost = on("SendMessageBatch", lose_answer(LOST))
        assert desk("replay", "--from-dlq", "--all", "--yes", script=lost).code != 0

    ran = desk("edit", original_id, "--from-dlq", "--yes")

    assert ran.code == 0, ran.said
    kinds = [one.attributes["kind"]["StringValue"] for one in desk.messages(SOURCE)]
    assert kinds == ["broken", "mended"]


def test_what_a_pass_has_sent_unnoted_is_not_repeated_by_a_replay(desk: Desk) -> None:
    desk.dead_letters("a-1")
    desk.sleep(300)
    desk.redriver.pass_over(Wire(nth("SendMessageBatch", 0, die_after)))
    desk.sleep(270)  # what the pass had in hand is visible again

    desk("replay", "--from-dlq", "--all", "--yes")

    assert (desk.bodies(SOURCE), desk.bodies(DLQ)) == (["a-1"], [])


def test_many_are_edited_in_the_order_of_their_groups(desk: Desk) -> None:
    desk.park("a-1 broken", "a-2 broken", "b-1 fine", "b-2 broken")

    ran = desk("edit", "--all", "--with", "sed s/broken/mended/", "--yes")

    assert "Overtake earlier letters of their message group, which stay: 1 letter" in ran.said
    sent = desk.in_order(SOURCE)
    assert sorted(sent) == ["a-1 mended", "a-2 mended", "b-2 mended"]
    assert sent.index("a-1 mended") < sent.index("a-2 mended")


@pytest.mark.parametrize("where", [SOURCE, PARKING_LOT])
def test_an_import_keeps_groups_and_their_order(desk: Desk, where: str) -> None:
    desk.park(*TWELVE[:3], "b-1")
    desk("delete", "--all", "--export", "kept.jsonl", "--yes", answer="4")
    assert desk.in_order(PARKING_LOT) == []
    to = ["--to", "source" if where == SOURCE else "parking-lot"]

    ran = desk("import", "kept.jsonl", *to, "--yes")

    assert ran.code == 0, ran.said
    assert "Each keeps its message group, in the order of the file." in ran.said
    messages = desk.world.sqs.inspect.messages(desk.world.queue_name(where))
    assert {one.body: one.group_id for one in messages} == dict.fromkeys(TWELVE[:3], "a") | {
        "b-1": "b"
    }
    assert [one for one in desk.in_order(where) if one[0] == "a"] == TWELVE[:3]


@pytest.mark.parametrize("command", [["import", "--to", "parking-lot"], ["undo"]])
def test_what_is_brought_back_and_deleted_is_brought_back_again_within_five_minutes(
    desk: Desk, command: list[str]
) -> None:
    desk.park("a-1", "a-2")
    name, *options = command
    for file in ("first.jsonl", "second.jsonl"):
        desk("delete", "--all", "--export", file, "--yes", answer="2")

        ran = desk(name, "first.jsonl", *options, "--yes")

        assert ran.code == 0, ran.said
        assert desk.in_order(PARKING_LOT) == ["a-1", "a-2"]


def test_an_imported_letter_of_no_group_is_a_group_by_itself(desk: Desk) -> None:
    desk.park("a-1", "a-2")
    desk("delete", "--all", "--export", "kept.jsonl", "--yes", answer="2")
    lines = [json.loads(line) for line in Path("kept.jsonl").read_text().splitlines()]
    Path("kept.jsonl").write_text(
        "".join(json.dumps(one | {"group_id": None}) + "\n" for one in lines)
    )

    ran = desk("import", "kept.jsonl", "--to", "parking-lot", "--yes")

    assert "each becomes a group of its own: 2 letters" in ran.said
    messages = desk.world.sqs.inspect.messages(desk.world.queue_name(PARKING_LOT))
    assert {one.group_id for one in messages} == {one["original_id"] for one in lines}


def test_what_follows_a_refused_letter_of_a_file_is_not_imported(desk: Desk) -> None:
    desk.park("a-1", "a-2", "b-1")
    desk("delete", "--all", "--export", "kept.jsonl", "--yes", answer="3")
    refuses = nth("SendMessageBatch", 0, fail_entries({0}, "InvalidMessageContents"))

    ran = desk("import", "kept.jsonl", "--to", "parking-lot", "--yes", script=refuses)

    assert desk.in_order(PARKING_LOT) == ["b-1"]
    assert f"Skipped 1: {BEHIND}" in ran.said
    desk("import", "kept.jsonl", "--to", "parking-lot", "--yes")
    assert sorted(desk.in_order(PARKING_LOT)) == ["a-1", "a-2", "b-1"]


def test_a_drain_says_that_of_a_group_one_letter_is_out(desk: Desk) -> None:
    desk.dead_letters("a-1")

    assert "One letter of each message group is out at a time" in desk("drain", "--yes").said


def test_a_left_over_copy_that_can_not_be_deleted_cuts_nothing_of_its_group_off(
    desk: Desk, out: str
) -> None:
    """Hidden, it would hide what came after it, and the letters before it would look like the whole group."""
    desk.fail_again()
    refused = nth("DeleteMessageBatch", 0, fail_entries({0}, "InternalError"))

    desk.redriver.pass_over(Wire(refused))

    assert desk.in_order(DLQ) == ["a-1", "a-2", "a-1"]
    name = desk.world.queue_name(DLQ)
    hidden = desk.world.sqs.inspect.messages(name, Rest.IN_FLIGHT)
    assert desk.entry(out).current_id not in {one.message_id for one in hidden}


@pytest.mark.parametrize("verb", ["park", "delete"])
def test_letters_behind_one_that_stays_are_not_said_to_be_gone(desk: Desk, verb: str) -> None:
    """SQS hands out ten of a group, and the one that stays is one of them."""
    out, *_ = desk.dead_letters(*TWELVE)
    desk("run", "--yes")
    desk.sleep(120)
    desk("run", "--yes")

    where = () if verb == "park" else ("--from-dlq",)
    ran = desk(verb, "--all", *where, "--yes")
    again = desk(verb, "--all", *where, "--yes")

    assert ran.code == again.code == 3
    assert f"Skipped 1: {OUT}." in ran.err
    assert "Gone: " not in ran.err
    assert (
        "Not met: 2 letters. A pass or a person is working on them, or they are behind letters of their message "
        "group that stay: try again in five minutes."
    ) in ran.err
    assert "Not met: " not in again.err
    assert desk.entry(out).kept_id == out
    assert desk.in_order(DLQ) == TWELVE[:1]
