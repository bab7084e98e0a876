"""What a command says and asks. With `--json` standard output holds the result and nothing else; what a person has
to know before they answer goes to standard error.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TextIO

from smart_redriver.oncall.terminal.exits import Refused

#: Told how many more are done.
Advance = Callable[[int], None]


@dataclass(kw_only=True)
class Terminal:
    """Both ends of the terminal; a test puts strings in their places."""

    is_json: bool = False
    assume_yes: bool = False
    out: TextIO = field(default_factory=lambda: sys.stdout)
    err: TextIO = field(default_factory=lambda: sys.stderr)
    answers: TextIO = field(default_factory=lambda: sys.stdin)

    @property
    def is_watched(self) -> bool:
        """Whether there is a terminal at both ends, for a program that fills the screen."""
        return self.answers.isatty() and self.out.isatty()

    def say(self, text: str = "") -> None:
        """Tell people what `result` tells programs."""
        if not self.is_json:
            print(text, file=self.out)

    def plan(self, text: str) -> None:
        """Tell people what is about to happen."""
        print(text, file=self.err if self.is_json else self.out)

    def warn(self, text: str) -> None:
        """Tell people what went wrong or was skipped."""
        print(text, file=self.err)

    def result(self, value: Any) -> None:
        """The result, for programs; nothing in text mode, where `say` has told it."""
        if self.is_json:
            print(json.dumps(value, indent=2, default=str, ensure_ascii=False), file=self.out)

    def confirm(self, question: str, *, expected: str = "yes") -> None:
        """Go on only when a person types `expected`, or said `--yes` beforehand. Raises Refused."""
        if self.assume_yes:
            return
        if not self.answers.isatty() and self.answers is sys.stdin:
            raise Refused(f"{question} Nobody is here to answer: say --yes if you mean it.")
        self.err.write(f"{question} Type {expected} to go on: ")
        self.err.flush()
        if self.answers.readline().strip().lower() != expected.lower():
            raise Refused("Nothing was changed.")

    @contextmanager
    def progress(self, what: str, total: int | None) -> Iterator[Advance]:
        """A progress bar where a person is watching."""
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
