"""Knows letters that their consumers parked, whose copies had no room for a trail.

A copy that the re-driver sends without a trail has it in the ledger, by the copy's id. What a consumer parks has not:
a pass would have to believe a report that names any id, and could write over what is known of another letter. But the
letter's own entry names the copy, so a person's command looks for the entry with that id, and asks for it once more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from threading import Lock

from smart_redriver.engine.aws.state_table import Known
from smart_redriver.engine.messages.letter import Trail
from smart_redriver.engine.passes.ports import DeadLetters, Ledger
from smart_redriver.engine.reports.processing import Told
from smart_redriver.engine.triage.case import trail_after
from smart_redriver.engine.triage.decision import ParkReason
from smart_redriver.engine.triage.ledger import Entry, Status
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.letters.ledger_scan import parked_entries


def ledger_for(session: Session, out_of: DeadLetters) -> Ledger:
    """The ledger by which letters of a queue are known; only the parking lot's need to be known by their copies."""
    ledger = ByCopy(session) if out_of is session.parking_lot else session.store
    return session.letter_store.ledger(out_of, ledger)


class ByCopy:
    """The ledger, in which a letter that its consumer parked is found by the id of the copy, too.

    It is read as a whole, once, when it is first asked for an id that it does not know. Several threads may ask.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._originals: dict[str, str] | None = None
        self._lock = Lock()

    def read_ledger(self, message_ids: Iterable[str]) -> Known:
        """See `StateStore.read_ledger`. Raises CallFailed."""
        ids = list(message_ids)
        known = self._session.store.read_ledger(ids)
        unknown = [one for one in ids if one not in known.entries and one not in known.trails]
        originals = {one: self._by_copy()[one] for one in unknown if one in self._by_copy()}
        if not originals:
            return known
        entries = self._session.store.read_ledger(originals.values()).entries
        for copy, original in originals.items():
            entry = entries.get(original)
            if entry is not None and entry.status is Status.PARKED and entry.current_id == copy:
                known.entries[original] = entry
                known.trails[copy] = trail_after(entry, entry.queue, None)
        return known

    def write_ledger(
        self, entries: Sequence[Entry], kept_trails: Sequence[tuple[str, Trail]], now: datetime
    ) -> None:
        """See `StateStore.write_ledger`. Raises CallFailed."""
        self._session.store.write_ledger(entries, kept_trails, now)

    def write_failures(self, failures: Sequence[Told], until: datetime) -> None:
        """See `StateStore.write_failures`. Raises CallFailed."""
        self._session.store.write_failures(failures, until)

    def _by_copy(self) -> dict[str, str]:
        """Original ids by the id of the parked copy; where several claim one, the first report of it counts."""
        with self._lock:
            if self._originals is None:
                claims = sorted(
                    (entry.parked_at or entry.first_seen, entry.current_id, entry.original_id)
                    for entry in parked_entries(self._session)
                    if entry.park_reason == ParkReason.PERMANENT.value
                )
                self._originals = {copy: original for _, copy, original in reversed(claims)}
            return self._originals
