"""The hands of a dry run: they touch no letter, and say what the real ones (`apply`) would have done."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from redrive.core.case import Case
from redrive.core.decision import Discard, Hold, Park, Redrive
from redrive.passes.effects import Effects
from redrive.passes.hands import (
    Decided,
    Destination,
    count_holds,
    count_redrives,
    marked_returns,
    only,
)
from redrive.passes.ports import DeadLetters


class DryHands:
    """Does nothing, and says what the real hands would have done had every call been accepted."""

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
        """What was decided, as if it had been done."""
        effects = self.discard(only(decided, Discard))
        for case, decision in only(decided, Redrive):
            source = destinations[decision.destination].source
            count_redrives(
                effects, source.name, [(case, decision)], settles_at_once=source.settles_at_once
            )
        effects.add(self.park(only(decided, Park), now))
        count_holds(effects, only(decided, Hold))
        stay = len(only(decided, Hold))
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
