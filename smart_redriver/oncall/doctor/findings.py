"""Findings of a check: all is well, something is wrong, or the check was not possible."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from smart_redriver.oncall.terminal.exits import RESTORE


class Level(str, Enum):
    """The result of a check."""

    GOOD = "good"
    WRONG = "wrong"
    UNKNOWN = "unknown"  # it could not be checked, or a person has to judge it


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was checked. Every finding that is not good has a remedy."""

    level: Level
    what: str
    remedy: str = ""

    def to_json(self) -> dict[str, str]:
        return {"level": self.level.value, "what": self.what, "remedy": self.remedy}


def good(what: str) -> Finding:
    """Return a finding that all is well."""
    return Finding(level=Level.GOOD, what=what)


def wrong(what: str, remedy: str) -> Finding:
    """Return a finding that something has to be fixed."""
    return Finding(level=Level.WRONG, what=what, remedy=remedy)


def unknown(what: str, remedy: str) -> Finding:
    """Return a finding about something that could not be checked, or that a person has to judge."""
    return Finding(level=Level.UNKNOWN, what=what, remedy=remedy)


def absent(thing: str, consequence: str) -> Finding:
    """Return a finding about something that does not exist: its kind and name, and what follows."""
    return wrong(f"The {thing} does not exist: {consequence}.", RESTORE)


def check(is_good: bool, what: str, otherwise: str, remedy: str) -> Finding:
    """Return a good finding, or else a wrong one."""
    return good(what) if is_good else wrong(otherwise, remedy)
