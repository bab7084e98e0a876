"""Files of letters: those of another queue do not become this one's unless somebody says so."""

from __future__ import annotations

import json
import os
import resource
from dataclasses import replace
from pathlib import Path

import pytest

from simulator.world import DLQ, PARKING_LOT, SOURCE
from smart_redriver.engine.triage.ledger import Status
from tests.oncall.desk import Desk
from tests.oncall.fakes import STACK, outputs_of
from tests.oncall.ran import Ran

OTHER_ARN = "arn:aws:sqs:us-east-1:123456789012:refunds"


@pytest.fixture
def file(desk: Desk, tmp_path: Path) -> Path:
    """A letter and another, deleted and kept."""
    desk.park("a", "b")
    path = tmp_path / "gone.jsonl"
    desk("delete", "--all", "--yes", "--export", str(path))
    return path


def rewrite(file: Path, **changes: object) -> None:
    """Change fields of the first line."""
    first, *rest = file.read_text().splitlines()
    file.write_text("\n".join([json.dumps(json.loads(first) | changes), *rest]) + "\n")


STRANGE = {
    "a queue of another name": {"source_arn": OTHER_ARN, "queue": "refunds"},
    "a queue of another name, which SQS did not tell": {"source_arn": None, "queue": "refunds"},
    "a queue of this name in another account": {
        "source_arn": f"arn:aws:sqs:us-east-1:999999999999:{SOURCE}"
    },
    "a queue of this name in another Region": {
        "source_arn": f"arn:aws:sqs:eu-west-1:123456789012:{SOURCE}"
    },
}


@pytest.mark.parametrize("to", ["source", "parking-lot"])
@pytest.mark.parametrize("changes", STRANGE.values(), ids=STRANGE)
def test_a_file_of_another_queue_is_refused_as_a_whole(
    desk: Desk, file: Path, changes: dict[str, object], to: str
) -> None:
    rewrite(file, **changes)

    ran = desk("import", str(file), "--to", to, "--yes")

    name = changes.get("queue", SOURCE)
    assert ran.code == 1
    assert "has 1 letter of " in ran.err
    assert (
        f"To accept them as its letters, use `redrive import` with --from-queue {name}." in ran.err
    )
    assert desk.bodies(PARKING_LOT) == desk.bodies(SOURCE) == []


@pytest.mark.parametrize(("to", "queue"), [("source", SOURCE), ("parking-lot", PARKING_LOT)])
@pytest.mark.parametrize("changes", STRANGE.values(), ids=STRANGE)
def test_letters_of_a_queue_that_is_named_become_this_ones(
    desk: Desk, file: Path, changes: dict[str, object], to: str, queue: str
) -> None:
    rewrite(file, **changes)
    name = str(changes.get("queue", SOURCE))

    ran = desk("import", str(file), "--to", to, "--from-queue", name, "--yes")

    assert ran.code == 0, ran.said
    assert desk.bodies(queue) == ["a", "b"]
    again = desk("replay", "--all", "--yes")
    assert again.code == (0 if queue == PARKING_LOT else 1)
    assert desk.bodies(SOURCE) == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "is_accepted"), [("late-refunds", True), ("Refunds", True), ("mails", False)]
)
def test_a_queue_is_named_as_in_the_list_or_as_people_see_it(
    desk: Desk, file: Path, name: str, is_accepted: bool
) -> None:
    """The refusal shortens generated names as all texts do, and its own advice was not understood."""
    generated = f"{STACK}-Refunds0A1B2C3D-aB3dE5gH7jK9"
    refunds = replace(
        desk.deployment, queue_name=generated, source_queue_url=f"https://sqs/1/{generated}"
    )
    desk.clients["cloudformation"].stacks[STACK] = {
        **outputs_of(desk.deployment, "MyOrders"),
        **outputs_of(refunds, "LateRefunds"),
    }
    rewrite(file, source_arn=None, queue=generated)
    order = ("import", str(file), "--queue", "my-orders", "--yes")

    refused, ran = desk(*order), desk(*order, "--from-queue", name)

    assert "with --from-queue Refunds." in refused.err
    assert (ran.code == 0) == is_accepted, ran.said
    assert desk.bodies(PARKING_LOT) == (["a", "b"] if is_accepted else [])


@pytest.mark.parametrize(("to", "queue"), [("source", SOURCE), ("parking-lot", PARKING_LOT)])
def test_another_queue_of_the_same_ledger_keeps_its_letters(
    desk: Desk, tmp_path: Path, to: str, queue: str
) -> None:
    """As queues of a stack: the letters in this DLQ stand for those of the other queue."""
    desk.dead_letters("a", "b")
    path = tmp_path / "others.jsonl"
    desk("export", str(path), "--from-dlq")
    changed = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text(
        "".join(
            json.dumps(one | {"queue": "refunds", "source_arn": OTHER_ARN}) + "\n"
            for one in changed
        )
    )
    desk.world.clock.advance(3600)

    ran = desk("import", str(path), "--to", to, "--from-queue", "refunds", "--yes")
    again = desk("import", str(path), "--to", to, "--from-queue", "refunds", "--yes")

    assert ran.code == 0, ran.said
    assert (again.code, "Imported 0 letters." in again.out) == (1, True)
    assert desk.bodies(queue) == ["a", "b"]
    desk("run", "--yes")
    both = sorted([*desk.bodies(DLQ), *desk.bodies(SOURCE)])
    assert both == (["a", "b"] if queue == PARKING_LOT else ["a", "a", "b", "b"])
    assert "Letters of refunds are copied, even those that are still there" in ran.out


@pytest.mark.parametrize(
    "status", [Status.PARKED, Status.RETURNED, Status.REPLAYED, Status.DELETED]
)
@pytest.mark.parametrize(("to", "queue"), [("source", SOURCE), ("parking-lot", PARKING_LOT)])
def test_another_queue_of_the_same_ledger_keeps_its_records(
    desk: Desk, file: Path, to: str, queue: str, status: Status
) -> None:
    """As queues of a stack: the records of the deleted letters stand for those of the other queue."""
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    ids = [line["original_id"] for line in lines]
    theirs = {one: replace(desk.entry(one), queue="refunds", status=status) for one in ids}
    desk.store.write_ledger(list(theirs.values()), [], desk.world.clock.now())
    changed = [line | {"queue": "refunds", "source_arn": OTHER_ARN} for line in lines]
    file.write_text("".join(json.dumps(line) + "\n" for line in changed))
    adopt = ("import", str(file), "--to", to, "--from-queue", "refunds", "--yes")

    ran = desk(*adopt)
    again = desk(*adopt)

    assert ran.code == 0, ran.said
    assert "Imported 2 letters." in ran.out
    assert (again.code, "Imported 0 letters." in again.out) == (1, True)
    assert desk.bodies(queue) == ["a", "b"]
    assert {one: desk.entry(one) for one in ids} == theirs
    desk.fail_again()
    assert desk("run", "--yes").code == 0
    assert desk("replay", "--all", "--yes").code == (0 if queue == PARKING_LOT else 1)
    assert desk.bodies(SOURCE) == ["a", "b"]
    assert {one: desk.entry(one) for one in ids} == theirs


def test_a_file_that_somebody_wrote_by_hand_is_this_queues(desk: Desk, tmp_path: Path) -> None:
    file = tmp_path / "by-hand.jsonl"
    line = {"version": 1, "message_id": "x", "body": "new", "sent_at": "2026-01-01T00:00:00Z"}
    file.write_text(json.dumps(line) + "\n")

    assert desk("import", str(file), "--yes").code == 0
    assert desk.bodies(PARKING_LOT) == ["new"]


def test_an_import_shows_what_it_sends(desk: Desk, file: Path) -> None:
    ran = desk("import", str(file), answer="no")

    assert "Plan: send 2 letters of" in ran.out
    assert ran.out.count("such as ") == 2
    assert "The circuit of orders is CLOSED." in ran.out


@pytest.mark.parametrize(("to", "code"), [("source", 1), ("parking-lot", 0)])
def test_an_import_to_the_source_goes_past_no_pause_without_being_told(
    desk: Desk, file: Path, to: str, code: int
) -> None:
    desk("pause", "--reason", "migration", "--yes")

    ran = desk("import", str(file), "--to", to, "--yes")

    assert ran.code == code
    assert len(desk.bodies(PARKING_LOT)) == (2 if code == 0 else 0)


HALF = "\ud800"


@pytest.mark.parametrize("to", ["source", "parking-lot"])
@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"body": f"a{HALF}"}, "body has half a character in it"),
        ({"message_id": HALF}, "message_id has half a character in it"),
        ({"group_id": 5}, "group_id is not text"),
        ({"trace_header": {}}, "trace_header is not text"),
        ({"source_arn": 5}, "source_arn is not text"),
        ({"trail": 5}, "trail is not text"),
        ({"sent_at": "0001-01-01T00:00:00+05:00"}, "is not a point in time"),
        ({"sent_at": "yesterday"}, "'yesterday' is not a point in time"),
        ({"reason": "x" * 501}, "reason is longer than 500 characters"),
        (
            {"attributes": {"A": {"DataType": "String", "StringValue": HALF}}},
            "attribute A has half a character in it",
        ),
        (
            {"attributes": {HALF: {"DataType": "String", "StringValue": "a"}}},
            "the name of an attribute has half a character in it",
        ),
    ],
)
def test_a_line_that_can_be_no_letter_is_named_before_the_first_is_sent(
    desk: Desk, file: Path, changes: dict[str, object], says: str, to: str
) -> None:
    rewrite(file, **changes)

    ran = desk("import", str(file), "--to", to, "--yes")

    assert ran.code == 1
    assert f"{file}, line 1: " in ran.err
    assert says in ran.err
    assert desk.bodies(PARKING_LOT) == desk.bodies(SOURCE) == []


def test_a_file_that_begins_with_a_mark_of_its_encoding_is_read(desk: Desk, file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())

    ran = desk("import", str(file), "--yes")

    assert ran.code == 0, ran.err
    assert len(desk.bodies(PARKING_LOT)) == 2


@pytest.mark.parametrize("verb", ["import", "undo"])
@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"root:x:0:0", "write it: line 1 is not JSON."),
        (b"1" * 5000, "write it: line 1 is not JSON."),
        (b"\xff\xfe", "write it: it is not text."),
        (None, "can't be read: No such file or directory."),
    ],
)
def test_what_is_no_file_of_letters_is_told_in_words(
    desk: Desk, tmp_path: Path, verb: str, content: bytes | None, says: str
) -> None:
    path = tmp_path / "passwd"
    if content is not None:
        path.write_bytes(content)

    ran = desk(verb, str(path), "--yes")

    assert ran.code == 1
    assert says in ran.err
    assert "Expecting" not in ran.err
    assert "Errno" not in ran.err


# Files that a command goes on in.


def deletes(desk: Desk, file: Path) -> Ran:
    """Delete the letter "new" into the file."""
    desk.park("new")
    return desk("delete", "--contains", "new", "--export", str(file), "--yes")


@pytest.mark.parametrize("line", [0, 1], ids=["in the first line", "in a later line"])
@pytest.mark.parametrize("changes", STRANGE.values(), ids=STRANGE)
def test_no_command_goes_on_in_a_file_of_another_queue(
    desk: Desk, file: Path, changes: dict[str, object], line: int
) -> None:
    """A file with letters of two queues can be undone for neither of them."""
    rewrite(file, **changes)
    lines = file.read_text().splitlines(keepends=True)
    before = "".join(lines if line == 0 else reversed(lines))
    file.write_text(before)

    ran = deletes(desk, file)

    assert ran.code == 1
    assert f"{file} has letters of another queue, {changes.get('queue', SOURCE)}" in ran.err
    assert "Name another file." in ran.err
    assert (file.read_text(), desk.bodies(PARKING_LOT)) == (before, ["new"])


def test_neither_an_edit_nor_an_undo_goes_on_in_a_file_of_another_queue(
    desk: Desk, file: Path
) -> None:
    own = file.rename(file.with_name("own.jsonl"))
    file.write_text(own.read_text())
    rewrite(file, source_arn=OTHER_ARN, queue="refunds")
    before = file.read_text()
    desk.park("broken")

    edit = ("edit", "--all", "--with", "sed s/broken/mended/")
    for command in (edit, ("undo", str(own))):
        ran = desk(*command, "--export", str(file), "--yes")
        assert (ran.code, "has letters of another queue, refunds" in ran.err) == (1, True)

    assert (file.read_text(), desk.bodies(PARKING_LOT)) == (before, ["broken"])


def test_a_command_goes_on_in_its_file_with_letters_of_a_queue_that_is_not_served(
    desk: Desk, file: Path
) -> None:
    rewrite(file, source_arn=OTHER_ARN)

    assert deletes(desk, file).code == 0
    assert len(file.read_text().splitlines()) == 3


def test_a_command_goes_on_after_a_last_line_that_has_no_end(desk: Desk, file: Path) -> None:
    file.write_text(file.read_text().removesuffix("\n"))

    assert deletes(desk, file).code == 0

    assert desk("undo", str(file), "--yes").code == 0
    assert desk.bodies(PARKING_LOT) == ["a", "b", "new"]


def test_no_command_goes_on_after_half_a_line(desk: Desk, file: Path) -> None:
    before = file.read_text()[:-20]
    file.write_text(before)

    ran = deletes(desk, file)

    assert (ran.code, file.read_text(), desk.bodies(PARKING_LOT)) == (1, before, ["new"])


def test_a_full_disk_leaves_a_file_of_whole_lines(desk: Desk, file: Path) -> None:
    """A file that ends with half a line is refused as a whole, with the letters that are only there."""
    room = file.stat().st_size + 50
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
        ran = deletes(desk, file)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert ran.code == 1
    assert f"{file} could not be written: File too large." in ran.err
    assert desk.bodies(PARKING_LOT) == ["new"]
    assert desk("undo", str(file), "--yes").code == 0
    assert desk.bodies(PARKING_LOT) == ["a", "b", "new"]


@pytest.mark.parametrize(
    ("command", "reason"),
    [("undo", "BY_HAND"), ("import", "IMPORTED")],
)
def test_a_letter_of_the_dlq_comes_back_as_what_the_command_did(
    desk: Desk, tmp_path: Path, command: str, reason: str
) -> None:
    (message_id,) = desk.dead_letters("a")
    file = tmp_path / "gone.jsonl"
    desk("delete", message_id, "--from-dlq", "--export", str(file), "--yes")

    assert desk(command, str(file), "--yes").code == 0

    entry = desk.entry(message_id)
    done = {"undo": "put back", "import": "imported"}[command]
    assert (entry.status, entry.park_reason) == (Status.PARKED, reason)
    assert f"{done} by " in entry.history[-1]


@pytest.mark.parametrize(("to", "queue"), [("source", SOURCE), ("parking-lot", PARKING_LOT)])
def test_a_letter_that_was_deleted_twice_into_a_file_is_imported_once(
    desk: Desk, file: Path, to: str, queue: str
) -> None:
    desk("undo", str(file), "--yes")
    desk("delete", "--all", "--yes", "--export", str(file))
    assert len(file.read_text().splitlines()) == 4

    ran = desk("import", str(file), "--to", to, "--yes")

    assert ran.code == 3
    assert "Skipped 2: an earlier line of the file is the same letter." in ran.err
    assert desk.bodies(queue) == ["a", "b"]


@pytest.mark.parametrize("verb", ["import", "undo"])
def test_a_pipe_is_no_file_of_letters(desk: Desk, file: Path, verb: str) -> None:
    """`redrive import <(zcat gone.jsonl.gz)` read it twice, and ended with 0 after no letter."""
    reads, writes = os.pipe()
    os.write(writes, file.read_bytes())
    os.close(writes)

    ran = desk(verb, f"/dev/fd/{reads}", "--yes")

    assert ran.code == 1
    assert f"/dev/fd/{reads} is not a regular file. Name one." in ran.err
    assert desk.bodies(PARKING_LOT) == []
    os.close(reads)
