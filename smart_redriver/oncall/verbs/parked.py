"""`redrive parked`: letters that wait for a person, by the ledger alone. It receives and hides nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from smart_redriver.engine.counts import letters, several
from smart_redriver.engine.triage.case import Case
from smart_redriver.engine.triage.ledger import Entry
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.letters.choice import Choice, Filter, filter_of
from smart_redriver.oncall.letters.ledger_scan import parked_entries
from smart_redriver.oncall.letters.look import Look
from smart_redriver.oncall.letters.presentation import (
    NO_CAUSE,
    NOT_PARKED_BY_LEDGER,
    REASONS,
    TRY_AGAIN,
    entry_to_json,
    label,
    why_parked,
)
from smart_redriver.oncall.terminal.exits import Exit
from smart_redriver.oncall.terminal.words import ago, listed, stamp


@dataclass(slots=True)
class Group:
    """Parked letters with one reason and one cause. If no consumer reported a cause, the error is the cause.

    `error` belongs to the letter that was seen first: errors differ within one cause.
    """

    reason: str
    cause: str
    error: str | None
    count: int
    first: datetime
    last: datetime

    def add(self, moment: datetime) -> None:
        """Count one more, parked at `moment`."""
        self.count += 1
        self.first, self.last = min(self.first, moment), max(self.last, moment)

    def to_json(self) -> dict[str, Any]:
        return {
            "reason": self.reason,
            "cause": None if self.cause == NO_CAUSE else self.cause,
            "error": self.error,
            "count": self.count,
            "first_parked": stamp(self.first),
            "last_parked": stamp(self.last),
        }


def group(entries: Iterable[Entry]) -> list[Group]:
    """Group entries by reason and cause, the largest group first."""
    groups: dict[tuple[str, str], Group] = {}
    for entry in entries:
        reason, cause = label(entry)
        moment = entry.parked_at or entry.first_seen
        new = Group(reason, cause, entry.error, 0, moment, moment)
        groups.setdefault((reason, cause), new).add(moment)
    return sorted(groups.values(), key=lambda one: (-one.count, one.reason, one.cause))


def parked(session: Session, wanted: Filter, *, as_list: bool, limit: int) -> Exit:
    """List or group the parked letters. Raises CallFailed and Refused."""
    known: Counter[str | None] = Counter()
    entries = matching(session, _noting(known, parked_entries(session)), wanted)
    # Letters of a target that was removed from the settings are in the ledger under its name, and so not listed.
    are_counted = not entries or session.place.deployment.targets
    strangers = _strangers(session, known.total(), warns=not entries) if are_counted else None
    if not entries and wanted.reason:
        _tell_reasons(session, wanted.reason.upper(), {*filter(None, known)})
    entries.sort(key=lambda entry: entry.parked_at or entry.first_seen)
    groups = group(entries)
    shown = entries[:limit] if as_list else []
    session.terminal.result(
        {
            "queue": session.place.queue,
            "count": len(entries),
            "not_in_ledger": strangers,
            "groups": [one.to_json() for one in groups],
            **({"letters": [entry_to_json(entry) for entry in shown]} if as_list else {}),
        }
    )
    _tell(session, entries, groups, shown if as_list else None)
    if strangers:
        _tell_strangers(session, strangers)
    return Exit.DONE


def matching(session: Session, entries: Iterable[Entry], wanted: Filter) -> list[Entry]:
    """Return parked letters that match the filter. Receives them if the ledger can't tell. Raises CallFailed."""
    choice = Choice(filter=wanted)
    found = [entry for entry in entries if choice.takes_entry(entry)]
    if any(wanted.needs_body_of(entry) for entry in found):
        return _with_matching_body(session, choice, found)
    return found


def _with_matching_body(session: Session, choice: Choice, entries: list[Entry]) -> list[Entry]:
    """Return the entries with a matching body, which needs a receive."""
    left = {entry.current_id: entry for entry in entries}
    found: list[Entry] = []
    met: set[str] = set()
    with Look(
        session=session,
        out_of=session.parking_lot,
        limit=session.letter_store.facts(dlq=False, exactly=True).depth,
    ) as look:
        for case in _known(look, left):
            met.add(case.message_id)
            if choice.takes(case):
                found.append(left[case.message_id])
    session.terminal.warn("The ledger keeps no bodies. " + look.cost())
    if missed := len(left.keys() - met):
        _warn_of_hidden(session, f"{letters(missed)} could not be looked at")
    return found


def _strangers(session: Session, known: int, *, warns: bool) -> int:
    """Count visible messages beyond those that the ledger knows. It `warns` about hidden ones, which it may not know.

    The ledger of a state table that was made anew knows none.
    """
    facts = session.parking_lot.facts()
    if facts.hidden and warns:
        _warn_of_hidden(
            session, f"{letters(facts.hidden)} of the parking lot can't be looked at now"
        )
    return max(0, facts.visible - known)


def _tell_strangers(session: Session, count: int) -> None:
    removed = ", or of a target that was removed" * bool(session.place.deployment.targets)
    session.terminal.say(
        f"{several(count, 'message')} in the parking lot {'is' if count == 1 else 'are'} "
        f"{NOT_PARKED_BY_LEDGER}{removed}: `redrive replay --all --dry-run` shows them."
    )


def _warn_of_hidden(session: Session, what: str) -> None:
    session.terminal.warn(f"{what}: a pass or a person is working on them; {TRY_AGAIN}.")


def _noting(known: Counter[str | None], entries: Iterable[Entry]) -> Iterator[Entry]:
    """The entries, which are counted by their reasons."""
    for entry in entries:
        known[entry.park_reason] += 1
        yield entry


def _tell_reasons(session: Session, wanted: str, there: set[str]) -> None:
    """If no letter is parked for this reason, name those that are there, or all that are possible if there is none."""
    if wanted in there:
        return
    known = (
        f"Letters are parked as {listed(sorted(there))}"
        if there
        else f"Reasons are {listed(REASONS)}"
    )
    session.terminal.warn(f"No letter is parked as {wanted}. {known}.")


def _known(look: Iterable[Case], left: dict[str, Entry]) -> Iterator[Case]:
    return (case for case in look if case.message_id in left)


def _tell(
    session: Session, entries: list[Entry], groups: list[Group], shown: list[Entry] | None
) -> None:
    say, now = session.terminal.say, session.clock()
    if not entries:
        say("No parked letters match.")
        return
    say(f"{letters(len(entries))} parked, as the ledger has it:")
    say()
    if shown is None:
        rows = [
            (f"{one.count:,}", one.reason, one.cause, ago(one.first, now), ago(one.last, now))
            for one in groups
        ]
        session.terminal.table(("COUNT", "REASON", "CAUSE", "FIRST", "LAST"), rows, right={0})
        say()
        for reason in dict.fromkeys(one.reason for one in groups):
            if words := why_parked(reason):
                say(f"{reason}: {words}.")
        return
    lines = [
        (entry.original_id, reason, entry.error or cause, str(entry.redrive_count), str(entry.strikes),
         ago(entry.parked_at or entry.first_seen, now))
        for entry, (reason, cause) in zip(shown, map(label, shown), strict=True)
    ]  # fmt: skip
    titles = ("ID", "REASON", "ERROR", "REDRIVES", "STRIKES", "PARKED")
    session.terminal.table(titles, lines, right={3, 4})
    if len(shown) < len(entries):
        say(f"... and {len(entries) - len(shown):,} more: raise --limit.")


def act(session: Session, given: Mapping[str, Any]) -> Exit:
    """Carry out `parked`."""
    wanted = filter_of(given, session.clock())
    return parked(session, wanted, as_list=given["list"], limit=given["limit"])
