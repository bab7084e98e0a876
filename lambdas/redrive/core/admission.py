"""Which of the letters that are due may go now: the permit's room and the rate, dealt out one by one. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from redrive.core.breaker import Permit
from redrive.core.case import Case
from redrive.core.circuit import Circuit
from redrive.core.pacing import Pacer
from redrive.core.triage import Decision, Redrive, Terms, hold_for_permit, triage
from redrive.settings import Settings


class Admission:
    """Decides about the letters of one source queue, round by round. `room`: letters the permit still lets through."""

    def __init__(self, circuit: Circuit, permit: Permit, settings: Settings, now: datetime) -> None:
        self.room = permit.limit
        self._is_trial = permit.is_trial
        self._settings = settings
        self._pacer = Pacer(_rate(circuit, settings.max_rate, now), circuit.paced_until)

    @property
    def paced_until(self) -> datetime | None:
        """Up to when the rate is used up by what was admitted."""
        return self._pacer.until

    def decide(
        self,
        cases: Sequence[Case],
        rolls: Sequence[float],
        circuit: Circuit,
        terms: Terms,
        now: datetime,
    ) -> list[tuple[Case, Decision]]:
        """What becomes of each letter, with one roll for each.

        What is near its expiry goes first; then letters without strikes, since a suspect proves little, and of
        those the least redriven. The first letter that finds no second within the rate, at most 15 minutes ahead,
        ends the room: the next pass goes on.
        """
        decided: list[tuple[Case, Decision]] = []
        due: list[tuple[Case, Redrive]] = []
        for case, roll in zip(cases, rolls, strict=True):
            decision = triage(case, circuit, terms, self._settings, now, roll)
            if isinstance(decision, Redrive):
                due.append((case, decision))
            else:
                decided.append((case, decision))
        urgent_before = now - terms.retention + terms.margin
        due.sort(key=lambda one: _order(*one, urgent_before=urgent_before))
        return decided + [(case, self._admit(case, decision, terms, now)) for case, decision in due]

    def _admit(self, case: Case, decision: Redrive, terms: Terms, now: datetime) -> Decision:
        # A trial goes at once: what it is to show is how the consumer is now.
        wanted = timedelta() if self._is_trial else decision.delay
        slot = self._pacer.slot(wanted, now) if self.room > 0 else None
        if slot is None:
            self.room = 0
            return hold_for_permit(case, decision.strikes, terms, now)
        self.room -= 1
        return decision if slot == decision.delay else replace(decision, delay=slot)


def _order(
    case: Case, decision: Redrive, *, urgent_before: datetime
) -> tuple[bool, bool, int, timedelta, datetime]:
    sent_at = case.letter.sent_at
    return sent_at >= urgent_before, decision.strikes > 0, case.redrives, decision.delay, sent_at


def _rate(circuit: Circuit, max_rate: float, now: datetime) -> float:
    """Letters a second: the setting, or more while a person's drain is on; 0 is without limit."""
    if max_rate and circuit.orders.drains(now):
        return max(max_rate, circuit.orders.drain_rate or max_rate)
    return max_rate
