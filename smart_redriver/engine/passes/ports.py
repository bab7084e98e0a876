"""The ports: what a pass needs from the outside world. The adapters in `engine.aws` implement them, and so do fakes.

Letters go back to a `Source`; a `QueueMetricsReader` shows their outcomes. Other kinds of either only have to implement
these protocols.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any, Protocol, runtime_checkable

from smart_redriver.engine.errors import CallFailed, EntryFault
from smart_redriver.engine.messages.letter import Letter, RedriveMetadata
from smart_redriver.engine.messages.outgoing import Outgoing, Sent
from smart_redriver.engine.messages.queue_facts import QueueFacts
from smart_redriver.engine.model.circuit import Circuit, Lease
from smart_redriver.engine.model.permit import Hint
from smart_redriver.engine.model.queue_metrics import QueueMetrics
from smart_redriver.engine.reports.outcomes import OutcomeMessage
from smart_redriver.engine.reports.processing import ReceivedOutcome
from smart_redriver.engine.triage.ledger import Entry


class Journal(Protocol):
    """Writes one structured event. A field never holds a message's body or an attribute's value."""

    def __call__(self, event: str, /, **fields: Any) -> None: ...


class MoveCheck(Protocol):
    """Whether a native move task is emptying a queue, or why that is unknown."""

    @property
    def is_running(self) -> bool: ...
    @property
    def fault(self) -> CallFailed | None: ...


class DeadLetters(Protocol):
    """A queue that letters are taken from: the DLQ, or the parking lot."""

    @property
    def is_fifo(self) -> bool: ...
    def facts(self) -> QueueFacts: ...
    def receive(self, limit: int, *, hidden_for: timedelta) -> list[Letter]: ...
    def delete(self, letters: Iterable[Letter]) -> list[EntryFault]: ...
    def hide(self, letters: Iterable[tuple[Letter, timedelta]]) -> list[EntryFault]: ...
    def check_move(self, arn: str) -> MoveCheck: ...


@runtime_checkable
class Renews(Protocol):
    """A queue of letters that accepts its letters once more, for a new clock."""

    def renew(self, outgoing: Sequence[Outgoing]) -> Sent: ...


def renewing(letters_in: DeadLetters) -> Renews | None:
    """The queue, if it accepts its letters once more: in a FIFO queue a letter would fall behind its group."""
    return letters_in if isinstance(letters_in, Renews) and not letters_in.is_fifo else None


class ParkingLot(DeadLetters, Protocol):
    """The queue where letters are set aside."""

    def park(self, outgoing: Sequence[Outgoing]) -> Sent: ...


class Source(Protocol):
    """A place that letters go back to: it knows its facts, how to deliver, and how long a letter takes to fail there.

    Attributes:
        settles_at_once: its answer to a delivery is the outcome, and nothing comes back later.
        carries_metadata: a letter can carry its metadata to it and back.
        longest_delay: how long it can keep a letter from its consumer.

    """

    @property
    def name(self) -> str: ...
    @property
    def settles_at_once(self) -> bool: ...
    @property
    def carries_metadata(self) -> bool: ...
    @property
    def longest_delay(self) -> timedelta: ...
    def facts(self) -> QueueFacts: ...
    def deliver(self, outgoing: Sequence[Outgoing]) -> Sent: ...
    def time_to_fail(self, facts: QueueFacts, max_receive_count_otherwise: int) -> timedelta: ...
    def owns(self, source_arn: str | None, metadata: RedriveMetadata | None) -> bool: ...


@runtime_checkable
class CountsSent(Protocol):
    """A source that knows what was sent to it, and so how full the batch of a dead pass is."""

    def count_sent(self, batch: int, since: datetime) -> int: ...


@runtime_checkable
class TakesMany(Protocol):
    """A source that accepts more letters a call than SQS once its consumer is known to be well."""

    @property
    def letters_a_call(self) -> int: ...


class QueueMetricsReader(Protocol):
    """Reads the outcomes of a source's messages from its metrics. Raises CallFailed if it can't."""

    def since(self, start: datetime, now: datetime, queue_name: str) -> QueueMetrics: ...


class Reports(Protocol):
    """Consumers' reports on their deliveries."""

    def receive(self, *, hidden_for: timedelta) -> list[OutcomeMessage]: ...
    def delete(self, reports: Sequence[OutcomeMessage]) -> list[EntryFault]: ...
    def release(self, reports: Sequence[OutcomeMessage]) -> list[EntryFault]: ...


class Known(Protocol):
    """The ledger's items for some letters: entries by original id, and copies' kept metadata by MessageId."""

    @property
    def entries(self) -> dict[str, Entry]: ...
    @property
    def metadata(self) -> dict[str, RedriveMetadata]: ...


class Ledger(Protocol):
    """The memory of letters."""

    def read_ledger(self, message_ids: Iterable[str]) -> Known: ...
    def write_ledger(
        self,
        entries: Sequence[Entry],
        kept_metadata: Sequence[tuple[str, RedriveMetadata]],
        now: datetime,
    ) -> None: ...
    def write_failures(self, failures: Sequence[ReceivedOutcome], until: datetime) -> None: ...


class Memory(Ledger, Protocol):
    """The memory between passes: circuit, lease and ledger of one source queue."""

    def of(self, queue: str) -> Memory: ...
    def acquire_lease(self, lease: Lease, now: datetime) -> bool: ...
    def release_lease(self, lease: Lease) -> bool: ...
    def load_circuit(self) -> Circuit | None: ...
    def save_circuit(self, circuit: Circuit) -> Circuit | None: ...
    def load_hint(self) -> Hint | None: ...
    def save_hint(self, hint: Hint) -> Hint | None: ...


class NotedMemory(Memory, Protocol):
    """A memory in which a pass leaves a note for the next."""

    def of(self, queue: str) -> NotedMemory: ...
    def save_pass(self, report: Mapping[str, Any], at: datetime) -> None: ...
    def load_pass(self) -> tuple[datetime, Mapping[str, Any]] | None: ...


@dataclass(frozen=True, kw_only=True)
class Tools:
    """The tools of a pass.

    Attributes:
        sources: the source queues that share the DLQ, the first one first; each has a circuit of its own.
        reports: None if the consumers have no queue to report to.
        memory: the memory of the first source's queue, which also has the lease.
        clock: read once a step. `rng`: rolls the jitter. `owner`: names this pass.
        workers: rounds that may be under way at once; with one, a pass is the same whenever it is repeated.

    """

    dead_letters: DeadLetters
    parking_lot: ParkingLot
    sources: tuple[Source, ...]
    memory: Memory
    metrics_reader: QueueMetricsReader
    journal: Journal
    clock: Callable[[], datetime]
    rng: Random
    owner: str
    workers: int = 1
    reports: Reports | None = None

    def tell_failed(self, failed: CallFailed) -> None:
        """Log a call that failed."""
        self.journal("call.failed", call=failed.call, code=failed.code, detail=failed.detail)
