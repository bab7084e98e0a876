"""`redrive park`: sets letters of the DLQ aside, where no pass sends them and no message expires."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from smart_redriver.engine.counts import letters
from smart_redriver.oncall.audit.trail import recorded
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.letters.choice import Choice, choice_of
from smart_redriver.oncall.letters.look import with_full_ids
from smart_redriver.oncall.moving.ending import end_dry_run, finish, tally_in_words, tell_gap
from smart_redriver.oncall.moving.selection import find_selection, tell_selection
from smart_redriver.oncall.moving.sending import BY_HAND, Park
from smart_redriver.oncall.moving.work import Work
from smart_redriver.oncall.status.standing import tell_standing
from smart_redriver.oncall.terminal.exits import Exit


@dataclass(frozen=True, slots=True, kw_only=True)
class ParkRequest:
    """The letters to park, and the reason."""

    choice: Choice
    reason: str = ""
    is_dry_run: bool = False


def park(session: Session, request: ParkRequest) -> Exit:
    """Show the plan, ask, park. Raises CallFailed and Refused."""
    request = replace(request, choice=with_full_ids(session, request.choice))
    selection = find_selection(session, request.choice, from_dlq=True)
    least = "" if selection.is_exact else "at least "
    session.terminal.plan(
        f"Plan: park {least}{letters(selection.count)} of the DLQ as {BY_HAND}; `redrive replay` sends them back:"
    )
    tell_selection(session, request.choice, selection)
    tell_gap(session)
    tell_standing(session)
    if request.is_dry_run:
        return end_dry_run(session, selection.to_json())
    session.terminal.confirm("Park them?")
    out_of = session.letters_in(
        dlq=True, ids=request.choice.ids, contains=request.choice.filter.contains
    )
    note = session.signed(f"parked {BY_HAND}", request.reason)
    work = Work(session, out_of, request.choice, Park(session, out_of, note=note), once_each=True)
    with (
        recorded(session, f"park {request.choice.in_words()}", request.reason) as ended,
        session.terminal.progress("Parking", selection.count) as advance,
    ):
        tally = work.run(advance)
        ended.extend(tally_in_words(tally, "parked"))
    return finish(
        session,
        tally,
        request.choice,
        "parked",
        planned=selection.count,
        hidden=selection.hidden,
        unseen=selection.unseen,
        out_of=out_of,
    )


def act(session: Session, given: Mapping[str, Any]) -> Exit:
    """Carry out `park`."""
    request = ParkRequest(
        choice=choice_of(given, session.clock()),
        reason=given.get("reason", ""),
        is_dry_run=given.get("dry_run", False),
    )
    return park(session, request)
