"""`redrive audit`: what became of every letter in a span of time; `redrive history`: who changed what.

A letter is done, parked, deleted, on its way or still there. Otherwise it is listed with the reason.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from smart_redriver.engine.counts import letters
from smart_redriver.engine.headline import short_name
from smart_redriver.engine.passes.ports import DeadLetters
from smart_redriver.engine.triage.case import Case
from smart_redriver.engine.triage.ledger import Entry, Status
from smart_redriver.oncall.audit.trail import changes_of, trail_of
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.letters.ledger_scan import all_entries
from smart_redriver.oncall.letters.look import look_through
from smart_redriver.oncall.status.waiting import Waits
from smart_redriver.oncall.terminal.exits import Exit
from smart_redriver.oncall.terminal.table import printable
from smart_redriver.oncall.terminal.words import parse_moment, stamp


class Fate(str, Enum):
    """The fate of a letter, as far as ledger and queues show."""

    DONE = "DONE"  # its consumer reported that it is done with it
    NOT_SEEN_AGAIN = (
        "NOT_SEEN_AGAIN"  # sent back, and had time to return: done, as far as can be known
    )
    ON_ITS_WAY = "ON_ITS_WAY"  # sent back, and may return
    PARKED = "PARKED"
    DELETED = "DELETED"  # by a person, who has it in a file
    STILL_THERE = "STILL_THERE"
    HIDDEN = "HIDDEN"  # not seen in its place, which hides at least as many letters
    UNEXPLAINED = "UNEXPLAINED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """The content of the queues at `at`: the original ids of the letters seen, and how many letters were hidden.

    `time_to_return` is the longest time that a letter that was sent back takes to be in the DLQ again.
    """

    at: datetime
    dead: Set[str]
    parked: Set[str]
    time_to_return: timedelta
    hidden_dead: int = 0
    hidden_parked: int = 0


@dataclass(frozen=True, slots=True)
class Unexplained:
    """A letter that is not where it should be according to the ledger."""

    original_id: str
    why: str


@dataclass(slots=True)
class Sums:
    """The letters in a span of time, by their fate.

    Attributes:
        letters: the number of all letters. `fates` add up to it.
        deleted: letters that people deleted, by the ledger's note.
        unexplained: letters with the fate UNEXPLAINED.

    """

    letters: int = 0
    fates: Counter[Fate] = field(default_factory=Counter)
    deleted: Counter[str] = field(default_factory=Counter)
    unexplained: list[Unexplained] = field(default_factory=list)


def add_up(entries: Iterable[Entry], present: Present) -> Sums:
    """Account for the letters that the ledger knows, and for unknown ones in the DLQ and the parking lot."""
    sums, known = Sums(), set[str]()
    missed: defaultdict[bool, list[Unexplained]] = defaultdict(list)
    for entry in entries:
        known.add(entry.original_id)
        fate, why = _fate(entry, present)
        sums.fates[fate] += 1
        if fate is Fate.DELETED:
            sums.deleted[_note(entry)] += 1
        elif fate is Fate.UNEXPLAINED:
            missed[entry.status is Status.PARKED].append(Unexplained(entry.original_id, why))
    _explain(missed, {False: present.hidden_dead, True: present.hidden_parked}, sums)
    sums.fates[Fate.STILL_THERE] += len(present.dead - known)
    for stranger in sorted(present.parked - known - present.dead):
        sums.fates[Fate.UNEXPLAINED] += 1
        sums.unexplained.append(
            Unexplained(stranger, "in the parking lot, and the ledger has no record")
        )
    sums.letters = sums.fates.total()
    return sums


def _explain(
    missed: Mapping[bool, list[Unexplained]], hidden: Mapping[bool, int], sums: Sums
) -> None:
    """Count letters that were not seen in their place as hidden there, if at least as many letters are hidden.

    `missed` and `hidden` have the parking lot under True, and the DLQ under False.
    """
    for is_parked, some in missed.items():
        if len(some) <= hidden[is_parked]:
            sums.fates[Fate.UNEXPLAINED] -= len(some)
            sums.fates[Fate.HIDDEN] += len(some)
        else:
            sums.unexplained += some


def _fate(entry: Entry, present: Present) -> tuple[Fate, str]:
    """Return the fate of a letter and a reason: by where it was seen, or else by its entry."""
    if entry.status is Status.DELETED:
        return Fate.DELETED, ""
    if entry.original_id in present.dead:
        return Fate.STILL_THERE, ""
    if entry.original_id in present.parked:
        return Fate.PARKED, ""
    match entry.status:
        case Status.SUCCEEDED:
            return Fate.DONE, ""
        case Status.PARKED:
            return Fate.UNEXPLAINED, "parked, and not in the parking lot"
        case Status.RETURNED:
            return Fate.UNEXPLAINED, "was in the DLQ, and is not there"
    # It was sent back; or its last failure was reported, and SQS is about to move it to the DLQ.
    since = entry.last_redrive or entry.first_seen
    if present.at < since + present.time_to_return:
        return Fate.ON_ITS_WAY, ""
    if entry.status is Status.FAILED or entry.is_settled:
        return Fate.UNEXPLAINED, "its last failure was reported, and it never came to the DLQ"
    return Fate.NOT_SEEN_AGAIN, ""


def _note(entry: Entry) -> str:
    """The history's note on the last change, without its time."""
    return entry.history[-1].partition(" ")[2] if entry.history else "unknown"


#: How many unexplained letters to list for a person; `--json` has all.
_MOST_LISTED = 20
#: The longest delay of a redriven letter.
_LONGEST_DELAY = timedelta(minutes=15)
#: The time within which targets without a visibility timeout give up on a letter, as Lambda does on async events.
_TIME_TO_FAIL_ELSEWHERE = timedelta(hours=6)
_WORDS = {
    Fate.DONE: "done, as their consumer reported or their target accepted",
    Fate.NOT_SEEN_AGAIN: "sent back and not seen again, although they had time to return",
    Fate.ON_ITS_WAY: "sent back, and may yet return",
    Fate.PARKED: "in the parking lot",
    Fate.DELETED: "deleted by hand",
    Fate.STILL_THERE: "in the DLQ",
    Fate.HIDDEN: "hidden in the DLQ or the parking lot, which hide as many",
    Fate.UNEXPLAINED: "NOT ACCOUNTED FOR",
}


def audit(session: Session, since: datetime) -> Exit:
    """Count the letters first seen since then by what became of them. Raises CallFailed and Refused."""
    entries = [one for one in all_entries(session) if one.first_seen >= since]
    present = _present(session, entries, since)
    unseen = present.hidden_dead + present.hidden_parked
    sums = add_up([*entries, *_of_removed_sources(session, entries, present)], present)
    session.terminal.result(
        {
            "queue": session.place.queue,
            "since": stamp(since),
            "letters": sums.letters,
            "fates": {fate.value: sums.fates[fate] for fate in Fate},
            "deleted": dict(sums.deleted),
            "unexplained": [
                {"original_id": one.original_id, "why": one.why} for one in sums.unexplained
            ],
            "hidden": unseen,
        }
    )
    for line in _lines(session, sums, since, unseen):
        session.terminal.say(line)
    return Exit.PARTLY if sums.unexplained or sums.fates[Fate.HIDDEN] else Exit.DONE


def _of_removed_sources(
    session: Session, entries: Iterable[Entry], present: Present
) -> list[Entry]:
    """The entries of letters that were parked for a target that the settings no longer have. Raises CallFailed."""
    strangers = present.parked - {one.original_id for one in entries}
    found = session.store.read_ledger(sorted(strangers)).entries.values()
    return [one for one in found if one.status is Status.PARKED]


def _present(session: Session, entries: list[Entry], since: datetime) -> Present:
    """The letters in the queues, and how many more are hidden: a look can't tell which letters those are."""
    dead, hidden_dead = _looked_at(session, session.dead_letters, since)
    parked, hidden_parked = _looked_at(session, session.parking_lot, since)
    waits = Waits.of(session)
    waiting = {one.original_id for one in entries if waits.alone(one)} - dead
    if len(waiting) > hidden_dead:
        waiting = set()  # somebody has taken some of them
    return Present(
        at=session.clock(),
        dead=dead | waiting,
        parked=parked,
        time_to_return=_time_to_return(session),
        hidden_dead=hidden_dead - len(waiting),
        hidden_parked=hidden_parked,
    )


def _looked_at(session: Session, queue: DeadLetters, since: datetime) -> tuple[set[str], int]:
    facts = queue.facts()
    if not facts.depth:
        return set(), 0
    with look_through(session, queue, facts.depth) as look:
        seen = {case.original_id for case in look if _first_seen(case) >= since}
    return seen, max(0, facts.depth - look.seen)


def _first_seen(case: Case) -> datetime:
    return case.entry.first_seen if case.entry else case.letter.sent_at


def _time_to_return(session: Session) -> timedelta:
    if session.place.deployment.targets:
        return _LONGEST_DELAY + _TIME_TO_FAIL_ELSEWHERE
    facts = [one.facts() for one in session.sources]
    longest = max(one.visibility_timeout * (one.max_receive_count or 1) for one in facts)
    grace = timedelta(seconds=session.settings.verdict_grace_seconds)
    return _LONGEST_DELAY + longest + grace


def _lines(session: Session, sums: Sums, since: datetime, unseen: int) -> Iterator[str]:
    yield (
        f"{session.place.name}: {letters(sums.letters)} first seen since {stamp(since)}, "
        "as the ledger and the queues have them."
    )
    for fate in Fate:
        if count := sums.fates[fate]:
            yield f"{count:>7,} {_WORDS[fate]}"
    for note, count in sums.deleted.most_common():
        yield f"        {count:,}: {printable(note)}"
    for one in sums.unexplained[:_MOST_LISTED]:
        yield f"  {printable(one.original_id)}: {one.why}"
    more = len(sums.unexplained) - _MOST_LISTED
    if more > 0:
        yield f"  ... and {more:,} more: --json has them all."
    if unseen:
        are = "letter is hidden or was" if unseen == 1 else "letters are hidden or were"
        yield f"{unseen:,} {are} not come to: run it again when no pass is at work."
    if sums.unexplained:
        yield "`redrive show ID` has what is known of one; `redrive history` what people did."
    elif sums.letters and not sums.fates[Fate.HIDDEN]:
        yield "Every letter is accounted for."


def act(session: Session, given: Mapping[str, Any]) -> Exit:
    """Carry out `audit`."""
    return audit(session, parse_moment(given["since"], session.clock()))


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
        session.terminal.say(f"No change by hand in the last {days} days.")
    for one in acts:
        told = f"{stamp(one.at)}  {short_name(one.who)}  {one.in_words()}"
        session.terminal.say(printable(told))
    return Exit.DONE


def act_history(session: Session, given: Mapping[str, Any]) -> Exit:
    """Carry out `history`."""
    return history(session, days=given["days"])
