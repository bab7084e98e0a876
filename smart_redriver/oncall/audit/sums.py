"""Accounts for letters: each is done, parked, deleted, on its way or still there, or is listed with why not. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum

from smart_redriver.engine.triage.ledger import Entry, Status


class Fate(str, Enum):
    """What became of a letter, as far as ledger and queues show."""

    DONE = "DONE"  # its consumer reported that it is done with it
    NOT_SEEN_AGAIN = (
        "NOT_SEEN_AGAIN"  # sent back, and had time to return: done, as far as anybody can tell
    )
    ON_ITS_WAY = "ON_ITS_WAY"  # sent back, and may return
    PARKED = "PARKED"
    DELETED = "DELETED"  # by a person, who has it in a file
    STILL_THERE = "STILL_THERE"
    UNEXPLAINED = "UNEXPLAINED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """The queues as they were looked through at `at`: original ids of the letters in them.

    `time_to_return` is how long a letter that was sent back may take to be in the DLQ again.
    """

    at: datetime
    dead: Set[str]
    parked: Set[str]
    time_to_return: timedelta


@dataclass(frozen=True, slots=True)
class Unexplained:
    """A letter that is not where the ledger has it."""

    original_id: str
    why: str


@dataclass(slots=True)
class Sums:
    """The letters of a span of time, by their fate.

    Attributes:
        letters: all of them. `fates` add up to it.
        deleted: letters that people deleted, by the ledger's note of it.
        unexplained: those whose fate is UNEXPLAINED.

    """

    letters: int = 0
    fates: Counter[Fate] = field(default_factory=Counter)
    deleted: Counter[str] = field(default_factory=Counter)
    unexplained: list[Unexplained] = field(default_factory=list)


def add_up(entries: Iterable[Entry], present: Present) -> Sums:
    """Account for the letters that the ledger knows, and for those in the DLQ and the parking lot that it does not."""
    sums, known = Sums(), set[str]()
    for entry in entries:
        known.add(entry.original_id)
        fate, why = _fate(entry, present)
        sums.fates[fate] += 1
        if fate is Fate.DELETED:
            sums.deleted[_note(entry)] += 1
        elif fate is Fate.UNEXPLAINED:
            sums.unexplained.append(Unexplained(entry.original_id, why))
    sums.fates[Fate.STILL_THERE] += len(present.dead - known)
    for stranger in sorted(present.parked - known - present.dead):
        sums.fates[Fate.UNEXPLAINED] += 1
        sums.unexplained.append(
            Unexplained(stranger, "in the parking lot, and the ledger has no record")
        )
    sums.letters = sums.fates.total()
    return sums


def _fate(entry: Entry, present: Present) -> tuple[Fate, str]:
    """A letter that is seen is where it is seen; else its record tells."""
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
    # Sent back; or its last failure was reported, and SQS has it on its way to the DLQ.
    since = entry.last_redrive or entry.first_seen
    if present.at < since + present.time_to_return:
        return Fate.ON_ITS_WAY, ""
    if entry.status is Status.FAILED or entry.is_settled:
        return Fate.UNEXPLAINED, "its last failure was reported, and it never came to the DLQ"
    return Fate.NOT_SEEN_AGAIN, ""


def _note(entry: Entry) -> str:
    """What the history says of the last change, without its time."""
    return entry.history[-1].partition(" ")[2] if entry.history else "unknown"
