"""When a letter may be tried again: exponential backoff, and a pacer that spreads one pass over time. Pure."""

from __future__ import annotations

import math
from collections import Counter
from datetime import datetime, timedelta

from redrive.settings import Settings

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
        self._taken: Counter[int] = Counter()
        self._first = math.ceil(starts_at.timestamp()) if starts_at and max_rate else 0
        #: Up to here the rate is used up: where the next pass has to start.
        self.until = starts_at

    def slot(self, wanted: timedelta, now: datetime) -> timedelta | None:
        """The delay from `now` to the first free second at or after `wanted`; None when SQS can't delay that long."""
        start, last = int(now.timestamp()), int(MAX_SQS_DELAY.total_seconds())
        earliest = max(math.ceil(wanted.total_seconds()), self._first - start)
        delay = earliest
        while delay <= last and self._rate and not self._has_room(start + delay):
            delay += 1
        if delay > last:
            return None
        self._taken[start + delay] += 1
        if self._rate and delay - earliest > 2 / self._rate:
            latest = now + timedelta(seconds=delay)
            self.until = max(self.until or latest, latest)
        return timedelta(seconds=delay)

    def _has_room(self, second: int) -> bool:
        # A rate below one a second allows a letter in some seconds only: floor((s+1)r) - floor(sr).
        allowed = math.floor((second + 1) * self._rate) - math.floor(second * self._rate)
        return self._taken[second] < allowed
