"""Decisions about one letter, as data: `triage` makes them, a pass carries them out, the report counts them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum


class ParkReason(str, Enum):
    """Why a letter waits for a person."""

    MAX_ATTEMPTS = "MAX_ATTEMPTS"
    PERMANENT = "PERMANENT"
    GAVE_UP = "GAVE_UP"
    UNDELIVERABLE = "UNDELIVERABLE"
    UNKNOWN_SOURCE = "UNKNOWN_SOURCE"
    UNKNOWN_ORIGIN = "UNKNOWN_ORIGIN"
    INCOMPLETE = "INCOMPLETE"
    EXPIRING = "EXPIRING"


class HoldReason(str, Enum):
    """Why a letter stays in the DLQ for now."""

    AWAITING_VERDICT = "AWAITING_VERDICT"
    BACKOFF = "BACKOFF"
    LAST_CHANCE = "LAST_CHANCE"
    CONTROL = "CONTROL"
    CAUSE = "CAUSE"
    NO_PERMIT = "NO_PERMIT"
    GROUP = "GROUP"
    BLOCKED = "BLOCKED"


#: Letters held for these reasons are released at once; it is not known when they will go.
NO_KNOWN_MOMENT = frozenset(
    {
        HoldReason.NO_PERMIT,
        HoldReason.AWAITING_VERDICT,
        HoldReason.CONTROL,
        HoldReason.GROUP,
        HoldReason.BLOCKED,
    }
)


#: The reason of a letter that shows whether others of its cause may follow.
CAUSE_CANARY = "CAUSE_CANARY"


@dataclass(frozen=True, slots=True, kw_only=True)
class Redrive:
    """Send the letter back to `destination` (an ARN, or a URL), to be tried no earlier than in `delay`.

    `is_doubtful`: see `Case.is_doubtful`. `is_expiring`: it is near its expiry, and saved at once if it is refused.
    """

    destination: str
    delay: timedelta
    strikes: int
    is_doubtful: bool = False
    is_expiring: bool = False
    reason: str = "DUE"

    @property
    def is_unblemished(self) -> bool:
        """Whether the letter's outcome shows how the consumer is."""
        return self.strikes == 0 and not self.is_doubtful

    @property
    def is_suspect(self) -> bool:
        """Whether the letter is expected to return."""
        return not self.is_unblemished or self.reason == CAUSE_CANARY


@dataclass(frozen=True, slots=True, kw_only=True)
class Park:
    """Send the letter to the parking lot."""

    reason: ParkReason
    strikes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Renew:
    """Send the letter to the DLQ once more, for a new clock: it is near its expiry, and only waits."""

    strikes: int
    reason: str = "EXPIRING"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Leave the letter in the DLQ, hidden until `until`. `not_before` is set if it is worth remembering."""

    reason: HoldReason
    until: datetime
    strikes: int
    not_before: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Discard:
    """Delete this copy: an accepted send has replaced it already."""

    reason: str = "ALREADY_SENT"


Decision = Redrive | Park | Renew | Hold | Discard
