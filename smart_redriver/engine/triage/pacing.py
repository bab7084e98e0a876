"""When a letter may be tried again: exponential backoff, and a pacer that spreads one pass over time. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from datetime import UTC, datetime, timedelta

from smart_redriver.engine.config.settings import Settings

#: `DelaySeconds` of SendMessage ends here; what is longer is held in the DLQ until this much remains.
#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
MAX_SQS_DELAY = timedelta(seconds=900)

#: A message can be hidden for at most 12 h from its receive.
#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html
MAX_VISIBILITY = timedelta(hours=12)


def backoff(strikes: int, roll: float, settings: Settings) -> timedelta:
    """How long after its last failure a letter is tried again: `base_delay x 2^strikes`, capped, its upper half jittered.

    Args:
        strikes: returns that speak against the letter; one from a failed batch says nothing about it.
        roll: uniform in [0, 1). Half of the delay is sure, so that a letter never goes back at once, and half
            is spread, so that letters which failed together are not tried together ("equal jitter",
            https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).

    """
    # 2^40 s is beyond every cap; a larger exponent would only overflow.
    full = min(settings.base_delay_seconds * 2 ** min(strikes, 40), settings.max_delay_seconds)
    return timedelta(seconds=round(full * (0.5 + roll / 2)))


class Pacer:
    """Deals out the seconds of one pass so that the consumer sees at most `max_rate` letters in each.

    SQS itself does the waiting, by `DelaySeconds`: a pass that redrives 10,000 letters in five seconds still
    reaches the consumer as a steady stream. Seconds are counted on the wall clock and not from each send, or the
    rounds of one pass would share some. State: one counter a second, at most those of a pass and 901 more.
    `starts_at` is where the pass before left off: what it dealt out may still be on its way.
    """

    def __init__(self, max_rate: float, starts_at: datetime | None = None) -> None:
        self._rate = max_rate
        self._taken: defaultdict[int, float] = defaultdict(float)
        self._first = math.ceil(starts_at.timestamp()) if starts_at and max_rate else 0
        #: Up to here the rate is used up: where the next pass has to start.
        self.until = starts_at

    def book(self, letters: int, first: datetime, last: datetime, now: datetime) -> None:
        """Letters of an earlier pass that are on their way until `last`: about as many in each second."""
        seconds = (last - first).total_seconds()
        if not self._rate or last <= now or not seconds:
            return
        start, end = int(now.timestamp()), math.ceil(last.timestamp())
        for second in range(start, end):
            self._taken[second] += letters / seconds

    def slot(
        self, wanted: timedelta, now: datetime, ahead: timedelta = MAX_SQS_DELAY
    ) -> timedelta | None:
        """The delay from `now` to the first free second at or after `wanted`; None where that is further than `ahead`."""
        start, last = int(now.timestamp()), int(ahead.total_seconds())
        earliest = max(math.ceil(wanted.total_seconds()), self._first - start)
        delay = earliest
        while delay <= last and self._rate and not self._has_room(start + delay):
            delay += 1
        if delay > last:
            return None
        self._taken[start + delay] += 1
        if self._rate:
            self._note_used_up(start, delay, has_waited=delay - earliest > 2 / self._rate)
        return timedelta(seconds=delay)

    def _note_used_up(self, start: int, delay: int, *, has_waited: bool) -> None:
        """Note the first second that has room, and the last one that a letter had to wait for.

        At a slow rate the very first letter takes all that there is for a while: passes may follow each other within
        seconds, and each would find the same second free.
        """
        first, last = max(self._first, start), start + int(MAX_SQS_DELAY.total_seconds())
        while first <= last and not self._has_room(first):
            first += 1
        until = max(first, start + delay) if has_waited else first
        self._first = first
        if until > start:
            ends = datetime.fromtimestamp(until, UTC)
            self.until = max(self.until or ends, ends)

    def _has_room(self, second: int) -> bool:
        # A rate below one a second allows a letter in some seconds only: floor((s+1)r) - floor(sr).
        allowed = math.floor((second + 1) * self._rate) - math.floor(second * self._rate)
        return self._taken.get(second, 0.0) < allowed
