"""Edits keep the original, by hand and by a command; `undo` puts it back; without a terminal no editor is started."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fakes.faults import Call, meanwhile, nth
from simulator.world import DLQ, PARKING_LOT, SOURCE
from smart_redriver.engine.messages.letter import Letter
from smart_redriver.engine.triage.ledger import Status
from smart_redriver.oncall.letters import edit_form as editing
from tests.faults.scenes import SOME
from tests.oncall.desk import Desk

NOW = datetime(2026, 11, 22, tzinfo=UTC)
SWAP = ("--with", "sed s/broken/mended/")


@pytest.fixture(autouse=True)
def editor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", "sed -i s/broken/mended/")


def lines_of(file: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


# The original.


@pytest.mark.parametrize("how", [(), SWAP], ids=["by hand", "by a command"])
def test_the_original_of_an_edited_letter_is_kept_whole(
    desk: Desk, tmp_path: Path, how: tuple[str, ...]
) -> None:
    (original_id,) = desk.park("broken", MessageAttributes=SOME)
    now = desk.world.clock.now()

    ran = desk("edit", original_id, *how, "--yes")

    (file,) = tmp_path.glob(f"edited-{now:%Y%m%dT%H%M%SZ}-*.jsonl")
    (line,) = lines_of(file)
    assert ran.code == 0, ran.said
    assert (line["body"], line["original_id"]) == ("broken", original_id)
    assert line["attributes"]["blob"] == {"DataType": "Binary", "BinaryBase64": "AP8="}  # type: ignore[index]
    assert file.name in desk.history()[-1]


@pytest.mark.parametrize("how", [(), SWAP], ids=["by hand", "by a command"])
def test_nothing_is_sent_that_could_not_be_kept(
    desk: Desk, tmp_path: Path, how: tuple[str, ...]
) -> None:
    (original_id,) = desk.park("broken")

    ran = desk("edit", original_id, *how, "--yes", "--export", str(tmp_path / "no" / "file"))

    assert ran.code == 1
    assert "can't be written" in ran.err
    assert (desk.bodies(PARKING_LOT), desk.bodies(SOURCE)) == (["broken"], [])


def test_an_edit_does_not_take_back_what_somebody_else_edited_meanwhile(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the DLQ a letter that comes back has the same id, and is found by it."""
    (original_id,) = desk.dead_letters("price and currency are broken")
    edit = editing.edited

    def while_somebody_else_edits(text: str, **_: str) -> str:
        monkeypatch.setattr(editing, "edited", edit)
        other = ("--from-dlq", "--with", "sed s/currency/EUR/", "--yes", "--export", "other.jsonl")
        assert desk("edit", original_id, *other).code == 0
        desk.fail_again()
        return text.replace("price", "9.90")

    monkeypatch.setattr(editing, "edited", while_somebody_else_edits)
    ran = desk("edit", original_id, "--from-dlq", "--yes", "--export", "own.jsonl")

    assert ran.code == 1
    assert "somebody else has edited it meanwhile; edit it again" in ran.err
    assert (desk.bodies(DLQ), desk.bodies(SOURCE)) == (["price and EUR are broken"], [])
    assert desk.visible(DLQ) == 1
    assert not Path("own.jsonl").exists()
    assert "is kept in" not in ran.said


def test_a_file_that_can_not_be_written_is_told_before_anybody_edits(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (original_id,) = desk.park("broken")
    monkeypatch.setenv("EDITOR", "touch was-edited")
    Path("notes.txt").write_text("not a letter\n")

    ran = desk("edit", original_id, "--yes", "--export", "notes.txt")

    assert ran.code == 1
    assert "notes.txt exists and is not a file of letters" in ran.err
    assert not (tmp_path / "was-edited").exists()


# Undo.


def edited(desk: Desk, *bodies: str) -> list[str]:
    """Letters that were edited; their original ids."""
    ids = desk.park(*bodies, MessageAttributes=SOME)
    assert desk("edit", "--all", *SWAP, "--export", "edits.jsonl", "--yes").code == 0
    return ids


@pytest.mark.parametrize("is_parked_again", [True, False], ids=["parked again", "in the DLQ"])
def test_undo_puts_the_original_in_the_place_of_a_copy_that_came_back(
    desk: Desk, tmp_path: Path, is_parked_again: bool
) -> None:
    (original_id,) = edited(desk, "broken")
    desk.fail_again()
    if is_parked_again:
        desk.park()

    ran = desk("undo", "edits.jsonl", "--export", "undone.jsonl", "--yes", "--reason", "mistaken")

    assert ran.code == 0, ran.said
    assert (desk.bodies(PARKING_LOT), desk.bodies(DLQ)) == (["broken"], [])
    (message,) = desk.world.sqs.inspect.messages(PARKING_LOT)
    assert message.attributes["blob"] == SOME["blob"]
    entry = desk.entry(original_id)
    assert (entry.status, entry.park_reason) == (Status.PARKED, "BY_HAND")
    assert entry.history[-1].endswith("user/kim: mistaken")
    assert [line["body"] for line in lines_of(tmp_path / "undone.jsonl")] == ["mended"]


def test_undo_knows_a_letter_that_was_sent_and_came_back_since_the_plan(desk: Desk) -> None:
    (original_id,) = desk.dead_letters("broken")
    desk.store.write_ledger([desk.suspect(original_id)], [], desk.world.clock.now())
    assert desk("export", "dlq.jsonl", "--from-dlq").code == 0

    def somebody_edits_it() -> None:
        assert desk("edit", original_id, "--from-dlq", *SWAP, "--yes").code == 0
        desk.fail_again()

    begins = nth("PutItem", 0, meanwhile(somebody_edits_it))
    ran = desk("undo", "dlq.jsonl", "--yes", script=begins)

    assert ran.code == 0, ran.said
    assert desk.history()[1].startswith("edit ")
    assert (desk.bodies(DLQ), desk.bodies(PARKING_LOT)) == ([], ["broken"])


def test_undo_calls_nothing_back_from_a_source_queue(desk: Desk) -> None:
    edited(desk, "broken")

    ran = desk("undo", "edits.jsonl", "--yes")

    assert ran.code == 1
    assert "undo again if it comes back" in ran.err
    assert "redrive import" not in ran.err  # which sends no letter that its consumer may have
    assert (desk.bodies(SOURCE), desk.bodies(PARKING_LOT)) == (["mended"], [])


def test_undo_says_how_to_bring_back_what_was_purged(desk: Desk) -> None:
    edited(desk, "broken")
    desk.fail_again()
    desk.park()
    desk.purge(PARKING_LOT)

    ran = desk("undo", "edits.jsonl", "--yes")

    assert ran.code == 1
    assert "after a purge, `redrive import --even-though-there`" in ran.err
    assert desk("import", "edits.jsonl", "--even-though-there", "--yes").code == 0
    assert desk.bodies(PARKING_LOT) == ["broken"]


def test_undo_brings_back_what_was_deleted(desk: Desk) -> None:
    desk.park("a", "b")
    desk("delete", "--all", "--yes", "--export", "gone.jsonl")

    ran = desk("undo", "gone.jsonl", "--yes")

    assert ran.code == 0, ran.said
    assert desk.bodies(PARKING_LOT) == ["a", "b"]


@pytest.mark.parametrize("where", ["parked", "in the DLQ", "deleted"])
def test_undo_of_a_letter_that_a_file_holds_twice_takes_it_as_it_was_first(
    desk: Desk, where: str
) -> None:
    edited(desk, "broken")
    desk.fail_again()
    again = ("--from-dlq", "--with", "sed s/mended/worse/", "--export", "edits.jsonl", "--yes")
    assert desk("edit", "--all", *again).code == 0
    desk.fail_again()
    if where != "in the DLQ":
        desk.park()
    if where == "deleted":
        assert desk("delete", "--all", "--export", "edits.jsonl", "--yes").code == 0

    ran = desk("undo", "edits.jsonl", "--yes")

    assert ran.code == 0, ran.said
    assert (desk.bodies(PARKING_LOT), desk.bodies(DLQ)) == (["broken"], [])


def test_undoing_twice_changes_nothing_more(desk: Desk) -> None:
    edited(desk, "broken")
    desk.fail_again()
    desk.park()
    desk("undo", "edits.jsonl", "--yes")

    ran = desk("undo", "edits.jsonl", "--yes")

    assert ran.code == 1
    assert "Skipped 1: it is as it was." in ran.err
    assert desk.bodies(PARKING_LOT) == ["broken"]


def test_of_two_undos_at_once_the_second_brings_nothing_back_and_names_no_option_of_another(
    desk: Desk,
) -> None:
    desk.park("a")
    desk("delete", "--all", "--yes", "--export", "gone.jsonl")
    another = meanwhile(lambda: desk("undo", "gone.jsonl", "--yes"))

    ran = desk("undo", "gone.jsonl", "--yes", script=nth("PutItem", 0, another))

    assert ran.code == 1
    assert "Skipped 1: the ledger shows it as still there" in ran.err
    assert "`redrive import --even-though-there`" in ran.err
    assert desk.bodies(PARKING_LOT) == ["a"]


def test_undo_shows_its_plan_and_takes_no_for_an_answer(desk: Desk) -> None:
    edited(desk, "broken")
    desk.fail_again()
    desk.park()

    ran = desk("undo", "edits.jsonl", answer="no")

    assert ran.code == 1
    assert ran.out.startswith("Plan: put 1 letter of edits.jsonl into the parking lot as they were")
    assert desk.bodies(PARKING_LOT) == ["mended"]


def test_undo_takes_no_file_of_another_queue(desk: Desk, tmp_path: Path) -> None:
    desk.park("a")
    desk("delete", "--all", "--yes", "--export", "gone.jsonl")
    file = tmp_path / "gone.jsonl"
    line = lines_of(file)[0] | {"source_arn": "arn:aws:sqs:us-east-1:123456789012:refunds"}
    file.write_text(json.dumps(line) + "\n")

    assert desk("undo", "gone.jsonl", "--yes").code == 1
    assert desk.bodies(PARKING_LOT) == []


# The editor.


@pytest.mark.parametrize("named", [None, "vim", "/usr/bin/nano -w", "nvim"])
def test_no_editor_is_started_that_would_wait_for_a_terminal(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, named: str | None
) -> None:
    (original_id,) = desk.park("broken")
    if named:
        monkeypatch.setenv("EDITOR", named)
    else:
        monkeypatch.delenv("EDITOR")

    ran = desk("edit", original_id, "--yes")

    assert ran.code == 1
    assert "There is no terminal for the editor" in ran.err
    assert "--with CMD" in ran.err
    assert desk.visible(PARKING_LOT) == 1


@pytest.mark.parametrize(
    "arguments",
    [(), ("a", "b"), ("--all",), ("--contains", "x"), ("a", "--dry-run"), ("a", "--contains", "x")],
)
def test_by_hand_one_letter_is_edited_and_no_more(desk: Desk, arguments: tuple[str, ...]) -> None:
    assert desk("edit", *arguments, "--yes").code == 2
    assert desk.calls == []


# By a command.


def test_a_command_mends_many_letters_and_leaves_the_others(desk: Desk) -> None:
    desk.park("broken 1", "broken 2", "fine", MessageAttributes=SOME)

    ran = desk("edit", "--all", *SWAP, "--yes", "--reason", "new schema")

    assert ran.code == 3, ran.said
    assert desk.bodies(SOURCE) == ["mended 1", "mended 2"]
    assert desk.bodies(PARKING_LOT) == ["fine"]
    assert desk.visible(PARKING_LOT) == 1
    assert "Skipped 1: the command leaves it as it is." in ran.err
    (message, _) = desk.world.sqs.inspect.messages(SOURCE)
    assert message.attributes["blob"] == SOME["blob"]


def test_the_plan_shows_differences_of_samples_and_the_count(desk: Desk) -> None:
    desk.park(*(f"broken {n}" for n in range(5)), "fine")

    ran = desk("edit", "--all", *SWAP, answer="no")

    assert "Plan: pipe 5 letters through `sed s/broken/mended/`" in ran.out
    assert ran.out.count("-broken") == ran.out.count("+mended") == 3
    assert "Left unchanged: 1 letter, the command leaves it as it is." in ran.out
    assert "Send the command's output for 5 letters" in ran.err
    assert desk.visible(PARKING_LOT) == 6
    assert desk.bodies(SOURCE) == []


def test_a_named_letter_that_an_edit_by_command_does_not_meet_is_told(desk: Desk) -> None:
    there, _ = desk.park("broken", "broken")
    absent = "00000000-0000-4000-8000-000000000000"

    plan = desk("edit", there, absent, *SWAP, "--dry-run", "--json")
    ran = desk("edit", there, absent, *SWAP, "--yes", "--json")

    assert plan.json == {"plan": {"count": 1, "staying": {}, "missing": [absent]}}
    assert f"Not among them: {absent}." in plan.err
    assert (ran.code, ran.json["done"], ran.json["missing"]) == (3, 1, [absent])


def test_the_reason_of_an_edit_by_command_is_in_the_letters_own_history(desk: Desk) -> None:
    (original_id,) = desk.park("broken")

    desk("edit", "--all", *SWAP, "--reason", "typo", "--yes")

    note = desk.entry(original_id).history[-1]
    assert note.endswith(
        " edited with `sed s/broken/mended/` and replayed by arn:aws:iam::123456789012:user/kim: typo"
    )


def test_a_difference_in_a_long_line_is_shown_with_what_is_around_it(desk: Desk) -> None:
    body = f'{{"lines":"{"x" * 200_000}","state":"broken","more":"{"y" * 100_000}"}}'
    desk.park(body)

    ran = desk("edit", "--all", *SWAP, answer="no")

    before, after = f'{"x" * 49}","state":"', f'","more":"{"y" * 50}'
    assert f"    -[… 199,961 characters …]{before}broken{after}[… 99,952 characters …]\n" in ran.out
    assert f"    +[… 199,961 characters …]{before}mended{after}[… 99,952 characters …]\n" in ran.out
    assert len(ran.out) < 3_000


def test_changes_far_apart_in_a_line_show_where_they_begin_and_end(desk: Desk) -> None:
    body = f"broken {'x' * 1_000} broken"
    desk.park(body)

    ran = desk("edit", "--all", "--with", "sed s/broken/mended/g", answer="no")

    x = "x" * 53
    assert f"    -broken {x}[… 894 characters …]{x} broken\n    +mended {x}[" in ran.out


def test_long_lines_without_a_counterpart_show_their_beginning(desk: Desk) -> None:
    same, new = "s" * 1_000, "n" * 1_000
    desk.park(f"{same}\nbroken")

    ran = desk("edit", "--all", "--with", f"sh -c 'cat; echo; echo {new}; echo z'", answer="no")

    assert f"     {same[:60]}[… 940 characters …]\n" in ran.out
    assert f"    +{new[:60]}[… 880 characters …]{new[:60]}\n    +z\n" in ran.out


def test_a_long_difference_shows_its_first_hundred_lines(desk: Desk) -> None:
    desk.park("broken")

    ran = desk("edit", "--all", "--with", "seq 2000", answer="no")

    assert "    +93\n    +94\n    [… 1,906 more lines …]\n" in ran.out
    assert "    +95\n" not in ran.out


def test_a_difference_names_a_carriage_return(desk: Desk) -> None:
    desk.park("a\r\nb\r\n")

    ran = desk("edit", "--all", "--with", "tr -d '\\r'", "--dry-run")

    assert "    -a⟦U+000D⟧\n    -b⟦U+000D⟧\n    +a\n    +b\n" in ran.out


@pytest.mark.parametrize("seldom", "\r\t\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029")
@pytest.mark.parametrize("body", ["a{}\nb", "a{}b", "a{}", "{}a", "a\n{}"])
def test_no_difference_hides_what_could_end_a_line(seldom: str, body: str) -> None:
    """A payload of Postgres or Kafka may have characters that SQS refuses."""
    before = Letter(message_id="", receipt_handle="", body=body.format(seldom), sent_at=NOW)
    after = replace(before, body=body.format(""))

    _, _, *lines = editing.difference(before, after)

    named = body.format(f"⟦U+{ord(seldom):04X}⟧").split("\n")
    plain = after.body.split("\n")
    assert {one[1:] for one in lines if one[0] == "-"} == {*named} - {*plain}
    assert {one[1:] for one in lines if one[0] == "+"} == {*plain} - {*named}


def test_a_difference_shows_spaces_and_a_last_line_end(desk: Desk) -> None:
    desk.park("a  b\n")

    ran = desk("edit", "--all", "--with", "printf 'a b'", "--dry-run")

    assert "    -a  b\n    -\n    +a b\n" in ran.out


def test_a_dry_run_of_an_edit_sends_nothing(desk: Desk, tmp_path: Path) -> None:
    desk.park("broken 1", "fine")

    ran = desk("edit", "--all", *SWAP, "--dry-run", "--json")

    assert ran.json == {"plan": {"count": 1, "staying": {"the command leaves it as it is": 1}}}
    assert desk.visible(PARKING_LOT) == 2
    assert list(tmp_path.glob("*.jsonl")) == []


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("false", "refused by the command: exit code 1"),
        ("sh -c 'echo no schema >&2; exit 4'", "refused by the command: no schema"),
        ("true", "refused: the command printed nothing"),
        ("printf '\\377'", "refused: the output of the command is not text"),
        ("cat", "the command leaves it as it is"),
    ],
)
def test_what_a_command_can_not_mend_stays(desk: Desk, command: str, said: str) -> None:
    desk.park("broken")

    ran = desk("edit", "--all", "--with", command, "--yes")

    assert ran.code == 1
    assert f"The command changes no letter: nothing to do (1: {said})." in ran.err
    assert desk.visible(PARKING_LOT) == 1


def test_what_a_command_made_is_validated(desk: Desk) -> None:
    desk.park("broken 1", "broken 2")

    ran = desk("edit", "--all", *SWAP, "--validate", "grep 1", "--yes")

    assert ran.code == 3
    assert desk.bodies(SOURCE) == ["mended 1"]
    assert desk.bodies(PARKING_LOT) == ["broken 2"]


def test_a_command_that_adds_a_line_end_changes_nothing_by_it(desk: Desk) -> None:
    desk.park('{"a":  1}')

    desk("edit", "--all", "--with", "sh -c 'tr -d \" \"; echo'", "--yes")

    assert desk.bodies(SOURCE) == ['{"a":1}']


def test_no_such_command_is_misuse(desk: Desk) -> None:
    desk.park("a")

    ran = desk("edit", "--all", "--with", "no-such-command", "--yes")

    assert ran.code == 2
    assert "--with 'no-such-command': there is no such command" in ran.err


def test_a_letter_too_large_for_its_queue_stays(desk: Desk) -> None:
    desk.park("broken 1")
    grow = f"{sys.executable} -c \"print('x' * 1_100_000)\""

    ran = desk("edit", "--all", "--with", grow, "--yes")

    assert ran.code == 1
    assert desk.bodies(PARKING_LOT) == ["broken 1"]


def test_an_edit_by_command_goes_past_no_pause_without_being_told(desk: Desk) -> None:
    desk.park("broken")
    desk("pause", "--reason", "migration", "--yes")

    assert desk("edit", "--all", *SWAP, "--yes").code == 1
    assert desk("edit", "--all", *SWAP, "--yes", "--even-though-paused").code == 0


def test_the_terminal_is_watched_where_both_its_ends_are_one(desk: Desk) -> None:
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    from smart_redriver.oncall.terminal.terminal import Terminal

    assert Terminal(out=Screen(), answers=Screen()).is_watched
    assert not Terminal(out=io.StringIO(), answers=Screen()).is_watched
    assert not Terminal(out=Screen(), answers=io.StringIO()).is_watched


@pytest.mark.parametrize("verb", ["undo", "import"])
def test_two_commands_of_one_person_never_hold_the_lease_together(
    desk: Desk, verb: str, tmp_path: Path
) -> None:
    desk.park("a", "b")
    owners: list[str] = []

    def note(call: Call) -> None:
        if call.operation == "PutItem":
            owners.append(call.request["Item"]["Owner"]["S"])

    for number in range(2):
        file = str(tmp_path / f"gone-{number}.jsonl")
        desk("delete", "--all", "--yes", "--export", file)
        assert desk(verb, file, "--yes", script=note).code == 0

    assert len(owners) == len(set(owners)) == 2
