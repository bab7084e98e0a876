"""The topics that letters are taken from: the DLQ topic with its retry topic, and (`ParkingLot`) the parking topic."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from smart_redriver.engine.errors import CallFailed, EntryFault
from smart_redriver.engine.messages.letter import METADATA_ATTRIBUTE, Letter
from smart_redriver.engine.messages.outgoing import Outgoing, Sent
from smart_redriver.engine.messages.queue_facts import QueueFacts
from smart_redriver.kafka.engine.letters import Marks, id_at, with_header
from smart_redriver.kafka.engine.open_letters import PAGE, OpenLetters, TopicIds
from smart_redriver.kafka.engine.place import KafkaTopics
from smart_redriver.kafka.engine.records import Log, NewRecord, Partition, Position, Record

#: No letter expires: old letters in the DLQ topic move to the retry topic, whose records must be kept.
NEVER = timedelta(days=36_500)

#: The header of a note that a record of the same partition was taken out. It has the record's offset.
TAKEN_HEADER = "RedriveTaken"

_NOT_THERE = "LetterNotThere"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFacts(QueueFacts):
    """The facts of a topic that a pass needs. `keeps_order`: its messages with one key stay in order."""

    keeps_order: bool

    @property
    def is_fifo(self) -> bool:
        """Whether messages of a group are kept in order. In SQS, a queue's name says so."""
        return self.keeps_order


def facts_of(
    place: KafkaTopics,
    topic: str,
    *,
    visible: int,
    hidden: int = 0,
    retention: timedelta = NEVER,
    dying: int | None = None,
) -> TopicFacts:
    """Return the facts of a topic with so many messages."""
    return TopicFacts(
        arn=topic,
        visible=visible,
        in_flight=hidden,
        delayed=0,
        visibility_timeout=place.time_to_fail,
        retention=retention,
        max_message_size=place.max_message_bytes,
        max_receive_count=1,
        dying=dying,
        keeps_order=place.keeps_order,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveCheck:
    """The answer that no other task moves these letters: Kafka has none."""

    is_running: bool = False
    fault: CallFailed | None = None


class DeadLetters:
    """The DLQ topic, with the retry topic behind it."""

    def __init__(
        self,
        open_letters: OpenLetters,
        place: KafkaTopics,
        clock: Callable[[], datetime],
        copy_has_left: Callable[[str], bool],
    ) -> None:
        self._open_letters = open_letters
        self._place = place
        self._clock = clock
        self._copy_has_left = copy_has_left
        self.is_fifo = place.keeps_order
        self.name = place.dead_letters

    def facts(self) -> QueueFacts:
        """How many letters there are, after a look at what is new. Raises CallFailed."""
        self._open_letters.look()
        free, hidden = self._open_letters.counts(self._clock())
        return facts_of(
            self._place, self.name, visible=free + self._open_letters.unread(), hidden=hidden
        )

    def receive(self, limit: int, *, hidden_for: timedelta) -> list[Letter]:
        """Return at most `limit` letters. Later receives do not return them within `hidden_for`."""
        letters = self._open_letters.take(limit, self._clock(), hidden_for)
        return [
            replace(one, copy_has_left=True) if self._copy_has_left(one.message_id) else one
            for one in letters
        ]

    def delete(self, letters: Iterable[Letter]) -> list[EntryFault]:
        """Mark letters as finished. The position moves past them when the pass is over."""
        self._open_letters.close(one.message_id for one in letters)
        return []

    def hide(self, letters: Iterable[tuple[Letter, timedelta]]) -> list[EntryFault]:
        """Hold letters for a time from now; zero releases at once. Returns faults for those no longer there."""
        now = self._clock()
        return [
            EntryFault(call="HoldLetters", key=letter.message_id, code=_NOT_THERE)
            for letter, hidden_for in letters
            if not self._open_letters.hide(letter.message_id, now + hidden_for, now)
        ]

    def check_move(self, arn: str) -> MoveCheck:  # noqa: ARG002
        """Return that no task is moving letters: Kafka has none."""
        return MoveCheck()


class Parked:
    """The content of the parking topic: its records, except those that a later note says were taken out.

        offset   0  1  2  3  4                   4 says of 1 that it is taken: 0, 2 and 3 are there
        record   A  B  C  D  note: 1             our group's position: 0

    A topic can't delete a record in its middle. So a note in the same partition stands for a delete, and our group's
    position is at the first record that is still there. `keeps_records`: keep records, and not only their positions.
    """

    def __init__(
        self, log: Log, place: KafkaTopics, topic_ids: TopicIds, *, keeps_records: bool = False
    ) -> None:
        self._log = log
        self._place = place
        self._topic_ids = topic_ids
        self._keeps_records = keeps_records
        self._after: dict[Partition, int] = {}
        self.there: dict[Position, Record | None] = {}

    def look(self) -> None:
        """Read on to the end. Raises CallFailed."""
        topic = self._place.parked
        is_created = topic in self._topic_ids.created
        if is_created:
            self._topic_ids.begin(topic)
        bounds = self._log.bounds(topic)
        if is_created or not self._after.keys() <= bounds.keys():
            self._after.clear()
            self.there.clear()
        if new := [
            one for one, (_, end) in bounds.items() if not 0 <= self._after.get(one, -1) <= end
        ]:
            self._begin(bounds, new)
        while start := {one: at for one, at in self._after.items() if at < bounds[one][1]}:
            reading = self._log.read(start, PAGE)
            for record in reading.records:
                self._take_in(record)
            self._after.update(reading.after)
            if reading.is_end:
                break

    def take_out(self, some: Sequence[Position]) -> list[CallFailed | None]:
        """Write a note for each record, and move our group's position. Returns failures. Raises CallFailed."""
        notes = [
            NewRecord(
                topic=self._place.parked,
                key=None,
                value=None,
                headers=((TAKEN_HEADER, b"%d" % one.offset),),
                partition=one.partition.number,
            )
            for one in some
        ]
        failed: list[CallFailed | None] = []
        for one, where in zip(some, self._log.write(notes), strict=True):
            if isinstance(where, CallFailed):
                failed.append(where)
            else:
                failed.append(None)
                self.there.pop(one, None)
        self._log.commit(self._place.group, self._first())
        return failed

    def _begin(self, bounds: Mapping[Partition, tuple[int, int]], new: Sequence[Partition]) -> None:
        committed = self._log.committed(self._place.group, self._place.parked)
        for one in new:
            first, end = bounds[one]
            known = committed.get(one, first)
            self._after[one] = known if first <= known <= end else first
            self.there = {at: told for at, told in self.there.items() if at.partition != one}

    def _take_in(self, record: Record) -> None:
        at = record.position
        note = dict(record.headers).get(TAKEN_HEADER)
        if note is None:
            self.there[at] = record if self._keeps_records else None
        elif note.isdigit():
            self.there.pop(Position(at.partition, int(note)), None)

    def _first(self) -> dict[Partition, int]:
        first = dict(self._after)
        for partition, offset in self.there:
            first[partition] = min(first[partition], offset)
        return first


class ParkingLot:
    """The parking topic: letters for people, which no pass reads."""

    def __init__(self, log: Log, open_letters: OpenLetters, place: KafkaTopics) -> None:
        self._log = log
        self._open_letters = open_letters
        self._place = place
        self._parked = Parked(log, place, open_letters.topic_ids)
        self.is_fifo = place.keeps_order
        self.name = place.parked

    def facts(self) -> QueueFacts:
        """How many letters were parked and not taken out. Raises CallFailed."""
        self._parked.look()
        return facts_of(self._place, self.name, visible=len(self._parked.there))

    def receive(self, limit: int, *, hidden_for: timedelta) -> list[Letter]:  # noqa: ARG002
        """Return none: records of the parking topic do not expire, so none has to be renewed."""
        return []

    def delete(self, letters: Iterable[Letter]) -> list[EntryFault]:
        """Report all as still there, because none was handed out."""
        return [_stays(one) for one in letters]

    def hide(self, letters: Iterable[tuple[Letter, timedelta]]) -> list[EntryFault]:
        """Report all as unchanged, because none was handed out."""
        return [_stays(one) for one, _ in letters]

    def check_move(self, arn: str) -> MoveCheck:  # noqa: ARG002
        """Return that no task is moving letters: Kafka has none."""
        return MoveCheck()

    def park(self, outgoing: Sequence[Outgoing]) -> Sent:
        """Write letters here, as they are in the DLQ topic and with their metadata."""
        marks = self._open_letters.topic_ids.marks
        return deliver("ParkLetters", self._log, outgoing, self._as_parked, marks)

    def _as_parked(self, one: Outgoing) -> NewRecord | None:
        dead = self._open_letters.find(one.letter.message_id)
        return parked_record(dead.record, self.name, one) if dead else None


def parked_record(record: NewRecord, topic: str, one: Outgoing) -> NewRecord:
    """Return the record of a letter for the parking topic, with its metadata."""
    metadata = one.metadata.encode().encode()
    return NewRecord(
        topic=topic,
        key=record.key,
        value=record.value,
        headers=with_header(record.headers, METADATA_ATTRIBUTE, metadata),
    )


def _stays(letter: Letter) -> EntryFault:
    return EntryFault(call="DeleteLetters", key=letter.message_id, code="StillThere")


def deliver(
    call: str,
    log: Log,
    outgoing: Sequence[Outgoing],
    record_of: Callable[[Outgoing], NewRecord | None],
    marks: Marks,
) -> Sent:
    """Write the record that each letter becomes. Raises nothing, even if `record_of` does.

    The ids of accepted records say where they are.
    """
    sent, ready = Sent(), list[tuple[Outgoing, NewRecord]]()
    for one in outgoing:
        try:
            record = record_of(one)
        except CallFailed as failed:
            sent.faults.append(EntryFault.of(failed, one.letter.message_id))
            continue
        if record is None:
            fault = EntryFault(call=call, key=one.letter.message_id, code=_NOT_THERE)
            sent.faults.append(fault)
        else:
            ready.append((one, record))
    try:
        written: Sequence[Position | CallFailed] = log.write([record for _, record in ready])
    except CallFailed as failed:
        written = [failed] * len(ready)
    for (one, record), where in zip(ready, written, strict=True):
        key = one.letter.message_id
        if isinstance(where, CallFailed):
            sent.faults.append(EntryFault.of(where, key))
        else:
            sent.new_ids[key] = id_at(where, record.key, record.value, marks)
    return sent
