"""The retention guard's arithmetic: when a letter is near expiry, and when a queue has to be looked through. Pure.

A standard queue's DLQ counts a message's age from its very first send, so a letter can expire while the circuit
is OPEN and nobody receives it. Parking gives it a new clock, and so does renewing what is parked.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/setting-up-dead-letter-queue-retention.html
"""

from __future__ import annotations

from datetime import datetime, timedelta

from redrive.core.circuit import Circuit, State
from redrive.core.letter import Letter

#: A letter with less than this left to live is near expiry; on a queue of short retention a quarter of that.
EXPIRY_MARGIN = timedelta(days=2)

#: What is near expiry has to be found well before it expires: a look through twice within the margin.
SWEEPS_PER_MARGIN = 2

#: Letters of one sweep. A deeper DLQ shows its oldest first, more or less; a sweep that meets so many
#: letters with time to live has met the oldest.
SWEEP_LIMIT = 10_000


def expiry_margin(retention: timedelta) -> timedelta:
    """How long before its end a letter counts as near expiry."""
    return min(EXPIRY_MARGIN, retention / 4)


def is_expiring(letter: Letter, retention: timedelta, now: datetime) -> bool:
    """Whether the letter is near expiry in a queue of this retention."""
    return letter.sent_at + retention - now < expiry_margin(retention)


def is_worth_renewing(letter: Letter, retention: timedelta, now: datetime) -> bool:
    """Whether a parked letter has used up half its time: renewing early makes sweeps of the lot rare."""
    return letter.sent_at + retention / 2 <= now


def is_dlq_sweep_due(circuit: Circuit, now: datetime, *, is_paused: bool = False) -> bool:
    """Whether the DLQ has to be looked through. While CLOSED its letters flow, and triage sees each."""
    if circuit.state is State.CLOSED and not is_paused:
        return False
    return circuit.dlq_sweep_at is None or circuit.dlq_sweep_at <= now


def is_lot_sweep_due(circuit: Circuit, now: datetime) -> bool:
    """Whether the parking lot has to be looked through; at once when it holds letters of an unknown past."""
    return circuit.lot_sweep_at is None or circuit.lot_sweep_at <= now


def next_dlq_sweep(
    oldest: datetime | None, retention: timedelta, source_retention: timedelta, now: datetime
) -> datetime:
    """When the DLQ has to be looked through again, `oldest` being the first send of its oldest letter.

    A letter that arrives meanwhile can be as old as the source queue lets it become.
    """
    margin = expiry_margin(retention)
    newcomer_expires = now + max(retention - source_retention, timedelta())
    first_expires = min(newcomer_expires, oldest + retention) if oldest else newcomer_expires
    return max(now + margin / SWEEPS_PER_MARGIN, first_expires - margin)


def next_lot_sweep(oldest: datetime, retention: timedelta) -> datetime:
    """When the parking lot has to be looked through, `oldest` being the send of its oldest letter."""
    return oldest + retention - expiry_margin(retention)
