"""Deletes letters for a person, once they are in a file and the ledger knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from smart_redriver.engine.errors import EntryFault
from smart_redriver.engine.triage.case import Case
from smart_redriver.engine.triage.ledger import Entry
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.letters.export_file import ExportFile, to_be_kept
from smart_redriver.oncall.moving.work import Acted


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
        """The ledger's entries of letters in a table; those of letters in a queue are not needed."""
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
