"""The console on FIFO queues: the order of groups, and what is refused, as the command has them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.faults import Wire
from simulator.world import DLQ, PARKING_LOT, SOURCE
from smart_redriver.oncall.console.cache import Notepad
from tests.oncall.browsing import Browsing, told
from tests.oncall.desk import Desk

QUEUE = f"{SOURCE}.fifo"
OUT = "its copy is out, and its outcome is not known yet"
BEHIND = "it would overtake an earlier letter of its message group, which stays"


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.chdir(tmp_path)  # where letters are kept
    return Desk(fifo=True)


@pytest.fixture
def page(desk: Desk) -> Iterator[Browsing]:
    browsing = Browsing(desk.session(Wire(), Notepad()))
    yield browsing
    browsing.console.tasks.close()


@pytest.fixture
def out(desk: Desk) -> str:
    """The id of a letter whose copy a pass has sent; `a-2` is behind it."""
    original_id, *_ = desk.dead_letters("a-1", "a-2")
    desk("run", "--yes")  # its backoff is a hold
    desk.sleep(120)
    desk("run", "--yes")
    assert desk.in_order(SOURCE) == ["a-1"]
    return original_id


def test_a_replay_has_the_commands_plan_and_keeps_the_order_of_groups(
    desk: Desk, page: Browsing
) -> None:
    desk.park("a-1", "a-2", "b-1", "a-3")
    by_command = desk("replay", "--all", "--dry-run").out

    task = page.order(QUEUE, "replay", all=True)
    ended = page.answer(task)

    assert "Letters of one message group go in their order" in told(task)
    assert set(told(task).splitlines()) <= set(by_command.splitlines())
    assert ended["exit_code"] == 0
    assert [one for one in desk.in_order(SOURCE) if one[0] == "a"] == ["a-1", "a-2", "a-3"]


def test_letters_out_of_the_middle_of_a_group_are_counted_in_the_plan(
    desk: Desk, page: Browsing
) -> None:
    desk.dead_letters("a-1", "a-2 x", "b-1 x")

    task = page.order(QUEUE, "replay", contains="x", from_dlq=True)

    assert "overtake earlier letters of their message group, which stay" in told(task)
    assert page.answer(task, "no")["fault"] == "Nothing was changed."
    assert desk.in_order(DLQ) == ["a-1", "a-2 x", "b-1 x"]


def test_what_is_behind_a_letter_whose_copy_is_out_stays_and_is_told(
    desk: Desk, page: Browsing, out: str
) -> None:
    ended = page.done(QUEUE, "replay", all=True, from_dlq=True)

    assert ended["result"]["skipped"] == {OUT: 1, BEHIND: 1}
    assert desk.in_order(SOURCE) == ["a-1"]
    assert desk.in_order(DLQ) == ["a-1", "a-2"]


def test_a_letter_whose_copy_is_out_is_neither_edited_nor_parked(
    desk: Desk, page: Browsing, out: str
) -> None:
    parked = page.done(QUEUE, "park", ids=[out])
    edited = page.order(
        QUEUE, "edit", id=out, was="0" * 64, body="mended", attributes={}, from_dlq=True
    )

    assert OUT in str(parked)
    assert edited["state"] == "ended"
    assert OUT in edited["fault"]
    assert desk.in_order(DLQ) == ["a-1", "a-2"]
    assert desk.in_order(PARKING_LOT) == []


def test_what_was_deleted_is_brought_back_in_its_groups(desk: Desk, page: Browsing) -> None:
    desk.park("a-1", "a-2", "b-1")
    page.done(QUEUE, "delete", all=True)
    (kept,) = page.get("/api/files")

    ended = page.done(QUEUE, "undo", file=kept["name"])

    assert (ended["exit_code"], ended["fault"]) == (0, None)
    assert sorted(desk.in_order(PARKING_LOT)) == ["a-1", "a-2", "b-1"]
    assert {one.body: one.group_id for one in desk.messages(PARKING_LOT)} == {
        "a-1": "a",
        "a-2": "a",
        "b-1": "b",
    }
