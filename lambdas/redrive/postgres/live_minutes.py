"""The minutes of the books of live jobs, and how what comes to light between two looks is entered. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from redrive.core.books import Minute

#: Minutes that are kept: more than a verdict ever waits.
MINUTES_KEPT = 240


class LiveMinute(NamedTuple):
    """A minute of the books, as `core.books.Minute`. `at`: since the epoch, in minutes.

    `live`: how many jobs it tells of that were never letters.
    """

    at: int
    sent: int = 0
    received: int = 0
    deleted: int = 0
    visible: int = 0
    in_flight: int = 0
    delayed: int = 0
    live: int = 0

    @property
    def minute(self) -> Minute:
        """As it stands in the books."""
        return Minute(
            at=datetime.fromtimestamp(60 * self.at, UTC),
            sent=self.sent,
            received=self.received,
            deleted=self.deleted,
            visible=self.visible,
            in_flight=self.in_flight,
            delayed=self.delayed,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What came to light between two looks. `met`: jobs that are news. `tries`: that began."""

    met: int = 0
    succeeded: int = 0
    failed: int = 0
    tries: int = 0
    live: int = 0

    def __add__(self, other: Tally) -> Tally:
        """Both together."""
        return Tally(
            met=self.met + other.met,
            succeeded=self.succeeded + other.succeeded,
            failed=self.failed + other.failed,
            tries=self.tries + other.tries,
            live=self.live + other.live,
        )


class Gauges(NamedTuple):
    """Jobs that are there: nobody has met them, somebody has them in hand, they wait. `live`: that were never letters."""

    visible: int = 0
    in_flight: int = 0
    delayed: int = 0
    live: int = 0


def minute_of(moment: datetime) -> int:
    """Its minute, since the epoch."""
    return int(moment.timestamp()) // 60


def all_new(*, succeeded: int = 0, failed: int = 0) -> Tally:
    """Jobs of producers that came and ended between two looks, each after one try at least."""
    both = succeeded + failed
    return Tally(met=both, succeeded=succeeded, failed=failed, tries=both, live=both)


def opened(at: datetime, gauges: Gauges) -> tuple[LiveMinute, ...]:
    """The minute before, with the jobs that are there from then."""
    return (_gauged(LiveMinute(minute_of(at) - 1), gauges),)


def added(minutes: tuple[LiveMinute, ...], since: datetime, tally: Tally) -> tuple[LiveMinute, ...]:
    """With what came to light since some moment: in its minute, so that nothing counts as later than it was."""
    at, last = minute_of(since), minutes[-1]
    if last.at < at:
        minutes = (*minutes, last._replace(at=at, sent=0, received=0, deleted=0, live=0))
    return tuple(_with(one, tally) if one.at == at else one for one in minutes)


def _with(one: LiveMinute, tally: Tally) -> LiveMinute:
    return one._replace(
        sent=one.sent + tally.met,
        received=one.received + tally.tries,
        deleted=one.deleted + tally.succeeded,
        live=one.live + tally.live,
    )


def told_until(
    minutes: tuple[LiveMinute, ...], now: datetime, gauges: Gauges
) -> tuple[LiveMinute, ...]:
    """With the jobs that are there now, in the last minute and in all between that and now; the oldest are forgotten."""
    last, end = minutes[-1], minute_of(now)
    passed = (LiveMinute(at) for at in range(max(last.at + 1, end - MINUTES_KEPT), end))
    told = (*minutes[:-1], *(_gauged(one, gauges) for one in (last, *passed)))
    return told[-MINUTES_KEPT:]


def _gauged(one: LiveMinute, gauges: Gauges) -> LiveMinute:
    return one._replace(
        visible=gauges.visible,
        in_flight=gauges.in_flight,
        delayed=gauges.delayed,
        live=one.live + gauges.live,
    )
