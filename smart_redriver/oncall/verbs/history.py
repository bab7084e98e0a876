"""`redrive history`: who changed what."""

from __future__ import annotations

from smart_redriver.oncall.stack.changes import changes_of, short_name
from smart_redriver.oncall.stack.session import Session
from smart_redriver.oncall.terminal.exits import Exit
from smart_redriver.oncall.terminal.table import printable
from smart_redriver.oncall.terminal.words import stamp


def history(session: Session, *, days: int) -> Exit:
    """Print the changes of the last days, one a line, oldest first. Raises CallFailed and Refused."""
    lines = session.audit.read(session.clock().date(), days)
    session.terminal.result(
        {"queue": session.place.queue, "changes": [one.to_json() for one in lines]}
    )
    if not lines:
        session.terminal.say(f"Nobody changed anything by hand in the last {days} days.")
    for one in changes_of(lines):
        told = f"{stamp(one.at)}  {short_name(one.who)}  {one.in_words()}"
        session.terminal.say(printable(told))
    return Exit.DONE
