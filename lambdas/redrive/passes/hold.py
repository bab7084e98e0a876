"""Leaves letters in the DLQ: notes why and until when, and hides them until then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from redrive.core.case import Case
from redrive.core.decision import Hold
from redrive.core.ledger import Entry
from redrive.errors import CallFailed
from redrive.passes.effects import Effects
from redrive.passes.hands import count_holds, marked_returns
from redrive.passes.ports import DeadLetters, Ledger


class Holding:
    """Keeps letters of one queue where they are. `name_of` tells the source queue that a letter belongs to."""

    def __init__(
        self, letters_in: DeadLetters, ledger: Ledger, name_of: Callable[[Case], str]
    ) -> None:
        self._letters_in = letters_in
        self._ledger = ledger
        self._name_of = name_of

    def release(self, cases: Sequence[Case]) -> Effects:
        """Make letters visible again at once. Only after the last round, which would else receive them again."""
        return self._hide([(case, timedelta()) for case in cases])

    def mark_returns(self, cases: Sequence[Case], version: int, now: datetime) -> list[Case]:
        """Note in the ledger which letters are back, and since which version of the circuit. Raises CallFailed.

        Written before the circuit is: see `Entry.counts_as_evidence`.
        """
        marked = marked_returns(cases, version, now, self._name_of)
        fresh = [new.entry for new, old in zip(marked, cases, strict=True) if new is not old]
        if fresh:
            self._ledger.write_ledger([entry for entry in fresh if entry], [], now)
        return marked

    def hold(
        self, holds: Sequence[tuple[Case, Hold]], version_to_mark: int | None, now: datetime
    ) -> Effects:
        """Leave letters in the DLQ, hidden until their time where that is later than now."""
        effects = Effects()
        try:
            if version_to_mark is not None:
                # A redrive or a parking writes the entry anyway, a hold does not.
                held = self.mark_returns([case for case, _ in holds], version_to_mark, now)
                holds = [(case, hold) for case, (_, hold) in zip(held, holds, strict=True)]
            deferred = [
                self._deferred(case, hold, now) for case, hold in holds if _is_new(case, hold)
            ]
            if deferred:
                self._ledger.write_ledger(deferred, [], now)
        except CallFailed as failed:
            effects.failure = failed
            return effects
        count_holds(effects, holds)
        effects.add(
            self._hide([(case, hold.until - now) for case, hold in holds if hold.until > now])
        )
        return effects

    def _deferred(self, case: Case, hold: Hold, now: datetime) -> Entry:
        assert hold.not_before is not None  # noqa: S101 - see _is_new
        return case.known(self._name_of(case)).deferred(
            not_before=hold.not_before, strikes=hold.strikes, batch=case.batch, now=now
        )

    def _hide(self, letters: Sequence[tuple[Case, timedelta]]) -> Effects:
        faults = (
            self._letters_in.hide((case.letter, time) for case, time in letters) if letters else []
        )
        effects = Effects()
        effects.saw(faults)
        return effects


def _is_new(case: Case, hold: Hold) -> bool:
    """Whether the hold's time is worth writing down: it is not what the ledger says already."""
    return hold.not_before is not None and (
        case.entry is None or case.entry.not_before != hold.not_before
    )
