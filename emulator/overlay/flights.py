"""Which Lambda invocations are under way.

The clock must not jump under a running function: the jump would eat its remaining time and its
lease. So every path that leads to an invocation opens a flight *before* it starts a thread, and
closes it when all consequences of the invocation (deletes, retries) are recorded.
"""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class Flights:
    """A count of invocations by what started them, and a way to wait until there are none."""

    def __init__(self) -> None:
        self._under_way: Counter[str] = Counter()
        self._changed = threading.Condition()

    def open(self, name: str) -> None:
        with self._changed:
            self._under_way[name] += 1

    def close(self, name: str) -> None:
        with self._changed:
            self._under_way[name] -= 1
            if not self._under_way[name]:
                del self._under_way[name]
            self._changed.notify_all()

    @contextmanager
    def flight(self, name: str) -> Iterator[None]:
        self.open(name)
        try:
            yield
        finally:
            self.close(name)

    def under_way(self) -> dict[str, int]:
        with self._changed:
            return dict(self._under_way)

    def wait_for_landing(self, deadline: float) -> None:
        """Return when any flight has ended, or none is under way. `deadline` is monotonic."""
        self._wait(deadline, until_fewer_than=sum(self.under_way().values()))

    def wait_until_none(self, deadline: float) -> None:
        """Return when nothing is under way. `deadline` is monotonic."""
        self._wait(deadline, until_fewer_than=1)

    def _wait(self, deadline: float, *, until_fewer_than: int) -> None:
        with self._changed:
            done = self._changed.wait_for(
                lambda: self._under_way.total() < max(1, until_fewer_than),
                timeout=max(0.0, deadline - time.monotonic()),
            )
        if not done:
            raise TimeoutError(f"invocations still under way: {self.under_way()}")


flights = Flights()
