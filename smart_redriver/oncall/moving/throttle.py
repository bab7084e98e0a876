"""Paces a person's sends in real time, so that an interrupt stops what would still have come."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from threading import Lock


class Throttle:
    """At most `rate` letters a second, however many workers send. A rate of 0 has no limit.

    Workers wait with nothing in hand: what is hidden for so long would be others' again, and the lease, too.
    """

    def __init__(self, rate: float, clock: Callable[[], datetime]) -> None:
        self._rate = rate
        self._clock = clock
        self._free_at = clock()
        self._lock = Lock()

    def at_once(self, most: int) -> int:
        """Letters to take in hand at once, at most `most`: those of five seconds."""
        return most if self._rate == 0 else max(1, min(most, int(self._rate * 5)))

    def side_by_side(self, most: int) -> int:
        """Workers, at most `most`: so few that what all of them have in hand takes a second, or one."""
        return most if self._rate == 0 else max(1, min(most, int(self._rate / self.at_once(10))))

    def wait_seconds(self) -> float:
        """How long until the next letter may be sent; 0 for now."""
        with self._lock:
            return max(0.0, (self._free_at - self._clock()).total_seconds())

    def spend(self, letters: int) -> None:
        """Note letters that are about to be sent."""
        if self._rate == 0 or letters == 0:
            return
        with self._lock:
            starts = max(self._clock(), self._free_at)
            self._free_at = starts + timedelta(seconds=letters / self._rate)
