"""The outcomes of redriven messages, in the form of consumers' reports, from committed offsets and the DLQ topic.

A consumer writes a failed message to the DLQ topic before it commits past it. So a message has succeeded if the group
has committed past it, and it has not come back by a later look. That requires that returned letters are recognised.
After a record that can't be (no header says where its message was, and its metadata is gone), no success is reported
for any message that was out at the time.

The ledger's entries, as they are written and read, show which messages are out. A process notes after each pass which
these are, and how far it had read, for the process that follows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from smart_redriver.engine.errors import EntryFault
from smart_redriver.engine.messages.letter import Letter, RedriveMetadata
from smart_redriver.engine.model.circuit import Lease
from smart_redriver.engine.passes.ports import Known, Memory
from smart_redriver.engine.reports.outcomes import (
    MAX_FIRST_LINE,
    VERSION,
    DeliveryOutcome,
    OutcomeMessage,
    Result,
    on_one_line,
    report_fields,
)
from smart_redriver.engine.triage.case import metadata_after
from smart_redriver.engine.triage.ledger import Entry, Status
from smart_redriver.kafka.engine.letters import Dead, place_in
from smart_redriver.kafka.engine.open_letters import OpenLetters
from smart_redriver.kafka.engine.place import KafkaTopics
from smart_redriver.kafka.engine.records import Log, Partition

#: Outcomes in one report.
AT_ONCE = 500

#: A number of records that was never read: the process before was not sure of a message.
_MAY_BE_BACK = -1

#: The most messages in a note: an item of a DynamoDB table has room for three times as many.
MOST_NOTED = 1_000

#: A message that the group does not commit past within this time is forgotten: time decides then.
LONGEST_OUT = timedelta(days=1)


@dataclass(slots=True, kw_only=True)
class Out:
    """A redriven message with an unknown outcome.

    Attributes:
        untraceable: the number of records read before it was sent that have neither a position nor redrive metadata.
        is_sure: the process before had read no such record since it was sent.
        has_left: the group is done with it, but such a record came meanwhile, which may be this message.

    """

    entry: Entry
    partition: Partition
    offset: int
    untraceable: int
    is_sure: bool = False
    has_left: bool = False


class Outcomes:
    """Hands out outcomes, and forgets those that were processed. Lives as long as the process."""

    def __init__(
        self, log: Log, open_letters: OpenLetters, place: KafkaTopics, clock: Callable[[], datetime]
    ) -> None:
        self._log = log
        self._open_letters = open_letters
        self._place = place
        self._clock = clock
        self._out: dict[str, Out] = {}
        #: By the original id of a letter, the id under which it was last out.
        self._last_out: dict[str, str] = {}
        open_letters.is_awaited = self._is_awaited
        self._told: set[str] = set()
        #: What the process before had noted as out, and whether it was sure: see `Out`.
        self._noted: Mapping[str, bool] = {}
        self._began_at = clock()
        #: Whether this process has the lease. Without it, it doesn't know what is out.
        self.is_at_work = False

    @property
    def has_some_out(self) -> bool:
        """Whether there is anything to wait for."""
        return not all(one.has_left for one in self._out.values())

    def copy_has_left(self, kept_id: str) -> bool:
        """Whether the group is done with the copy of a letter that keeps its place, but the outcome can't be known."""
        return any(one.has_left and one.entry.kept_id == kept_id for one in self._out.values())

    def note_for_next(self) -> dict[str, Any]:
        """A note for the next process on what is out; empty if nothing is."""
        if not self._out:
            return {}
        some = list(self._out.items())[:MOST_NOTED]
        return {
            "count": len(self._out),
            "letters": [one.entry.original_id for _, one in some],
            "out": {at: not self._may_be_back(one) for at, one in some},
            "read": {str(one.number): at for one, at in self._open_letters.read_to().items()},
        }

    def take_over(self, note: Mapping[str, Any], memory: Memory) -> None:
        """Know what was out when another process noted it. Raises CallFailed.

        After the first look, nothing is sure if a record came that can't be recognised. If more were out than a note
        has room for, they are among the letters in the DLQ topic.
        """
        topic = self._place.dead_letters
        read = note.get("read", {}).items()
        self._open_letters.read_before = {Partition(topic, int(number)): at for number, at in read}
        letters = list(note.get("letters", ()))
        self._open_letters.look()
        if note.get("count", 0) > len(letters):
            letters += [one.letter.original_id for one in self._open_letters.letters()]
        known = memory.read_ledger(letters)
        for entry in known.entries.values():
            self._recognise_copies(entry)
        self._noted = dict(note.get("out", {}))
        for at, one in self._out.items():
            one.is_sure = self._noted.get(at, False)
            if not self._noted.get(at, True):
                one.untraceable = _MAY_BE_BACK
        self.note(known.entries.values())

    def _recognise_copies(self, entry: Entry) -> None:
        """Know copies without redrive metadata that came back, even if the ledger has their outcome.

        The process before may have died between that record and their discard. They would be letters of their own.
        """
        for at in {entry.current_id, *entry.replaced_ids} - {entry.original_id, entry.kept_id}:
            if self._open_letters.find(at):
                self._open_letters.recognise(at, metadata_after(entry, entry.queue, None))

    def note(self, entries: Iterable[Entry]) -> None:
        """Note entries that were read in the ledger. What others have sent may be back for long."""
        are_new = [self._note(one) for one in entries]
        if any(are_new):
            self._open_letters.search_again()

    def note_written(self, entries: Iterable[Entry]) -> None:
        """Note entries that this process writes to the ledger. What it has sent is back later, if at all."""
        for one in entries:
            self._note(one)

    def _note(self, entry: Entry) -> bool:
        """Note an entry. Returns whether a message is out that was not known to be."""
        before = self._last_out.get(entry.original_id, entry.current_id)
        if before != entry.current_id:
            self._forget(before)
        place = self._place_of(entry)
        is_out = entry.status is Status.REDRIVEN and not entry.is_settled
        if not is_out or place is None or entry.queue not in self._place.topics:
            self._forget(entry.current_id)
        elif entry.current_id not in self._out:
            number, offset = place
            self._last_out[entry.original_id] = entry.current_id
            self._out[entry.current_id] = Out(
                entry=entry,
                partition=Partition(entry.queue, number),
                offset=offset,
                untraceable=self._untraceable_before(entry),
                is_sure=self._noted.get(entry.current_id, False),
            )
            return True
        return False

    def _forget(self, at: str) -> None:
        one = self._out.pop(at, None)
        if one is not None:
            self._last_out.pop(one.entry.original_id, None)

    def _is_awaited(self, letter: Letter) -> bool:
        """Whether it is a redriven message that came back, or an earlier copy of one."""
        return letter.message_id in self._out or letter.original_id in self._last_out

    def _place_of(self, entry: Entry) -> tuple[int, int] | None:
        """Partition and offset of a message in the topic that there is now; None if it was in an earlier one."""
        return place_in(entry.current_id, self._open_letters.topic_ids.marks.get(entry.queue, ""))

    def _untraceable_before(self, entry: Entry) -> int:
        """See `Out`. For others' messages, this process may have read records that came later."""
        is_sure = self._noted.get(entry.current_id)
        if is_sure is not None:
            return 0 if is_sure else _MAY_BE_BACK
        is_ours = entry.last_redrive is not None and entry.last_redrive >= self._began_at
        return self._open_letters.untraceable if is_ours else 0

    def receive(self, *, hidden_for: timedelta) -> list[OutcomeMessage]:  # noqa: ARG002
        """The next report with what is known now; none at the end. Raises CallFailed."""
        now = self._clock()
        some = [one for one in self._ended(now) if one[0].current_id not in self._told][:AT_ONCE]
        if not some:
            self._told.clear()
            return []
        ids = [entry.current_id for entry, _ in some]
        self._told.update(ids)
        told = [report_fields(self._outcome(entry, back)) for entry, back in some]
        return [
            OutcomeMessage(
                message_id=ids[0],
                receipt_handle=json.dumps(ids),
                body=json.dumps({"version": VERSION, "outcomes": told}),
                sent_at=now,
            )
        ]

    def delete(self, reports: Sequence[OutcomeMessage]) -> list[EntryFault]:
        """Forget outcomes that were processed."""
        for one in reports:
            for at in json.loads(one.receipt_handle):
                self._forget(at)
        return []

    def release(self, reports: Sequence[OutcomeMessage]) -> list[EntryFault]:
        """Report them again."""
        for one in reports:
            self._told.difference_update(json.loads(one.receipt_handle))
        return []

    def _ended(self, now: datetime) -> list[tuple[Entry, Dead | None]]:
        """Return ended redrives, each with the letter that came back. Reads committed offsets first, then the DLQ."""
        if not self._out:
            return []
        committed = self._committed()
        has_read_all = self._open_letters.look()
        ended: list[tuple[Entry, Dead | None]] = []
        for at, one in list(self._out.items()):
            back = self._open_letters.find(at) or self._open_letters.find_copy(one.entry)
            if back is not None:
                sent_with = metadata_after(one.entry, one.entry.queue, None)
                self._open_letters.recognise(back.letter.message_id, sent_with)
                ended.append((one.entry, back))
                continue
            if self._place_of(one.entry) is None:
                self._forget(at)  # its topic was deleted, and commits in the new one are of others
                continue
            is_over = has_read_all and self._is_done_with(one, committed, now)
            one.has_left = is_over and self._may_be_back(one)
            if is_over and not one.has_left:
                ended.append((one.entry, None))
            elif now - (one.entry.last_redrive or now) > LONGEST_OUT:
                self._forget(at)
        return ended

    def _may_be_back(self, one: Out) -> bool:
        """Whether a record came since it was sent that can't be recognised."""
        before = self._open_letters.untraceable_before if one.is_sure else one.untraceable
        return before != self._open_letters.untraceable

    def _committed(self) -> dict[Partition, int]:
        """The group's committed offsets in the topics of messages that are out."""
        committed: dict[Partition, int] = {}
        for topic in {one.partition.topic for one in self._out.values()}:
            committed |= self._log.committed(self._place.consumer_group, topic)
        return committed

    def _is_done_with(self, one: Out, committed: dict[Partition, int], now: datetime) -> bool:
        if committed.get(one.partition, 0) <= one.offset:
            return False
        had_time = now >= (one.entry.last_redrive or now) + self._place.time_to_fail
        return had_time or not self._place.commits_first

    def _outcome(self, entry: Entry, back: Dead | None) -> DeliveryOutcome:
        told = DeliveryOutcome(
            queue=entry.queue,
            message_id=entry.current_id,
            original_id=entry.original_id,
            result=Result.SUCCEEDED,
            batch=entry.batch,
            generation=entry.generation,
        )
        if back is None:
            return told
        death = back.message.death
        return replace(
            told,
            result=Result.FAILED,
            receive_count=1,
            error_class=_line(death.error_class),
            first_line=_line(death.error_message),
        )


def _line(text: str | None) -> str | None:
    return on_one_line(text, MAX_FIRST_LINE) or None if text else None


class WatchedMemory:
    """A memory that passes its entries to `outcomes`. Everything else comes from the memory itself."""

    def __init__(self, memory: Memory, outcomes: Outcomes) -> None:
        self._memory = memory
        self._outcomes = outcomes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._memory, name)

    def of(self, queue: str) -> Any:
        """The same for another source topic."""
        return WatchedMemory(self._memory.of(queue), self._outcomes)

    def acquire_lease(self, lease: Lease, now: datetime) -> bool:
        """Acquire the lease, and note whether that succeeded. Raises CallFailed."""
        self._outcomes.is_at_work = False
        self._outcomes.is_at_work = self._memory.acquire_lease(lease, now)
        return self._outcomes.is_at_work

    def read_ledger(self, message_ids: Iterable[str]) -> Known:
        """Read the ledger's items, and note them for the outcomes. Raises CallFailed."""
        known = self._memory.read_ledger(message_ids)
        self._outcomes.note(known.entries.values())
        return known

    def write_ledger(
        self,
        entries: Sequence[Entry],
        kept_metadata: Sequence[tuple[str, RedriveMetadata]],
        now: datetime,
    ) -> None:
        """Write entries. Raises CallFailed, but sent messages still count as out."""
        self._outcomes.note_written(entries)
        self._memory.write_ledger(entries, kept_metadata, now)
