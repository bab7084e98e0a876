"""Decides about the letters in hand: triage for each, then the due ones share what the permit lets through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from random import Random

from redrive.core.circuit import Circuit
from redrive.core.pacing import Pacer
from redrive.core.triage import Decision, Queues, Redrive, hold_for_permit, triage
from redrive.passes.rounds import Examined
from redrive.settings import Settings


class Decider:
    """Decides for one pass, round by round. `room` is how many letters the permit still lets through."""

    def __init__(
        self, terms: Queues, settings: Settings, *, room: int, rate: float, rng: Random
    ) -> None:
        self.room = room
        self._terms = terms
        self._settings = settings
        self._pacer = Pacer(rate)
        self._rng = rng

    def decide(
        self, examined: Sequence[Examined], circuit: Circuit, now: datetime
    ) -> list[tuple[Examined, Decision]]:
        """What becomes of each letter.

        Letters without strikes go first, and among them the least redriven: a suspect proves little as a canary,
        and a long outage must not use up one letter's redrives. The first letter that finds no second within the
        rate, at most 15 minutes ahead, ends the pass's room: the next pass goes on.
        """
        decided: list[tuple[Examined, Decision]] = []
        due: list[tuple[Examined, Redrive]] = []
        for one in examined:
            roll = self._rng.random()
            decision = triage(
                one.letter, one.entry, circuit, self._terms, self._settings, now, roll
            )
            if isinstance(decision, Redrive):
                due.append((one, decision))
            else:
                decided.append((one, decision))
        due.sort(key=_order)
        return decided + [(one, self._admit(one, decision, now)) for one, decision in due]

    def _admit(self, one: Examined, decision: Redrive, now: datetime) -> Decision:
        slot = self._pacer.slot(decision.delay, now) if self.room > 0 else None
        if slot is None:
            self.room = 0
            return hold_for_permit(decision, one.letter, self._terms, now)
        self.room -= 1
        return replace(decision, delay=slot)


def _order(due: tuple[Examined, Redrive]) -> tuple[bool, int, datetime]:
    one, decision = due
    redrives = one.entry.redrive_count if one.entry else 0
    return decision.strikes > 0, redrives, one.letter.sent_at
