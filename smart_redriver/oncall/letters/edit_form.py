"""The text that a person edits, in their own editor: attributes as JSON above a line, the body below it.

A fingerprint proves that a letter is still the one that a person saw.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from difflib import unified_diff
from functools import partial
from itertools import chain, groupby, islice, repeat
from operator import itemgetter
from pathlib import Path
from typing import Any

from smart_redriver.engine.counts import several
from smart_redriver.engine.messages.letter import Letter
from smart_redriver.oncall.letters.export_file import attributes_from_json, attributes_to_json
from smart_redriver.oncall.terminal.exits import Refused
from smart_redriver.oncall.terminal.table import exact
from smart_redriver.oncall.terminal.terminal import Terminal

_LINE = "---- attributes above, body below; leave this line alone ----"


def write_form(letter: Letter) -> str:
    """The form of a letter."""
    return form_of(_attributes(letter), letter.body)


def form_of(attributes: str, body: str) -> str:
    """The form of these parts: `attributes` is JSON."""
    return f"{attributes}\n{_LINE}\n{body}"


def read_form(text: str, before: Letter) -> Letter:
    """The letter that the edited form describes. Raises Refused saying what is wrong."""
    above, line, body = text.partition(f"\n{_LINE}\n")
    if not line:
        raise Refused(
            f"The line {_LINE!r} is missing, so body and attributes can't be told apart. Nothing was changed."
        )
    try:
        attributes = attributes_from_json(json.loads(above))
    except (ValueError, RecursionError) as fault:
        raise Refused(f"The attributes can't be read: {fault}. Nothing was changed.") from fault
    if not before.body.endswith("\n"):
        body = body.removesuffix("\n")  # which editors add
    if not body:
        raise Refused("SQS does not accept an empty body. Nothing was changed.")
    return replace(before, body=body, attributes=attributes)


#: A longer line shows its changed part, with this many characters around where it begins and where it ends.
_LONGEST_LINE = 200
_AROUND = 60
#: The most lines of a difference.
_MOST_LINES = 100


def difference(before: Letter, after: Letter) -> Iterator[str]:
    """The changes, as `diff -u` shows them. Long lines are shortened to the part that changed.

    Only a line feed ends a line: any other character that could end one is shown in it.
    """
    lines = unified_diff(
        write_form(before).split("\n"),
        write_form(after).split("\n"),
        "before",
        "after",
        lineterm="",
    )
    shown = list(islice(lines, _MOST_LINES))
    more = sum(1 for _ in lines)
    yield from map(exact, _shortened(shown))
    if more:
        yield f"[… {several(more, 'more line')} …]"


def _shortened(lines: Iterable[str]) -> Iterator[str]:
    """The lines of a difference. One that takes another's place shows what differs between these two."""
    removed: list[str] = []
    for mark, run in groupby(lines, itemgetter(0)):
        here = list(run)
        added = here if mark == "+" else []
        yield from map(_changed_part, removed, chain(added, repeat("")))
        if mark != "-":
            yield from map(_changed_part, here, chain(removed if added else [], repeat("")))
        removed = here if mark == "-" else []
    yield from map(_changed_part, removed, repeat(""))


def _changed_part(line: str, other: str) -> str:
    """A line, shortened to what is different in the other one. One that has not changed keeps its beginning."""
    if len(line) <= _LONGEST_LINE:
        return line
    begins, ends = 1, 1 if line[0] == " " else len(line)
    if other:
        begins += _alike(line[1:], other[1:])
        ends -= _alike(line[: begins - 1 : -1], other[: begins - 1 : -1])
    parts, shown = [line[0]], 1
    for place in (begins, ends):
        first, last = max(place - _AROUND, shown), min(place + _AROUND, len(line))
        parts += [_left_out(first - shown), line[first:last]]
        shown = last
    return "".join([*parts, _left_out(len(line) - shown)])


def _alike(one: str, other: str) -> int:
    """How many characters both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def _left_out(count: int) -> str:
    return f"[… {several(count, 'character')} …]" if count else ""


def _attributes(letter: Letter) -> str:
    plain = attributes_to_json(letter.attributes)
    return json.dumps(plain, indent=2, ensure_ascii=False, sort_keys=True)


def fingerprint(letter: Letter) -> str:
    """A SHA-256 over attributes and body."""
    return fingerprint_of_form(write_form(letter))


def fingerprint_of_form(form: str) -> str:
    """The fingerprint of the letter that has this form."""
    return hashlib.sha256(form.encode()).hexdigest()


def fingerprint_of_json(message: Mapping[str, Any]) -> str:
    """The fingerprint of a letter as `show --json` prints it."""
    letter = Letter(
        message_id="",
        receipt_handle="",
        body=message["body"],
        sent_at=datetime.fromtimestamp(0, UTC),
        attributes=attributes_from_json(message["attributes"]),
    )
    return fingerprint(letter)


#: Editors that fill a terminal. Without one, they wait for its keys for ever.
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


def own_editor(terminal: Terminal) -> Callable[[str], str]:
    """Choose the person's editor. Raises Refused if it needs a terminal and there is none."""
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    editor = named or "vi"
    program = Path(editor.split()[0] if editor.split() else "").name
    if not terminal.is_watched and (named is None or program in _ON_SCREEN):
        raise Refused(
            f"There is no terminal for the editor {program}. Edit with a command, `--with CMD`, or name an EDITOR "
            "that needs none."
        )
    return partial(edited, editor=editor)


def edited(text: str, editor: str) -> str:
    """Let a person change `text` in their editor. Raises Refused."""
    with tempfile.TemporaryDirectory(prefix="redrive-") as folder:
        file = Path(folder) / "letter.txt"
        file.write_text(text, encoding="utf-8", newline="")
        try:
            finished = subprocess.run([*shlex.split(editor), str(file)], check=False)  # noqa: S603 - the caller's editor
        except (OSError, ValueError) as fault:
            raise Refused(f"The editor {editor!r} could not be started. Set EDITOR.") from fault
        if finished.returncode:
            raise Refused(f"The editor ended with {finished.returncode}. Nothing was changed.")
        try:
            return file.read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError) as fault:
            raise Refused(
                f"The edited file can't be read: {fault}. Nothing was changed."
            ) from fault
