"""The executor of a dry run: it touches no letter, and says what the live one (`apply`) would have done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from smart_redriver.engine.messages.letter import RedriveMetadata
from smart_redriver.engine.model.circuit import Circuit, Lease
from smart_redriver.engine.model.permit import Hint
from smart_redriver.engine.passes.executor import (
    Decided,
    Destination,
    Effects,
    count_holds,
    count_redrives,
    count_renewals,
    marked_returns,
    only,
)
from smart_redriver.engine.passes.ports import DeadLetters, Known, Memory
from smart_redriver.engine.reports.processing import ReceivedOutcome
from smart_redriver.engine.triage.case import Case
from smart_redriver.engine.triage.decision import Discard, Hold, Park, Redrive, Renew
from smart_redriver.engine.triage.ledger import Entry


class DryRunExecutor:
    """Does nothing, and reports what the live executor would have done if every call had been accepted."""

    def __init__(self, dead_letters: DeadLetters, name_of: Callable[[Case], str]) -> None:
        self._dead_letters = dead_letters
        self._name_of = name_of

    def carry_out(
        self,
        decided: Decided,
        destinations: Mapping[str, Destination],
        now: datetime,
        *,
        version_to_mark: int | None,  # noqa: ARG002
        is_one_of_many: bool = False,  # noqa: ARG002
    ) -> Effects:
        """Count what was decided as if it had been done."""
        effects = self.discard(only(decided, Discard))
        for case, decision in only(decided, Redrive):
            source = destinations[decision.destination].source
            count_redrives(
                effects, source.name, [(case, decision)], settles_at_once=source.settles_at_once
            )
        effects.add(self.park(only(decided, Park), now))
        count_renewals(effects, only(decided, Renew))
        count_holds(effects, only(decided, Hold))
        stay = len(only(decided, Hold)) + len(only(decided, Renew))
        if self._dead_letters.is_fifo:
            stay += len(only(decided, Redrive))
        effects.removed = len(decided) - stay
        effects.events = []
        return effects

    def discard(self, discards: Sequence[tuple[Case, Discard]]) -> Effects:
        """Count copies that were replaced."""
        effects = Effects()
        effects.counts["discarded"] += len(discards)
        return effects

    def park(self, parks: Sequence[tuple[Case, Park]], now: datetime) -> Effects:  # noqa: ARG002
        """Count letters that would be parked."""
        effects = Effects()
        effects.parked.update(one.reason.value for _, one in parks)
        return effects

    def mark_returns(self, cases: Sequence[Case], version: int, now: datetime) -> list[Case]:
        """The letters as they would be marked."""
        return marked_returns(cases, version, now, self._name_of)

    def release(self, cases: Sequence[Case]) -> Effects:
        """Make letters visible again: a look is the one thing that a dry run does to them."""
        effects = Effects()
        if cases:
            effects.saw(self._dead_letters.hide((case.letter, timedelta()) for case in cases))
        return effects


class DryMemory:
    """A read-only memory, overlaid with the entries that a real pass would have written."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._entries: dict[str, Entry] = {}

    def of(self, queue: str) -> Memory:
        """The memory of another source queue; only its circuit is read."""
        return self._memory.of(queue)

    def read_ledger(self, message_ids: Iterable[str]) -> Known:
        """Read the ledger as a real pass would have left it. Raises CallFailed."""
        ids = list(message_ids)
        known = self._memory.read_ledger(ids)
        known.entries.update({one: self._entries[one] for one in ids if one in self._entries})
        return known

    def write_ledger(
        self,
        entries: Sequence[Entry],
        kept_metadata: Sequence[tuple[str, RedriveMetadata]],  # noqa: ARG002
        now: datetime,  # noqa: ARG002
    ) -> None:
        """Remember entries for the rest of the pass; a dry run sends no copies whose metadata would have to be kept."""
        self._entries |= {one.original_id: one for one in entries}

    def write_failures(self, failures: Sequence[ReceivedOutcome], until: datetime) -> None:
        """Do nothing: no pass reads failures."""

    def load_circuit(self) -> Circuit | None:
        """The circuit. Raises CallFailed."""
        return self._memory.load_circuit()

    def save_circuit(self, circuit: Circuit) -> Circuit | None:
        """The circuit as it would stand."""
        return circuit

    def load_hint(self) -> Hint | None:
        """The last hint about the consumer. Raises CallFailed."""
        return self._memory.load_hint()

    def save_hint(self, hint: Hint) -> Hint | None:
        """The hint as it would stand."""
        return hint

    def acquire_lease(self, lease: Lease, now: datetime) -> bool:  # noqa: ARG002
        """A dry run needs none."""
        return True

    def release_lease(self, lease: Lease) -> bool:  # noqa: ARG002
        """It has none."""
        return True
