"""Sends letters on, records that, and deletes them: the only place where letters leave a queue.

    send 10 ─► send 10 ─► send 10 ─► record 25 ─► delete 20 ─► send 10 ─► ...

A crash anywhere may repeat a letter and never loses one: letters that were sent but not yet recorded would be sent
again. If a pass redrives no more than one round's letters, each send is recorded before the next, so at most one call's
letters are repeated. If it redrives more, a ledger write waits until it is full, which saves six calls in forty-one:
then at most thirty letters for each round under way are repeated.

A round is ten sends and more, and a target may take half a minute for each: when the pass is over, no further send is
begun.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from smart_redriver.engine.errors import CallFailed, EntryFault
from smart_redriver.engine.messages.letter import Letter
from smart_redriver.engine.messages.outgoing import ENTRIES_PER_CALL, Outgoing, Sent, in_calls
from smart_redriver.engine.passes.executor import Effects
from smart_redriver.engine.passes.ports import DeadLetters, Ledger
from smart_redriver.engine.triage.ledger import Entry

Send = Callable[[Sequence[Outgoing]], Sent]

#: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchWriteItem.html
ENTRIES_PER_WRITE = 25


@dataclass(frozen=True, slots=True)
class Leaving:
    """One letter that has to leave. `record` makes its ledger entry once the copy's id is known."""

    outgoing: Outgoing
    record: Callable[[str], Entry]


@dataclass(slots=True)
class Forwarded:
    """The results of sending letters on.

    Attributes:
        sent: the old MessageIds of letters that were accepted elsewhere.
        bounced: the MessageIds of letters that stay because their target failed with them, and its answer.
        not_sent, not_deleted: what was refused. A letter that was sent but not deleted is discarded when it is next
            received, because the ledger knows that it was replaced.
        healed: faults that another try repaired: they are logged, but don't count as failures.
        removed: letters that left the queue.
        is_cut: time ran out before all letters were tried; the others are unchanged.
        failure: the ledger write that was refused. The letters are deleted all the same: their copies are on the way,
            and second copies would be the repeat that the ledger is there to prevent.

    """

    sent: set[str] = field(default_factory=set)
    bounced: dict[str, str] = field(default_factory=dict)
    not_sent: list[EntryFault] = field(default_factory=list)
    not_deleted: list[EntryFault] = field(default_factory=list)
    healed: list[EntryFault] = field(default_factory=list)
    removed: int = 0
    is_cut: bool = False
    failure: CallFailed | None = None

    def add(self, part: Forwarded) -> None:
        """Add the results for further letters."""
        self.sent |= part.sent
        self.bounced |= part.bounced
        self.not_sent += part.not_sent
        self.not_deleted += part.not_deleted
        self.healed += part.healed
        self.removed += part.removed
        self.is_cut |= part.is_cut
        self.failure = self.failure or part.failure

    @property
    def refusal(self) -> str | None:
        """The code with which the source refused letters for a reason other than their content."""
        return next((one.code for one in self.not_sent if one.is_refusal), None)

    def as_effects(self) -> Effects:
        """The effects that a pass adds up; the sender counts the letters themselves."""
        return Effects(
            faults=[*self.not_sent, *self.not_deleted],
            healed=list(self.healed),
            removed=self.removed,
            is_cut=self.is_cut,
            failure=self.failure,
        )


def forward(
    leaving: Sequence[Leaving],
    send: Send,
    *,
    out_of: DeadLetters,
    ledger: Ledger,
    now: datetime,
    waits_for_full_writes: bool = False,
    keeps: bool = False,
    is_over: Callable[[], bool] = lambda: False,
    entries: int = ENTRIES_PER_CALL,
) -> Forwarded:
    """Send letters on out of a queue, at most `entries` of them a call. The answer includes what AWS refuses.

    With `keeps` they are sent and recorded, but stay: see `triage.ordered`. Once `is_over`, no further call is begun.
    """
    forwarder = _Forwarder(send, out_of, ledger, now, waits_for_full_writes, keeps, is_over)
    return forwarder.run(leaving, entries)


def delete(letters: Sequence[Letter], out_of: DeadLetters) -> Forwarded:
    """Delete letters whose copies are known to have been sent."""
    faults = out_of.delete(letters) if letters else []
    return Forwarded(not_deleted=list(faults), removed=len(letters) - len(faults))


class _Forwarder:
    def __init__(
        self,
        send: Send,
        out_of: DeadLetters,
        ledger: Ledger,
        now: datetime,
        waits_for_full_writes: bool,
        keeps: bool,
        is_over: Callable[[], bool],
    ) -> None:
        self._send = send
        self._out_of = out_of
        self._ledger = ledger
        self._now = now
        self._record_from = ENTRIES_PER_WRITE if waits_for_full_writes else 1
        self._keeps = keeps
        self._is_over = is_over
        self._done = Forwarded()
        self._unrecorded: list[tuple[Outgoing, Entry, str]] = []
        self._recorded: list[Letter] = []

    def run(self, leaving: Sequence[Leaving], entries: int) -> Forwarded:
        records = {one.outgoing.letter.message_id: one.record for one in leaving}
        calls = in_calls([one.outgoing for one in leaving], entries)
        try:
            self._send_all(calls, records)
            self._record(self._unrecorded)
        except CallFailed as failed:
            self._done.failure = failed
        self._delete([*self._recorded, *(one.letter for one, _, _ in self._unrecorded)])
        return self._done

    def _send_all(
        self, calls: Iterable[list[Outgoing]], records: dict[str, Callable[[str], Entry]]
    ) -> None:
        """Send call by call, and record what was sent as soon as a write is full. Raises CallFailed."""
        for number, few in enumerate(calls):
            if number and self._is_over():
                self._done.is_cut = True
                return
            sent = self._send(few)
            self._accept(few, sent, records)
            if len(self._unrecorded) >= self._record_from:
                self._record_some()
            if not sent.new_ids and (sent.refused is not None or sent.bounced):
                return  # a target that refused or failed a whole call would do the same with the next one

    def _accept(
        self, few: Sequence[Outgoing], sent: Sent, records: dict[str, Callable[[str], Entry]]
    ) -> None:
        self._done.not_sent += sent.faults
        self._done.healed += sent.healed
        self._done.bounced |= sent.bounced
        for one in few:
            message_id = one.letter.message_id
            if new_id := sent.new_ids.get(message_id):
                self._done.sent.add(message_id)
                self._unrecorded.append((one, records[message_id](new_id), new_id))

    def _record_some(self) -> None:
        count = len(self._unrecorded)
        full_writes = count // ENTRIES_PER_WRITE * ENTRIES_PER_WRITE or count
        some = self._unrecorded[:full_writes]
        self._record(some)
        self._recorded += [one.letter for one, _, _ in some]
        del self._unrecorded[:full_writes]
        full_calls = len(self._recorded) // ENTRIES_PER_CALL * ENTRIES_PER_CALL
        self._delete(self._recorded[:full_calls])
        del self._recorded[:full_calls]

    def _record(self, sent: Sequence[tuple[Outgoing, Entry, str]]) -> None:
        kept = [(new_id, one.metadata) for one, _, new_id in sent if one.leaves_metadata]
        if sent:
            self._ledger.write_ledger([entry for _, entry, _ in sent], kept, self._now)

    def _delete(self, letters: list[Letter]) -> None:
        if self._keeps:
            return
        deleted = delete(letters, self._out_of)
        self._done.not_deleted += deleted.not_deleted
        self._done.removed += deleted.removed
