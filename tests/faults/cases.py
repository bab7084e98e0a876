"""What a test tried and what went wrong in it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Cases:
    """The cases of one test: one that went wrong does not keep the others from being tried."""

    tried: Counter[str] = field(default_factory=Counter)
    wrong: dict[str, list[str]] = field(default_factory=dict)

    def add(self, kind: str, case: str, complaints: list[str]) -> None:
        self.tried[kind] += 1
        if complaints:
            self.wrong[case] = complaints

    def __str__(self) -> str:
        return "\n".join(f"{case}: {'; '.join(found)}" for case, found in self.wrong.items())
