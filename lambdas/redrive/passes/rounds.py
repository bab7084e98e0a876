"""One round: at most a hundred letters, from receive to delete. The engine of a pass.

The order of effects is send, ledger, delete, so that a crash anywhere may repeat a letter and never loses one. A
round works in full batches and knows nothing of the circuit but the batch that it fills.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from redrive.aws.sqs import CONTENT_FAULTS, Outgoing, Queues
from redrive.aws.state_table import StateStore
from redrive.core.cause import error_of
from redrive.core.circuit import Batch
from redrive.core.ledger import Entry, Status
from redrive.core.letter import Letter, Trail
from redrive.core.pacing import MAX_SQS_DELAY
from redrive.core.report import Report
from redrive.core.triage import (
    Decision,
    Discard,
    Hold,
    Park,
    ParkReason,
    Redrive,
    batch_of,
    count_redrives,
    is_unseen_return,
)
from redrive.passes.journal import Journal, Notes
from redrive.passes.send_back import Forwarder, Going

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
    shortest_delay: timedelta = timedelta.max
    longest_delay: timedelta = timedelta()
    refused: str | None = None

    def add(self, decision: Redrive) -> None:
        """Count one letter that was sent."""
        self.size += 1
        self.suspects += decision.strikes > 0
        self.longest_delay = max(self.longest_delay, decision.delay)
        self.shortest_delay = min(self.shortest_delay, decision.delay)

    def absorb(self, part: Tally) -> None:
        """Add what one round has come to."""
        self.size += part.size
        self.suspects += part.suspects
        self.longest_delay = max(self.longest_delay, part.longest_delay)
        self.shortest_delay = min(self.shortest_delay, part.shortest_delay)
        self.refused = self.refused or part.refused


class Rounds:
    """Receives letters and carries decisions out, for one pass on one queue."""

    def __init__(
        self,
        queues: Queues,
        store: StateStore,
        report: Report,
        journal: Journal,
        *,
        source_limits: Mapping[str, int],
        parking_lot_limit: int,
        waits_for_full_writes: bool = False,
    ) -> None:
        self._queues = queues
        self._store = store
        self._report = report
        self._journal = journal
        self._notes = Notes()
        self._source_limits = source_limits
        self._parking_lot_limit = parking_lot_limit
        self._forwarder = Forwarder(
            queues, store, report, journal, waits_for_full_writes=waits_for_full_writes
        )

    @property
    def removed(self) -> int:
        """Letters that this pass took out of the DLQ."""
        return self._forwarder.removed

    def apart(self, *, is_one_of_many: bool) -> Rounds:
        """The same, with counts of its own: for one round that may run beside others. See `absorb`."""
        notes = Notes()
        part = Rounds(
            self._queues,
            self._store,
            Report(queue=self._report.queue, mode=self._report.mode),
            notes,
            source_limits=self._source_limits,
            parking_lot_limit=self._parking_lot_limit,
            waits_for_full_writes=is_one_of_many,
        )
        part._notes = notes
        return part

    def absorb(self, part: Rounds) -> None:
        """Add the counts of a round that ran apart, and tell what it noted."""
        self._report.absorb(part._report)
        self._forwarder.removed += part.removed
        part._notes.tell(self._journal)

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
        # SQS now and then hands a letter out twice; the later receipt handle is the one that deletes it.
        return self._look_up(list({letter.message_id: letter for letter in letters}.values()))

    def carry_out(
        self,
        decided: Sequence[tuple[Examined, Decision]],
        batch: Batch | None,
        tally: Tally,
        now: datetime,
        *,
        version_to_mark: int | None,
    ) -> None:
        """Do what was decided about the letters of one round. Raises CallFailed.

        Args:
            batch: what the redrives among them belong to.
            version_to_mark: the circuit's version, to note returns with that stay; None where that is done already.

        """
        self.apply_discards([(one, what) for one, what in decided if isinstance(what, Discard)])
        redrives = [(one, what) for one, what in decided if isinstance(what, Redrive)]
        if batch is not None and redrives:
            self.apply_redrives(redrives, batch, tally, now)
        self.apply_parks([(one, what) for one, what in decided if isinstance(what, Park)], now)
        holds = [(one, what) for one, what in decided if isinstance(what, Hold)]
        if version_to_mark is not None:
            # A redrive or a parking writes the entry anyway, a hold does not.
            held = self.mark_returns([one for one, _ in holds], version_to_mark, now)
            holds = [(one, hold) for one, (_, hold) in zip(held, holds, strict=True)]
        self.apply_holds(holds, now)

    def apply_redrives(
        self,
        redrives: Sequence[tuple[Examined, Redrive]],
        batch: Batch,
        tally: Tally,
        now: datetime,
    ) -> None:
        """Send letters back to their source queue. Raises CallFailed after a ledger write was refused."""
        going = []
        for one, decision in redrives:
            entry = self._entry(one)
            outgoing = Outgoing(
                letter=one.letter,
                trail=self._trail(entry, batch),
                size_limit=self._source_limits[decision.destination],
                delay=decision.delay,
            )
            record = partial(self._redriven, one, entry, decision, batch, tally, now)
            going.append(Going(outgoing, record))
        faults = self._forwarder.forward(going, self._queues.redrive, now)
        undeliverable = {f.key for f in faults if f.code in CONTENT_FAULTS}
        refusals = [f for f in faults if f.key not in undeliverable]
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

    def apply_parks(self, parks: Sequence[tuple[Examined, Park]], now: datetime) -> bool:
        """Send letters to the parking lot; whether all were accepted. Raises CallFailed after a ledger write was refused."""

        def tell(one: Examined, decision: Park) -> None:
            self._report.parked[decision.reason.value] += 1
            self._tell("letter.parked", one, decision.reason.value)

        return self._to_parking_lot(parks, tell, now)

    def renew(self, parks: Sequence[tuple[Examined, Park]], now: datetime) -> bool:
        """Send parked letters to the parking lot again, for a new clock. Answers and raises as `apply_parks` does."""

        def tell(one: Examined, decision: Park) -> None:
            self._report.renewed += 1
            self._tell("letter.renewed", one, decision.reason.value)

        # Delayed, or the sweep that renews them would meet them again.
        return self._to_parking_lot(parks, tell, now, delay=MAX_SQS_DELAY)

    def apply_holds(self, holds: Sequence[tuple[Examined, Hold]], now: datetime) -> None:
        """Leave letters in the DLQ, hidden until their time where that is later than now. Raises CallFailed after a ledger write was refused."""
        deferred = [
            self._entry(one).deferred(
                not_before=hold.not_before,
                strikes=hold.strikes,
                batch=batch_of(one.letter, one.entry),
            )
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
        self._forwarder.delete([one.letter for one, _ in discards])

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

    def _redriven(
        self,
        one: Examined,
        entry: Entry,
        decision: Redrive,
        batch: Batch,
        tally: Tally,
        now: datetime,
        new_id: str,
    ) -> Entry:
        """Count and tell a redrive that was accepted; its ledger entry."""
        tally.add(decision)
        self._report.redriven += 1
        self._tell("letter.redriven", one, decision.reason, delay=decision.delay.seconds)
        return entry.redriven(
            replaced_id=one.letter.message_id,
            new_id=new_id,
            batch=batch.id,
            generation=batch.generation,
            strikes=decision.strikes,
            now=now,
            note=f"redriven in batch {batch.id}",
        )

    def _to_parking_lot(
        self,
        parks: Sequence[tuple[Examined, Park]],
        tell: Callable[[Examined, Park], None],
        now: datetime,
        *,
        delay: timedelta = timedelta(),
    ) -> bool:
        def parked(one: Examined, entry: Entry, decision: Park, new_id: str) -> Entry:
            tell(one, decision)
            return entry.parked(
                replaced_id=one.letter.message_id,
                new_id=new_id,
                reason=decision.reason.value,
                strikes=decision.strikes,
                error=error_of(one.letter.attributes),
                now=now,
            )

        going = []
        for one, decision in parks:
            entry = self._entry(one)
            outgoing = Outgoing(
                letter=one.letter,
                trail=self._trail(entry, None),
                size_limit=self._parking_lot_limit,
                delay=delay,
            )
            going.append(Going(outgoing, partial(parked, one, entry, decision)))
        return not self._forwarder.forward(going, self._queues.park, now)

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
            return replace(
                one.entry,
                source_arn=one.letter.source_arn or one.entry.source_arn,
                # A record that was refused after its send is made good here.
                redrive_count=count_redrives(one.letter, one.entry),
            )
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

    def _trail(self, entry: Entry, batch: Batch | None) -> Trail:
        """The trail of the next copy: one redrive on, in `batch`; as it was where the letter is parked."""
        return Trail(
            queue=self._queues.name_of(entry.source_arn),
            original_id=entry.original_id,
            redrive_count=entry.redrive_count + (batch is not None),
            first_seen=entry.first_seen,
            batch=batch.id if batch else entry.batch or 0,
            generation=batch.generation if batch else entry.generation,
        )

    def _hide(self, letters: Sequence[tuple[Letter, timedelta]]) -> None:
        if letters:
            self._forwarder.saw(self._queues.hide(letters))

    def _tell(self, event: str, one: Examined, reason: str, **more: object) -> None:
        self._journal(
            event,
            message_id=one.letter.message_id,
            original_id=one.letter.original_id,
            redrive_count=count_redrives(one.letter, one.entry),
            reason=reason,
            **more,
        )
