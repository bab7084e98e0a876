"""`replay`, `edit`, `undo`, `park` and `delete` die, or meet Ctrl-C, at any one of their AWS calls, and are started again.

Exhaustive: every command, every call that it makes, both sides of the call, death and one or two Ctrl-C.
"""

from __future__ import annotations

import io
import json
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from fakes.faults import (
    Act,
    Call,
    Crash,
    Mishap,
    Response,
    Script,
    Wire,
    at,
    die_after,
    die_before,
    nothing,
)
from redrive.core.ledger import Status
from simulator.world import DLQ, PARKING_LOT, SOURCE
from smart_redriver.oncall.letters.choice import Choice, Filter
from smart_redriver.oncall.letters.editor import own_editor
from smart_redriver.oncall.stack.session import Session
from smart_redriver.oncall.terminal.exits import Exit, Refused
from smart_redriver.oncall.terminal.terminal import Terminal
from smart_redriver.oncall.verbs.delete import DeleteRequest, delete
from smart_redriver.oncall.verbs.edit import EditRequest, edit
from smart_redriver.oncall.verbs.park import ParkRequest, park
from smart_redriver.oncall.verbs.replay import ReplayRequest, replay
from smart_redriver.oncall.verbs.rewrite import RewriteRequest, rewrite
from smart_redriver.oncall.verbs.undo import UndoRequest, undo
from tests.faults.cases import Cases
from tests.faults.scenes import ONE_CALL, SOME, TEN
from tests.oncall.desk import Desk

ALL = Choice()


@dataclass
class Rehearsal:
    """A desk before a command, and what has to come of it.

    Attributes:
        stays: bodies that the command must leave where they are, `gone` those that it deletes.
        edited: the bodies that an edit makes of others, `restored` those that an undo puts back.
        file: what the command writes letters to, `source` what it takes them from.

    """

    desk: Desk
    command: Callable[[Session], Exit]
    stays: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    edited: dict[str, str] = field(default_factory=dict)
    restored: set[str] = field(default_factory=set)
    file: Path | None = None
    source: Path | None = None

    def run(self, script: Script = nothing) -> tuple[Wire, Exit | None]:
        """The command over this wire; None when it was killed or broken off."""
        wire = Wire(script)
        self.desk.redriver.witness.note_what_the_ledger_knows()
        terminal = Terminal(assume_yes=True, out=io.StringIO(), err=io.StringIO())
        try:
            return wire, self.command(self.desk.session(wire, terminal))
        except (Crash, KeyboardInterrupt):
            return wire, None
        except Refused as refused:
            return wire, refused.code

    def complaints(self, *, repeats_allowed: int) -> list[str]:
        """Start the command again, let the re-driver and the consumer do their work, and hear what went wrong."""
        found = self._lost()
        if self.edited and self._is_replay_recorded():
            repeats_allowed = 0
        self.desk.world.clock.advance(600)
        self.run()
        world = self.desk.world
        left = {*self.desk.bodies(PARKING_LOT), *self.desk.bodies(DLQ)}
        found += [f"left where they were: {left - self.stays}"] if left - self.stays else []
        world.run(
            self.desk.redriver,
            until=world.elapsed + timedelta(hours=12),
            stop=lambda: world.is_drained,
        )
        witness = self.desk.redriver.witness
        # The witness knows letters by their bodies: a mended one is new to it, and its second copy unrecorded.
        recorded = set(witness.recorded_repeats) - set(self.edited.values()) - self.restored
        if self.desk.world.conditions.fifo:
            recorded = (
                set()
            )  # nor does it know the queues by their FIFO names; all repeats are counted below
        told = [
            ("repeated", self._repeats() - len(self.edited) > repeats_allowed),
            (f"repeated although recorded: {recorded}", recorded),
            (f"altered: {witness.altered}", witness.altered),
        ]
        found += [what for what, is_wrong in told if is_wrong]
        return found + self._lost() + self._wrongly_done()

    def _repeats(self) -> int:
        """Copies beyond the one that each letter should have come to, as the witness counts them on standard queues."""
        copies = Counter(self.desk.world.deliveries.done)
        for queue in (SOURCE, DLQ, PARKING_LOT):
            copies.update(self.desk.bodies(queue))
        return sum((copies - Counter(self.desk.world.sent)).values())

    def _is_replay_recorded(self) -> bool:
        entries = self.desk.redriver.witness.ledger().values()
        return any(entry.status is Status.REPLAYED for entry in entries)

    def _lost(self) -> list[str]:
        desk = self.desk
        seen = {*desk.world.deliveries.done, *self._kept()}
        seen |= {body for queue in (SOURCE, DLQ, PARKING_LOT) for body in desk.bodies(queue)}
        seen |= {before for before, after in self.edited.items() if after in seen}
        lost = (desk.world.sent | self.gone) - seen
        return [f"lost: {sorted(lost)}"] if lost else []

    def _kept(self) -> set[str]:
        files = [one for one in (self.file, self.source) if one is not None and one.exists()]
        return {json.loads(line)["body"] for one in files for line in one.read_text().splitlines()}

    def _wrongly_done(self) -> list[str]:
        done = set(self.desk.world.deliveries.done)
        wrong = done & (self.stays | self.gone | self.edited.keys())
        missing = set(self.edited.values()) - done
        missing |= self.restored - set(self.desk.bodies(PARKING_LOT))
        return [f"wrongly done: {wrong}"] * bool(wrong) + [f"not done: {missing}"] * bool(missing)


def a_replay(_: Path) -> Rehearsal:
    desk = Desk()
    desk.park("a", "b", MessageAttributes=SOME)
    desk.park("no room for a trail", MessageAttributes=TEN)
    return Rehearsal(desk, lambda session: replay(session, ReplayRequest(choice=ALL, workers=1)))


def a_replay_of_more_than_a_call(_: Path) -> Rehearsal:
    desk = Desk()
    desk.park(*(f"letter {n}" for n in range(12)))
    return Rehearsal(
        desk, lambda session: replay(session, ReplayRequest(choice=ALL, rate=0, workers=1))
    )


def a_replay_by_filter(_: Path) -> Rehearsal:
    desk = Desk()
    desk.park("good 1", "bad 1", "good 2", "bad 2")
    choice = Choice(filter=Filter(contains="good"))
    return Rehearsal(
        desk,
        lambda session: replay(session, ReplayRequest(choice=choice, workers=1)),
        stays={"bad 1", "bad 2"},
    )


def a_replay_from_the_dlq(_: Path) -> Rehearsal:
    desk = Desk()
    desk.dead_letters("a", "b", "c", MessageAttributes=SOME)
    request = ReplayRequest(choice=ALL, from_dlq=True, workers=1)
    return Rehearsal(desk, lambda session: replay(session, request))


def a_replay_of_groups(_: Path) -> Rehearsal:
    desk = Desk(fifo=True)
    desk.park("a-1", "a-2", "a-3", "b-1", "b-2", MessageAttributes=SOME)
    return Rehearsal(desk, lambda session: replay(session, ReplayRequest(choice=ALL, workers=1)))


def groups_whose_copies_came_back() -> Desk:
    """Two passes have redriven what is first in each group, and it failed again: it is at its place, its copy behind."""
    desk = Desk(fifo=True)
    desk.dead_letters("a-1", "a-2", "b-1", MessageAttributes=SOME)
    for _ in range(2):
        desk("run", "--yes")
        desk.sleep(120)
    desk.fail_again()
    assert sorted(desk.in_order(DLQ)) == ["a-1", "a-1", "a-2", "b-1", "b-1"]
    return desk


def a_replay_from_the_dlq_of_groups(_: Path) -> Rehearsal:
    desk = groups_whose_copies_came_back()
    request = ReplayRequest(choice=ALL, from_dlq=True, workers=1)
    return Rehearsal(desk, lambda session: replay(session, request))


def a_park_of_groups(_: Path) -> Rehearsal:
    desk = groups_whose_copies_came_back()
    stays = {"a-1", "a-2", "b-1"}
    return Rehearsal(desk, lambda session: park(session, ParkRequest(choice=ALL)), stays=stays)


def an_edit(tmp_path: Path) -> Rehearsal:
    desk = Desk()
    (message_id,) = desk.park("broken", MessageAttributes=SOME)
    desk.park("another")
    request = EditRequest(message_id=message_id, file=tmp_path / "edited.jsonl")
    return Rehearsal(
        desk,
        lambda session: edit(session, request, partial(own_editor, session.terminal)),
        stays={"another"},
        edited={"broken": "mended"},
    )


def an_edit_of_a_letter_without_room(tmp_path: Path) -> Rehearsal:
    desk = Desk()
    (message_id,) = desk.park("broken", MessageAttributes=TEN)
    request = EditRequest(message_id=message_id, file=tmp_path / "edited.jsonl")
    return Rehearsal(
        desk,
        lambda session: edit(session, request, partial(own_editor, session.terminal)),
        edited={"broken": "mended"},
    )


def a_delete(tmp_path: Path) -> Rehearsal:
    desk = Desk()
    bodies = {f"letter {n}" for n in range(12)}
    desk.park(*sorted(bodies), MessageAttributes=SOME)
    file = tmp_path / "deleted.jsonl"
    file.unlink(missing_ok=True)
    request = DeleteRequest(choice=ALL, file=file)
    return Rehearsal(desk, lambda session: delete(session, request), gone=bodies, file=file)


def a_delete_by_filter(tmp_path: Path) -> Rehearsal:
    desk = Desk()
    desk.park("good 1", "bad 1", "good 2", "bad 2")
    file = tmp_path / "deleted.jsonl"
    file.unlink(missing_ok=True)
    request = DeleteRequest(choice=Choice(filter=Filter(contains="bad")), file=file)
    return Rehearsal(
        desk,
        lambda session: delete(session, request),
        stays={"good 1", "good 2"},
        gone={"bad 1", "bad 2"},
        file=file,
    )


def an_edit_by_command(tmp_path: Path) -> Rehearsal:
    desk = Desk()
    edited = {f"broken {n}": f"mended {n}" for n in range(3)}
    desk.park(*edited, "another", MessageAttributes=SOME)
    file = tmp_path / "edited.jsonl"
    choice = Choice(filter=Filter(contains="broken"))
    request = RewriteRequest(choice=choice, command="sed s/broken/mended/", file=file)
    return Rehearsal(
        desk, lambda session: rewrite(session, request), stays={"another"}, edited=edited
    )


def a_park(_: Path) -> Rehearsal:
    desk = Desk()
    bodies = {f"letter {n}" for n in range(12)}
    desk.dead_letters(*sorted(bodies), MessageAttributes=SOME)
    return Rehearsal(desk, lambda session: park(session, ParkRequest(choice=ALL)), stays=bodies)


def an_undo(tmp_path: Path) -> Rehearsal:
    """Of an edit whose copies failed as well, and were parked."""
    desk = Desk()
    desk.park("broken 1", "broken 2", MessageAttributes=SOME)
    edits, kept = tmp_path / "edited.jsonl", tmp_path / "undone.jsonl"
    for file in (edits, kept):
        file.unlink(missing_ok=True)
    ran = desk("edit", "--all", "--with", "sed s/broken/mended/", "--export", str(edits), "--yes")
    assert ran.code == 0, ran.said
    desk.fail_again()
    desk.park()
    request = UndoRequest(file=edits, kept=kept)
    return Rehearsal(
        desk,
        lambda session: undo(session, request),
        stays={"broken 1", "broken 2"},
        gone={"mended 1", "mended 2"},
        restored={"broken 1", "broken 2"},
        file=kept,
        source=edits,
    )


REHEARSALS = (
    a_replay,
    a_replay_of_more_than_a_call,
    a_replay_by_filter,
    a_replay_from_the_dlq,
    a_replay_of_groups,
    a_replay_from_the_dlq_of_groups,
    an_edit,
    an_edit_of_a_letter_without_room,
    an_edit_by_command,
    an_undo,
    a_park,
    a_park_of_groups,
    a_delete,
    a_delete_by_filter,
)

Build = Callable[[Path], Rehearsal]


def ctrl_c(times: int, *, before: bool) -> Mishap:
    """Somebody presses Ctrl-C so often while the call is made."""

    def mishap(call: Call, act: Act) -> Response:
        answer: Response = {} if before else act(**call.request)
        for _ in range(times):
            signal.raise_signal(signal.SIGINT)
        return act(**call.request) if before else answer

    return mishap


def everywhere(
    build: Build, folder: Path, mishaps: dict[str, Mishap]
) -> Iterator[tuple[str, Script]]:
    wire, code = build(folder).run()
    assert code is Exit.DONE
    for call in wire.calls:
        for name, mishap in mishaps.items():
            yield f"{name} {call}", at({call.number: mishap})


@pytest.fixture(autouse=True)
def editor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", "sed -i s/broken/mended/")


@pytest.mark.parametrize("build", REHEARSALS, ids=lambda build: build.__name__)
def test_a_command_that_dies_at_any_call_loses_nothing_and_repeats_one_call_at_most(
    build: Build, cases: Cases, tmp_path: Path
) -> None:
    for where, script in everywhere(build, tmp_path, {"before": die_before, "after": die_after}):
        rehearsal = build(tmp_path)

        _, code = rehearsal.run(script)
        found = rehearsal.complaints(repeats_allowed=ONE_CALL)

        assert code is None, f"it survived a crash {where}"
        cases.add("crash points of replay, edit, undo, park and delete", where, found)

    assert not cases.wrong, str(cases)


@pytest.mark.parametrize("build", REHEARSALS, ids=lambda build: build.__name__)
@pytest.mark.parametrize(
    ("times", "repeats_allowed"),
    [
        pytest.param(1, 0, id="once: it ends after the letters in hand"),
        # Whoever insists breaks off the call itself, and nobody knows whether its letters were sent.
        pytest.param(2, ONE_CALL, id="twice: it ends at once"),
    ],
)
def test_ctrl_c_at_any_call_loses_nothing(
    build: Build, times: int, repeats_allowed: int, cases: Cases, tmp_path: Path
) -> None:
    mishaps = {
        "Ctrl-C before": ctrl_c(times, before=True),
        "Ctrl-C after": ctrl_c(times, before=False),
    }
    for where, script in everywhere(build, tmp_path, mishaps):
        rehearsal = build(tmp_path)

        rehearsal.run(script)
        found = rehearsal.complaints(repeats_allowed=repeats_allowed)

        cases.add("Ctrl-C points of replay, edit, undo, park and delete", where, found)

    assert not cases.wrong, str(cases)
