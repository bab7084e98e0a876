"""The terminal of a look: it keeps the result, and what was warned of."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import Any

from smart_redriver.oncall.terminal.exits import Refused
from smart_redriver.oncall.terminal.terminal import Terminal


@dataclass(kw_only=True)
class Notepad(Terminal):
    """What a verb says while it looks."""

    out: Any = field(default_factory=io.StringIO)
    err: Any = field(default_factory=io.StringIO)
    value: Any = None
    said: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def say(self, text: str = "") -> None:
        """Keep what people are told."""
        self.said.append(self.spare(text))

    def plan(self, text: str) -> None:
        """Keep it: who looks plans nothing, but may be told what it cost."""
        self.say(text)

    def warn(self, text: str) -> None:
        """Keep what went wrong or was skipped."""
        self.warnings.append(self.spare(text))

    def result(self, value: Any) -> None:
        """Keep the result."""
        self.value = value

    def confirm(self, question: str, *, expected: str = "yes") -> None:
        """Refuse: whoever looks is not asked."""
        del expected
        raise Refused(f"{question} Nobody is asked here. Nothing was changed.")
