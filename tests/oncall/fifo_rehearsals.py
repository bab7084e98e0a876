"""The commands of `rehearsals`, on the message groups of FIFO queues."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from simulator.world import DLQ
from smart_redriver.oncall.letters.choice import Choice, Filter
from smart_redriver.oncall.letters.edit_form import own_editor
from smart_redriver.oncall.verbs.delete import DeleteRequest, delete
from smart_redriver.oncall.verbs.edit import EditRequest, RewriteRequest, edit, rewrite
from smart_redriver.oncall.verbs.park import ParkRequest, park
from smart_redriver.oncall.verbs.replay import ReplayRequest, replay
from smart_redriver.oncall.verbs.undo import UndoRequest, undo
from tests.faults.scenes import SOME
from tests.oncall.desk import Desk
from tests.oncall.rehearsals import ALL, Rehearsal, of_a_file

#: What an edit mends, and what it makes of them.
MENDED = {f"{group} broken": f"{group} mended" for group in ("a-1", "a-2", "b-1")}
SED = "sed s/broken/mended/"


def a_replay_of_groups(_: Path) -> Rehearsal:
    desk = Desk(fifo=True)
    desk.park("a-1", "a-2", "a-3", "b-1", "b-2", MessageAttributes=SOME)
    return Rehearsal(desk, lambda session: replay(session, ReplayRequest(choice=ALL, workers=1)))


def groups_whose_copies_came_back(what: str = "") -> Desk:
    """Two passes have redriven what is first in each group, and it failed again: it is at its place,
    its copy behind.
    """
    desk = Desk(fifo=True)
    desk.dead_letters(*(f"{one}{what}" for one in ("a-1", "a-2", "b-1")), MessageAttributes=SOME)
    for _ in range(2):
        desk("run", "--yes")
        desk.sleep(120)
    desk.fail_again()
    assert [one[:3] for one in desk.bodies(DLQ)] == ["a-1", "a-1", "a-2", "b-1", "b-1"]
    return desk


def a_replay_from_the_dlq_of_groups(_: Path) -> Rehearsal:
    desk = groups_whose_copies_came_back()
    request = ReplayRequest(choice=ALL, from_dlq=True, workers=1)
    return Rehearsal(desk, lambda session: replay(session, request))


def a_park_of_groups(_: Path) -> Rehearsal:
    desk = groups_whose_copies_came_back()
    stays = {"a-1", "a-2", "b-1"}
    return Rehearsal(desk, lambda session: park(session, ParkRequest(choice=ALL)), stays=stays)


def an_edit_of_a_group(tmp_path: Path) -> Rehearsal:
    desk = Desk(fifo=True)
    message_id, *_ = desk.park("a-1 broken", "a-2", MessageAttributes=SOME)
    request = EditRequest(message_id=message_id, file=tmp_path / "edited.jsonl")
    return Rehearsal(
        desk,
        lambda session: edit(session, request, partial(own_editor, session.terminal)),
        stays={"a-2"},
        edited={"a-1 broken": "a-1 mended"},
    )


def an_edit_from_the_dlq_of_a_group(tmp_path: Path) -> Rehearsal:
    desk = groups_whose_copies_came_back(" broken")
    entries = desk.redriver.witness.ledger().values()
    kept = {one.message_id: one.body for one in desk.messages(DLQ)}
    message_id = next(one.kept_id for one in entries if kept.get(one.kept_id or "") == "a-1 broken")
    assert message_id is not None
    request = EditRequest(message_id=message_id, file=tmp_path / "edited.jsonl", from_dlq=True)
    return Rehearsal(
        desk,
        lambda session: edit(session, request, partial(own_editor, session.terminal)),
        edited={"a-1 broken": "a-1 mended"},
        may_go={"a-2 broken", "b-1 broken"},
    )


def an_edit_by_command_of_groups(tmp_path: Path) -> Rehearsal:
    desk = Desk(fifo=True)
    desk.park(*MENDED, "b-2", MessageAttributes=SOME)
    file = tmp_path / "edited.jsonl"
    choice = Choice(filter=Filter(contains="broken"))
    request = RewriteRequest(choice=choice, command=SED, file=file)
    return Rehearsal(desk, lambda session: rewrite(session, request), stays={"b-2"}, edited=MENDED)


def an_edit_by_command_from_the_dlq_of_groups(tmp_path: Path) -> Rehearsal:
    desk = groups_whose_copies_came_back(" broken")
    file = tmp_path / "edited.jsonl"
    request = RewriteRequest(choice=ALL, command=SED, file=file, from_dlq=True)
    return Rehearsal(desk, lambda session: rewrite(session, request), edited=MENDED)


def edited_groups(folder: Path) -> Desk:
    """Letters were edited, and their copies failed as well."""
    desk = Desk(fifo=True)
    desk.park(*MENDED, MessageAttributes=SOME)
    edits = folder / "edited.jsonl"
    edits.unlink(missing_ok=True)
    ran = desk("edit", "--all", "--with", SED, "--export", str(edits), "--yes")
    assert ran.code == 0, ran.said
    desk.fail_again()
    return desk


def undoing(desk: Desk, folder: Path) -> Rehearsal:
    kept = folder / "undone.jsonl"
    kept.unlink(missing_ok=True)
    request = UndoRequest(file=folder / "edited.jsonl", kept=kept)
    return Rehearsal(
        desk,
        lambda session: undo(session, request),
        stays=set(MENDED),
        # One that was sent and not deleted yet is left over, for the next pass to remove.
        may_go=set(MENDED.values()),
        gone=set(MENDED.values()),
        restored=set(MENDED),
        file=kept,
        source=request.file,
    )


def an_undo_of_groups_in_the_dlq(tmp_path: Path) -> Rehearsal:
    return undoing(edited_groups(tmp_path), tmp_path)


def an_undo_of_parked_groups(tmp_path: Path) -> Rehearsal:
    desk = edited_groups(tmp_path)
    desk.park()
    return undoing(desk, tmp_path)


def an_undo_of_a_delete_of_groups(tmp_path: Path) -> Rehearsal:
    bodies = {"a-1", "a-2", "b-1"}
    rehearsal = of_a_file(Desk(fifo=True), *sorted(bodies), folder=tmp_path, to_source=False)
    assert rehearsal.source is not None
    kept = tmp_path / "undone.jsonl"
    kept.unlink(missing_ok=True)
    request = UndoRequest(file=rehearsal.source, kept=kept)
    rehearsal.command = lambda session: undo(session, request)
    return rehearsal


def an_import_of_groups_to_the_source(tmp_path: Path) -> Rehearsal:
    return of_a_file(Desk(fifo=True), "a-1", "a-2", "b-1", folder=tmp_path, to_source=True)


def an_import_of_groups_to_the_parking_lot(tmp_path: Path) -> Rehearsal:
    return of_a_file(Desk(fifo=True), "a-1", "a-2", "b-1", folder=tmp_path, to_source=False)


def a_delete_of_groups(tmp_path: Path) -> Rehearsal:
    desk = Desk(fifo=True)
    bodies = {"a-1", "a-2", "b-1"}
    desk.park(*sorted(bodies), MessageAttributes=SOME)
    return deleting(desk, bodies, tmp_path, from_dlq=False)


def a_delete_from_the_dlq_of_groups(tmp_path: Path) -> Rehearsal:
    desk = groups_whose_copies_came_back()
    return deleting(desk, {"a-1", "a-2", "b-1"}, tmp_path, from_dlq=True)


def deleting(desk: Desk, gone: set[str], folder: Path, *, from_dlq: bool) -> Rehearsal:
    file = folder / "deleted.jsonl"
    file.unlink(missing_ok=True)
    request = DeleteRequest(choice=ALL, file=file, from_dlq=from_dlq)
    return Rehearsal(desk, lambda session: delete(session, request), gone=gone, file=file)


FIFO_REHEARSALS = (
    a_replay_of_groups,
    a_replay_from_the_dlq_of_groups,
    an_edit_of_a_group,
    an_edit_from_the_dlq_of_a_group,
    an_edit_by_command_of_groups,
    an_edit_by_command_from_the_dlq_of_groups,
    an_undo_of_groups_in_the_dlq,
    an_undo_of_parked_groups,
    an_undo_of_a_delete_of_groups,
    an_import_of_groups_to_the_source,
    an_import_of_groups_to_the_parking_lot,
    a_park_of_groups,
    a_delete_of_groups,
    a_delete_from_the_dlq_of_groups,
)
