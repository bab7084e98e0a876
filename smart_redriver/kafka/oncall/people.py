"""Letters of the DLQ topic and the parking topic, as people take and change them.

Each letter is handed out once until it is released, in the order of its key. A person sees a message's own headers as
attributes, together with facts about its death, and may change them. A letter that was kept in a file has its record.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from threading import RLock
from typing import Any

from smart_redriver.engine.errors import CallFailed, EntryFault
from smart_redriver.engine.messages.letter import METADATA_ATTRIBUTE, Attribute, Letter
from smart_redriver.engine.messages.outgoing import Outgoing, Sent
from smart_redriver.engine.messages.queue_facts import QueueFacts
from smart_redriver.engine.passes.ports import Ledger, NotedMemory
from smart_redriver.engine.passes.read import recognise
from smart_redriver.engine.triage.case import Case
from smart_redriver.engine.triage.ordered import Fate, known_fate
from smart_redriver.kafka.engine.connection import TOPIC_IDS, TopicSource
from smart_redriver.kafka.engine.dead_letters import (
    MoveCheck,
    Parked,
    deliver,
    facts_of,
    parked_record,
)
from smart_redriver.kafka.engine.letters import Dead, dead_of, id_at, text_of
from smart_redriver.kafka.engine.open_letters import FEW, OpenLetters
from smart_redriver.kafka.engine.place import KafkaTopics
from smart_redriver.kafka.engine.records import Header, Log, NewRecord, Position, Record
from smart_redriver.kafka.engine.shapes import Message
from smart_redriver.oncall.terminal.exits import Refused

#: The attribute that a letter in a file has in addition to those shown: its record as JSON.
RECORD = "Record"

#: The attribute that shows a message's key.
KEY = "Key"

#: The topics are read again after this time, because passes work on them, too.
FRESH_FOR = timedelta(seconds=5)

_BASE64 = "base64:"


class Topics:
    """The letters of both topics, as far as they were read. One thread at a time holds the `lock`."""

    def __init__(
        self, log: Log, place: KafkaTopics, clock: Callable[[], datetime], memory: NotedMemory
    ) -> None:
        self.log = log
        self.place = place
        self.clock = clock
        self.lock = RLock()
        self._ledger: Ledger = memory
        self._open_letters = OpenLetters(log, place)
        self.topic_ids = self._open_letters.topic_ids
        self.topic_ids.memory = memory.of(TOPIC_IDS)
        try:
            self.topic_ids.load()
        except (CallFailed, Refused):
            # People see the letters without their state, too. Only a pass must not take one for another's copy.
            self.topic_ids.memory = None
        self._done: set[str] = set()
        self._parked = Parked(log, place, self.topic_ids, keeps_records=True)
        self._lot: dict[Position, Dead] = {}
        self._understood: dict[Position, Record | None] = {}
        self._at: dict[str, Position] = {}
        self._looked_at: datetime | None = None

    def look(self) -> datetime:
        """Read on, unless that was done just now. Returns when it was done. Raises CallFailed."""
        with self.lock:
            now = self.clock()
            if self._looked_at is None or now - self._looked_at >= FRESH_FOR:
                self._open_letters.look()
                self._parked.look()
                self._understand_parked()
                self._done = self._done_in_retry_topic()
                self._looked_at = now
            return self._looked_at

    def look_again(self) -> None:
        """Always read on at the next look, because somebody may have written something."""
        self._looked_at = None

    def _understand_parked(self) -> None:
        there = self._parked.there
        # Another record is at its place if the topic was created again.
        known = self._understood
        self._lot = {at: one for at, one in self._lot.items() if there.get(at) is known[at]}
        for at, record in there.items():
            if at not in self._lot and record is not None:
                self._lot[at] = self._parked_letter(at, record)
        self._understood = dict(there)
        self._at = {one.letter.message_id: at for at, one in self._lot.items()}

    def _done_in_retry_topic(self) -> set[str]:
        """Finished letters whose records stay behind those of others. A pass leaves none in the DLQ topic."""
        there = [
            one.letter
            for one in self._open_letters.letters()
            if one.record.topic == self.place.held
        ]
        return {one.message_id for one in recognise(there, self._ledger) if _is_done(one)}

    def dead(self) -> list[Dead]:
        """The letters of the DLQ topic and the retry topic that are not done yet. Raises CallFailed."""
        with self.lock:
            self.look()
            return [
                one
                for one in self._open_letters.letters()
                if one.letter.message_id not in self._done
            ]

    def parked(self) -> list[Dead]:
        """The letters of the parking topic. Raises CallFailed."""
        with self.lock:
            self.look()
            return [one for at, one in sorted(self._lot.items()) if at in self._parked.there]

    def unread(self) -> int:
        """The number of records that there was no room for. Raises CallFailed."""
        with self.lock:
            return self._open_letters.unread()

    def find(self, message_id: str) -> Dead | None:
        """A letter in either topic. Raises CallFailed."""
        with self.lock:
            self.look()
            at = self._at.get(message_id)
            is_parked = at is not None and at in self._parked.there
            return self._lot[at] if is_parked and at else self._open_letters.find(message_id)

    def take_dead(self, ids: Collection[str]) -> dict[str, CallFailed]:
        """Close letters of the DLQ topic for good, and move the positions. Returns failures by id."""
        with self.lock:
            self._open_letters.close(ids)
            failed = self._open_letters.settle(self.clock())
        return dict.fromkeys(ids, failed[0]) if failed else {}

    def take_parked(self, ids: Collection[str]) -> dict[str, CallFailed]:
        """Take letters out of the parking topic. Returns failures by id."""
        with self.lock:
            at = {one: self._at[one] for one in ids if one in self._at}
            try:
                told = self._parked.take_out(list(at.values()))
            except CallFailed as failed:
                return dict.fromkeys(ids, failed)
        return {one: why for one, why in zip(at, told, strict=True) if why is not None}

    def _parked_letter(self, at: Position, record: Record) -> Dead:
        """A parked letter's id comes from its position. Its metadata says which letter it is."""
        dead = dead_of(record, self.place)
        own_id = id_at(at, record.key, record.value, self.topic_ids.marks)
        letter = replace(dead.letter, message_id=own_id, receipt_handle=own_id)
        return replace(dead, letter=letter, place=(at.partition.number, at.offset))


def _is_done(case: Case) -> bool:
    """Whether a record's letter is finished, so that the next pass that finds it discards it."""
    copy_is_done = case.entry is not None and known_fate(case.entry) is Fate.DONE
    return case.is_replaced or (case.is_kept and copy_is_done)


class PeoplesLetters:
    """The letters of one topic: all, or those that are `selected`."""

    def __init__(
        self, topics: Topics, *, is_dlq: bool, selected: Callable[[Letter], bool] = lambda _: True
    ) -> None:
        self._topics = topics
        self._is_dlq = is_dlq
        self._selected = selected
        self._handed: set[str] = set()
        self._next: Iterator[Dead] = iter(())
        self._as_of: datetime | None = None
        self.is_fifo = topics.place.keeps_order

    def facts(self) -> QueueFacts:
        """How many letters there are. Raises CallFailed."""
        topics = self._topics
        name = topics.place.dead_letters if self._is_dlq else topics.place.parked
        there = len(self._all())
        return facts_of(
            topics.place, name, visible=there + (topics.unread() if self._is_dlq else 0)
        )

    def receive(self, limit: int, *, hidden_for: timedelta) -> list[Letter]:  # noqa: ARG002
        """Return the next letters that are not in hand yet. Raises CallFailed."""
        with self._topics.lock:
            few = list(islice(self._unhanded(), min(limit, FEW)))
            self._handed.update(one.message_id for one in few)
            return few

    def delete(self, letters: Iterable[Letter]) -> list[EntryFault]:
        """Take letters out. Returns faults for those that are still there."""
        ids = [one.message_id for one in letters]
        take = self._topics.take_dead if self._is_dlq else self._topics.take_parked
        failed = take(ids)
        return [EntryFault.of(why, key) for key, why in failed.items()]

    def hide(self, letters: Iterable[tuple[Letter, timedelta]]) -> list[EntryFault]:
        """Release letters. Those that should be held stay in hand."""
        for letter, hidden_for in letters:
            if not hidden_for:
                self._handed.discard(letter.message_id)
                self._as_of = None
        return []

    def check_move(self, arn: str) -> MoveCheck:  # noqa: ARG002
        """Return that no task is moving letters: Kafka has none."""
        return MoveCheck()

    def keep(self, letters: Iterable[Letter]) -> list[Letter]:
        """Return letters that are still there, with their records for a file. Raises CallFailed."""
        there = {one.letter.message_id: one for one in self._all()}
        return [
            replace(one, attributes={**one.attributes, RECORD: _kept(there[one.message_id].record)})
            for one in letters
            if one.message_id in there
        ]

    def still_there(self, letters: Iterable[Letter]) -> set[str]:
        """Return the letters that are there. Raises CallFailed."""
        there = {one.letter.message_id for one in self._all()}
        return {one.message_id for one in letters} & there

    def _unhanded(self) -> Iterator[Letter]:
        """Yield selected letters that are not in hand, from the beginning after each look."""
        if (as_of := self._topics.look()) != self._as_of:
            self._next, self._as_of = iter(self._all()), as_of
        for dead in self._next:
            letter = dead.letter
            if letter.message_id not in self._handed and self._selected(letter):
                yield as_shown(dead)

    def _all(self) -> list[Dead]:
        return self._topics.dead() if self._is_dlq else self._topics.parked()


class PeoplesLot(PeoplesLetters):
    """The parking topic. Letters from a file are written to it as their records were."""

    def __init__(self, topics: Topics) -> None:
        super().__init__(topics, is_dlq=False)

    def park(self, outgoing: Sequence[Outgoing]) -> Sent:
        """Write letters here. Raises nothing."""
        with self._topics.lock:
            topics = self._topics
            sent = deliver(
                "ParkLetters", topics.log, outgoing, self._as_parked, topics.topic_ids.marks
            )
            topics.look_again()
            return sent

    def _as_parked(self, one: Outgoing) -> NewRecord | None:
        topics = self._topics
        record: NewRecord | None = _record_in(one.letter)
        dead = topics.find(one.letter.message_id)
        if dead is not None and record is None:
            message = _changed(dead, one.letter)
            record = dead.record if message is dead.message else _retold(message)
        return parked_record(record, topics.place.parked, one) if record else None


class PeoplesSource(TopicSource):
    """A source topic that letters go to from either topic or from a file, unchanged or edited."""

    def __init__(self, topics: Topics, topic: str) -> None:
        super().__init__(topics.log, topics.place, topic, topics.find, topics.topic_ids)
        self._topics = topics

    def facts(self) -> QueueFacts:
        """See `TopicSource`."""
        with self._topics.lock:
            return super().facts()

    def deliver(self, outgoing: Sequence[Outgoing]) -> Sent:
        """See `TopicSource`."""
        with self._topics.lock:
            return super().deliver(outgoing)

    def message_of(self, letter: Letter) -> Message | None:
        """See `TopicSource`. Raises CallFailed for a change that no record can have."""
        dead = self._topics.find(letter.message_id)
        if dead is None and (record := _record_in(letter)):
            dead = dead_of(record, self._topics.place)
        return _changed(dead, letter) if dead else None


def as_shown(dead: Dead) -> Letter:
    """A letter with its message's own headers as attributes, together with facts about it."""
    letter = replace(dead.letter, attributes=_shown(dead), extra_bytes=0)
    return replace(letter, extra_bytes=dead.message.size - letter.size)


def _shown(dead: Dead) -> dict[str, Attribute]:
    own = {name: _attribute(value) for name, value in dead.message.headers}
    return {**own, **_facts(dead)}


def _facts(dead: Dead) -> dict[str, Attribute]:
    """Attributes that are no headers of the message: its key, and how it died."""
    key = dead.message.key
    return ({} if key is None else {KEY: _attribute(key)}) | dict(dead.letter.attributes)


def _attribute(value: bytes | None) -> Attribute:
    try:
        return {"DataType": "String", "StringValue": (value or b"").decode()}
    except UnicodeDecodeError:
        return {"DataType": "Binary", "BinaryValue": value}


def _changed(dead: Dead, letter: Letter) -> Message:
    """The edited message; the same message if nobody edited it. Raises CallFailed."""
    message, shown, now = dead.message, _shown(dead), _edited(dead, letter)
    changed = {name for name in shown.keys() | now.keys() if shown.get(name) != now.get(name)}
    if told := sorted(changed & _facts(dead).keys()):
        detail = f"{', '.join(told)}: told of its key or its death, and no header of the message"
        raise CallFailed("RewriteLetter", "NoHeader", detail)
    if letter.body != text_of(message.value):
        message = replace(message, value=_bytes(letter.body))
    if not changed:
        return message
    headers = [one for one in message.headers if one[0] not in changed]
    headers += [(name, _value(now[name])) for name in now if name in changed]
    return replace(message, headers=tuple(headers))


def _edited(dead: Dead, letter: Letter) -> dict[str, Attribute]:
    """The attributes that a person left. Files of earlier versions have no key."""
    key = {name: one for name, one in _facts(dead).items() if name == KEY}
    ours = (RECORD, METADATA_ATTRIBUTE)
    return key | {name: one for name, one in letter.attributes.items() if name not in ours}


def _value(attribute: Attribute) -> bytes:
    binary = attribute.get("BinaryValue")
    return bytes(binary) if binary is not None else str(attribute["StringValue"]).encode()


def _bytes(body: str) -> bytes:
    if body.startswith(_BASE64):
        try:
            return base64.b64decode(body.removeprefix(_BASE64), validate=True)
        except ValueError as fault:
            raise CallFailed("RewriteLetter", "NoBase64", str(fault)) from fault
    return body.encode()


def _retold(message: Message) -> NewRecord:
    """An edited message as a record that says where it was and how it died."""
    death = message.death
    told: Mapping[str, Any] = {
        "x-original-topic": death.topic,
        "x-original-partition": death.partition,
        "x-original-offset": death.offset,
        "x-exception-fqcn": death.error_class,
        "x-exception-message": death.error_message,
    }
    headers = [(name, str(value).encode()) for name, value in told.items() if value is not None]
    return NewRecord(
        topic="", key=message.key, value=message.value, headers=(*message.headers, *headers)
    )


def _kept(record: Record) -> Attribute:
    fields = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "at": record.at.isoformat(),
        "key": _encoded(record.key),
        "value": _encoded(record.value),
        "headers": [[name, _encoded(value)] for name, value in record.headers],
    }
    return {"DataType": "String", "StringValue": json.dumps(fields, separators=(",", ":"))}


def _record_in(letter: Letter) -> Record | None:
    """The record that a letter was kept with; None if there is none. Raises CallFailed for a damaged one."""
    text = letter.attributes.get(RECORD, {}).get("StringValue")
    if text is None:
        return None
    try:
        fields = json.loads(text)
        return Record(
            topic=str(fields["topic"]),
            partition=int(fields["partition"]),
            offset=int(fields["offset"]),
            at=datetime.fromisoformat(fields["at"]).astimezone(UTC),
            key=_decoded(fields["key"]),
            value=_decoded(fields["value"]),
            headers=tuple(_headers(fields["headers"])),
        )
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as fault:
        raise CallFailed(
            "RestoreLetters", "NoRecord", f"its record can't be read: {fault!r}"
        ) from fault


def _headers(fields: Iterable[Sequence[Any]]) -> Iterator[Header]:
    for name, value in fields:
        yield str(name), _decoded(value)


def _encoded(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


def _decoded(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text, validate=True)
