"""`redrive edit`: mend one letter by hand and send the mended copy back to its source queue."""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from redrive.core.case import Case
from redrive.core.letter import Letter
from redrive.passes.ports import DeadLetters
from smart_redriver.oncall.letters.choice import Choice
from smart_redriver.oncall.letters.edit_form import difference, read_form, write_form
from smart_redriver.oncall.letters.export_file import ExportFile
from smart_redriver.oncall.letters.look import find
from smart_redriver.oncall.moving.ending import finish, tally_in_words
from smart_redriver.oncall.moving.sending import Destinations, SendBack, why_not_served
from smart_redriver.oncall.moving.validate import validator
from smart_redriver.oncall.moving.work import Work
from smart_redriver.oncall.stack.recording import recorded
from smart_redriver.oncall.stack.session import Session
from smart_redriver.oncall.stack.standing import confirm_against, tell_standing
from smart_redriver.oncall.terminal.exits import Exit, Refused
from smart_redriver.oncall.terminal.table import printable_line
from smart_redriver.oncall.terminal.terminal import Tone

#: Editors that fill a terminal, and wait for its keys for ever where there is none.
_ON_SCREEN = frozenset(
    {
        "emacs",
        "helix",
        "hx",
        "joe",
        "jed",
        "mcedit",
        "micro",
        "nano",
        "ne",
        "nvim",
        "pico",
        "vi",
        "view",
        "vim",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EditRequest:
    """Which letter to edit, and the file that keeps it as it was."""

    message_id: str
    file: Path
    from_dlq: bool = False
    validate: str | None = None
    reason: str = ""
    insists: bool = False


def edit(session: Session, request: EditRequest) -> Exit:
    """Open the letter in $EDITOR, show the difference, ask, keep the original, send. Raises CallFailed and Refused.

    While the editor is open the letter lies where it was, visible. It is found again afterwards, under the lease:
    what a replay or a pass did to it meanwhile stands.
    """
    check = validator(request.validate) if request.validate else None
    editor = _editor(is_watched=session.terminal.is_watched)
    out_of = session.letters_in(dlq=request.from_dlq)
    before = _find(session, out_of, request.message_id)
    after = _edited_by_hand(before, editor)
    to = _destination(session, after)
    for line in difference(before.letter, after.letter):
        tone = {"+": Tone.GOOD, "-": Tone.BAD}.get(line[:1])
        session.terminal.plan(session.terminal.paint(printable_line(line), tone))
    if check and (fault := check(after.letter)):
        raise Refused(f"The edited letter is {fault}. Nothing was changed.")
    session.terminal.plan(f"The original is kept in {request.file}: `redrive undo` takes it.")
    standing = tell_standing(session)
    question = f"Send the edited copy to {to}, and remove the original?"
    confirm_against(session, question, standing.against_sending(), insists=request.insists)
    return _send(session, request, out_of, before.letter, after.letter)


def _find(session: Session, out_of: DeadLetters, message_id: str) -> Case:
    found, look = find(
        session, out_of, Choice(ids=frozenset({message_id})).takes, out_of.facts().depth
    )
    session.terminal.say(look.cost())
    if found is None:
        raise Refused(f"{message_id} is not there. `redrive show {message_id}` tells where it is.")
    return found


def _edited_by_hand(found: Case, editor: str) -> Case:
    before = found.letter
    after = read_form(edited(write_form(before), editor), before)
    if (after.body, after.attributes) == (before.body, dict(before.attributes)):
        raise Refused(
            "Nothing was edited, so nothing was changed. `redrive replay` sends it as it is."
        )
    return replace(found, letter=after)


def _send(
    session: Session, request: EditRequest, out_of: DeadLetters, before: Letter, after: Letter
) -> Exit:
    was = fingerprint(before)
    note = f"edited and replayed by {session.who}, before it was sha256 {was}"
    exactly = Choice(ids=frozenset({before.message_id}))
    what = f"edit {before.original_id}, sha256 {was} before and {fingerprint(after)} after"
    with ExportFile(request.file, session.name_of) as file:
        mended = SendBack(
            session,
            out_of,
            note=note,
            edit=lambda letter: _mended(letter, after),
            keep=file.write,
        )
        with recorded(session, what, request.reason) as ended:
            tally = Work(session, out_of, exactly, mended, limit=1).run()
            ended += [
                *tally_in_words(tally, "sent the edited copy of"),
                f"kept in {request.file}",
            ]
    return finish(session, tally, exactly, "sent the edited copy of")


def fingerprint(letter: Letter) -> str:
    """A SHA-256 over attributes and body: whoever kept the old message can prove that it was this."""
    return hashlib.sha256(write_form(letter).encode()).hexdigest()


def _editor(*, is_watched: bool) -> str:
    """The editor of the person. Raises Refused for one that needs a terminal where there is none."""
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    editor = named or "vi"
    program = Path(editor.split()[0] if editor.split() else "").name
    if not is_watched and (named is None or program in _ON_SCREEN):
        raise Refused(
            f"There is no terminal for the editor {program}. Edit with a command, `--with CMD`, or name an EDITOR "
            "that needs none."
        )
    return editor


def edited(text: str, editor: str) -> str:
    """What a person made of `text` in their editor. Raises Refused."""
    with tempfile.TemporaryDirectory(prefix="redrive-") as folder:
        file = Path(folder) / "letter.txt"
        file.write_text(text, encoding="utf-8", newline="")
        try:
            finished = subprocess.run([*shlex.split(editor), str(file)], check=False)  # noqa: S603 - the caller's editor
        except (OSError, ValueError) as fault:
            raise Refused(f"The editor {editor!r} could not be started. Set EDITOR.") from fault
        if finished.returncode:
            raise Refused(f"The editor ended with {finished.returncode}. Nothing was changed.")
        return file.read_bytes().decode("utf-8", errors="strict")


def _mended(letter: Letter, after: Letter) -> Letter:
    """The letter in hand, with what the person made of its content."""
    return replace(letter, body=after.body, attributes=after.attributes)


def _destination(session: Session, after: Case) -> str:
    """The name of the source queue that takes the edited letter. Raises Refused where none does."""
    destination = Destinations(session.sources).of(after)
    if destination is None:
        raise Refused(f"The letter can't be sent: {why_not_served(after)}. Nothing was changed.")
    name, limit = destination.source.name, destination.facts.max_message_size
    if after.letter.size > limit:
        raise Refused(
            f"The edited letter has {after.letter.size:,} bytes, {name} takes {limit:,}. Nothing was changed."
        )
    return name
