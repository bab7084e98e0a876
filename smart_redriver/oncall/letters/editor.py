"""A person's own editor, to which the form of a letter is given."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from smart_redriver.oncall.terminal.exits import Refused
from smart_redriver.oncall.terminal.terminal import Terminal

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


def own_editor(terminal: Terminal) -> Callable[[str], str]:
    """Gives a text to the editor of the person. Raises Refused for one that needs a terminal where there is none."""
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
        try:
            return file.read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError) as fault:
            raise Refused(
                f"What the editor left can't be read: {fault}. Nothing was changed."
            ) from fault
