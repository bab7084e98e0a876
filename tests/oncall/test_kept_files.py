"""Files of letters: those of another queue do not become this one's unless somebody says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from simulator.world import PARKING_LOT, SOURCE
from tests.oncall.desk import Desk

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


@pytest.mark.parametrize("verb", ["import", "undo"])
@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"root:x:0:0", "write it: line 1 is not JSON."),
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
