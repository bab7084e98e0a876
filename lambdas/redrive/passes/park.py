"""Sends letters to the parking lot, with their cause and reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial

from redrive.core.case import Case, trail_after
from redrive.core.cause import error_of
from redrive.core.decision import Park
from redrive.core.ledger import Entry
from redrive.core.outgoing import Outgoing
from redrive.core.pacing import MAX_SQS_DELAY
from redrive.passes.effects import Effects
from redrive.passes.ports import DeadLetters, Ledger, ParkingLot
from redrive.passes.send_back import Forwarded, Leaving, forward


class Parking:
    """Moves letters of one queue to the parking lot; `letters_in` is the parking lot itself where they are renewed.

    Args:
        limit: bytes that a message of the parking lot may have.
        name_of: tells the source queue that a letter belongs to.

    """

    def __init__(
        self,
        letters_in: DeadLetters,
        parking_lot: ParkingLot,
        ledger: Ledger,
        *,
        limit: int,
        name_of: Callable[[Case], str],
    ) -> None:
        self._letters_in = letters_in
        self._parking_lot = parking_lot
        self._ledger = ledger
        self._limit = limit
        self._name_of = name_of

    def park(self, parks: Sequence[tuple[Case, Park]], now: datetime) -> Effects:
        """Send letters to the parking lot."""
        forwarded = self._to_parking_lot(parks, now)
        effects = forwarded.as_effects()
        for case, decision in parks:
            if case.message_id in forwarded.sent:
                effects.parked[decision.reason.value] += 1
                effects.tell("letter.parked", case, decision.reason.value)
        return effects

    def renew(self, parks: Sequence[tuple[Case, Park]], now: datetime) -> Effects:
        """Send parked letters to the parking lot again, for a new clock."""
        # Delayed, or the sweep that renews them would meet them again.
        forwarded = self._to_parking_lot(parks, now, delay=MAX_SQS_DELAY)
        effects = forwarded.as_effects()
        for case, decision in parks:
            if case.message_id in forwarded.sent:
                effects.counts["renewed"] += 1
                effects.tell("letter.renewed", case, decision.reason.value)
        return effects

    def _to_parking_lot(
        self, parks: Sequence[tuple[Case, Park]], now: datetime, *, delay: timedelta = timedelta()
    ) -> Forwarded:
        return forward(
            [self._parked(case, decision, now, delay) for case, decision in parks],
            self._parking_lot.park,
            out_of=self._letters_in,
            ledger=self._ledger,
            now=now,
        )

    def _parked(self, case: Case, decision: Park, now: datetime, delay: timedelta) -> Leaving:
        queue = self._name_of(case)
        entry = case.known(queue)
        record = partial(_parked_entry, entry, case, decision, now)
        outgoing = Outgoing(
            letter=case.letter,
            trail=trail_after(entry, queue, None),
            size_limit=self._limit,
            delay=delay,
        )
        return Leaving(outgoing, record)


def _parked_entry(entry: Entry, case: Case, decision: Park, now: datetime, new_id: str) -> Entry:
    return entry.parked(
        replaced_id=case.message_id,
        new_id=new_id,
        reason=decision.reason.value,
        strikes=decision.strikes,
        error=error_of(case.letter.attributes),
        now=now,
    )
