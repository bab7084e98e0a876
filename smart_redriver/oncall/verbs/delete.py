"""`redrive delete`: letters for which there is nothing left to do. Written to a file first, always."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from smart_redriver.engine.errors import EntryFault
from smart_redriver.engine.triage.case import Case
from smart_redriver.engine.triage.ledger import Entry
from smart_redriver.oncall.audit.trail import recorded
from smart_redriver.oncall.deployment.message_store import Operation, refuse_unless
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.letters.choice import Choice, choice_of
from smart_redriver.oncall.letters.export_file import ExportFile, to_be_kept
from smart_redriver.oncall.moving.ending import end_dry_run, finish, tally_in_words, tell_gap
from smart_redriver.oncall.moving.selection import CUT, find_selection, tell_selection
from smart_redriver.oncall.moving.work import Acted, Work
from smart_redriver.oncall.status.standing import tell_standing
from smart_redriver.oncall.terminal.exits import Exit, Refused
from smart_redriver.oncall.terminal.words import letters


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRequest:
    """What to delete, and the file that keeps it."""

    choice: Choice
    file: Path
    from_dlq: bool = False
    reason: str = ""
    is_dry_run: bool = False


def delete(session: Session, request: DeleteRequest) -> Exit:
    """Count, ask for the count, write, delete. Raises CallFailed and Refused."""
    refuse_unless(session.letter_store, Operation.DELETE)
    out_of = session.letters_in(
        dlq=request.from_dlq, ids=request.choice.ids, contains=request.choice.filter.contains
    )
    selection = find_selection(session, request.choice, from_dlq=request.from_dlq)
    if not selection.is_exact:
        few = (
            f"{CUT} Name those that are seen by their ids"
            if selection.is_cut
            else "There are too many to count in one look. Narrow the choice"
        )
        raise Refused(f"{few}, or use --all.")
    count = selection.count
    session.terminal.plan(
        f"Plan: write {letters(count)} of {session.place.queue} ({request.choice.in_words()}) to {request.file}, "
        "then delete them. `redrive import` would bring them back:"
    )
    tell_selection(session, request.choice, selection)
    if request.from_dlq:
        tell_gap(session)
    tell_standing(session)
    if request.is_dry_run:
        return end_dry_run(session, selection.to_json())
    session.terminal.confirm(f"Delete {letters(count)}?", expected=str(count))
    what = f"delete {request.choice.in_words()}{' from the DLQ' if request.from_dlq else ''}"
    with ExportFile(request.file, session.name_of) as file:
        work = Work(
            session,
            out_of,
            request.choice,
            WriteAndDelete(session, file, request.reason, from_dlq=request.from_dlq),
            limit=count,  # what arrives meanwhile was not agreed to
        )
        with (
            recorded(session, what, request.reason) as ended,
            session.terminal.progress("Deleting", count) as advance,
        ):
            tally = work.run(advance)
            ended += [*tally_in_words(tally, "deleted"), *file.told()]
    return finish(session, tally, request.choice, "deleted", planned=count, out_of=out_of)


class WriteAndDelete:
    """An `Act`: the file, then the ledger, then the delete.

    After a crash before the delete the ledger says DELETED and names the copy as replaced: whoever meets it
    discards it, and the file holds it. A letter that is known to be there keeps what the ledger knew of it.
    """

    def __init__(self, session: Session, file: ExportFile, reason: str, *, from_dlq: bool) -> None:
        self._session = session
        self._file = file
        self._from_dlq = from_dlq
        self._note = session.signed("deleted", reason)

    def __call__(self, few: Sequence[Case], *, until: datetime) -> Acted:  # noqa: ARG002 - quick
        now = self._session.clock()
        few, unread = to_be_kept(self._session, few, dlq=self._from_dlq)
        self._file.write(few)
        entries = [
            case.known(self._session.name_of(case)).deleted(
                message_id=case.message_id, now=now, note=self._note
            )
            for case in few
        ]
        known = self._known_before(few)
        self._session.store.write_ledger(entries, [], now)
        faults: list[EntryFault] = []
        try:
            faults = self._session.letter_store.remove(
                [case.letter for case in few], dlq=self._from_dlq
            )
        except KeyboardInterrupt:
            self._put_back(few, known)
            raise
        refused = {fault.key for fault in faults}
        self._put_back([case for case in few if case.message_id in refused], known)
        done = [case for case in few if case.message_id not in refused]
        return Acted(done=done, faults=unread + faults)

    def _known_before(self, few: Sequence[Case]) -> Mapping[str, Entry]:
        """What the ledger itself has of letters; of those in a queue nobody will ask."""
        if not self._session.letter_store.finds_by_id:
            return {}
        ids = [case.original_id for case in few]
        return self._session.store.read_ledger(ids).entries

    def _put_back(self, cases: Sequence[Case], known: Mapping[str, Entry]) -> None:
        """Let those that are there be as they were, strikes and history included. Raises CallFailed."""
        session = self._session
        if not cases:
            return
        letters = [case.letter for case in cases]
        there = session.letter_store.still_there(letters, dlq=self._from_dlq)
        entries = [
            known.get(case.original_id) or case.known(session.name_of(case))
            for case in cases
            if case.message_id in there
        ]
        if entries:
            session.store.write_ledger(entries, [], session.clock())


def act(session: Session, given: Mapping[str, Any]) -> Exit:
    """As declared."""
    request = DeleteRequest(
        choice=choice_of(given, session.clock()),
        file=given.get("export") or session.new_file("deleted"),
        from_dlq=given["from_dlq"],
        reason=given.get("reason", ""),
        is_dry_run=given.get("dry_run", False),
    )
    return delete(session, request)
