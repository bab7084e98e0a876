"""`replay`, `edit`, `delete`, `export`, `import`: letters go where a person sends them, whole, and only after a yes."""

from __future__ import annotations

import json
import os
import signal
import stat
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from fakes.faults import Wire, fail_entries, meanwhile, nth, on, refuse
from simulator.world import DLQ, PARKING_LOT, SOURCE
from smart_redriver.engine.messages.letter import METADATA_ATTRIBUTE
from smart_redriver.engine.model.circuit import Lease
from smart_redriver.engine.triage.decision import ParkReason
from smart_redriver.engine.triage.ledger import Status
from smart_redriver.oncall.letters.export_file import ExportFile
from smart_redriver.oncall.moving.sending import Finished, OwnCommand
from smart_redriver.oncall.terminal.terminal import Terminal
from tests.faults.errors import refusal
from tests.faults.scenes import SOME, TEN
from tests.oncall.desk import Desk


@pytest.fixture(autouse=True)
def editor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)  # where originals are kept
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", "sed -i s/broken/mended/")


# Replay.


def test_a_replayed_letter_keeps_body_and_attributes_and_starts_with_no_strikes(desk: Desk) -> None:
    (original_id,) = desk.park("a", MessageAttributes=SOME, MessageGroupId="tenant-7")

    ran = desk("replay", original_id, "--yes", "--reason", "fixed in 1.2")

    assert ran.code == 0
    (message,) = desk.world.sqs.inspect.messages(SOURCE)
    own = {name: one for name, one in message.attributes.items() if name != METADATA_ATTRIBUTE}
    assert (message.body, own, message.group_id) == ("a", SOME, "tenant-7")
    assert json.loads(message.attributes[METADATA_ATTRIBUTE]["StringValue"])["id"] == original_id
    entry = desk.entry(original_id)
    assert (entry.status, entry.strikes, entry.redrive_count) == (Status.REPLAYED, 0, 1)
    assert entry.first_redrive is None  # giving up counts anew
    assert entry.history[-1].endswith("user/kim: fixed in 1.2")


def test_a_letter_that_its_consumer_parks_again_at_once_is_replayed_once(desk: Desk) -> None:
    (original_id,) = desk.park("a")

    def consumer_parks_it() -> None:
        (message,) = desk.world.sqs.receive_message(
            QueueUrl=desk.world.url(SOURCE), MessageAttributeNames=["All"]
        )["Messages"]
        desk.world.sqs.send_message(
            QueueUrl=desk.world.url(PARKING_LOT),
            MessageBody=message["Body"],
            MessageAttributes=message["MessageAttributes"],
        )

    ran = desk(
        "replay",
        "--all",
        "--yes",
        script=nth("DeleteMessageBatch", 0, meanwhile(consumer_parks_it)),
    )

    assert ran.code == 0, ran.said
    assert "replayed 1 letter" in ran.said.lower()
    assert desk.bodies(PARKING_LOT) == ["a"]
    assert desk.entry(original_id).redrive_count == 1


def test_replayed_letters_leave_the_list(desk: Desk) -> None:
    first, _ = desk.park("a", "b")

    desk("replay", first, "--yes")

    assert desk("parked", "--json").json["count"] == 1
    assert desk.bodies(PARKING_LOT) == ["b"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--all",), ["good 1", "good 2", "ugly"]),
        (("--contains", "good"), ["good 1", "good 2"]),
        (("--parked-as", "EXPIRING"), ["ugly"]),
        (("--error", "no such error"), []),
    ],
)
def test_replay_takes_what_is_chosen_and_leaves_the_rest_visible(
    desk: Desk, arguments: tuple[str, ...], expected: list[str]
) -> None:
    desk.park("good 1", "good 2")
    desk.park("ugly", reason=ParkReason.EXPIRING)

    ran = desk("replay", *arguments, "--yes")

    assert desk.bodies(SOURCE) == expected
    assert desk.visible(PARKING_LOT) == 3 - len(expected)
    assert ran.code == (0 if expected else 1)


def test_replay_shows_its_plan_and_does_nothing_without_a_yes(desk: Desk) -> None:
    desk.park("a", "b")

    ran = desk("replay", "--all", answer="no")

    assert ran.code == 1
    assert "Plan: replay 2 letters to orders, 100 a second" in ran.out
    assert "2  MAX_ATTEMPTS · no cause reported" in ran.out
    assert "Nothing was changed." in ran.err
    assert desk.bodies(SOURCE) == []
    assert desk.history() == []


def test_replay_goes_on_after_a_yes(desk: Desk) -> None:
    desk.park("a", "b")

    assert desk("replay", "--all", answer="yes").code == 0
    assert desk.bodies(SOURCE) == ["a", "b"]
    assert desk.history() == ["replay all: begun", "replay all: replayed 2 letters"]


def test_a_dry_run_tells_the_plan_as_json(desk: Desk) -> None:
    ids = desk.park("a", "b")

    told = desk("replay", "--all", "--dry-run", "--json", "--rate", "7").json

    samples = told["plan"].pop("samples")
    assert told == {
        "plan": {
            "count": 2,
            "is_exact": True,
            "rate": 7.0,
            "groups": {"MAX_ATTEMPTS · no cause reported": 2},
        }
    }
    assert {one["original_id"]: one["body"] for one in samples} == dict(
        zip(ids, ("a", "b"), strict=True)
    )


def test_the_rate_is_kept(desk: Desk) -> None:
    desk.park(*(f"letter {n}" for n in range(40)))
    started = desk.world.clock.now()

    desk("replay", "--all", "--yes", "--rate", "2")

    took = (desk.world.clock.now() - started).total_seconds()
    assert 15 <= took <= 20  # the first ten go at once


def test_what_is_left_comes_back_into_view_and_ends_no_long_replay(desk: Desk) -> None:
    """What is not meant is hidden for five minutes, and is received again while others are still to be sent."""
    desk.park(*(f"stays {n}" for n in range(100)), *(f"goes {n}" for n in range(40)))

    ran = desk("replay", "--contains", "goes", "--yes", "--rate", "0.05", "--json")

    assert (ran.code, ran.json["done"], ran.json["not_met"]) == (0, 40, 0)
    assert len(desk.bodies(SOURCE)) == 40
    assert desk.visible(PARKING_LOT) == 100


def test_a_slow_replay_waits_with_no_letter_in_hand(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is hidden for longer than five minutes is seen by others, who would send it, too."""
    desk.park("first", "second", "third")
    in_hand = []
    wait = desk.sleep

    def sleep(seconds: float) -> None:
        in_hand.append(len(desk.messages(PARKING_LOT)) - desk.visible(PARKING_LOT))
        wait(seconds)

    monkeypatch.setattr(desk, "sleep", sleep)
    ran = desk("replay", "--all", "--yes", "--rate", "0.002")

    assert ran.code == 0
    assert desk.bodies(SOURCE) == ["first", "second", "third"]
    assert set(in_hand) == {0}


def test_somebody_elses_replay_sends_what_a_slow_one_waits_for_and_nothing_twice(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.park("first", "second")
    wait = desk.sleep

    def sleep(seconds: float) -> None:
        wait(seconds)
        if desk.visible(PARKING_LOT) and desk.world.elapsed > timedelta(minutes=10):
            monkeypatch.setattr(desk, "sleep", wait)
            assert desk("replay", "--all", "--yes").code == 0

    monkeypatch.setattr(desk, "sleep", sleep)
    desk("replay", "--all", "--yes", "--rate", "0.001")

    assert desk.bodies(SOURCE) == ["first", "second"]


def test_ctrl_c_in_the_terminal_is_not_for_the_check_that_runs(desk: Desk) -> None:
    """The terminal sends it to a whole process group. A check that died of it would have said no."""
    desk.park("a letter")
    is_apart = "import os, sys; sys.exit(os.getpgid(0) == os.getpgid(os.getppid()))"

    ran = desk("replay", "--all", "--yes", "--validate", f"{sys.executable} -c '{is_apart}'")

    assert ran.code == 0, ran.said
    assert desk.bodies(SOURCE) == ["a letter"]


def test_a_slow_command_is_tried_on_letters_for_minutes(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.park(*(f"letter {n}" for n in range(40)))
    run = OwnCommand.run

    def slowly(self: OwnCommand, body: str) -> Finished:
        desk.world.clock.advance(9)
        return run(self, body)

    monkeypatch.setattr(OwnCommand, "run", slowly)
    ran = desk("edit", "--all", "--with", "sed s/letter/mended/", "--yes")

    assert ran.code == 0, ran.said
    assert sorted(desk.bodies(SOURCE)) == sorted(f"mended {n}" for n in range(40))
    assert desk.bodies(PARKING_LOT) == []


@pytest.mark.parametrize("seconds", [7, 10, 70])
def test_a_check_that_outlasts_a_shift_gets_on(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    desk.park(*(f"letter {n}" for n in range(12)))
    run, asked = OwnCommand.run, []

    def slowly(self: OwnCommand, body: str) -> Finished:
        asked.append(body)
        assert len(asked) < 60, "it asks about the same letters again and again"
        desk.world.clock.advance(seconds)
        return run(self, body)

    monkeypatch.setattr(OwnCommand, "run", slowly)
    ran = desk("replay", "--all", "--validate", "grep letter", "--yes")

    assert ran.code == 0
    assert len(desk.bodies(SOURCE)) == 12
    assert desk.bodies(PARKING_LOT) == []


def test_bodies_that_the_validation_refuses_stay_and_it_says_why(desk: Desk) -> None:
    desk.park("good", "bad")

    ran = desk(
        "replay", "--all", "--yes", "--validate", "sh -c 'grep good || (echo no good; false)'"
    )

    assert ran.code == 3
    assert desk.bodies(SOURCE) == ["good"]
    assert desk.visible(PARKING_LOT) == 1
    assert "Skipped 1: not valid: no good." in ran.err


def test_a_validation_that_does_not_exist_is_misuse(desk: Desk) -> None:
    desk.park("a")

    ran = desk("replay", "--all", "--yes", "--validate", "no-such-command")

    assert ran.code == 2
    assert "there is no such command" in ran.err


def test_an_id_that_is_not_there_makes_it_partly_done(desk: Desk) -> None:
    (known,) = desk.park("a")

    ran = desk("replay", known, "gone", "--yes", "--json")

    assert ran.code == 3
    assert ran.json["done"] == 1
    assert ran.json["missing"] == ["gone"]


def test_letters_of_the_dlq_are_replayed_when_asked_for(desk: Desk) -> None:
    desk.dead_letters("a")

    ran = desk("replay", "--all", "--from-dlq", "--yes")

    assert ran.code == 0
    assert desk.bodies(SOURCE) == ["a"]
    assert desk.bodies(DLQ) == []


def test_a_letter_with_ten_attributes_is_replayed_untouched_and_keeps_its_metadata(
    desk: Desk,
) -> None:
    (original_id,) = desk.park("full", MessageAttributes=TEN)

    desk("replay", "--all", "--yes")

    (message,) = desk.world.sqs.inspect.messages(SOURCE)
    assert message.attributes == TEN
    kept = desk.store.read_ledger([message.message_id]).metadata
    assert kept[message.message_id].original_id == original_id


def test_what_the_queue_refuses_stays_and_is_told(desk: Desk) -> None:
    desk.park("a", "b")

    ran = desk(
        "replay",
        "--all",
        "--yes",
        script=on("SendMessageBatch", fail_entries([0], "InternalError")),
    )

    assert ran.code == 3
    assert len(desk.bodies(SOURCE)) == 1
    assert desk.visible(PARKING_LOT) == 1
    assert "Refused 1: SendMessageBatch for orders: InternalError." in ran.err


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM], ids=lambda one: one.name)
def test_a_signal_to_end_stops_a_replay_after_the_letters_in_hand(
    desk: Desk, sent: signal.Signals
) -> None:
    """SIGTERM killed it, and the next command waited until its lease had expired."""
    desk.park(*(f"letter {number}" for number in range(25)))
    handler = signal.getsignal(sent)
    script = nth("SendMessageBatch", 0, meanwhile(lambda: signal.raise_signal(sent)))

    ran = desk("replay", "--all", "--rate", "2", "--yes", script=script)

    assert ran.code == 3
    assert "Interrupted; run it again to go on." in ran.err
    assert (len(desk.bodies(SOURCE)), desk.visible(PARKING_LOT)) == (10, 15)
    assert "is at work on this queue" not in desk("replay", "--all", "--yes").err
    assert desk.bodies(PARKING_LOT) == []
    assert signal.getsignal(sent) is handler


def test_replay_waits_while_a_pass_is_at_work(desk: Desk) -> None:
    desk.park("a")
    desk.dead_letters("b")
    seen: list[tuple[str, int]] = []

    def look() -> None:
        ran = desk("run", "--yes", "--json")
        seen.append((ran.json["outcome"], ran.code))

    ran = desk("replay", "--all", "--yes", script=nth("SendMessageBatch", 0, meanwhile(look)))

    assert ran.code == 0
    assert seen == [("LEASE_HELD", 1)]


@pytest.mark.parametrize("arguments", [(), ("an-id", "--all")])
def test_nothing_and_everything_are_never_mixed_up(desk: Desk, arguments: tuple[str, ...]) -> None:
    desk.park("a")

    for verb in ("replay", "delete"):
        assert desk(verb, *arguments, "--yes").code == 2
    assert desk.bodies(PARKING_LOT) == ["a"]


# Edit.


def test_an_edited_letter_is_sent_and_the_original_removed(desk: Desk) -> None:
    (original_id,) = desk.park("broken", MessageAttributes=SOME)

    ran = desk("edit", original_id, "--yes", "--reason", "typo")

    assert ran.code == 0, ran.said
    assert "-broken" in ran.out
    assert "+mended" in ran.out
    assert desk.bodies(SOURCE) == ["mended"]
    assert desk.bodies(PARKING_LOT) == []
    note = desk.entry(original_id).history[-1]
    assert "edited and replayed by arn:aws:iam::123456789012:user/kim" in note
    assert ":user/kim: typo, before it was sha256 " in note
    assert len(note.rpartition("sha256 ")[2]) == 64
    assert "sha256" in desk.history()[-1]


def test_attributes_can_be_edited_too(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDITOR", 'sed -i \'s/"String.json"/"String.text"/\'')
    (original_id,) = desk.park("a", MessageAttributes=SOME)

    assert desk("edit", original_id, "--yes").code == 0
    (message,) = desk.world.sqs.inspect.messages(SOURCE)
    assert message.attributes["kind"]["DataType"] == "String.text"
    assert message.attributes["blob"] == SOME["blob"]


@pytest.mark.parametrize(
    ("editor", "said"),
    [
        ("true", "Nothing was edited"),
        ("false", "The editor ended with 1"),
        ("no-such-editor", "could not be started"),
        ("sed -i /----/d", "is missing, so body and attributes can't be told apart"),
        (r"sed -i 's/broken/\xff/'", "The edited file can't be read"),
        ("rm", "The edited file can't be read"),
        (r"""sed -i 's/"StringValue": "/&\\ud800/'""", "attribute kind has half a character in it"),
        ("sed -i s/StringValue/Value/", "attribute kind has neither StringValue nor BinaryBase64"),
        ("sed -i /broken/d", "SQS does not accept an empty body"),
    ],
)
def test_an_edit_that_went_wrong_changes_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, editor: str, said: str
) -> None:
    monkeypatch.setenv("EDITOR", editor)
    (original_id,) = desk.park("broken", MessageAttributes=SOME)

    ran = desk("edit", original_id, "--yes")

    assert ran.code == 1
    assert said in ran.err
    assert desk.bodies(SOURCE) == []
    assert desk.visible(PARKING_LOT) == 1


def test_an_edit_asks_and_takes_no_for_an_answer(desk: Desk) -> None:
    (original_id,) = desk.park("broken")

    assert desk("edit", original_id, answer="no").code == 1
    assert desk.bodies(PARKING_LOT) == ["broken"]


def test_an_edited_body_is_validated(desk: Desk) -> None:
    (original_id,) = desk.park("broken")

    ran = desk("edit", original_id, "--yes", "--validate", "grep broken")

    assert ran.code == 1
    assert "not valid" in ran.err
    assert desk.bodies(PARKING_LOT) == ["broken"]


# Delete.


def test_deleted_letters_are_in_the_file_and_nowhere_else(desk: Desk, tmp_path: Path) -> None:
    first, second, _ = desk.park("a", "b", "c", MessageAttributes=SOME)
    file = tmp_path / "gone.jsonl"

    ran = desk("delete", first, second, "--export", str(file), answer="2")

    assert ran.code == 0, ran.said
    assert desk.bodies(PARKING_LOT) == ["c"]
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert sorted(line["body"] for line in lines) == ["a", "b"]
    assert lines[0]["attributes"]["blob"] == {"DataType": "Binary", "BinaryBase64": "AP8="}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert desk.entry(first).status is Status.DELETED
    assert desk("parked", "--json").json["count"] == 1


@pytest.mark.parametrize("answer", ["yes", "", "1", "22"])
def test_delete_wants_the_count_typed_out(desk: Desk, tmp_path: Path, answer: str) -> None:
    desk.park("a", "b")

    ran = desk("delete", "--all", "--export", str(tmp_path / "gone.jsonl"), answer=answer)

    assert ran.code == 1
    assert "Type 2 to go on" in ran.err
    assert desk.visible(PARKING_LOT) == 2


def test_nothing_is_deleted_when_the_file_can_not_be_written(desk: Desk, tmp_path: Path) -> None:
    desk.park("a")

    ran = desk("delete", "--all", "--yes", "--export", str(tmp_path / "no" / "file.jsonl"))

    assert ran.code == 1
    assert "can't be written" in ran.err
    assert desk.bodies(PARKING_LOT) == ["a"]


def test_what_arrives_after_the_count_is_not_deleted(desk: Desk, tmp_path: Path) -> None:
    desk.park("a", "b")
    late = meanwhile(lambda: desk.park("late"))

    ran = desk(
        "delete",
        "--all",
        "--yes",
        "--export",
        str(tmp_path / "gone.jsonl"),
        script=nth("PutItem", 0, late),
    )

    assert ran.code == 0
    assert len(desk.bodies(PARKING_LOT)) == 1


# Export and import.


def test_an_export_leaves_everything_where_it_is(desk: Desk, tmp_path: Path) -> None:
    desk.park("a", "b")
    file = tmp_path / "parked.jsonl"

    ran = desk("export", str(file), "--json")

    assert ran.json == {"file": str(file), "count": 2, "is_complete": True}
    assert desk.visible(PARKING_LOT) == 2


@pytest.mark.parametrize("content", ["", "all: test\n", '{"version": 1}\n'])
@pytest.mark.parametrize("chosen", [(), ("--contains", "nothing like it")])
def test_an_export_leaves_what_was_there_before_it(
    desk: Desk, tmp_path: Path, content: str, chosen: tuple[str, ...]
) -> None:
    desk.park("a")
    file = tmp_path / "Makefile"
    file.write_text(content)

    ran = desk("export", str(file), *chosen)

    has_written = not content and not chosen
    assert (ran.code, file.read_text().startswith(content)) == (0 if has_written else 1, True)
    assert len(file.read_text()) > len(content) if has_written else file.read_text() == content


def test_an_export_into_the_same_file_again_is_refused(desk: Desk, tmp_path: Path) -> None:
    desk.park("a")
    file = tmp_path / "parked.jsonl"
    desk("export", str(file))

    again = desk("export", str(file))

    assert (again.code, len(file.read_text().splitlines())) == (1, 1)
    assert f"{file} already exists. Name another file, or remove it." in again.err


@pytest.mark.parametrize("verb", ["export", "delete"])
def test_letters_are_written_to_no_device_and_it_stays(
    desk: Desk, tmp_path: Path, verb: str
) -> None:
    desk.park("a")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    link = tmp_path / "link"
    link.symlink_to(pipe)

    for file in (pipe, link):
        where = (str(file),) if verb == "export" else ("--all", "--yes", "--export", str(file))
        ran = desk(verb, *where)
        assert (ran.code, "is not a regular file. Name another." in ran.err) == (1, True)

    assert pipe.is_fifo()
    assert link.is_symlink()
    assert desk.visible(PARKING_LOT) == 1


def test_letters_of_two_commands_at_once_are_kept_in_two_files(desk: Desk, tmp_path: Path) -> None:
    """Whoever made a file and wrote nothing to it removes it, with what another has written there meanwhile."""
    desk.park("a")
    file = tmp_path / "gone.jsonl"

    with ExportFile(desk.session(Wire(), Terminal()), file):
        refused = desk("delete", "--all", "--yes", "--export", str(file))
    is_removed = not file.exists()
    ran = desk("delete", "--all", "--yes", "--export", str(file))

    assert (refused.code, is_removed) == (1, True)
    assert f"{file} is being written by another command. Name another file." in refused.err
    assert (ran.code, len(file.read_text().splitlines())) == (0, 1)


def test_a_delete_goes_on_in_its_file_and_in_no_other(desk: Desk, tmp_path: Path) -> None:
    desk.park("a", "b")
    file, other = tmp_path / "gone.jsonl", tmp_path / "app.py"
    other.write_text("print()\n")
    file.touch(mode=0o644)
    desk("delete", "--contains", "a", "--yes", "--export", str(file))

    refused = desk("delete", "--all", "--yes", "--export", str(other))
    ran = desk("delete", "--all", "--yes", "--export", str(file))

    assert (refused.code, other.read_text()) == (1, "print()\n")
    assert f"{other} exists and is not a file of letters. Name another." in refused.err
    assert (ran.code, len(file.read_text().splitlines())) == (0, 2)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_file_without_a_letter_is_nothing_to_import(desk: Desk, tmp_path: Path) -> None:
    file = tmp_path / "empty.jsonl"
    file.touch()

    ran = desk("import", str(file), "--yes")

    assert (ran.code, "has no letter in it: nothing to do." in ran.err) == (1, True)


def test_a_reason_that_is_none_is_told_with_those_there_are(desk: Desk) -> None:
    desk.park("a")

    ran = desk("replay", "--parked-as", "max_atempts", "--yes")

    assert ran.code == 1
    assert "No letter is parked as MAX_ATEMPTS. Reasons are MAX_ATTEMPTS, PERMANENT," in ran.err


@pytest.mark.parametrize("rate", ["inf", "nan", "-1", "1e-12", "1e-300"])
def test_a_rate_that_nothing_can_be_done_at_is_refused(desk: Desk, rate: str) -> None:
    desk.park("a letter")

    assert desk("replay", "--all", "--yes", "--rate", rate).code == 2
    assert desk.visible(PARKING_LOT) == 1


@pytest.mark.parametrize(("to", "queue"), [("source", SOURCE), ("parking-lot", PARKING_LOT)])
def test_what_was_deleted_comes_back_whole_by_an_import(
    desk: Desk, tmp_path: Path, to: str, queue: str
) -> None:
    (original_id,) = desk.park("crème", MessageAttributes=SOME, MessageGroupId="tenant-7")
    file = tmp_path / "gone.jsonl"
    desk("delete", "--all", "--yes", "--export", str(file))

    ran = desk("import", str(file), "--to", to, "--yes")

    assert ran.code == 0, ran.said
    (message,) = desk.world.sqs.inspect.messages(queue)
    own = {name: one for name, one in message.attributes.items() if name != METADATA_ATTRIBUTE}
    assert (message.body, own, message.group_id) == ("crème", SOME, "tenant-7")
    assert json.loads(message.attributes[METADATA_ATTRIBUTE]["StringValue"])["id"] == original_id
    assert desk("parked", "--json").json["count"] == (queue == PARKING_LOT)


def test_letters_that_are_still_about_are_not_imported_again(desk: Desk, tmp_path: Path) -> None:
    desk.park("a")
    file = tmp_path / "parked.jsonl"
    desk("export", str(file))

    ran = desk("import", str(file), "--yes")

    assert ran.code == 1
    assert "Skipped 1: the ledger shows it as still there;" in ran.err
    assert desk.bodies(PARKING_LOT) == ["a"]


@pytest.mark.parametrize(("to", "queue"), [("source", SOURCE), ("parking-lot", PARKING_LOT)])
def test_letters_of_a_purged_queue_are_imported_if_the_person_says_so(
    desk: Desk, tmp_path: Path, to: str, queue: str
) -> None:
    desk.park("a", "b")
    file = tmp_path / "parked.jsonl"
    desk("export", str(file))
    desk.purge(PARKING_LOT)

    ran = desk("import", str(file), "--even-though-there", "--to", to, "--yes")

    assert (ran.code, ran.err) == (0, "")
    assert desk.bodies(queue) == ["a", "b"]


def test_a_letter_that_is_there_nevertheless_is_replaced_by_its_import(
    desk: Desk, tmp_path: Path
) -> None:
    desk.park("a")
    file = tmp_path / "parked.jsonl"
    desk("export", str(file))

    desk("import", str(file), "--even-though-there", "--yes")
    replayed = desk("replay", "--all", "--yes")

    assert "removed 1 left-over cop" in replayed.said + replayed.err.lower()
    assert (desk.bodies(SOURCE), desk.bodies(PARKING_LOT)) == (["a"], [])


def test_what_its_consumer_may_have_is_never_imported(desk: Desk, tmp_path: Path) -> None:
    desk.park("a")
    file = tmp_path / "parked.jsonl"
    desk("export", str(file))
    desk("replay", "--all", "--yes")

    ran = desk("import", str(file), "--even-though-there", "--yes")

    assert ran.code == 1
    assert "Skipped 1: it was sent back, and its consumer may have it." in ran.err
    assert desk.bodies(PARKING_LOT) == []


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 2"),
        ("[]", "each line must be one JSON object"),
        ('{"version": 9}', "version 9 is not known"),
        ('{"version": 1}', "message_id is missing"),
    ],
)
def test_a_file_with_a_wrong_line_is_not_imported_at_all(
    desk: Desk, tmp_path: Path, line: str, said: str
) -> None:
    desk.park("a")
    file = tmp_path / "gone.jsonl"
    desk("delete", "--all", "--yes", "--export", str(file))
    file.write_text(file.read_text() + line + "\n")

    ran = desk("import", str(file), "--yes")

    assert ran.code == 1
    assert said in ran.err
    assert desk.bodies(PARKING_LOT) == []


# The lease.


def test_a_lease_that_a_dead_pass_left_is_waited_for(desk: Desk) -> None:
    desk.park("a")
    hold_lease(desk, seconds=100)

    ran = desk("replay", "--all", "--yes")

    assert ran.code == 0
    assert "is at work on this queue; waiting up to five minutes for it to end." in ran.err
    assert desk.bodies(SOURCE) == ["a"]


def test_a_queue_that_is_at_work_for_too_long_is_left_alone(desk: Desk) -> None:
    desk.park("a")
    hold_lease(desk, seconds=3600)

    ran = desk("replay", "--all", "--yes")

    assert ran.code == 1
    assert "The queue has been busy for five minutes." in ran.err
    assert desk.bodies(PARKING_LOT) == ["a"]


def test_a_lease_that_can_not_be_given_back_ends_by_itself(desk: Desk) -> None:
    desk.park("a")
    refused = on("DeleteItem", refuse(refusal("DeleteItem", "ThrottlingException")))

    ran = desk("replay", "--all", "--yes", script=refused)

    assert ran.code == 0
    assert "The lease could not be given back (ThrottlingException)" in ran.err


def hold_lease(desk: Desk, *, seconds: int) -> None:
    now = desk.world.clock.now()
    lease = Lease(owner="somebody else", expires_at=now + timedelta(seconds=seconds))
    assert desk.store.acquire_lease(lease, now)
