"""Finds one letter where it lies: among those that a queue hands out, or by its id where letters are found so."""

from __future__ import annotations

import sys

from redrive.core.case import Case
from redrive.core.ledger import Entry, Status
from smart_redriver.oncall.letters.choice import Choice
from smart_redriver.oncall.letters.hiding import belongs, hidden_in_words
from smart_redriver.oncall.letters.look import find
from smart_redriver.oncall.stack.session import Session

_LOOKED_FOR = (Status.PARKED, Status.RETURNED, Status.REDRIVEN, Status.FAILED)


def look_for(
    session: Session, choice: Choice, entry: Entry | None, limit: int
) -> tuple[Case | None, str | None, Status | None]:
    """The letter itself, where looking harms nobody: never in a source queue, whose consumer would miss it.

    Beside it how it is hidden, where it is there and was not met although all that can be was looked at; and whether it
    is in the DLQ or the parking lot, if looking has told that for sure. Raises CallFailed and Refused.
    """
    in_lot = entry is not None and entry.status is Status.PARKED
    if session.lodging.finds_by_id:
        return _find(session, choice, in_lot=in_lot)
    if entry is not None and entry.status not in _LOOKED_FOR:
        return None, None, None
    out_of = session.letters_in(dlq=not in_lot)
    facts = out_of.facts()
    if not facts.depth or not limit:
        return None, None, None
    found, look = find(session, out_of, choice.takes, min(limit, facts.depth))
    session.terminal.say(look.cost())
    session.terminal.say()
    is_missed = found is None and look.seen < limit and not look.is_cut_short
    if is_missed and entry is not None and belongs(entry, to_dlq=not in_lot):
        return None, hidden_in_words(entry, facts, session.clock()), None
    return found, None, None


def _find(
    session: Session, choice: Choice, *, in_lot: bool
) -> tuple[Case | None, str | None, Status | None]:
    """The letter by its id, where it most likely is first."""
    for is_parked in (in_lot, not in_lot):
        out_of = session.letters_in(dlq=not is_parked, ids=choice.ids, whole=False)
        found, _ = find(session, out_of, choice.takes, sys.maxsize)
        if found is not None:
            return found, None, Status.PARKED if is_parked else Status.RETURNED
    return None, None, None
