"""The metrics of an asynchronously invoked function, converted from CloudWatch's counts to those of a queue. Pure.

Lambda holds events in its own queue, for which there is no gauge. Its content is computed: events received, minus those
that succeeded and those that were dropped, which go to the DLQ. That is correct for a function with only asynchronous
invocations. Successes of other invocations would pass for successes of events, so

* successes count only when every event that may still fail has had time to,
* the last successes count only as far as they leave enough held events for those dropped since, and
* if more events ended than were received, there are no metrics at all.

https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate

from smart_redriver.engine.model.queue_metrics import Minute, QueueMetrics

#: A throttled event is tried again after five minutes at the latest.
#: https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
_MINUTES_AFTER_THROTTLES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionMinute:
    """A function's counts in one minute, by when an invocation began. `at` is the minute's start."""

    at: datetime
    received: int
    invocations: int
    errors: int
    dropped: int
    throttles: int

    @property
    def succeeded(self) -> int:
        """Successful invocations, asynchronous or not."""
        return self.invocations - self.errors


def metrics_of_function(minutes: Sequence[FunctionMinute], minutes_to_fail: int) -> QueueMetrics:
    """The metrics for known minutes, in order and without a gap; none if they contradict each other.

    `minutes_to_fail` is how long a failing event takes to be dropped. That many first minutes only show what may still
    be held from before, and the metrics leave them out. If events succeeded lately, the metrics also leave out the last
    minutes and end where all events have had time to fail; otherwise, metrics of steady traffic would never speak.
    """
    held = _reckoned(minutes, minutes_to_fail)
    if held is None:
        return QueueMetrics()
    open_from = _open_from(minutes, minutes_to_fail)
    if all(one.succeeded == 0 for one in minutes[open_from:]):
        return _metrics(minutes, held, minutes_to_fail, unshown=0)
    dropped_since = sum(one.dropped for one in minutes[open_from:])
    unshown = max(0, dropped_since - held[open_from - 1])
    return _metrics(minutes[:open_from], held, minutes_to_fail, unshown=unshown)


def _metrics(
    minutes: Sequence[FunctionMinute],
    held: Sequence[int],
    minutes_to_fail: int,
    *,
    unshown: int,
) -> QueueMetrics:
    """The metrics of these minutes, without `unshown` of the last successes, whose invocations are unknown.

    Events dropped after the last minute may have been held at its end. If fewer were computed to be held, that many
    successes were not of events, but of other invocations.
    """
    successes = [one.succeeded for one in minutes]
    still = [
        *held[: len(minutes) - 2],
        *(one + unshown for one in held[len(minutes) - 2 : len(minutes)]),
    ]
    for place in reversed(range(len(minutes))):
        hidden = min(unshown, successes[place])
        successes[place] -= hidden
        unshown -= hidden
    told = []
    for place, one in enumerate(minutes[minutes_to_fail:], start=minutes_to_fail):
        lately = minutes[place - minutes_to_fail + 1 : place + 1]
        untried = max(0, still[place] - sum(each.errors for each in lately))
        told.append(
            Minute(
                at=one.at,
                sent=one.received,
                received=one.invocations,
                deleted=successes[place],
                visible=untried,
                in_flight=0,
                delayed=still[place] - untried,
            )
        )
    return QueueMetrics(tuple(told), has_gauges=False)


def _reckoned(minutes: Sequence[FunctionMinute], minutes_to_fail: int) -> list[int] | None:
    """Return what Lambda holds at the end of each minute; None if more events ended than there were.

    What it held before the first minute is unknown: the least that explains the counts is assumed. Lambda holds no
    event for longer than it takes to fail: an event that is unaccounted for after that went uncounted, and is not held.
    """
    if not _makes_sense(minutes, minutes_to_fail):
        return None
    changes = (one.received - one.succeeded - one.dropped for one in minutes)
    since_first = list(accumulate(changes))
    before = -min([0, *since_first])
    return [
        min(before + now, _received(minutes, place, minutes_to_fail))
        for place, now in enumerate(since_first)
    ]


def _makes_sense(minutes: Sequence[FunctionMinute], minutes_to_fail: int) -> bool:
    """Whether no more events ended than Lambda can have held; any number may have in the first `minutes_to_fail`."""
    now = 0
    for place, one in enumerate(minutes):
        now += one.received
        if place >= minutes_to_fail:
            now -= one.succeeded + one.dropped
        if one.succeeded < 0 or now < 0:
            return False
        now = min(now, _received(minutes, place, minutes_to_fail))
    return True


def _received(minutes: Sequence[FunctionMinute], place: int, minutes_to_fail: int) -> int:
    """Events received so lately that they may still be held at the end of this minute."""
    return sum(one.received for one in minutes[max(0, place - minutes_to_fail) : place + 1])


def _open_from(minutes: Sequence[FunctionMinute], minutes_to_fail: int) -> int:
    """The place of the first minute whose events may still fail.

    Throttled events are late: until they must have ended, all minutes that they may come from stay open.
    """
    settled = max(0, len(minutes) - minutes_to_fail)
    throttled = [place for place, one in enumerate(minutes) if one.throttles]
    if throttled and throttled[-1] >= settled - _MINUTES_AFTER_THROTTLES:
        return min(settled, max(0, throttled[0] - minutes_to_fail))
    return settled
