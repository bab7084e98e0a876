"""A process's connection to one DLQ topic while it lives, and to the topics that letters go back to."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from smart_redriver.engine.config.deployment import Deployment
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.errors import CallFailed, EntryFault
from smart_redriver.engine.messages.letter import METADATA_ATTRIBUTE, Letter, RedriveMetadata
from smart_redriver.engine.messages.outgoing import Outgoing, Sent
from smart_redriver.engine.messages.queue_facts import QueueFacts
from smart_redriver.engine.passes.ports import Memory, NotedMemory, Tools
from smart_redriver.engine.wiring import Parts
from smart_redriver.kafka.engine.dead_letters import DeadLetters, ParkingLot, deliver, facts_of
from smart_redriver.kafka.engine.letters import Dead, with_header
from smart_redriver.kafka.engine.open_letters import OpenLetters, TopicIds
from smart_redriver.kafka.engine.outcomes import Outcomes, WatchedMemory
from smart_redriver.kafka.engine.place import KafkaTopics
from smart_redriver.kafka.engine.queue_metrics import TopicMetricsReader
from smart_redriver.kafka.engine.records import Log, NewRecord
from smart_redriver.kafka.engine.shapes import Message

#: The names under which the note for a process that follows, and the topics' first ids, are kept: no topic's name has
#: a "#".
_OUT = "#out"
TOPIC_IDS = "#topics"


class TopicSource:
    """One source topic. Circuit and metadata use its name.

    `find` finds letters by their ids, and `tell_sent` gets the number of written records.
    """

    settles_at_once = False
    carries_metadata = True
    #: A record can be read as soon as it is written, so only letters can wait.
    longest_delay = timedelta()

    def __init__(
        self,
        log: Log,
        place: KafkaTopics,
        topic: str,
        find: Callable[[str], Dead | None],
        topic_ids: TopicIds,
        tell_sent: Callable[[str, int], None] = lambda _topic, _count: None,
        dying: Callable[[str], int] = lambda _topic: 0,
    ) -> None:
        self._log = log
        self._find = find
        self._topic_ids = topic_ids
        self._tell_sent = tell_sent
        self._dying = dying
        self._place = place
        self.name = topic

    def facts(self) -> QueueFacts:
        """Return how far the group is behind. Raises CallFailed."""
        read = self._log.committed(self._place.consumer_group, self.name)
        lag = sum(
            max(0, end - max(first, read.get(one, first)))
            for one, (first, end) in self._log.bounds(self.name).items()
        )
        return facts_of(
            self._place, self.name, visible=lag, retention=timedelta(), dying=self._dying(self.name)
        )

    def deliver(self, outgoing: Sequence[Outgoing]) -> Sent:
        """Write each message again, with its own key, value and headers, and its metadata as one header more.

        It goes to the partition that it was in, so that no partitioner has to be known.
        """
        try:
            partitions = self._log.partitions(self.name)
        except CallFailed as failed:
            return Sent(faults=[EntryFault.of(failed, one.letter.message_id) for one in outgoing])
        sent = deliver(
            "RedriveLetters",
            self._log,
            outgoing,
            lambda one: self._again(one, partitions),
            self._topic_ids.marks,
        )
        self._tell_sent(self.name, len(sent.new_ids))
        return sent

    def time_to_fail(self, facts: QueueFacts, max_receive_count_otherwise: int) -> timedelta:  # noqa: ARG002
        """The configured time from a message's first try to its record in the DLQ topic."""
        return facts.visibility_timeout

    def owns(self, source_arn: str | None, metadata: RedriveMetadata | None) -> bool:
        """Whether a letter belongs to this topic: by where it says it was, or else by where its metadata was sent."""
        if source_arn is not None:
            return source_arn == self.name
        return metadata is not None and metadata.queue == self.name

    def message_of(self, letter: Letter) -> Message | None:
        """Return the message to send for a letter; None if the letter has gone."""
        dead = self._find(letter.message_id)
        return dead.message if dead else None

    def _again(self, one: Outgoing, partitions: int) -> NewRecord | None:
        message = self.message_of(one.letter)
        if message is None:
            return None
        was_in = message.death.partition
        headers = message.headers
        if one.carries_metadata:
            metadata = replace(one.metadata, sent_for=self._place.consumer_group)
            headers = with_header(headers, METADATA_ATTRIBUTE, metadata.encode().encode())
        return NewRecord(
            topic=self.name,
            key=message.key,
            value=message.value,
            headers=headers,
            partition=was_in if was_in is not None and was_in < partitions else None,
        )


def connect(deployment: Deployment, settings: Settings) -> DeadLetterTopic:  # noqa: ARG001 - of every backend
    """The DLQ topic in a function's environment, until its container ends."""
    from smart_redriver.kafka.engine.client import KafkaLog

    place = deployment.location
    assert isinstance(place, KafkaTopics), "read by this backend"  # noqa: S101 - a mistake of ours
    log = KafkaLog(place)
    state = deployment.table_name
    return DeadLetterTopic(log, place, lambda: datetime.now(UTC), log.close, state=state)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The DLQ topic as a process finds it.

    Attributes:
        records: the number of records that it will read.
        is_first: nobody has committed for our group, so it reads the topic from its beginning.
        another_state: see `OpenLetters`.

    """

    records: int
    is_first: bool
    another_state: CallFailed | None


class DeadLetterTopic:
    """See `smart_redriver.engine.wiring.Connection`."""

    workers = 1

    def __init__(
        self,
        log: Log,
        place: KafkaTopics,
        clock: Callable[[], datetime],
        close: Callable[[], None] = lambda: None,
        *,
        state: str = "",
    ) -> None:
        self._log = log
        self._place = place
        self._open_letters = OpenLetters(log, place, state)
        self._outcomes = Outcomes(log, self._open_letters, place, clock)
        self._metrics_reader = TopicMetricsReader(log, self._open_letters, place, clock)
        self._close = close
        self._noted: Mapping[str, Any] = {}
        self._notes: NotedMemory | None = None
        self._failed: list[CallFailed] = []

    def found(self) -> Found:
        """See what there is before the first pass. Raises CallFailed."""
        log, place = self._log, self._place
        committed = log.committed(place.group, place.dead_letters)
        records = sum(
            max(0, end - max(first, committed.get(one, first)))
            for one, (first, end) in log.bounds(place.dead_letters).items()
        )
        return Found(
            records=records,
            is_first=not committed,
            another_state=self._open_letters.another_state(),
        )

    @property
    def awaits_outcomes(self) -> bool:
        """Whether redriven messages are out."""
        return self._outcomes.has_some_out

    def parts(self, memory: NotedMemory, clock: Callable[[], datetime]) -> Parts:
        """Adapters over the log."""
        log, open_letters, place = self._log, self._open_letters, self._place
        watched: Memory = WatchedMemory(memory, self._outcomes)
        open_letters.topic_ids.memory = memory.of(TOPIC_IDS)
        self._take_over(memory)
        self._metrics_reader.look()
        return {
            "dead_letters": DeadLetters(open_letters, place, clock, self._outcomes.copy_has_left),
            "parking_lot": ParkingLot(log, open_letters, place),
            "sources": tuple(
                TopicSource(
                    log,
                    place,
                    one,
                    open_letters.find,
                    open_letters.topic_ids,
                    self._metrics_reader.sent,
                    self._metrics_reader.dying,
                )
                for one in place.topics
            ),
            "memory": watched,
            "metrics_reader": self._metrics_reader,
            "reports": self._outcomes,
        }

    def after_pass(self, tools: Tools, kept: Container[str]) -> None:  # noqa: ARG002
        """Settle. A failure is logged in the journal, and the work is done after the next pass."""
        now = tools.clock()
        for failed in (*self._failed, *self.settle(now), *self._note_for_next(now)):
            tools.tell_failed(failed)
        self._failed.clear()

    def settle(self, now: datetime) -> list[CallFailed]:
        """Move the positions, and look at the group's progress. Returns failures."""
        failed = self._open_letters.settle(now)
        self._metrics_reader.look()
        return failed

    def _take_over(self, memory: NotedMemory) -> None:
        """Know what another process has left out. After a failure, the ledger shows it later, or time does."""
        self._notes = memory.of(_OUT)
        try:
            self._open_letters.topic_ids.look()  # by which messages of topics that are gone are known
            _, note = self._notes.load_pass() or (None, {})
            if note != self._noted:
                self._outcomes.take_over(note, memory)
                self._noted = note
        except CallFailed as failed:
            self._failed.append(failed)

    def _note_for_next(self, now: datetime) -> list[CallFailed]:
        """Leave a note for the next process, unless another one is at work. Returns failures."""
        note = self._outcomes.note_for_next()
        if self._notes is None or not self._outcomes.is_at_work or note == self._noted:
            return []
        try:
            self._notes.save_pass(note, now)
        except CallFailed as failed:
            return [failed]
        self._noted = note
        return []

    def close(self) -> None:
        """Let go of the cluster."""
        self._close()
