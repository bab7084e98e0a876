"""Sends letters on, records that, and deletes them: the one place where letters leave the DLQ.

    send 10 ─► send 10 ─► send 10 ─► record 25 ─► delete 20 ─► send 10 ─► ...

A crash anywhere may repeat a letter and never loses one: what is sent and not yet recorded would be sent again.
Where a pass redrives no more than one round's letters, each send is recorded before the next, so that this is one
call's letters. Where it redrives more, a ledger write waits until it is full, which saves six calls in forty-one: then
it is thirty letters at most for each round under way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from redrive.aws.sqs import CONTENT_FAULTS, ENTRIES_PER_CALL, Outgoing, Queues, Sent, in_calls
from redrive.aws.state_table import ITEMS_PER_WRITE, StateStore
from redrive.core.ledger import Entry
from redrive.core.letter import Letter
from redrive.core.report import Report
from redrive.errors import EntryFault
from redrive.passes.journal import Journal

Send = Callable[[Sequence[Outgoing]], Sent]


@dataclass(frozen=True, slots=True)
class Going:
    """One letter that is to leave. `record` makes its ledger entry once the MessageId of the copy is known."""

    outgoing: Outgoing
    record: Callable[[str], Entry]


class Forwarder:
    """Sends, records and deletes for one pass. `waits_for_full_writes`: see the module."""

    def __init__(
        self,
        queues: Queues,
        store: StateStore,
        report: Report,
        journal: Journal,
        *,
        waits_for_full_writes: bool,
    ) -> None:
        self._queues = queues
        self._store = store
        self._report = report
        self._journal = journal
        self._record_from = ITEMS_PER_WRITE if waits_for_full_writes else 1
        #: Letters that were taken out of the DLQ.
        self.removed = 0

    def forward(self, letters: Sequence[Going], send: Send, now: datetime) -> list[EntryFault]:
        """Send letters on; what comes back was not sent. Raises CallFailed after a ledger write was refused.

        A letter whose record could not be written is deleted all the same: its copy is on the way, and a second
        one would be the repeat that the ledger is there to prevent. Then the pass ends.
        """
        records = {one.outgoing.letter.message_id: one.record for one in letters}
        faults: list[EntryFault] = []
        unrecorded: list[tuple[Outgoing, Entry, str]] = []
        recorded: list[Letter] = []
        try:
            for few in in_calls([one.outgoing for one in letters]):
                sent = send(few)
                faults += sent.faults
                self.saw(sent.faults)
                self._saw_healed(sent.healed)
                for one in few:
                    if new_id := sent.new_ids.get(one.letter.message_id):
                        entry = records[one.letter.message_id](new_id)
                        unrecorded.append((one, entry, new_id))
                if len(unrecorded) >= self._record_from:
                    self._record(unrecorded[:ITEMS_PER_WRITE], now)
                    recorded += [one.letter for one, _, _ in unrecorded[:ITEMS_PER_WRITE]]
                    del unrecorded[:ITEMS_PER_WRITE]
                    full_calls = len(recorded) // ENTRIES_PER_CALL * ENTRIES_PER_CALL
                    self.delete(recorded[:full_calls])
                    del recorded[:full_calls]
                if _is_refused(sent):
                    break  # who refused a whole call refuses the next one, too
            self._record(unrecorded, now)
        finally:
            self.delete(recorded + [one.letter for one, _, _ in unrecorded])
        return faults

    def delete(self, letters: Sequence[Letter]) -> None:
        """Delete letters that are recorded as sent."""
        faults = self._queues.delete(letters) if letters else []
        self.removed += len(letters) - len(faults)
        self.saw(faults)

    def saw(self, faults: Sequence[EntryFault]) -> None:
        """Count and tell what was not accepted."""
        for fault in faults:
            self._report.saw_fault(fault)
            self._journal("entry.failed", call=fault.call, code=fault.code, message_id=fault.key)

    def _saw_healed(self, faults: Sequence[EntryFault]) -> None:
        """Tell what was accepted at the second try: it has not failed."""
        for fault in faults:
            self._report.faults[f"{fault.call}:{fault.code}"] += 1
            self._journal("entry.failed", call=fault.call, code=fault.code, message_id=fault.key)

    def _record(self, sent: Sequence[tuple[Outgoing, Entry, str]], now: datetime) -> None:
        kept = [(new_id, one.trail) for one, _, new_id in sent if not one.carries_trail]
        self._store.write_ledger([entry for _, entry, _ in sent], kept, now)


def _is_refused(sent: Sent) -> bool:
    return not sent.new_ids and any(fault.code not in CONTENT_FAULTS for fault in sent.faults)
