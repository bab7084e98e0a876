"""Which functions are asleep: their workers have announced when, on the virtual clock, they wake.

An announcement is a file named after the worker's process id, see `site/sitecustomize.py`. It counts only while that
process is alive and running an invocation. A process that was killed in its sleep no longer sleeps, whatever it left
behind.
"""

import os
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ministack.core import lambda_runtime

from .patching import wrap

_WAKES_AT = struct.Struct("d")


class Sleepers:
    """The workers that are running an invocation, and which of them sleep."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._at_work: list[Any] = []
        self._guard = threading.Lock()

    @contextmanager
    def at_work(self, worker: Any) -> Iterator[None]:
        """While `worker` runs an invocation."""
        with self._guard:
            self._at_work.append(worker)
        try:
            yield
        finally:
            with self._guard:
                self._at_work.remove(worker)

    def wake_ups(self, now: float) -> list[float]:
        """When the workers that are asleep at `now` will wake, on the virtual clock."""
        with self._guard:
            processes = [worker._proc for worker in self._at_work]
        wake_ups = [
            self._announced(process.pid)
            for process in processes
            if process is not None and process.poll() is None
        ]
        return [at for at in wake_ups if at > now]

    def _announced(self, pid: int) -> float:
        """When this process wakes; 0 if it is awake, or is just about to announce its sleep."""
        try:
            written = (self._folder / str(pid)).read_bytes()
        except FileNotFoundError:
            return 0.0
        return float(_WAKES_AT.unpack(written)[0]) if len(written) == _WAKES_AT.size else 0.0


sleepers = Sleepers(Path(os.environ["LOCAL_AWS_ASLEEP"]))


def install() -> None:
    @wrap(lambda_runtime.Worker, "invoke")
    def invoke(run: Any, worker: Any, *args: Any, **kwargs: Any) -> Any:
        with sleepers.at_work(worker):
            return run(worker, *args, **kwargs)
