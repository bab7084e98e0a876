"""What a step of a pass has done, as a value: events for the log, counts for the report, faults for both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from smart_redriver.engine.errors import CallFailed, EntryFault
from smart_redriver.engine.passes.sendings import Sending
from smart_redriver.engine.triage.case import Case

Event = tuple[str, dict[str, Any]]


@dataclass(slots=True)
class Effects:
    """What was done. Steps that run side by side make one each; the pass adds them up.

    Attributes:
        counts: letters by what was done with them, as the report names it.
        parked, held: letters by reason.
        sendings: the letters that were redriven.
        faults: entries that were not accepted. `healed`: those that were at another try.
        removed: letters that left the DLQ.
        bounced: letters that stay in it, since their target took them and failed.
        refusals: by source queue, the code with which it refused letters.
        is_cut: the pass was over before all that was decided was done; the other letters are as they were.
        failure: the call without whose answer the step could not go on; what came before it stands.

    """

    events: list[Event] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    parked: Counter[str] = field(default_factory=Counter)
    held: Counter[str] = field(default_factory=Counter)
    faults: list[EntryFault] = field(default_factory=list)
    healed: list[EntryFault] = field(default_factory=list)
    sendings: list[Sending] = field(default_factory=list)
    removed: int = 0
    bounced: list[Case] = field(default_factory=list)
    refusals: dict[str, str] = field(default_factory=dict)
    is_cut: bool = False
    failure: CallFailed | None = None

    def add(self, other: Effects) -> None:
        """Add what another step has done."""
        self.events += other.events
        self.counts += other.counts
        self.parked += other.parked
        self.held += other.held
        self.faults += other.faults
        self.healed += other.healed
        self.sendings += other.sendings
        self.removed += other.removed
        self.bounced += other.bounced
        self.refusals |= other.refusals
        self.is_cut |= other.is_cut
        self.failure = self.failure or other.failure

    def tell(self, event: str, case: Case, reason: str, **more: object) -> None:
        """Note what became of a letter."""
        self.events.append(
            (
                event,
                {
                    "message_id": case.message_id,
                    "original_id": case.original_id,
                    "redrive_count": case.redrives,
                    "reason": reason,
                    **more,
                },
            )
        )

    def saw(self, faults: Sequence[EntryFault]) -> None:
        """Note entries that were not accepted."""
        self.faults += faults


def together(effects: Iterable[Effects]) -> Effects:
    """All of them as one."""
    total = Effects()
    for one in effects:
        total.add(one)
    return total
