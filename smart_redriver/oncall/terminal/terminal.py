"""The output and questions of a command, and how Ctrl-C stops it between two rounds.

With `--json`, standard output holds only the result. Whatever a person has to know before they answer goes to standard
error.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, TextIO

from smart_redriver.oncall.terminal.exits import UNCHANGED, Refused
from smart_redriver.oncall.terminal.table import folded, table
from smart_redriver.oncall.terminal.words import shortened

#: Ctrl-C, and a pipeline, a container or an init system that ends the command.
_ENDING = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def told_to_end(note: Callable[..., object]) -> Iterator[None]:
    """Call `note` when a signal to end comes, instead of the handlers before, which are restored."""
    before = {one: signal.signal(one, note) for one in _ENDING}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


class Interrupts:
    """While entered, notes the first signal to end. `came` says whether there was one. A second one ends at once."""

    def __init__(self) -> None:
        self.came = False
        self._signals = ExitStack()

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._signals.enter_context(told_to_end(self._note))
        return self

    def __exit__(self, *_: object) -> None:
        self._signals.close()

    def _note(self, *_: object) -> None:
        if self.came:
            raise KeyboardInterrupt
        self.came = True


#: Called with how many more are done.
Advance = Callable[[int], None]


#: The least width that tables and pages are fitted to.
NARROWEST = 60


def _columns() -> int:
    return max(NARROWEST, shutil.get_terminal_size().columns)


class Tone(str, Enum):
    """The tone of a text, which a terminal shows by colour."""

    GOOD = "green"
    CAREFUL = "yellow"
    BAD = "red"


def is_other(answer: str, expected: str, other: str | None) -> bool:
    """Whether the answer is `other`. Raises Refused if it is neither that nor `expected`."""
    typed = answer.strip().lower()
    if other is not None and typed == other.lower():
        return True
    if typed != expected.lower():
        raise Refused(UNCHANGED)
    return False


class Verbatim(str):
    """Text by others, or for a shell. Its lines are never folded to the terminal's width."""

    __slots__ = ()


@dataclass(kw_only=True)
class Terminal:
    """Input and output on a terminal; a test replaces them by strings.

    `spared_stack`: the stack whose generated names are shortened in text for people.
    `has_begun`: a change that was agreed to has begun.
    """

    is_json: bool = False
    assume_yes: bool = False
    spared_stack: str | None = None
    out: TextIO = field(default_factory=lambda: sys.stdout)
    err: TextIO = field(default_factory=lambda: sys.stderr)
    answers: TextIO = field(default_factory=lambda: sys.stdin)
    has_begun: bool = field(default=False, init=False)

    def keep(self, file: Path) -> None:
        """Note the file that keeps letters. The plan names it."""

    @property
    def is_watched(self) -> bool:
        """Whether input and output are both a terminal, as a program that fills the screen needs."""
        return self.answers.isatty() and self.out.isatty()

    @property
    def columns(self) -> int | None:
        """The width of the terminal; None if the output goes somewhere else and has no limit."""
        if not self.out.isatty():
            return None
        return _columns()

    @property
    def rows(self) -> int | None:
        """The number of lines on a screen; None if the output goes somewhere else."""
        return shutil.get_terminal_size().lines if self.out.isatty() else None

    def paint(self, text: str, tone: Tone | None) -> str:
        """The text in its colour, if there is a terminal and NO_COLOR is not set."""
        if tone is None or not self.out.isatty() or os.environ.get("NO_COLOR"):
            return text
        from typer import style

        return style(text, fg=tone.value)

    def spare(self, text: str) -> str:
        """The text without the hashes in CloudFormation's generated names, unless full names were asked for."""
        return shortened(text, self.spared_stack) if self.spared_stack else text

    def table(
        self, titles: Sequence[str], rows: Sequence[Sequence[str]], *, right: Collection[int] = ()
    ) -> None:
        """Show people rows under titles, as wide as the terminal. Columns in `right` hold numbers."""
        self.say(table(titles, rows, right=right, columns=self.columns))

    def say(self, text: str = "") -> None:
        """Show people what `result` gives to programs."""
        if not self.is_json:
            self._print(text, self.out)

    def plan(self, text: str) -> None:
        """Tell people what is about to happen."""
        self._print(text, self.err if self.is_json else self.out)

    def warn(self, text: str) -> None:
        """Tell people what went wrong or was skipped."""
        self._print(text, self.err)

    def _print(self, text: str, to: TextIO) -> None:
        print(self._fitted(text, to), file=to)

    def _fitted(self, text: str, to: TextIO) -> str:
        spared = self.spare(text)
        return (
            folded(spared, _columns()) if to.isatty() and not isinstance(text, Verbatim) else spared
        )

    def result(self, value: Any) -> None:
        """Print the result for programs; nothing in text mode, where `say` has shown it."""
        if self.is_json:
            print(json.dumps(value, indent=2, default=str, ensure_ascii=False), file=self.out)

    def confirm(self, question: str, *, expected: str = "yes", other: str | None = None) -> bool:
        """Go on only if a person types `expected`, gave `--yes` beforehand, or types the `other` answer.

        Returns whether it was the other. Raises Refused.
        """
        return not self.assume_yes and self._asks(question, expected, other)

    def _asks(self, question: str, expected: str, other: str | None) -> bool:
        if not self.answers.isatty() and self.answers is sys.stdin:
            raise Refused(f"{question} There is no terminal to answer on: add --yes to go ahead.")
        more = f", {other} to try one first" if other else ""
        self.err.write(self._fitted(f"{question} Type {expected} to go on{more}: ", self.err))
        self.err.flush()
        return is_other(self.answers.readline(), expected, other)

    def interrupts(self) -> Interrupts:
        """Notes that a person wants work to end early: Ctrl-C."""
        return Interrupts()

    @contextmanager
    def progress(self, what: str, total: int | None) -> Iterator[Advance]:
        """A progress bar, if a person is watching."""
        if not self.err.isatty():
            yield lambda _: None
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.progress import TimeRemainingColumn as Remaining

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Remaining())
        with Progress(*columns, console=Console(file=self.err)) as bar:
            task = bar.add_task(what, total=total)
            yield lambda more: bar.advance(task, more)
