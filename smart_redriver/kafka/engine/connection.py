"""One DLQ topic, for as long as a process lives: what its passes work with."""

from __future__ import annotations

from collections.abc import Callable, Container
from datetime import datetime

from smart_redriver.engine.model.books import Books
from smart_redriver.engine.passes.ports import Memory, Tools
from smart_redriver.engine.wiring import Parts
from smart_redriver.kafka.engine.dead_letters import DeadLetters, ParkingLot
from smart_redriver.kafka.engine.outcomes import Outcomes, WatchedMemory
from smart_redriver.kafka.engine.place import KafkaTopics
from smart_redriver.kafka.engine.records import Log
from smart_redriver.kafka.engine.shelf import Shelf
from smart_redriver.kafka.engine.source import TopicSource


class NoBooks:
    """Nobody counts a topic's messages by the minute: outcomes are told letter by letter."""

    def since(self, start: datetime, now: datetime, queue_name: str) -> Books:  # noqa: ARG002
        """Nothing."""
        return Books()


class DeadLetterTopic:
    """See `smart_redriver.engine.wiring.Connection`."""

    workers = 1

    def __init__(
        self,
        log: Log,
        place: KafkaTopics,
        clock: Callable[[], datetime],
        close: Callable[[], None] = lambda: None,
    ) -> None:
        self._log = log
        self._place = place
        self._shelf = Shelf(log, place)
        self._outcomes = Outcomes(log, self._shelf, place, clock)
        self._close = close

    @property
    def awaits_outcomes(self) -> bool:
        """Whether redriven messages are out."""
        return self._outcomes.has_some_out

    def parts(self, memory: Memory, clock: Callable[[], datetime]) -> Parts:
        """Adapters over the log."""
        log, shelf, place = self._log, self._shelf, self._place
        watched: Memory = WatchedMemory(memory, self._outcomes)
        return {
            "dead_letters": DeadLetters(shelf, place, clock),
            "parking_lot": ParkingLot(log, shelf, place),
            "sources": tuple(TopicSource(log, shelf, place, one) for one in place.topics),
            "memory": watched,
            "witness": NoBooks(),
            "reports": self._outcomes,
        }

    def after_pass(self, tools: Tools, kept: Container[str]) -> None:  # noqa: ARG002
        """Move the positions. What fails is told in the journal, and done after the next pass."""
        for failed in self._shelf.settle(tools.clock()):
            tools.tell_failed(failed)

    def close(self) -> None:
        """Let go of the cluster."""
        self._close()
