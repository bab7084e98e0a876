"""Sends a file's letters to their source queue or the parking lot, unless they exist elsewhere by the ledger."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import islice
from zlib import crc32

from smart_redriver.engine.messages.letter import Letter
from smart_redriver.engine.messages.outgoing import ENTRIES_PER_CALL, Outgoing, Sent
from smart_redriver.engine.passes.ports import Source
from smart_redriver.engine.triage.case import Case
from smart_redriver.engine.triage.ledger import Entry, Status
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.letters.export_file import Kept
from smart_redriver.oncall.letters.fifo_order import BEHIND, in_ranks
from smart_redriver.oncall.moving.sending import Destinations, naming_source, replayed
from smart_redriver.oncall.moving.work import NewPause, Tally, leased_work, new_owner, tell_refused
from smart_redriver.oncall.terminal.terminal import Advance


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """The ledger's entries by original id, and the ids of letters that no longer exist anywhere."""

    entries: Mapping[str, Entry]
    gone: frozenset[str]

    @classmethod
    def of(cls, session: Session, few: Iterable[Kept]) -> Whereabouts:
        """Look for these letters. Raises CallFailed."""
        letters = [letter for one in few for letter in (one.letter, one.copy) if letter]
        entries = session.store.read_ledger(one.original_id for one in letters).entries
        deleted = {key for key, entry in entries.items() if entry.status is Status.DELETED}
        others = [entry for key, entry in entries.items() if key not in deleted]
        return cls(entries, frozenset(deleted | session.letter_store.nowhere(others)))


_THERE = "the ledger shows it as still there; if SQS purged or expired it: `redrive import --even-though-there`"
_IN_A_TABLE = "its row is in the DLQ or the parking lot"
_TWICE = "an earlier line of the file is the same letter"
_SENT = "it was sent back, and its consumer may have it"
#: Statuses of letters that wait in the DLQ or the parking lot.
_WAITS = (Status.RETURNED, Status.FAILED, Status.PARKED)

#: Sends letters of a file, each with its metadata.
Send = Callable[[Sequence[Outgoing]], Sent]
#: Makes the entry of a letter that was sent, from the id of its copy.
Record = Callable[[Case, str], Entry]


class Importing(ABC):
    """Sends letters that no longer exist anywhere, then writes the ledger."""

    where: str

    def __init__(self, session: Session, note: str, *, insists: bool = False) -> None:
        """`note` goes into the ledger's history.

        `insists`: also send letters that the ledger shows in the DLQ or the parking lot, unless the store knows better.
        A copy that is there nevertheless counts as replaced.
        """
        self.tally = Tally()
        self._session = session
        self._insists = insists and not session.letter_store.keeps_rows
        self._reasons: dict[str, str | None] = {}
        self._note = note
        #: Original ids of the letters that were sent.
        self._taken: set[str] = set()
        #: Groups of FIFO queues that wait because one of their letters was refused.
        self._stopped: set[str | None] = set()

    def take_all(
        self,
        letters: Iterable[Kept],
        advance: Advance = lambda _: None,
        *,
        pause: NewPause | None = None,
    ) -> None:
        """Import letters a few at a time, each few under the lease. After Ctrl-C, it only finishes those in hand.

        `pause` ends it, too, if given. Raises CallFailed and Refused.
        """
        owner, reading = new_owner(), iter(letters)
        with self._session.terminal.interrupts() as interrupts:
            few = list(islice(reading, ENTRIES_PER_CALL))
            while few and not interrupts.came:
                with leased_work(self._session, owner):
                    if pause and (paused_by := pause.by()):
                        self.tally.paused_by = paused_by
                        break
                    self._take(few)
                advance(len(few))
                few = list(islice(reading, ENTRIES_PER_CALL))
        self.tally.was_interrupted = bool(few)

    def _take(self, few: Sequence[Kept]) -> None:
        known, self._reasons = Whereabouts.of(self._session, few), {}
        absent: dict[str, Case] = {}
        for one in few:
            letter = self._as_sent(one, known)
            entry = known.entries.get(letter.original_id)
            # A letter that was deleted twice is in two lines, under the ids of two copies.
            if letter.original_id in absent or letter.original_id in self._taken:
                self.tally.skipped[_TWICE] += 1
                continue
            if entry is not None and self._may_replace(entry):
                entry = entry.with_copies_replaced()
            elif entry is not None and letter.original_id not in known.gone:
                there = _IN_A_TABLE if self._session.letter_store.keeps_rows else _THERE
                self.tally.skipped[there if entry.status in _WAITS else _SENT] += 1
                continue
            if entry is not None and one.queue is not None:
                entry = replace(entry, queue=one.queue)  # another queue's letter is this one's
            absent[letter.original_id] = Case(letter=letter, entry=entry)
            self._reasons[letter.message_id] = one.reason
        self._import(list(absent.values()), self._session.clock())

    def _as_sent(self, one: Kept, known: Whereabouts) -> Letter:
        """The letter, or its copy if the ledger has it as another queue's: that record stays as it is."""
        entry = known.entries.get(one.letter.original_id)
        is_own = entry is not None and entry.queue in self._session.place.sources
        return one.letter if is_own or one.copy is None else one.copy

    def _may_replace(self, entry: Entry) -> bool:
        """Whether the person says that the letter is lost, and no consumer may have it."""
        return self._insists and entry.status in _WAITS

    @abstractmethod
    def _import(self, cases: Sequence[Case], now: datetime) -> None: ...

    def _send(
        self,
        cases: Sequence[Case],
        outgoing: Sequence[Outgoing],
        send: Send,
        record: Record,
        now: datetime,
    ) -> None:
        """Send letters, and record those that were accepted.

        In a FIFO queue, letters of a group go one after the other, and none goes past a refused one.
        """
        pairs = list(zip(cases, outgoing, strict=True))
        if not self._session.dead_letters.is_fifo:
            self._send_together(pairs, send, record, now)
            return
        for rank in in_ranks(pairs, lambda pair: pair[0].letter.group_id):
            going = [pair for pair in rank if pair[0].letter.group_id not in self._stopped]
            self.tally.skipped.update([BEHIND] * (len(rank) - len(going)))
            accepted = self._send_together(going, send, record, now)
            groups = {case.letter.group_id for case, _ in going if case.message_id not in accepted}
            self._stopped |= groups - {None}

    def _send_together(
        self,
        pairs: Sequence[tuple[Case, Outgoing]],
        send: Send,
        record: Record,
        now: datetime,
    ) -> set[str]:
        """Send and record. Returns the previous message ids of the letters that were accepted."""
        if not pairs:
            return set()
        sent = send([one for _, one in pairs])
        accepted = [
            (case, one, new_id)
            for case, one in pairs
            if (new_id := sent.new_ids.get(case.message_id))
        ]
        entries = [record(case, new_id) for case, _, new_id in accepted]
        kept = [(new_id, one.metadata) for _, one, new_id in accepted if one.leaves_metadata]
        self._session.store.write_ledger(entries, kept, now)
        self.tally.done += len(accepted)
        self._taken.update(one.original_id for one in entries)
        tell_refused(self._session.terminal, self.tally.failed, sent.faults)
        self.tally.failed.update(sent.bounced.values())
        return set(sent.new_ids)


class ToSource(Importing):
    """An import to the letters' source queues. It counts as one more redrive."""

    where = "source"

    def __init__(self, session: Session, note: str, *, insists: bool = False) -> None:
        super().__init__(session, note, insists=insists)
        self._destinations = Destinations(session)

    def _import(self, cases: Sequence[Case], now: datetime) -> None:
        refusals = map(self._destinations.refusal_of, cases)
        self.tally.skipped.update(why for why in refusals if why is not None)
        for destination, some in self._destinations.each_with(cases):
            source, limit = destination.source, destination.facts.max_message_size
            outgoing = [
                Outgoing(
                    letter=case.letter,
                    metadata=case.replay_metadata(source.name),
                    size_limit=limit,
                    may_carry_metadata=source.carries_metadata,
                    may_return=not source.settles_at_once,
                    salt=_salt(case.entry),
                )
                for case in some
            ]
            record = partial(replayed, source, now, self._note)
            self._send(some, outgoing, partial(_deliver, source), record, now)


def _deliver(source: Source, outgoing: Sequence[Outgoing]) -> Sent:
    """Send letters to a source, whose name is then in each fault and each answer."""
    sent = source.deliver(outgoing)
    named = {key: f"{source.name}: {answer}" for key, answer in sent.bounced.items()}
    return replace(sent, faults=naming_source(sent.faults, source.name), bounced=named)


class ToParkingLot(Importing):
    """An import to the parking lot. Letters keep the reasons for which they were parked, if they were."""

    where = "parking-lot"

    def __init__(
        self, session: Session, note: str, *, without_reason: str, insists: bool = False
    ) -> None:
        """`without_reason` is the reason of those that were not parked."""
        super().__init__(session, note, insists=insists)
        self._without_reason = without_reason
        self._limit = session.parking_lot.facts().max_message_size

    def _import(self, cases: Sequence[Case], now: datetime) -> None:
        outgoing = [
            Outgoing(
                letter=case.letter,
                metadata=case.next_metadata(self._session.name_of(case), None),
                size_limit=self._limit,
                salt=_salt(case.entry),
            )
            for case in cases
        ]
        record = partial(self._parked, now)
        self._send(cases, outgoing, self._session.parking_lot.park, record, now)

    def _parked(self, now: datetime, case: Case, new_id: str) -> Entry:
        entry = case.known(self._session.name_of(case))
        return entry.parked(
            replaced_id=case.message_id,
            new_id=new_id,
            reason=self._reasons[case.message_id] or self._without_reason,
            strikes=entry.strikes,
            now=now,
            error=entry.error,
            note=self._note,
        )


def _salt(entry: Entry | None) -> int:
    """A new value each time the letter was brought back and deleted again, which may happen within five minutes.

    Otherwise a FIFO queue would drop it as a duplicate: it would be recorded as sent, and exist nowhere.
    """
    return crc32("\n".join(entry.history).encode()) if entry else 0
