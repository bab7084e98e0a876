"""What people changed: the audit trail's lines, the begin and the end of one change together. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from smart_redriver.oncall.stack.audit import Line
from smart_redriver.oncall.terminal.words import ago

#: How a line says that its change begins, see `recording`.
BEGUN = ": begun"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change by a person. `outcome` is None while it is under way, and for good where its command died."""

    at: datetime
    who: str
    what: str
    why: str = ""
    outcome: str | None = None

    def in_words(self) -> str:
        """What, how it ended and why."""
        why = f" ({self.why})" if self.why else ""
        return f"{self.what}: {self.outcome or 'begun, no end recorded'}{why}"

    def told(self, now: datetime) -> str:
        """When, by whom, what."""
        return f"{ago(self.at, now)}, {short_name(self.who)}: {self.in_words()}"


def changes_of(lines: Iterable[Line]) -> list[Change]:
    """The changes that lines tell of, in the order in which they began."""
    found: list[Change] = []
    for line in lines:
        if line.what.endswith(BEGUN):
            what = line.what.removesuffix(BEGUN)
            found.append(Change(at=line.at, who=line.who, what=what, why=line.why))
        elif (place := _begin_of(line, found)) is not None:
            outcome = line.what.removeprefix(f"{found[place].what}: ")
            found[place] = replace(found[place], outcome=outcome)
        else:
            what, _, outcome = line.what.rpartition(": ")
            found.append(Change(at=line.at, who=line.who, what=what, why=line.why, outcome=outcome))
    return found


def short_name(who: str) -> str:
    """The last part of an ARN, which names the person or the role's session."""
    return who.rpartition("/")[2].rpartition(":")[2]


def _begin_of(line: Line, found: list[Change]) -> int | None:
    """The place of the first change that this line can be the end of."""
    for place, one in enumerate(found):
        is_same = (one.who, one.why) == (line.who, line.why)
        if one.outcome is None and is_same and line.what.startswith(f"{one.what}: "):
            return place
    return None
