"""Spreads deliveries that a pass makes itself, where no queue can delay them."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock


class Pace:
    """At most `rate` deliveries a second, whichever thread makes them; 0 is without limit.

    A token bucket of one: the first goes at once, and each further one no sooner than its share of a second later.
    `clock` tells seconds, `pause` waits for some.
    """

    def __init__(
        self, rate: float, *, clock: Callable[[], float], pause: Callable[[float], None]
    ) -> None:
        self._apart = 1 / rate if rate else 0.0
        self._clock = clock
        self._pause = pause
        self._next = 0.0
        self._one_at_a_time = Lock()

    def wait(self) -> None:
        """Return when the next delivery may be made."""
        with self._one_at_a_time:
            now = self._clock()
            at = max(now, self._next)
            self._next = at + self._apart
        if at > now:
            self._pause(at - now)
