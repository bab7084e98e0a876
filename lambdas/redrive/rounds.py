"""One round: at most a hundred letters, from receive to delete. The engine of a pass.

The order of effects is send, ledger, delete, so that a crash anywhere may repeat a letter and never loses one. A
round works in full batches and knows nothing of the circuit but the batch that it fills.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from redrive.circuit import Batch
from redrive.faults import CallFailed, EntryFault
from redrive.journal import Journal
from redrive.ledger import Entry, Status
from redrive.letter import Letter, Trail
from redrive.queues import CONTENT_FAULTS, Outgoing, Queues, Sent
from redrive.report import Report
from redrive.state_store import StateStore
from redrive.triage import (
    Discard,
    Hold,
    Park,
    ParkReason,
    Redrive,
    count_redrives,
    is_unseen_return,
)

#: Letters of one round: what one BatchGetItem can ask the ledger about.
ROUND_SIZE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """A letter in hand, and what the ledger knows of it."""

    letter: Letter
    entry: Entry | None


@dataclass(slots=True, kw_only=True)
class Tally:
    """What a batch has come to so far; filled by the rounds, read when the pass completes the batch."""

    size: int = 0
    suspects: int = 0
    shortest_delay: timedelta | None = None
    longest_delay: timedelta = timedelta()
    refused: str | None = None

    def add(self, decision: Redrive) -> None:
        """Count one letter that was sent."""
        self.size += 1
        self.suspects += decision.strikes > 0
        self.longest_delay = max(self.longest_delay, decision.delay)
        self.shortest_delay = min(self.shortest_delay or decision.delay, decision.delay)


class Rounds:
    """Receives letters and carries decisions out, for one pass on one queue."""

    def __init__(
        self,
        queues: Queues,
        store: StateStore,
        report: Report,
        journal: Journal,
        *,
        source_limit: int,
        parking_lot_limit: int,
    ) -> None:
        self._queues = queues
        self._store = store
        self._report = report
        self._journal = journal
        self._source_limit = source_limit
        self._parking_lot_limit = parking_lot_limit
        #: Letters that this pass took out of the DLQ.
        self.removed = 0

    def gather(self, limit: int, *, hidden_for: timedelta) -> list[Examined]:
        """Receive at most `limit` letters and look each up in the ledger. Raises CallFailed.

        An answer without letters ends it: the DLQ shows no more for now.
        """
        letters: list[Letter] = []
        while len(letters) < limit:
            received = self._queues.receive(limit - len(letters), hidden_for=hidden_for)
            letters += received
            if not received:
                break
        return self._look_up(letters)

    def apply_redrives(
        self,
        redrives: Sequence[tuple[Examined, Redrive]],
        batch: Batch,
        tally: Tally,
        now: datetime,
    ) -> None:
        """Send letters back to their source queue. Raises CallFailed after a ledger write was refused."""
        outgoing = [
            Outgoing(
                letter=one.letter,
                trail=self._trail(one, batch),
                size_limit=self._source_limit,
                delay=decision.delay,
            )
            for one, decision in redrives
        ]
        sent = self._queues.redrive(outgoing)
        entries = []
        for one, decision in redrives:
            if new_id := sent.new_ids.get(one.letter.message_id):
                tally.add(decision)
                self._report.redriven += 1
                entries.append(
                    self._entry(one).redriven(
                        replaced_id=one.letter.message_id,
                        new_id=new_id,
                        batch=batch.id,
                        generation=batch.generation,
                        strikes=decision.strikes,
                        now=now,
                        note=f"redriven in batch {batch.id}",
                    )
                )
                self._tell("letter.redriven", one, decision.reason, delay=decision.delay.seconds)
        self._settle(outgoing, entries, sent, now)

        undeliverable = {f.key for f in sent.faults if f.code in CONTENT_FAULTS}
        refusals = [f for f in sent.faults if f.key not in undeliverable]
        if refusals:
            tally.refused = refusals[0].code
        self.apply_parks(
            [
                (one, Park(reason=ParkReason.UNDELIVERABLE, strikes=decision.strikes))
                for one, decision in redrives
                if one.letter.message_id in undeliverable
            ],
            now,
        )

    def apply_parks(self, parks: Sequence[tuple[Examined, Park]], now: datetime) -> None:
        """Send letters to the parking lot. Raises CallFailed after a ledger write was refused."""
        for one, decision in self._to_parking_lot(parks, now):
            self._report.parked[decision.reason.value] += 1
            self._tell("letter.parked", one, decision.reason.value)

    def renew(self, parks: Sequence[tuple[Examined, Park]], now: datetime) -> None:
        """Send parked letters to the parking lot again, for a new clock. Raises as `apply_parks` does."""
        for one, decision in self._to_parking_lot(parks, now):
            self._report.renewed += 1
            self._tell("letter.renewed", one, decision.reason.value)

    def apply_holds(self, holds: Sequence[tuple[Examined, Hold]], now: datetime) -> None:
        """Leave letters in the DLQ, hidden until their time where that is later than now. Raises CallFailed after a ledger write was refused."""
        deferred = [
            self._entry(one).deferred(not_before=hold.not_before, strikes=hold.strikes)
            for one, hold in holds
            if hold.not_before is not None and (one.entry is None or one.entry.not_before is None)
        ]
        if deferred:
            self._store.write_ledger(deferred, [], now)
        for one, hold in holds:
            self._report.held[hold.reason.value] += 1
            self._tell("letter.held", one, hold.reason.value)
        self._hide([(one.letter, hold.until - now) for one, hold in holds if hold.until > now])

    def release(self, examined: Sequence[Examined]) -> None:
        """Make letters visible again at once. Only after the last round, which would else receive them again."""
        self._hide([(one.letter, timedelta()) for one in examined])

    def apply_discards(self, discards: Sequence[tuple[Examined, Discard]]) -> None:
        """Delete copies that an accepted send has replaced already."""
        if not discards:
            return
        for one, decision in discards:
            self._tell("letter.discarded", one, decision.reason)
        self._report.discarded += len(discards)
        self._delete([one.letter for one, _ in discards])

    def mark_returns(
        self, examined: Sequence[Examined], version: int, now: datetime
    ) -> list[Examined]:
        """Note in the ledger which letters are back, and since which version of the circuit.

        Written before the circuit is: see `Entry.counts_as_evidence`. Raises CallFailed.
        """
        marked = [
            replace(
                one,
                entry=self._entry(one).returned(
                    message_id=one.letter.message_id, version=version, now=now
                ),
            )
            if is_unseen_return(one.letter, one.entry, version)
            else one
            for one in examined
        ]
        fresh = [new.entry for new, old in zip(marked, examined, strict=True) if new is not old]
        if fresh:
            self._store.write_ledger([entry for entry in fresh if entry], [], now)
        return marked

    def _to_parking_lot(
        self, parks: Sequence[tuple[Examined, Park]], now: datetime
    ) -> list[tuple[Examined, Park]]:
        """Park, and return what was accepted."""
        if not parks:
            return []
        outgoing = [
            Outgoing(
                letter=one.letter, trail=self._trail(one, None), size_limit=self._parking_lot_limit
            )
            for one, _ in parks
        ]
        sent = self._queues.park(outgoing)
        accepted = [(one, what) for one, what in parks if one.letter.message_id in sent.new_ids]
        entries = [
            self._entry(one).parked(
                replaced_id=one.letter.message_id,
                new_id=sent.new_ids[one.letter.message_id],
                reason=decision.reason.value,
                strikes=decision.strikes,
                now=now,
            )
            for one, decision in accepted
        ]
        self._settle(outgoing, entries, sent, now)
        return accepted

    def _look_up(self, letters: list[Letter]) -> list[Examined]:
        if not letters:
            return []
        known = self._store.read_ledger(letter.original_id for letter in letters)
        # A copy that could not carry its trail is known by its own id; the trail names the original.
        letters = [
            letter.with_trail(known.trails[letter.message_id])
            if letter.trail is None and letter.message_id in known.trails
            else letter
            for letter in letters
        ]
        unknown = [one.original_id for one in letters if one.message_id in known.trails]
        entries = known.entries | (self._store.read_ledger(unknown).entries if unknown else {})
        self._report.examined += len(letters)
        for letter in letters:
            if letter.trail_fault:
                self._journal(
                    "trail.ignored", message_id=letter.message_id, reason=letter.trail_fault
                )
        return [Examined(letter=one, entry=entries.get(one.original_id)) for one in letters]

    def _entry(self, one: Examined) -> Entry:
        """The letter's entry; a new one on its first visit, or from its trail where the ledger lost it."""
        if one.entry is not None:
            return replace(one.entry, source_arn=one.letter.source_arn or one.entry.source_arn)
        trail = one.letter.trail
        return Entry(
            original_id=one.letter.original_id,
            queue=self._report.queue,
            first_seen=trail.first_seen if trail else one.letter.sent_at,
            status=Status.RETURNED,
            current_id=one.letter.message_id,
            redrive_count=trail.redrive_count if trail else 0,
            batch=trail.batch if trail else None,
            generation=trail.generation if trail else 0,
            source_arn=one.letter.source_arn,
        )

    def _trail(self, one: Examined, batch: Batch | None) -> Trail:
        """The trail of the next copy: one redrive on, in `batch`; as it was where the letter is parked."""
        entry = self._entry(one)
        return Trail(
            queue=self._report.queue,
            original_id=one.letter.original_id,
            redrive_count=count_redrives(one.letter, one.entry) + (batch is not None),
            first_seen=entry.first_seen,
            batch=batch.id if batch else entry.batch or 0,
            generation=batch.generation if batch else entry.generation,
        )

    def _settle(
        self,
        outgoing: Sequence[Outgoing],
        entries: Sequence[Entry],
        sent: Sent,
        now: datetime,
    ) -> None:
        """After a send: ledger, then delete what was accepted.

        A letter whose record could not be written is deleted all the same: its copy is on the way, and a second
        one would be the repeat that the ledger is there to prevent. Then the pass ends.
        """
        self._saw(sent.faults)
        accepted = [one for one in outgoing if one.letter.message_id in sent.new_ids]
        kept = [
            (sent.new_ids[one.letter.message_id], one.trail)
            for one in accepted
            if not one.carries_trail
        ]
        fault: CallFailed | None = None
        try:
            self._store.write_ledger(entries, kept, now)
        except CallFailed as failed:
            fault = failed
        self._delete([one.letter for one in accepted])
        if fault:
            raise fault

    def _delete(self, letters: Sequence[Letter]) -> None:
        faults = self._queues.delete(letters) if letters else []
        self.removed += len(letters) - len(faults)
        self._saw(faults)

    def _hide(self, letters: Sequence[tuple[Letter, timedelta]]) -> None:
        if letters:
            self._saw(self._queues.hide(letters))

    def _saw(self, faults: Sequence[EntryFault]) -> None:
        for fault in faults:
            self._report.saw_fault(fault)
            self._journal("entry.failed", call=fault.call, code=fault.code, message_id=fault.key)

    def _tell(self, event: str, one: Examined, reason: str, **more: object) -> None:
        self._journal(
            event,
            message_id=one.letter.message_id,
            original_id=one.letter.original_id,
            redrive_count=count_redrives(one.letter, one.entry),
            reason=reason,
            **more,
        )
