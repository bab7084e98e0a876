"""`redrive undo`: puts letters into the parking lot again, as they are in a file.

Deleted letters come back. An edited copy that returned to the DLQ or the parking lot is replaced by the original, and
kept in a file of its own. A copy that is at its source queue can't be called back, nor one that its target accepted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

from smart_redriver.engine.counts import letters
from smart_redriver.engine.messages.letter import Letter
from smart_redriver.engine.messages.outgoing import ENTRIES_PER_CALL
from smart_redriver.engine.passes.ports import Source
from smart_redriver.engine.triage.case import Case
from smart_redriver.engine.triage.ledger import Entry, Status
from smart_redriver.oncall.audit.trail import recorded
from smart_redriver.oncall.deployment.message_store import Operation, refuse_unless
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.letters.choice import Choice
from smart_redriver.oncall.letters.export_file import ExportFile, Kept, KeptFile
from smart_redriver.oncall.moving.ending import finish, tally_in_words
from smart_redriver.oncall.moving.importing import ToParkingLot, Whereabouts
from smart_redriver.oncall.moving.sending import BY_HAND, Park, WriteAndDelete
from smart_redriver.oncall.moving.work import Acted, Tally, Work
from smart_redriver.oncall.status.standing import tell_standing
from smart_redriver.oncall.terminal.exits import Exit, Refused

_UNKNOWN = "the ledger does not know it; `redrive import` sends it"
_AS_IT_WAS = "it is as it was"
_UNCHANGED = "it is in the DLQ, as it was"
_HIDDEN = (
    "it was not met, as it may be hidden: undo again later, or, after a purge, "
    "`redrive import --even-though-there`"
)
_AWAY = "its copy was not met: hidden, processed, or on its way; undo again if it comes back"
_ACCEPTED = "its target accepted its copy, which does not come back"
_NOT_DEAD = "its copy was not met: done, still a job, or on its way; undo again if it dies"
#: Statuses of letters that are in the DLQ, or about to be because their last failure was reported.
_IN_DLQ = (Status.RETURNED, Status.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoRequest:
    """The file with the letters as they were, and the file that keeps their present versions."""

    file: Path
    kept: Path
    reason: str = ""


@dataclass(slots=True)
class _Originals:
    """Letters of the file by what is known about them, and by original id: a copy's may change before it is found.

    If a letter is in several lines, the first counts: files are written in order, so it is the letter before any edit.
    """

    unknown: set[str] = field(default_factory=set)
    accepted: set[str] = field(default_factory=set)
    gone: dict[str, Kept] = field(default_factory=dict)
    parked: dict[str, Kept] = field(default_factory=dict)
    returned: dict[str, Kept] = field(default_factory=dict)
    away: dict[str, Kept] = field(default_factory=dict)

    def __len__(self) -> int:
        """The number of different letters: a file may have one in several lines."""
        found = (self.unknown, self.accepted, self.gone, self.parked, self.returned, self.away)
        return sum(map(len, found))


def undo(session: Session, request: UndoRequest) -> Exit:
    """Show the plan, ask, put back. Raises CallFailed and Refused."""
    refuse_unless(session.letter_store, Operation.IMPORT)
    file = KeptFile(session, request.file)
    if not file.check():
        raise Refused(f"{request.file} has no letter in it: nothing to do.")
    originals = _sort(session, file)
    accepted = len(originals.accepted)
    if accepted == len(originals):
        raise Refused(
            f"Accepted by their target: {letters(accepted)}, all of {request.file}. That can't be undone: nothing was "
            "changed."
        )
    session.terminal.plan(
        f"Plan: put {letters(len(originals))} of {request.file} into the parking lot as they were. Deleted: "
        f"{len(originals.gone):,}. Parked, perhaps in another form: {len(originals.parked):,}. In the DLQ: "
        f"{len(originals.returned):,}. Sent, and put back if they have returned to the DLQ since: "
        f"{len(originals.away):,}. Their present versions are kept in {request.kept}."
    )
    if accepted:
        session.terminal.plan(f"Accepted by their target, so not put back: {letters(accepted)}.")
    tell_standing(session)
    session.terminal.confirm("Put them back?")
    with recorded(session, f"undo {request.file}", request.reason) as ended:
        tally = _put_back(session, request, originals)
        ended.extend(tally_in_words(tally, "put back"))
    return finish(session, tally, Choice(), "put back")


def _sort(session: Session, file: KeptFile) -> _Originals:
    found = _Originals()
    sources = {source.name: source for source in session.sources}
    reading = iter(file)
    while few := list(islice(reading, ENTRIES_PER_CALL)):
        known = Whereabouts.of(session, few)
        for one in few:
            original_id = one.letter.original_id
            entry = known.entries.get(original_id)
            if entry is None:
                found.unknown.add(original_id)
            elif original_id in known.gone:
                found.gone.setdefault(original_id, one)
            elif entry.status is Status.PARKED:
                found.parked.setdefault(original_id, one)
            elif entry.status in _IN_DLQ:
                found.returned.setdefault(original_id, one)
            elif _is_accepted(entry, sources.get(entry.queue)):
                found.accepted.add(original_id)
            else:
                found.away.setdefault(original_id, one)
    return found


def _is_accepted(entry: Entry, source: Source | None) -> bool:
    """Whether its target's answer was the outcome. Raises CallFailed."""
    return entry.status is Status.SUCCEEDED and source is not None and source.settles_at_once


def _put_back(session: Session, request: UndoRequest, originals: _Originals) -> Tally:
    are_rows = session.letter_store.keeps_rows
    swap = _exchange if are_rows else _swap
    with ExportFile(session, request.kept) as file:
        tally = _bring_back(session, request, originals.gone.values())
        if originals.unknown:
            tally.skipped[_UNKNOWN] += len(originals.unknown)
        if originals.accepted:
            tally.skipped[_ACCEPTED] += len(originals.accepted)
        in_dlq = originals.returned | originals.away
        for letters_of, is_dlq in ((originals.parked, False), (in_dlq, True)):
            if letters_of and not tally.was_interrupted:
                swapped = swap(session, letters_of, file, request, is_dlq=is_dlq)
                _add(tally, swapped)
                for missing in letters_of.keys() - swapped.ids_done:
                    unmet = _AWAY if missing in originals.away else _HIDDEN
                    tally.skipped[_NOT_DEAD if are_rows else unmet] += 1
    return tally


def _bring_back(session: Session, request: UndoRequest, gone: Collection[Kept]) -> Tally:
    note = session.signed("put back", request.reason)
    importing = ToParkingLot(session, note, without_reason=BY_HAND)
    tally = importing.tally
    try:
        importing.take_all(gone)
    finally:
        if left := len(gone) - tally.done - tally.skipped.total():
            session.terminal.warn(
                f"Not put back, and only in {request.file}: {letters(left)}. Mend the cause, then undo the file again."
            )
    return tally


def _swap(
    session: Session,
    originals: dict[str, Kept],
    file: ExportFile,
    request: UndoRequest,
    *,
    is_dlq: bool,
) -> Tally:
    """Replace copies in one queue by their originals."""
    out_of = session.letters_in(dlq=is_dlq)
    note = session.signed("put back", request.reason)

    def fault_of(letter: Letter) -> str | None:
        was = _as_it_was(originals, letter).letter
        is_same = (letter.body, dict(letter.attributes)) == (was.body, dict(was.attributes))
        return _AS_IT_WAS if is_same and not is_dlq else None

    def original_of(letter: Letter) -> Letter:
        was = _as_it_was(originals, letter).letter
        return replace(letter, body=was.body, attributes=was.attributes)

    act = Park(session, out_of, note=note, fault_of=fault_of, edit=original_of, keep=file.write)
    choice = Choice(ids=frozenset(originals))
    return Work(session, out_of, choice, act).run()


def _exchange(
    session: Session,
    originals: dict[str, Kept],
    file: ExportFile,
    request: UndoRequest,
    *,
    is_dlq: bool,
) -> Tally:
    """Delete copies in one table, and bring back the rows that were edited."""
    take_out = WriteAndDelete(session, file, request.reason, from_dlq=is_dlq)
    taken: list[Kept] = []

    def act(few: Sequence[Case], *, until: datetime) -> Acted:
        others = [
            case
            for case in few
            if case.letter.body != _as_it_was(originals, case.letter).letter.body
        ]
        acted = take_out(others, until=until)
        taken.extend(_as_it_was(originals, case.letter) for case in acted.done)
        same = [case for case in few if case not in others]
        acted.skipped += [(case, _UNCHANGED if is_dlq else _AS_IT_WAS) for case in same]
        return acted

    choice = Choice(ids=frozenset(originals))
    tally = Work(session, session.letters_in(dlq=is_dlq, ids=choice.ids), choice, act).run()
    tally.done = 0  # a deleted letter is done when its row is back
    _add(tally, _bring_back(session, request, taken))
    return tally


def _as_it_was(originals: Mapping[str, Kept], letter: Letter) -> Kept:
    """Return a letter's original. The file may have it under the id of a copy."""
    return next(
        originals[one] for one in (letter.original_id, *letter.known_as) if one in originals
    )


def _add(tally: Tally, more: Tally) -> None:
    tally.done += more.done
    tally.discarded += more.discarded
    tally.was_interrupted = more.was_interrupted
    for into, counts in ((tally.skipped, more.skipped), (tally.failed, more.failed)):
        Counter.update(into, counts)


def act(session: Session, given: Mapping[str, Any]) -> Exit:
    """Carry out `undo`."""
    kept = given.get("export") or session.new_file("undone")
    request = UndoRequest(file=given["file"], kept=kept, reason=given.get("reason", ""))
    return undo(session, request)
