"""The topics that letters are taken from: the DLQ topic with its retry topic, and (`ParkingLot`) the parking topic."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from smart_redriver.engine.errors import CallFailed, EntryFault
from smart_redriver.engine.messages.letter import TRAIL_ATTRIBUTE, Letter
from smart_redriver.engine.messages.outgoing import Outgoing, Sent
from smart_redriver.engine.messages.queue_facts import QueueFacts
from smart_redriver.kafka.engine.letters import id_at, with_header
from smart_redriver.kafka.engine.place import KafkaTopics, Order
from smart_redriver.kafka.engine.records import Log, NewRecord, Position
from smart_redriver.kafka.engine.shelf import Shelf

#: No letter expires: what grows old in the DLQ topic moves to the retry topic, whose records must be kept.
NEVER = timedelta(days=36_500)

_NOT_THERE = "LetterNotThere"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFacts(QueueFacts):
    """What a pass asks of a topic. `keeps_order`: its messages of one key stay in order."""

    keeps_order: bool

    @property
    def is_fifo(self) -> bool:
        """Whether messages of a group are kept in order: SQS says so by a queue's name."""
        return self.keeps_order


def facts_of(
    place: KafkaTopics, topic: str, *, visible: int, hidden: int = 0, retention: timedelta = NEVER
) -> TopicFacts:
    """What there is to say of a topic with so many messages."""
    return TopicFacts(
        arn=topic,
        visible=visible,
        in_flight=hidden,
        delayed=0,
        visibility_timeout=place.time_to_fail,
        retention=retention,
        max_message_size=place.max_message_bytes,
        max_receive_count=1,
        keeps_order=place.order is Order.KEY,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveCheck:
    """Nobody but the re-driver moves these letters by a task of its own."""

    is_running: bool = False
    fault: CallFailed | None = None


class DeadLetters:
    """The DLQ topic, and behind it the retry topic."""

    def __init__(self, shelf: Shelf, place: KafkaTopics, clock: Callable[[], datetime]) -> None:
        self._shelf = shelf
        self._place = place
        self._clock = clock
        self.is_fifo = place.order is Order.KEY
        self.name = place.dead_letters

    def facts(self) -> QueueFacts:
        """How many letters there are, after a look at what is new. Raises CallFailed."""
        self._shelf.look()
        free, hidden = self._shelf.counts(self._clock())
        return facts_of(self._place, self.name, visible=free + self._shelf.unread(), hidden=hidden)

    def receive(self, limit: int, *, hidden_for: timedelta) -> list[Letter]:
        """At most `limit` letters, kept from later receives for `hidden_for`."""
        return self._shelf.take(limit, self._clock(), hidden_for)

    def delete(self, letters: Iterable[Letter]) -> list[EntryFault]:
        """Take letters for dealt with: the position moves past them when the pass is over."""
        self._shelf.close(one.message_id for one in letters)
        return []

    def hide(self, letters: Iterable[tuple[Letter, timedelta]]) -> list[EntryFault]:
        """Keep letters for a time from now; zero releases at once. What comes back is not there any more."""
        now = self._clock()
        return [
            EntryFault(call="HoldLetters", key=letter.message_id, code=_NOT_THERE)
            for letter, hidden_for in letters
            if not self._shelf.hide(letter.message_id, now + hidden_for, now)
        ]

    def check_move(self, arn: str) -> MoveCheck:  # noqa: ARG002
        """Nobody else moves them."""
        return MoveCheck()


class ParkingLot:
    """The parking topic: a log for people, which no pass reads."""

    def __init__(self, log: Log, shelf: Shelf, place: KafkaTopics) -> None:
        self._log = log
        self._shelf = shelf
        self._place = place
        self.is_fifo = place.order is Order.KEY
        self.name = place.parked

    def facts(self) -> QueueFacts:
        """How many letters were parked and are still kept. Raises CallFailed."""
        bounds = self._log.bounds(self.name)
        parked = sum(end - first for first, end in bounds.values())
        return facts_of(self._place, self.name, visible=parked)

    def receive(self, limit: int, *, hidden_for: timedelta) -> list[Letter]:  # noqa: ARG002
        """None: records of the parking topic do not expire, and nothing takes them out again."""
        return []

    def delete(self, letters: Iterable[Letter]) -> list[EntryFault]:
        """Nothing can be taken out of the middle of a topic: all are told as still there."""
        return [_stays(one) for one in letters]

    def hide(self, letters: Iterable[tuple[Letter, timedelta]]) -> list[EntryFault]:
        """Nothing is handed out that could be hidden: all are told as unchanged."""
        return [_stays(one) for one, _ in letters]

    def check_move(self, arn: str) -> MoveCheck:  # noqa: ARG002
        """Nobody else moves them."""
        return MoveCheck()

    def park(self, outgoing: Sequence[Outgoing]) -> Sent:
        """Write letters here, as they are in the DLQ topic and with their trail."""
        return deliver("ParkLetters", self._log, outgoing, self._parked)

    def _parked(self, one: Outgoing) -> NewRecord | None:
        dead = self._shelf.find(one.letter.message_id)
        if dead is None:
            return None
        record = dead.record
        trail = one.trail.encode().encode()
        return NewRecord(
            topic=self.name,
            key=record.key,
            value=record.value,
            headers=with_header(record.headers, TRAIL_ATTRIBUTE, trail),
        )


def _stays(letter: Letter) -> EntryFault:
    return EntryFault(call="DeleteLetters", key=letter.message_id, code="StillThere")


def deliver(
    call: str,
    log: Log,
    outgoing: Sequence[Outgoing],
    record_of: Callable[[Outgoing], NewRecord | None],
) -> Sent:
    """Write what each letter becomes; nothing is raised. The ids of what was accepted tell where it is."""
    sent, ready = Sent(), list[tuple[Outgoing, NewRecord]]()
    for one in outgoing:
        record = record_of(one)
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
            sent.new_ids[key] = id_at(where, record.key, record.value)
    return sent
