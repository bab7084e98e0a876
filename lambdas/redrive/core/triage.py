"""What becomes of one letter. Pure: all decisions about letters are taken here and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from redrive.core.circuit import Circuit
from redrive.core.ledger import Entry, Status
from redrive.core.letter import Letter
from redrive.core.pacing import MAX_SQS_DELAY, MAX_VISIBILITY, backoff
from redrive.core.retention import is_expiring
from redrive.settings import Settings

#: A letter that nobody judged guilty still ends its journey after this many times the strikes' limit.
HARD_CAP_FACTOR = 3


class ParkReason(str, Enum):
    """Why a letter waits for a person."""

    MAX_ATTEMPTS = "MAX_ATTEMPTS"
    UNDELIVERABLE = "UNDELIVERABLE"
    UNKNOWN_SOURCE = "UNKNOWN_SOURCE"
    EXPIRING = "EXPIRING"


class HoldReason(str, Enum):
    """Why a letter stays in the DLQ for now."""

    AWAITING_VERDICT = "AWAITING_VERDICT"
    BACKOFF = "BACKOFF"
    NO_PERMIT = "NO_PERMIT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Redrive:
    """Send the letter back to `destination` (a queue's ARN), to be tried no earlier than in `delay`."""

    destination: str
    delay: timedelta
    strikes: int
    reason: str = "DUE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Park:
    """Send the letter to the parking lot."""

    reason: ParkReason
    strikes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Leave the letter in the DLQ, hidden until `until`. `not_before` is set where it is worth remembering."""

    reason: HoldReason
    until: datetime
    strikes: int
    not_before: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Discard:
    """Delete this copy: an accepted send has replaced it already."""

    reason: str = "ALREADY_SENT"


Decision = Redrive | Park | Hold | Discard


@dataclass(frozen=True, slots=True, kw_only=True)
class Queues:
    """What triage has to know of the queues.

    Attributes:
        destinations: the served source queues' ARNs with the largest message each takes, in bytes.
        default_destination: where a letter goes that does not say where it came from.
        retention: how long the DLQ keeps a message from its first send on.

    """

    destinations: Mapping[str, int]
    default_destination: str
    retention: timedelta


def triage(
    letter: Letter,
    entry: Entry | None,
    circuit: Circuit,
    queues: Queues,
    settings: Settings,
    now: datetime,
    roll: float,
) -> Decision:
    """Decide about one letter, as if the circuit's permit were unlimited.

    Args:
        entry: what the ledger knows of the letter.
        roll: uniform in [0, 1), for the backoff's jitter.

    """
    if entry is not None and entry.has_replaced(letter.message_id):
        return Discard()
    strikes = count_strikes(letter, entry, circuit)
    destination = letter.source_arn or (entry and entry.source_arn) or queues.default_destination
    if destination not in queues.destinations:
        return Park(reason=ParkReason.UNKNOWN_SOURCE, strikes=strikes)
    if letter.size > queues.destinations[destination]:
        return Park(reason=ParkReason.UNDELIVERABLE, strikes=strikes)

    attempts = count_attempts(letter, entry)
    hold = _Holding(letter, queues.retention, strikes, now)
    if awaited := circuit.pending_batch(batch_of(letter, entry)):
        until = max(awaited.due_at, now + timedelta(seconds=1))
        return hold(HoldReason.AWAITING_VERDICT, until)
    if strikes >= settings.max_attempts or attempts >= hard_cap(settings):
        return Park(reason=ParkReason.MAX_ATTEMPTS, strikes=strikes)

    if entry is not None and entry.not_before is not None:
        not_before = entry.not_before
    else:
        not_before = now + backoff(attempts, roll, settings)
    delay = max(not_before - now, timedelta())
    if delay > MAX_SQS_DELAY:
        until = not_before - MAX_SQS_DELAY
        return hold(HoldReason.BACKOFF, until, not_before)
    return Redrive(destination=destination, delay=delay, strikes=strikes)


def hold_for_permit(
    decision: Redrive, letter: Letter, queues: Queues, now: datetime
) -> Hold | Park:
    """What becomes of a letter that is due while the circuit lets no more through: released at once."""
    return _Holding(letter, queues.retention, decision.strikes, now)(HoldReason.NO_PERMIT, now)


def hard_cap(settings: Settings) -> int:
    """The number of redrives that ends every letter's journey."""
    return HARD_CAP_FACTOR * settings.max_attempts


def count_redrives(letter: Letter, entry: Entry | None) -> int:
    """How often the letter was redriven; the trail knows it where the ledger lost a write or its item."""
    carried = letter.trail.redrive_count if letter.trail else 0
    return max(carried, entry.redrive_count if entry else 0)


def count_attempts(letter: Letter, entry: Entry | None) -> int:
    """The redrives since a person last replayed the letter, or since its first visit."""
    return count_redrives(letter, entry) - (entry.forgiven_redrives if entry else 0)


def count_strikes(letter: Letter, entry: Entry | None, circuit: Circuit) -> int:
    """The strikes against a letter, the verdict on the batch that it returned from included.

    A strike needs others to have succeeded at the same time: the batch's verdict says so. It is added when the
    verdict is in and not when the letter is seen, since both can come first.
    """
    strikes = entry.strikes if entry else 0
    batch_id = batch_of(letter, entry)
    if entry is not None and entry.settled_batch == batch_id:
        return strikes
    judged = circuit.judged_batch(batch_id)
    return strikes + 1 if judged is not None and judged.is_strike else strikes


def batch_of(letter: Letter, entry: Entry | None) -> int | None:
    """The batch that the letter returns from; None on its first visit."""
    if letter.trail is not None:
        return letter.trail.batch
    return entry.batch if entry is not None else None


def is_unseen_return(letter: Letter, entry: Entry | None, circuit_version: int) -> bool:
    """Whether this letter is back from a redrive and has not been charged to the circuit yet."""
    if letter.trail is None or letter.trail.redrive_count == 0:
        return False
    if entry is not None and entry.has_replaced(letter.message_id):
        return False  # a copy that a crash left behind: the letter itself has gone on
    return (
        entry is None
        or entry.status is not Status.RETURNED
        or entry.counts_as_evidence(circuit_version)
    )


@dataclass(frozen=True, slots=True)
class _Holding:
    """Holds a letter, or parks it when it could expire meanwhile."""

    letter: Letter
    retention: timedelta
    strikes: int
    now: datetime

    def __call__(
        self, reason: HoldReason, until: datetime, not_before: datetime | None = None
    ) -> Hold | Park:
        if is_expiring(self.letter, self.retention, self.now):
            return Park(reason=ParkReason.EXPIRING, strikes=self.strikes)
        until = min(until, self.now + MAX_VISIBILITY - timedelta(minutes=1))
        return Hold(reason=reason, until=until, strikes=self.strikes, not_before=not_before)
