"""The books of a function that is invoked asynchronously: what CloudWatch counted of it, as the books of a queue. Pure.

Lambda holds events in a queue of its own, of which it tells no gauge. What it holds is reckoned: events received, less
those that succeeded and those that were dropped, which go to the DLQ. That is true of a function that nobody invokes
but asynchronously. Successes of other invocations would pass for those of events: so

* they are told only when every event that may still fail has had the time to. On a busy function there are always
  some of which that is not told yet: what is `settled` is known without them; and
* where more has become of events than were received, nothing is told at all.

https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from redrive.core.books import PERIOD, Books, Minute

#: A throttled event comes again after five minutes at the latest.
#: https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
_MINUTES_AFTER_THROTTLES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionMinute:
    """What was counted of a function in one minute, by when an invocation began. `at` is its start."""

    at: datetime
    received: int = 0
    invocations: int = 0
    errors: int = 0
    dropped: int = 0
    throttles: int = 0

    @property
    def succeeded(self) -> int:
        """Invocations that ended well, whoever asked for them."""
        return self.invocations - self.errors


def books_of_function(minutes: Sequence[FunctionMinute], minutes_to_fail: int) -> Books:
    """The books for known minutes, in order and without a gap; none where they contradict each other.

    `minutes_to_fail` is how long an event that fails takes to be dropped. The first so many minutes only tell what may
    still be there from before, and are not among the books.
    """
    held = _reckoned(minutes, minutes_to_fail)
    if held is None:
        return Books()
    open_from = _open_from(minutes, minutes_to_fail)
    are_all_failing = all(one.succeeded == 0 for one in minutes[open_from:])
    told = []
    untold = 0
    for place, one in enumerate(minutes[minutes_to_fail:], start=minutes_to_fail):
        is_open = place >= open_from
        untold += one.succeeded if is_open else 0
        tried = one.errors if are_all_failing else 0
        still = held[place] + untold
        lately = minutes[max(0, place - minutes_to_fail + 1) : place + 1]
        untried = max(0, still - sum(each.errors for each in lately))
        told.append(
            Minute(
                at=one.at,
                sent=one.received,
                received=tried if is_open else one.invocations,
                deleted=0 if is_open else one.succeeded,
                visible=untried,
                in_flight=0,
                delayed=still - untried,
            )
        )
    settled = None if are_all_failing or not told else minutes[open_from - 1].at + PERIOD
    return Books(tuple(told), settled)


def _reckoned(minutes: Sequence[FunctionMinute], minutes_to_fail: int) -> list[int] | None:
    """What Lambda holds at the end of each minute, at most; None where that can't be.

    Nothing is held for longer than it takes to fail: what is unaccounted for then was lost sight of, not kept.
    """
    held: list[int] = []
    now = 0
    for place, one in enumerate(minutes):
        if one.succeeded < 0:
            return None
        now += one.received
        if place >= minutes_to_fail:
            now -= one.succeeded + one.dropped
        if now < 0:
            return None
        lately = minutes[max(0, place - minutes_to_fail) : place + 1]
        now = min(now, sum(each.received for each in lately))
        held.append(now)
    return held


def _open_from(minutes: Sequence[FunctionMinute], minutes_to_fail: int) -> int:
    """The place of the first minute whose events may still fail.

    Throttled events are late: while that may be, all minutes whose events can be among them stay open.
    """
    settled = max(0, len(minutes) - minutes_to_fail)
    throttled = [place for place, one in enumerate(minutes) if one.throttles]
    if throttled and throttled[-1] >= settled - _MINUTES_AFTER_THROTTLES:
        return min(settled, max(0, throttled[0] - minutes_to_fail))
    return settled
