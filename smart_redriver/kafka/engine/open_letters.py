"""Open letters of the DLQ topic, and the position that may be committed.

    DLQ topic     done  done  HELD  done  ...  ─► end         HELD is written to the retry topic first,
    committed ────────────────▲                               then the position moves past it
    retry topic   HELD  ...

A position only says where to read on. All letters before it are safe elsewhere: redriven or parked and in the ledger,
or in the retry topic. So if a position was not committed, or was set back by a pass that outlived its lease, the only
cost is a second look, in which the ledger shows what was sent already. In the retry topic, a letter keeps its id and
its place in the order of its key. A crash between the write and the commit leaves it in both topics under one id: it is
one letter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from heapq import nsmallest
from math import inf

from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.messages.letter import Letter, RedriveMetadata
from smart_redriver.engine.passes.ports import NotedMemory
from smart_redriver.engine.triage.case import Case
from smart_redriver.engine.triage.ledger import Entry
from smart_redriver.kafka.engine.letters import (
    HELD_HEADER,
    Dead,
    Held,
    Marks,
    dead_of,
    keeps_its_id,
    mark_of,
    with_header,
)
from smart_redriver.kafka.engine.place import KafkaTopics
from smart_redriver.kafka.engine.records import Log, NewRecord, Partition, Position, Reading, Record

#: Letters in memory at once. Those behind them wait in their topic, and are only searched for redriven ones that came
#: back. Memory holds a letter's content twice.
MOST_LETTERS = 20_000
MOST_BYTES = 64 * 1_048_576

#: Records in one read.
PAGE = 500

#: Records behind those that memory has room for, in one look. Each of them is read again once there is room.
MOST_AHEAD = MOST_LETTERS

#: The age at which a waiting letter moves from the DLQ topic to the retry topic: topics drop records, but the retry
#: topic must not.
OLD = timedelta(hours=12)

#: The most letters in a receive. Ten would tell a pass that a group may go on behind them.
FEW = 9
#: How many of these may follow in the first one's group.
FOLLOWERS = 2


@dataclass(slots=True, eq=False)
class Slot:
    """One letter, the positions of its records, and until when it is hidden from passes."""

    dead: Dead
    positions: set[Position] = field(default_factory=set)
    hidden_until: datetime | None = None

    @property
    def letter(self) -> Letter:
        return self.dead.letter

    @property
    def size(self) -> int:
        return self.dead.record.size

    @property
    def group(self) -> str:
        """The group of letters that wait for each other. A letter without a key waits only for its own copies."""
        return self.letter.group_id or self.letter.original_id


@dataclass(slots=True)
class Track:
    """One partition, as far as it has been read.

    Attributes:
        after: the offset to read on at. Single letters behind it may have been taken, too.
        open: offsets of letters to deal with. `done`: offsets of finished ones, from the first open one on.
        committed: the offset that our group has committed.

    """

    after: int
    committed: int
    open: set[int] = field(default_factory=set)
    done: set[int] = field(default_factory=set)

    @property
    def safe(self) -> int:
        """The offset that may be committed."""
        return min(self.after, min(self.open, default=self.after))

    @property
    def last_done(self) -> int:
        """The last finished offset of those read without a gap; -1 if there is none."""
        return max((one for one in self.done if one < self.after), default=-1)

    def close(self, offset: int) -> None:
        self.open.discard(offset)
        self.done.add(offset)

    def pass_over(self, offset: int) -> None:
        """Note that all records before the offset are finished, and that our group has committed it."""
        self.committed = offset
        self.after = max(self.after, offset)
        self.open = {one for one in self.open if one >= offset}
        self.done = {one for one in self.done if one >= offset}


class TopicIds:
    """Tells topics that were created again from earlier ones with their names, by the ids that Kafka gives topics.

    The state keeps, in `memory`, the first id of each topic and the last one. A letter of a later topic gets a mark in
    its id: it would be taken for a copy of the earlier letter with this content at this place, and dropped.
    """

    def __init__(self, log: Log, place: KafkaTopics) -> None:
        self._log = log
        self._group = place.group
        self._read = (place.dead_letters, place.held, place.parked)
        self._topics = (*place.topics, *self._read)
        self._first: Mapping[str, str] = {}
        self._last: Mapping[str, str] = {}
        self._kept: dict[str, Mapping[str, str]] | None = None
        self.memory: NotedMemory | None = None
        self.marks: Marks = {}
        #: The ids of topics to read from their beginning, because they were created again.
        self.created: Mapping[str, str] = {}

    def load(self) -> None:
        """Read what the state keeps, once. Raises CallFailed."""
        if self._kept is None and self.memory is not None:
            _, note = self.memory.load_pass() or (None, {})
            self._first, self._last = note.get("first", {}), note.get("last", {})
            self._kept = self._note()

    def look(self) -> None:
        """Ask the cluster. Raises CallFailed."""
        self.load()
        ids = self._ids()
        if any(self._last.get(topic, one) != one for topic, one in ids.items()):
            # All is read again then, so a cluster that makes up ids must not be believed.
            again = self._ids()
            ids = {topic: one for topic, one in ids.items() if again.get(topic) == one}
        self.created = {
            topic: ids[topic]
            for topic in self._read
            if topic in ids and ids[topic] != self._last.get(topic, ids[topic])
        }
        self._first = {**ids, **self._first}
        self._know({topic: one for topic, one in ids.items() if topic not in self.created})

    def begin(self, topic: str, state: str = "") -> dict[Partition, int]:
        """Commit the beginning of a topic that was created again, and return it. Raises CallFailed."""
        first = {one: start for one, (start, _) in self._log.bounds(topic).items()}
        self._log.commit(self._group, first, state)
        self._know({topic: self.created[topic]})
        self.created = {one: at for one, at in self.created.items() if one != topic}
        return first

    def keep(self, now: datetime) -> None:
        """Keep the ids in the state, if there are new ones. Raises CallFailed."""
        if self.memory is not None and self._kept not in (None, self._note()):
            self.memory.save_pass(self._note(), now)
            self._kept = self._note()

    def _know(self, ids: Mapping[str, str]) -> None:
        self._last = {**self._last, **ids}
        self.marks = {
            topic: mark_of(one) for topic, one in self._last.items() if one != self._first[topic]
        }

    def _ids(self) -> dict[str, str]:
        return self._log.topic_ids(self._topics)

    def _note(self) -> dict[str, Mapping[str, str]]:
        return {"first": self._first, "last": self._last}


class OpenLetters:
    """The letters of one DLQ. It is not thread-safe: a pass over Kafka has one round at a time.

    `state` names the state that knows what was sent. Each commit carries it as a note, unless it is empty.
    """

    def __init__(self, log: Log, place: KafkaTopics, state: str = "") -> None:
        self._log = log
        self._place = place
        self._state = state
        self.topic_ids = TopicIds(log, place)
        self._tracks: dict[Partition, Track] = {}
        self._slots: dict[str, Slot] = {}
        self._bytes = 0
        self._groups: dict[str, dict[str, Slot]] = {}
        #: Letters with redrive metadata, by the original id in it.
        self._copies: dict[str, dict[str, Slot]] = {}
        self._ready: dict[str, None] = {}
        self._turns: dict[str, int] = {}
        self._turn = 0
        #: The number of records so far that could not be recognised as a redrive's: see `Dead.is_traceable`.
        self.untraceable = 0
        #: Where the process before had read to, and the number of those that it had read.
        self.read_before: Mapping[Partition, int] = {}
        self.untraceable_before = 0
        #: The number of letters that came to the DLQ topic so far, by the topic that they belong to.
        self.arrived: Counter[str] = Counter()
        #: The number of those that no re-driver had sent.
        self.arrived_live: Counter[str] = Counter()
        #: Whether another process has committed since the last commit.
        self._is_overtaken = False
        #: Whether a letter is a redriven one that came back. Without it, nobody asks for those.
        self.is_awaited: Callable[[Letter], bool] | None = None
        #: Where to search on for such letters behind those in memory.
        self._ahead: dict[Partition, int] = {}
        #: Up to where records were counted.
        self._counted: dict[Partition, int] = {}
        #: Whether the last look reached the end of the DLQ topic, so that all letters that came back are known.
        self.has_read_all = False

    def look(self) -> bool:
        """Read on, the retry topic first because its letters are older. Raises CallFailed.

        Returns whether all letters that came back are known.

        The letters that were handed out longest ago come first. Otherwise, a letter that nobody can take or move would
        be the first letter of each pass, and every canary.
        """
        place = self._place
        for topic in (place.held, place.dead_letters):
            self._meet(topic)
        # Records after those of the retry topic may have a key with earlier letters there.
        has_room = self._read_on(place.held) and self._read_on(place.dead_letters)
        self.has_read_all = has_room or self._read_ahead()
        self._turns = {one: turn for one, turn in self._turns.items() if one in self._groups}
        places = {name: min(_places(some)) for name, some in self._groups.items()}
        order = sorted(self._groups, key=lambda one: (self._turns.get(one, 0), places[one]))
        self._ready = dict.fromkeys(order)
        return self.has_read_all

    def read_to(self) -> dict[Partition, int]:
        """Where to read on in the DLQ topic."""
        return self._starts(self._place.dead_letters)

    def unread(self) -> int:
        """The most records that may still be unread. Raises CallFailed."""
        place = self._place
        ends = {**self._log.bounds(place.held), **self._log.bounds(place.dead_letters)}
        return sum(
            max(0, end - (self._tracks[one].after if one in self._tracks else first))
            for one, (first, end) in ends.items()
        )

    def counts(self, now: datetime) -> tuple[int, int]:
        """Count letters that may be handed out, and those that are held until later."""
        hidden = sum(_is_hidden(one, now) for one in self._slots.values())
        return len(self._slots) - hidden, hidden

    def take(self, limit: int, now: datetime, hidden_for: timedelta) -> list[Letter]:
        """Return the next letters. They can be handed out again after `hidden_for`.

        For each key, these are the first letters, and returned copies of the very first one. The others wait.
        """
        few: list[Letter] = []
        most = min(limit, FEW)
        while self._ready and len(few) < most:
            name = next(iter(self._ready))
            some = self._together(name, now)
            if few and len(few) + len(some) > most:
                break
            del self._ready[name]
            self._turn += bool(some)
            for slot in some:
                self._turns[name] = self._turn
                slot.hidden_until = now + hidden_for
                few.append(slot.letter)
        return few

    def find(self, message_id: str) -> Dead | None:
        """An open letter with this id."""
        slot = self._slots.get(message_id)
        return slot.dead if slot else None

    def find_copy(self, entry: Entry) -> Dead | None:
        """The last sent copy of a letter, if it is back under an id of its own."""
        for slot in self._copies.get(entry.original_id, {}).values():
            if Case(letter=slot.letter, entry=entry).is_last_copy:
                return slot.dead
        return None

    def recognise(self, message_id: str, metadata: RedriveMetadata) -> None:
        """Give a returned copy the metadata that its consumer has dropped, by which passes know it as a copy."""
        slot = self._slots[message_id]
        if slot.letter.metadata is None:
            self._ungroup(slot)
            slot.dead = replace(slot.dead, letter=replace(slot.letter, metadata=metadata))
            self._group(slot)

    def search_again(self) -> None:
        """Search all records behind those in memory again, because other letters are awaited now."""
        self._ahead.clear()

    def letters(self) -> list[Dead]:
        """All open letters that were read, by groups, each in its order."""
        groups = sorted(self._groups.values(), key=lambda some: min(_places(some)))
        return [
            slot.dead
            for some in groups
            for slot in sorted(some.values(), key=lambda one: one.dead.place)
        ]

    def hide(self, message_id: str, until: datetime, now: datetime) -> bool:
        """Hold a letter until then. Returns whether it is there."""
        slot = self._slots.get(message_id)
        if slot is None:
            return False
        slot.hidden_until = until
        if until <= now:
            self._ready[slot.group] = None
        return True

    def close(self, message_ids: Iterable[str]) -> None:
        """Forget letters that are safe elsewhere."""
        for one in message_ids:
            slot = self._slots.get(one)
            if slot is not None:
                for partition, offset in slot.positions:
                    self._tracks[partition].close(offset)
                self._drop(slot)

    def settle(self, now: datetime) -> list[CallFailed]:
        """Write letters that block a position to the retry topic, and commit positions. Returns failures."""
        try:
            failed = self._hold(list(self._in_the_way(now)))
            failed += self._rescue(now)
            failed += self._commit()
            self.topic_ids.keep(now)
        except CallFailed as one:
            failed = [one]
        return failed

    def _meet(self, topic: str) -> None:
        """Start new partitions, and forget letters that another process has finished. Raises CallFailed."""
        bounds = self._log.bounds(topic)
        committed = self._log.committed(self._place.group, topic)
        for one in [one for one in self._tracks if one.topic == topic and one not in bounds]:
            self._forget(one)  # the topic was created again with fewer
        for one, (first, end) in bounds.items():
            track, known = self._tracks.get(one), committed.get(one)
            if track is None:
                start = first if known is None else known
                self._tracks[one] = Track(after=start, committed=start)
            elif known is not None and track.committed < known <= end:
                self._leave(one, known)
                track.pass_over(known)
                self._is_overtaken = True

    def _forget(self, partition: Partition) -> None:
        """Forget a partition whose records are gone."""
        del self._tracks[partition]
        self._ahead.pop(partition, None)
        self._counted.pop(partition, None)
        self._leave(partition)

    def _leave(self, partition: Partition, end: float = inf) -> None:
        """Forget records before an offset. A letter with no other record now belongs to another process."""
        for slot in list(self._slots.values()):
            gone = {at for at in slot.positions if at.partition == partition and at.offset < end}
            slot.positions -= gone
            if gone and not slot.positions:
                self._drop(slot)

    def _read_on(self, topic: str) -> bool:
        """Read a topic as far as there is room. Returns whether to its end."""
        while not self._is_full:
            if topic in self.topic_ids.created:
                self._follow(topic)
            start = self._starts(topic)
            reading = self._log.read(start, PAGE)
            # Not before: what was read of a topic that is created now would have the ids of the one before.
            self.topic_ids.look()
            if topic in self.topic_ids.created:
                continue
            for one, first in _cut_short(start, reading).items():
                self._read_again(one, first)
            for record in reading.records:
                self._put(self._dead(record))
            for one, after in reading.after.items():
                self._tracks[one].after = after
            if reading.is_end:
                return True
        return False

    def _read_ahead(self) -> bool:
        """Take letters that came back from behind those in memory. Returns whether to the end. Raises CallFailed.

        Otherwise, no outcome would be known until all letters have found room, for which outcomes must be known. There
        are no more of them than letters that are out.
        """
        is_awaited, topic = self.is_awaited, self._place.dead_letters
        if is_awaited is None:
            return False
        for _ in range(0, MOST_AHEAD, PAGE):
            tracks = self._starts(topic)
            start = {one: max(after, self._ahead.get(one, 0)) for one, after in tracks.items()}
            reading = self._log.read(start, PAGE)
            self.topic_ids.look()
            if topic in self.topic_ids.created or _cut_short(start, reading):
                self._ahead.clear()
                return False
            for dead in map(self._dead, reading.records):
                self._count(dead)
                if is_awaited(dead.letter):
                    self._put(dead)
            self._ahead.update(reading.after)
            if reading.is_end:
                return True
        return False

    def _follow(self, topic: str) -> None:
        """Read a topic that was created again from its beginning. Raises CallFailed."""
        first = self.topic_ids.begin(topic, self._state)
        for one in [one for one in self._tracks if one.topic == topic]:
            self._forget(one)
        for one, start in first.items():
            self._tracks[one] = Track(after=start, committed=start)

    def _read_again(self, partition: Partition, first: int) -> None:
        """Read a partition again that ends before the offset to read: it has lost records. Raises CallFailed."""
        self._log.commit(self._place.group, {partition: first}, self._state)
        self._forget(partition)
        self._tracks[partition] = Track(after=first, committed=first)

    @property
    def _is_full(self) -> bool:
        return len(self._slots) >= MOST_LETTERS or self._bytes >= MOST_BYTES

    def _starts(self, topic: str) -> dict[Partition, int]:
        return {one: track.after for one, track in self._tracks.items() if one.topic == topic}

    def _dead(self, record: Record) -> Dead:
        return dead_of(record, self._place, self.topic_ids.marks)

    def _put(self, dead: Dead) -> None:
        partition, offset = position = dead.record.position
        track = self._tracks[partition]
        if offset in track.done:
            return  # written to the retry topic by this process, and finished since
        track.open.add(offset)
        slot = self._slots.get(dead.letter.message_id)
        if slot is None:
            slot = self._slots[dead.letter.message_id] = Slot(dead)
            self._group(slot)
            self._bytes += slot.size
            self._count(dead)
        slot.positions.add(position)

    def _group(self, slot: Slot) -> None:
        letter = slot.letter
        self._groups.setdefault(slot.group, {})[letter.message_id] = slot
        if letter.metadata is not None:
            self._copies.setdefault(letter.original_id, {})[letter.message_id] = slot

    def _count(self, dead: Dead) -> None:
        """Count a letter that came to the DLQ topic, once."""
        partition, offset = dead.record.position
        is_new = offset >= self._counted.get(partition, 0)
        if is_new and partition.topic == self._place.dead_letters:
            self._counted[partition] = offset + 1
            topic = dead.letter.source_arn or ""
            self.arrived[topic] += 1
            self.arrived_live[topic] += dead.letter.metadata is None
            self.untraceable += not dead.is_traceable
            is_old = offset < self.read_before.get(partition, 0)
            self.untraceable_before += is_old and not dead.is_traceable

    def _drop(self, slot: Slot) -> None:
        del self._slots[slot.letter.message_id]
        self._bytes -= slot.size
        self._ungroup(slot)
        if slot.group in self._groups:
            self._ready[slot.group] = None

    def _ungroup(self, slot: Slot) -> None:
        for name, some in ((slot.group, self._groups), (slot.letter.original_id, self._copies)):
            slots = some.get(name, {})
            slots.pop(slot.letter.message_id, None)
            if not slots:
                some.pop(name, None)

    def _together(self, name: str, now: datetime) -> list[Slot]:
        """The first letters of a group, and returned copies of the very first one.

        Only one can go at a time. The others follow once the outcomes of those before them are known.
        """
        group = self._groups.get(name)
        if not group:
            return []
        head, *others = nsmallest(FOLLOWERS + FEW, group.values(), key=lambda one: one.dead.place)
        original = head.letter.original_id
        copies = [
            one
            for one in group.values()
            if one is not head and original in (one.letter.original_id, one.letter.message_id)
        ][: FEW - 1 - FOLLOWERS]
        if any(_is_hidden(one, now) for one in (head, *copies)):
            return []
        followers: list[Slot] = []
        for one in others:
            if one in copies:
                continue
            if _is_hidden(one, now) or len(followers) == FOLLOWERS:
                break
            followers.append(one)
        return [head, *copies, *followers]

    def _in_the_way(self, now: datetime) -> Iterator[Slot]:
        """Yield letters that block a position although later ones are finished, and letters that have become old.

        And those of an earlier topic: if they were read again, they would be taken for letters of the one there is now.
        """
        behind = {one: track.last_done for one, track in self._tracks.items()}
        for slot in self._slots.values():
            if any(self._is_in_the_way(one, slot, behind, now) for one in slot.positions):
                yield slot

    def _is_in_the_way(
        self, position: Position, slot: Slot, behind: dict[Partition, int], now: datetime
    ) -> bool:
        partition, offset = position
        is_before_done = offset < behind[partition]
        if partition.topic != self._place.held:
            is_of_earlier_topic = not keeps_its_id(slot.dead, self.topic_ids.marks)
            return is_before_done or is_of_earlier_topic or now - slot.dead.record.at >= OLD
        # In the retry topic, a letter is written again once that frees more room than it takes.
        track = self._tracks[partition]
        return is_before_done and len(track.done) > len(track.open)

    def _hold(self, some: list[Slot]) -> list[CallFailed]:
        """Write letters to the retry topic. Previous records of accepted ones are then finished. Raises CallFailed."""
        failed = []
        if some:
            self._meet(self._place.held)
        for few in (some[n : n + PAGE] for n in range(0, len(some), PAGE)):
            written = self._log.write([self._as_held(one.dead) for one in few])
            for slot, where in zip(few, written, strict=True):
                if isinstance(where, CallFailed):
                    failed.append(where)
                elif where.partition in self._tracks:
                    before, slot.positions = slot.positions, {where}
                    self._tracks[where.partition].open.add(where.offset)
                    for partition, offset in before:
                        self._tracks[partition].close(offset)
        return failed

    def _rescue(self, now: datetime) -> list[CallFailed]:
        """Write old letters that memory has no room for to the retry topic. Raises CallFailed."""
        while self._is_full and (start := self._starts(self._place.dead_letters)):
            reading = self._log.read(start, PAGE)
            self.topic_ids.look()
            if not reading.records or now - min(one.at for one in reading.records) < OLD:
                break
            records = [
                self._as_held(self._dead(one))
                for one in reading.records
                if one.offset not in self._tracks[one.position.partition].done
            ]
            failed = [one for one in self._log.write(records) if isinstance(one, CallFailed)]
            if failed:
                return failed
            for one, after in reading.after.items():
                self._tracks[one].after = after
        return []

    def _as_held(self, dead: Dead) -> NewRecord:
        letter, record = dead.letter, dead.record
        note = Held(message_id=letter.message_id, place=dead.place, died_at=letter.sent_at)
        return NewRecord(
            topic=self._place.held,
            key=record.key,
            value=record.value,
            headers=with_header(record.headers, HELD_HEADER, note.encode()),
        )

    def another_state(self) -> CallFailed | None:
        """The fault if positions were last committed with another state. Raises CallFailed."""
        place = self._place
        notes = self._log.notes(place.group, place.dead_letters) if self._state else set()
        if notes <= {self._state}:
            return None
        return CallFailed(
            "CommitOffsets",
            "AnotherState",
            f"a process with another state has committed for {place.group}. What only that one knows to be sent "
            "is sent again: give each re-driver a name of its own, and one state",
        )

    def _commit(self) -> list[CallFailed]:
        """Commit positions, and note whether another process does, too. Raises CallFailed."""
        ahead = {
            one: track.safe for one, track in self._tracks.items() if track.safe > track.committed
        }
        place = self._place
        another = self.another_state() if ahead or self._is_overtaken else None
        noted = dict(ahead)
        if another:
            # With our note beside all positions, one that is met again is of a process that is at work.
            noted = self._log.committed(place.group, place.dead_letters) | ahead
        if noted:
            self._log.commit(place.group, noted, self._state)
        for one, offset in ahead.items():
            self._tracks[one].pass_over(offset)
        self._is_overtaken = False
        return [another] if another else []


def _cut_short(start: Mapping[Partition, int], reading: Reading) -> dict[Partition, int]:
    """The first offsets of partitions that end before the offset to read.

    Their last records were lost with a broker; or their topic was created again, and the cluster tells no topic ids.
    """
    first: dict[Partition, int] = {}
    for one in reading.records:
        partition, offset = one.position
        if offset < start[partition]:
            first.setdefault(partition, offset)
    return first


def _is_hidden(slot: Slot, now: datetime) -> bool:
    return slot.hidden_until is not None and slot.hidden_until > now


def _places(group: dict[str, Slot]) -> Iterator[tuple[int, int]]:
    return (one.dead.place for one in group.values())
