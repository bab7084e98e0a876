"""`redrive edit`: mend one letter by hand and send the mended copy back to its source queue."""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

from redrive.core.case import Case
from redrive.core.letter import Letter
from smart_redriver.oncall.letters.choice import Choice
from smart_redriver.oncall.letters.edit_form import difference, read_form, write_form
from smart_redriver.oncall.letters.look import find
from smart_redriver.oncall.moving.ending import finish, tally_in_words
from smart_redriver.oncall.moving.sending import Destinations, SendBack, why_not_served
from smart_redriver.oncall.moving.validate import validator
from smart_redriver.oncall.moving.work import Work
from smart_redriver.oncall.stack.recording import recorded
from smart_redriver.oncall.stack.session import Session
from smart_redriver.oncall.terminal.exits import Exit, Refused
from smart_redriver.oncall.terminal.table import printable


def edit(
    session: Session,
    message_id: str,
    *,
    from_dlq: bool = False,
    validate: str | None = None,
    reason: str = "",
) -> Exit:
    """Open the letter in $EDITOR, show the difference, ask, send. Raises CallFailed and Refused.

    While the editor is open the letter lies where it was, visible. It is found again afterwards, under the lease:
    what a replay or a pass did to it meanwhile stands.
    """
    check = validator(validate) if validate else None
    out_of = session.letters_in(dlq=from_dlq)
    choice = Choice(ids=frozenset({message_id}))
    depth = out_of.facts().depth
    found, look = find(session, out_of, choice.takes, depth)
    session.terminal.say(look.cost())
    if found is None:
        raise Refused(f"{message_id} is not there. `redrive show {message_id}` tells where it is.")
    before = found.letter
    after = read_form(edited(write_form(before)), before)
    if (after.body, after.attributes) == (before.body, dict(before.attributes)):
        raise Refused(
            "Nothing was edited, so nothing was changed. `redrive replay` sends it as it is."
        )
    to = _destination(session, replace(found, letter=after))
    for line in difference(before, after):
        session.terminal.plan(printable_line(line))
    if check and (fault := check(after)):
        raise Refused(f"The edited letter is {fault}. Nothing was changed.")
    session.terminal.confirm(f"Send the edited copy to {to}, and remove the original?")
    was = fingerprint(before)
    note = f"edited and replayed by {session.who}, before it was sha256 {was}"
    exactly = Choice(ids=frozenset({before.message_id}))
    mended = SendBack(session, out_of, note=note, edit=lambda letter: _mended(letter, after))
    what = f"edit {before.original_id}, sha256 {was} before and {fingerprint(after)} after"
    with recorded(session, what, reason) as ended:
        tally = Work(session, out_of, exactly, mended, limit=1).run()
        ended.extend(tally_in_words(tally, "sent the edited copy of"))
    return finish(session, tally, exactly, "sent the edited copy of")


def fingerprint(letter: Letter) -> str:
    """A SHA-256 over attributes and body: whoever kept the old message can prove that it was this."""
    return hashlib.sha256(write_form(letter).encode()).hexdigest()


def edited(text: str) -> str:
    """What a person made of `text` in their editor. Raises Refused."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
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


def printable_line(line: str) -> str:
    """A line of the difference with its indentation, and nothing that a terminal obeys."""
    indent = line[: len(line) - len(line.lstrip(" "))]
    return indent + printable(line)


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
