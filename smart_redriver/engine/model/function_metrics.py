"""The metrics of a function that is invoked asynchronously: what CloudWatch counted of it, as the metrics of a queue. Pure.

Lambda holds events in a queue of its own, of which it tells no gauge. What it holds is reckoned: events received, less
those that succeeded and those that were dropped, which go to the DLQ. That is true of a function that nobody invokes
but asynchronously. Successes of other invocations would pass for those of events: so

* they are told only when every event that may still fail has had the time to,
* of the last of them only as many as leave what was dropped since, which may have been held then, and
* where more has become of events than were received, nothing is told at all.

https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate

from smart_redriver.engine.model.queue_metrics import Minute, QueueMetrics

#: A throttled event comes again after five minutes at the latest.
#: https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
_MINUTES_AFTER_THROTTLES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionMinute:
    """Counts of a function in one minute, by when an invocation began. `at` is its start."""

    at: datetime
    received: int
    invocations: int
    errors: int
    dropped: int
    throttles: int

    @property
    def succeeded(self) -> int:
        """Invocations that ended well, whoever asked for them."""
        return self.invocations - self.errors


def metrics_of_function(minutes: Sequence[FunctionMinute], minutes_to_fail: int) -> QueueMetrics:
    """The metrics for known minutes, in order and without a gap; none where they contradict each other.

    `minutes_to_fail` is how long an event that fails takes to be dropped. The first so many minutes only tell what may
    still be there from before, and are not among the metrics. Where events succeed lately, the last ones are not, either:
    the metrics end with those of which all had time to fail, or steady traffic would have metrics that never speak.
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
    """The metrics of these minutes. `unshown` of the last successes are of nobody known.

    What is dropped after the last minute may have been there at its end. Where less is reckoned to have been, as many
    successes were not those of events: whoever else invoked the function had them.
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
    """Return what Lambda holds at the end of each minute; None if more came of events than there were.

    What it held before the first minute is not known: as little as makes sense of what came of it. Nothing is held for
    longer than it takes to fail: what is unaccounted for then was lost sight of, not kept.
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
    """Whether nothing came of more events than Lambda can have held, of the first so many minutes as many as ever."""
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

    Throttled events are late: while that may be, all minutes whose events can be among them stay open.
    """
    settled = max(0, len(minutes) - minutes_to_fail)
    throttled = [place for place, one in enumerate(minutes) if one.throttles]
    if throttled and throttled[-1] >= settled - _MINUTES_AFTER_THROTTLES:
        return min(settled, max(0, throttled[0] - minutes_to_fail))
    return settled
