"""`redrive history`: who changed what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from smart_redriver.oncall.audit.trail import changes_of, short_name, trail_of
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.terminal.exits import Exit
from smart_redriver.oncall.terminal.table import printable
from smart_redriver.oncall.terminal.words import stamp


def history(session: Session, *, days: int) -> Exit:
    """Print the changes of the last days, one a line, oldest first. Raises CallFailed and Refused."""
    lines = trail_of(session).read(session.clock().date(), days)
    acts = changes_of(lines)
    session.terminal.result(
        {
            "queue": session.place.queue,
            "changes": [one.to_json() for one in lines],
            "acts": [
                {
                    "at": stamp(one.at),
                    "who": short_name(one.who),
                    "what": one.what,
                    "outcome": one.outcome,
                    "why": one.why,
                }
                for one in acts
            ],
        }
    )
    if not lines:
        session.terminal.say(f"Nobody changed anything by hand in the last {days} days.")
    for one in acts:
        told = f"{stamp(one.at)}  {short_name(one.who)}  {one.in_words()}"
        session.terminal.say(printable(told))
    return Exit.DONE


def act(session: Session, given: Mapping[str, Any]) -> Exit:
    """As declared."""
    return history(session, days=given["days"])
