"""Accounts and Regions, each with the caller's credentials for it: what they have at a glance, and which can't be reached."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from redrive.errors import RedriverError
from smart_redriver.oncall.stack.asking import Asking
from smart_redriver.oncall.stack.glances import Glance, take_glances
from smart_redriver.oncall.stack.session import Session
from smart_redriver.oncall.terminal.exits import Refused
from smart_redriver.oncall.terminal.failures import explain

#: Each has clients and connections of its own.
_AT_ONCE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """One account and Region. `fault` is a sentence that says why it can't be reached; then there are no glances."""

    name: str
    region: str | None = None
    glances: tuple[Glance, ...] = ()
    fault: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "home": self.name,
            "region": self.region,
            "fault": self.fault,
            "queues": [one.to_json() for one in self.glances],
        }


def look_around(session: Session, homes: Sequence[str]) -> list[Home]:
    """Look at several homes side by side. Raises Misused for one that is not named as they are."""
    names = list(dict.fromkeys(homes))
    there = [replace(session, aws=session.aws.elsewhere(one), known_place=None) for one in names]
    with Asking(_AT_ONCE) as ask:
        looks = [ask(partial(_look, name, one)) for name, one in zip(names, there, strict=True)]
        return [home for wait in looks if (home := wait().value)]


def look_here(session: Session) -> Home:
    """The one home that the caller is in. Raises CallFailed and Refused."""
    glances = take_glances(session.each_queue())
    return Home(name="", region=session.aws.region, glances=tuple(glances))


def _look(name: str, session: Session) -> Home:
    try:
        return replace(look_here(session), name=name)
    except (Refused, RedriverError) as fault:
        return Home(name=name, region=session.aws.region, fault=explain(fault)[0])
