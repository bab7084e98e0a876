"""A source queue's books: what was sent, received and deleted in each minute, and what was there. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Minute:
    """One minute of a queue.

    Attributes:
        at: the start of the minute, UTC.
        sent, received, deleted: counted in it. SQS counts repeated deletes, too, and does not count as sent
            what it moves to a DLQ itself.
        visible, in_flight, delayed: the most at once; None where nobody measured.
        oldest_age_seconds: of the oldest message; None where there was none, or nobody measured.

    """

    at: datetime
    sent: int = 0
    received: int = 0
    deleted: int = 0
    visible: int | None = None
    in_flight: int | None = None
    delayed: int | None = None
    oldest_age_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Books:
    """The minutes of a queue in order of time, without gaps, up to the last one that is known.

    What comes after is not known yet: CloudWatch is one to three minutes late.
    """

    minutes: tuple[Minute, ...] = ()
