"""`redrive history`: who changed what."""

from __future__ import annotations

from smart_redriver.oncall.stack.session import Session
from smart_redriver.oncall.terminal.exits import Exit
from smart_redriver.oncall.terminal.table import printable
from smart_redriver.oncall.terminal.words import stamp


def history(session: Session, *, days: int) -> Exit:
    """Print the audit trail of the last days, oldest first. Raises CallFailed and Refused."""
    lines = session.audit.read(session.clock().date(), days)
    session.terminal.result(
        {"queue": session.place.queue, "changes": [one.to_json() for one in lines]}
    )
    if not lines:
        session.terminal.say(f"Nobody changed anything by hand in the last {days} days.")
    for line in lines:
        why = f" ({line.why})" if line.why else ""
        session.terminal.say(printable(f"{stamp(line.at)}  {line.who}  {line.what}{why}"))
    return Exit.DONE
