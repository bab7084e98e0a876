"""What a dry run remembers: what it would have written to the ledger it reads from there again, and nothing is written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from redrive.core.circuit import Circuit
from redrive.core.hearing import Told
from redrive.core.lease import Lease
from redrive.core.ledger import Entry
from redrive.core.letter import Trail
from redrive.passes.ports import Known, Memory


class DryMemory:
    """A memory that is read, with the entries over it that a real pass would have written."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._entries: dict[str, Entry] = {}

    def of(self, queue: str) -> Memory:
        """The memory of another source queue, of which circuits alone are read."""
        return self._memory.of(queue)

    def read_ledger(self, message_ids: Iterable[str]) -> Known:
        """What the ledger would know. Raises CallFailed."""
        ids = list(message_ids)
        known = self._memory.read_ledger(ids)
        known.entries.update({one: self._entries[one] for one in ids if one in self._entries})
        return known

    def write_ledger(
        self,
        entries: Sequence[Entry],
        kept_trails: Sequence[tuple[str, Trail]],  # noqa: ARG002
        now: datetime,  # noqa: ARG002
    ) -> None:
        """Remember entries for the rest of the pass; a dry run sends no copy that a trail could be kept for."""
        self._entries |= {one.original_id: one for one in entries}

    def write_failures(self, failures: Sequence[Told], now: datetime) -> None:
        """Nothing: no pass reads them."""

    def load_circuit(self) -> Circuit | None:
        """The circuit. Raises CallFailed."""
        return self._memory.load_circuit()

    def save_circuit(self, circuit: Circuit) -> Circuit | None:
        """The circuit as it would stand."""
        return circuit

    def acquire_lease(self, lease: Lease, now: datetime) -> bool:  # noqa: ARG002
        """A dry run needs none."""
        return True

    def release_lease(self, lease: Lease) -> bool:  # noqa: ARG002
        """It has none."""
        return True
