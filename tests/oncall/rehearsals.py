"""Commands of a person on call, each before its start and with what has to come of it, whatever happens meanwhile."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path

from fakes.faults import Crash, Script, Wire, nothing
from simulator.world import DLQ, PARKING_LOT, SOURCE
from smart_redriver.engine.triage.ledger import Status
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.letters.choice import Choice, Filter
from smart_redriver.oncall.letters.edit_form import own_editor
from smart_redriver.oncall.terminal.exits import Exit, Refused
from smart_redriver.oncall.terminal.terminal import Terminal
from smart_redriver.oncall.verbs.delete import DeleteRequest, delete
from smart_redriver.oncall.verbs.edit import EditRequest, RewriteRequest, edit, rewrite
from smart_redriver.oncall.verbs.export import ImportRequest, import_letters
from smart_redriver.oncall.verbs.park import ParkRequest, park
from smart_redriver.oncall.verbs.replay import ReplayRequest, replay
from smart_redriver.oncall.verbs.undo import UndoRequest, undo
from tests.faults.scenes import SOME, TEN
from tests.oncall.desk import Desk

ALL = Choice()


@dataclass
class Rehearsal:
    """A desk before a command, and what has to come of it.

    Attributes:
        stays: bodies that the command must leave where they are, `gone` those that it deletes.
        may_go: bodies that it leaves, and that a pass may redrive.
        edited: the bodies that an edit makes of others, `restored` those that an undo or an import puts back.
        done: bodies that it sends to their consumer, if they are nowhere but in its file before.
        file: what the command writes letters to, `source` what it takes them from.

    """

    desk: Desk
    command: Callable[[Session], Exit]
    stays: set[str] = field(default_factory=set)
    may_go: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    edited: dict[str, str] = field(default_factory=dict)
    restored: set[str] = field(default_factory=set)
    done: set[str] = field(default_factory=set)
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
        if self.edited and self._are_replays_recorded():
            repeats_allowed = 0
        self.desk.world.clock.advance(600)
        self.run()
        world = self.desk.world
        left = {*self.desk.bodies(PARKING_LOT), *self.desk.bodies(DLQ)}
        left -= self.stays | self.may_go
        found += [f"left where they were: {left}"] if left else []
        world.run(
            self.desk.redriver,
            until=world.elapsed + timedelta(hours=12),
            stop=lambda: world.is_drained,
        )
        witness = self.desk.redriver.witness
        # The witness knows letters by their bodies and queues: a mended one is new to it, and one from a file comes
        # from nowhere.
        recorded = set(witness.recorded_repeats) - self.done - self.restored
        recorded -= set(self.edited.values())
        told = [
            ("repeated", self._repeats() - len(self.edited) > repeats_allowed),
            (f"repeated although recorded: {recorded}", recorded),
            (f"altered: {witness.altered}", witness.altered),
        ]
        found += [what for what, is_wrong in told if is_wrong]
        return found + self._lost() + self._wrongly_done() + self._overtaken()

    def _repeats(self) -> int:
        """Copies beyond the one that each letter should have come to, as the witness counts them on standard queues."""
        copies = Counter(self.desk.world.deliveries.done)
        for queue in (SOURCE, DLQ, PARKING_LOT):
            copies.update(self.desk.bodies(queue))
        return sum((copies - Counter(self.desk.world.sent)).values())

    def _are_replays_recorded(self) -> bool:
        entries = self.desk.redriver.witness.ledger().values()
        recorded = [one for one in entries if one.status is Status.REPLAYED]
        return len(recorded) >= len(self.edited)

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
        missing = (self.done | set(self.edited.values())) - done
        missing |= self.restored - set(self.desk.bodies(PARKING_LOT))
        left = self.gone & {*self.desk.bodies(DLQ), *self.desk.bodies(PARKING_LOT)}
        told = {"wrongly done": wrong, "not done": missing, "not gone": left}
        return [f"{what}: {bodies}" for what, bodies in told.items() if bodies]

    def _overtaken(self) -> list[str]:
        """Where letters of a group were done in another order than that of their names."""
        before = {after: one for one, after in self.edited.items()}
        order = self.desk.world.order
        found = []
        for group in order.tries:
            names = list(dict.fromkeys(before.get(one, one) for one in order.done(group)))
            found += [f"out of order: {names}"] if names != sorted(names) else []
        return found


def a_replay(_: Path) -> Rehearsal:
    desk = Desk()
    desk.park("a", "b", MessageAttributes=SOME)
    desk.park("no room for redrive metadata", MessageAttributes=TEN)
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


def an_import_to_the_source(tmp_path: Path) -> Rehearsal:
    return of_a_file(Desk(), "a", "b", "c", folder=tmp_path, to_source=True)


def an_import_to_the_parking_lot(tmp_path: Path) -> Rehearsal:
    return of_a_file(Desk(), "a", "b", "c", folder=tmp_path, to_source=False)


def of_a_file(desk: Desk, *bodies: str, folder: Path, to_source: bool) -> Rehearsal:
    """An import of what was parked, and deleted."""
    file = folder / "deleted.jsonl"
    file.unlink(missing_ok=True)
    desk.park(*bodies, MessageAttributes=SOME)
    ran = desk("delete", "--all", "--export", str(file), "--yes", answer=str(len(bodies)))
    assert ran.code == 0, ran.said
    request = ImportRequest(file=file, to_source=to_source)
    return Rehearsal(
        desk,
        lambda session: import_letters(session, request),
        stays=set() if to_source else set(bodies),
        restored=set() if to_source else set(bodies),
        done=set(bodies) if to_source else set(),
        source=file,
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
    an_edit,
    an_edit_of_a_letter_without_room,
    an_edit_by_command,
    an_undo,
    an_import_to_the_source,
    an_import_to_the_parking_lot,
    a_park,
    a_delete,
    a_delete_by_filter,
)
