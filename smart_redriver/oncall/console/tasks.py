"""The orders that were given to this console since it was started."""

from __future__ import annotations

from threading import Lock

from smart_redriver.oncall.console.task import State, Task
from smart_redriver.oncall.terminal.exits import Refused

#: So many are remembered, and so many may be under way.
KEPT = 50
AT_ONCE = 8
#: What the letters in hand, and giving back the lease, may take.
_ENDING_SECONDS = 60.0


class Tasks:
    """Orders by their id, the last of them."""

    def __init__(self) -> None:
        self._tasks: dict[str, Task] = {}
        self._lock = Lock()

    def add(self, task: Task) -> None:
        """Remember one. Raises Refused where too many are under way: plans that nobody answers to."""
        with self._lock:
            if sum(one.state is not State.ENDED for one in self._tasks.values()) >= AT_ONCE:
                raise Refused(f"{AT_ONCE} orders are under way. Answer or stop one of them first.")
            self._tasks[task.id] = task
            ended = [one.id for one in self._tasks.values() if one.state is State.ENDED]
            for old in ended[: max(0, len(self._tasks) - KEPT)]:
                del self._tasks[old]

    def get(self, task_id: str) -> Task:
        """One of them. Raises Refused."""
        with self._lock:
            if task_id not in self._tasks:
                raise Refused("There is no such order. The history tells what was done.")
            return self._tasks[task_id]

    def all(self) -> list[Task]:
        """All that are remembered, the latest first."""
        with self._lock:
            return list(reversed(self._tasks.values()))

    def close(self) -> None:
        """Stop all and wait for what is in hand, as Ctrl-C does with the command."""
        for one in self.all():
            one.stop()
        for one in self.all():
            one.wait_for_end(_ENDING_SECONDS)
