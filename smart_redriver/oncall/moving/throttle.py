"""Paces a person's sends in real time, so that an interrupt stops what would still have come."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from threading import Lock


class Throttle:
    """At most `rate` letters a second, however many workers take from it. A rate of 0 has no limit."""

    def __init__(
        self, rate: float, clock: Callable[[], datetime], sleep: Callable[[float], None]
    ) -> None:
        self._rate = rate
        self._clock = clock
        self._sleep = sleep
        self._free_at = clock()
        self._lock = Lock()

    def at_once(self, most: int) -> int:
        """Letters to take in hand at once, at most `most`: those of five seconds, as hidden letters wait."""
        return most if self._rate == 0 else max(1, min(most, int(self._rate * 5)))

    def take(self, letters: int) -> None:
        """Wait until `letters` more may be sent."""
        if self._rate == 0 or letters == 0:
            return
        with self._lock:
            now = self._clock()
            starts = max(now, self._free_at)
            self._free_at = starts + timedelta(seconds=letters / self._rate)
        wait = (starts - now).total_seconds()
        if wait > 0:
            self._sleep(wait)
