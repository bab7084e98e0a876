"""`redrive park`: letters of the DLQ set aside, where no pass sends them and no message expires."""

from __future__ import annotations

from dataclasses import dataclass

from smart_redriver.oncall.letters.choice import Choice
from smart_redriver.oncall.moving.ending import end_dry_run, finish, tally_in_words
from smart_redriver.oncall.moving.group_order import tell_gap
from smart_redriver.oncall.moving.meant import find_meant, tell_meant
from smart_redriver.oncall.moving.parking import BY_HAND, Park
from smart_redriver.oncall.moving.work import Work
from smart_redriver.oncall.stack.recording import recorded
from smart_redriver.oncall.stack.session import Session
from smart_redriver.oncall.stack.standing import tell_standing
from smart_redriver.oncall.terminal.exits import Exit
from smart_redriver.oncall.terminal.words import letters


@dataclass(frozen=True, slots=True, kw_only=True)
class ParkRequest:
    """What to park, and why."""

    choice: Choice
    reason: str = ""
    is_dry_run: bool = False


def park(session: Session, request: ParkRequest) -> Exit:
    """Show the plan, ask, park. Raises CallFailed and Refused."""
    meant = find_meant(session, request.choice, from_dlq=True)
    least = "" if meant.is_exact else "at least "
    session.terminal.plan(
        f"Plan: park {least}{letters(meant.count)} of the DLQ as {BY_HAND}; `redrive replay` sends them back:"
    )
    tell_meant(session, request.choice, meant)
    tell_gap(session)
    tell_standing(session)
    if request.is_dry_run:
        return end_dry_run(session, meant.to_json())
    session.terminal.confirm("Park them?")
    out_of = session.letters_in(dlq=True, ids=request.choice.ids)
    note = session.signed(f"parked {BY_HAND}", request.reason)
    work = Work(session, out_of, request.choice, Park(session, out_of, note=note), once_each=True)
    with (
        recorded(session, f"park {request.choice.in_words()}", request.reason) as ended,
        session.terminal.progress("Parking", meant.count) as advance,
    ):
        tally = work.run(advance)
        ended.extend(tally_in_words(tally, "parked"))
    return finish(session, tally, request.choice, "parked", planned=meant.count, out_of=out_of)
