"""What a pass can do to letters, and what all hands tell of it alike:
those that act (`apply`) and those of a dry run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol, TypeVar

from smart_redriver.engine.messages.queue_facts import QueueFacts
from smart_redriver.engine.model.batch import Batch
from smart_redriver.engine.passes.effects import Effects
from smart_redriver.engine.passes.ports import Source
from smart_redriver.engine.passes.sendings import Sending
from smart_redriver.engine.triage.case import Case
from smart_redriver.engine.triage.decision import Decision, Discard, Hold, Park, Redrive
from smart_redriver.engine.triage.sight import is_out_of_sight

Decided = Sequence[tuple[Case, Decision]]
D = TypeVar("D", Redrive, Park, Hold, Discard)


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """A source that letters can go back to, and the batch that they then belong to;
    the circuit's `version` that has it.
    """

    source: Source
    facts: QueueFacts
    batch: Batch | None = None
    version: int = 0


class Hands(Protocol):
    """What a pass can do to letters. A dry run has hands that do nothing and say the same."""

    def carry_out(
        self,
        decided: Decided,
        destinations: Mapping[str, Destination],
        now: datetime,
        *,
        version_to_mark: int | None,
        is_one_of_many: bool = False,
    ) -> Effects: ...
    def mark_returns(self, cases: Sequence[Case], version: int, now: datetime) -> list[Case]: ...
    def park(self, parks: Sequence[tuple[Case, Park]], now: datetime) -> Effects: ...
    def discard(self, discards: Sequence[tuple[Case, Discard]]) -> Effects: ...
    def release(self, cases: Sequence[Case]) -> Effects: ...


def only(decided: Decided, kind: type[D]) -> list[tuple[Case, D]]:
    """The letters of one kind of decision."""
    return [(case, what) for case, what in decided if isinstance(what, kind)]


def marked_returns(
    cases: Sequence[Case], version: int, now: datetime, name_of: Callable[[Case], str]
) -> list[Case]:
    """The letters, those that are back noted as such."""
    return [
        replace(
            case,
            entry=case.known(name_of(case)).returned(
                message_id=case.message_id, version=version, now=now
            ),
        )
        if case.is_unseen_return(version)
        else case
        for case in cases
    ]


def count_redrives(
    effects: Effects,
    name: str,
    redrives: Sequence[tuple[Case, Redrive]],
    *,
    settles_at_once: bool,
) -> None:
    """Count letters that were redriven to the source of this name, and tell of each."""
    has_succeeded = True if settles_at_once else None
    for case, decision in redrives:
        effects.counts["redriven"] += 1
        effects.sendings.append(
            Sending(
                source=name,
                delay=decision.delay,
                is_suspect=decision.is_suspect,
                has_succeeded=has_succeeded,
                is_unseen=is_out_of_sight(case),
            )
        )
        effects.tell("letter.redriven", case, decision.reason, delay=decision.delay.seconds)


def count_holds(effects: Effects, holds: Sequence[tuple[Case, Hold]]) -> None:
    """Count letters that stay in the DLQ, and tell of each."""
    for case, hold in holds:
        effects.held[hold.reason.value] += 1
        effects.tell("letter.held", case, hold.reason.value)
