"""Which Lambda invocations are under way, and how many of them are awake.

The clock must not jump while a function runs: the jump would use up its remaining time and its lease. So every path
that leads to an invocation opens a flight *before* it starts a thread, and closes it when all consequences of the
invocation (deletes, retries) are recorded. A sleeping function is at rest until it wakes: the clock may move until
then.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .sleepers import sleepers

#: An invocation that ends gives notice; one that falls asleep has to be polled for.
_LOOK_EVERY_SECONDS = 0.003


class Flights:
    """Counts invocations by what started them, and waits until all are at rest."""

    def __init__(self, count_sleepers: Callable[[], int]) -> None:
        self._under_way: Counter[str] = Counter()
        self._changed = threading.Condition()
        self._count_sleepers = count_sleepers
        self._of_thread = threading.local()

    def open(self, name: str) -> None:
        """Open a flight that another thread will `carry`."""
        with self._changed:
            self._under_way[name] += 1

    @contextmanager
    def carry(self, name: str) -> Iterator[None]:
        """Close an opened flight at the end. Everything that this thread invokes meanwhile is part of it."""
        self._of_thread.is_carrying = True
        try:
            yield
        finally:
            self._of_thread.is_carrying = False
            self._close(name)

    @contextmanager
    def flight(self, name: str) -> Iterator[None]:
        """A flight from here to the end, unless this thread already carries one."""
        if getattr(self._of_thread, "is_carrying", False):
            yield
            return
        self.open(name)
        with self.carry(name):
            yield

    def under_way(self) -> Counter[str]:
        with self._changed:
            return self._under_way.copy()

    def awake(self) -> int:
        """How many flights are under way and not asleep."""
        # In this order, so that a flight that ends in between counts as awake.
        under_way = self.under_way().total()
        return max(0, under_way - self._count_sleepers())

    def wait_for_rest_of_one(self, deadline: float) -> None:
        """Return when fewer are awake than now, or none. `deadline` is monotonic time."""
        self._wait(deadline, until_fewer_than=max(1, self.awake()))

    def wait_until_all_rest(self, deadline: float) -> None:
        """Return when none is awake. `deadline` is monotonic time."""
        self._wait(deadline, until_fewer_than=1)

    def _close(self, name: str) -> None:
        with self._changed:
            self._under_way[name] -= 1
            if not self._under_way[name]:
                del self._under_way[name]
            self._changed.notify_all()

    def _wait(self, deadline: float, *, until_fewer_than: int) -> None:
        while self.awake() >= until_fewer_than:
            if time.monotonic() >= deadline:
                raise TimeoutError(f"invocations still under way: {dict(self.under_way())}")
            with self._changed:
                self._changed.wait(_LOOK_EVERY_SECONDS)


flights = Flights(lambda: len(sleepers.wake_ups(time.time())))
