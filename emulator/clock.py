"""The virtual clock as tests and the demo see it: real time at its own pace, plus the time it was moved by.

A shared file holds three 8-byte floats: the seconds that the clock was moved by, the real time at which it was created,
and its pace. From these, `site/sitecustomize.py` computes `time.time()` in MiniStack and in its Lambda workers. Only
the first ever changes, and on the machines this runs on, other processes see an aligned 8-byte store as a whole, so
readers need no lock.
"""

import mmap
import struct
import time
from pathlib import Path

_FILE = struct.Struct("ddd")
_MOVED_BY = struct.Struct("d")

#: The real clock, even where `time.time` is already virtual: in MiniStack's process, and in that of a person who looks
#: around. The offset must not be added twice.
_time = getattr(time.time, "real", time.time)


class Clock:
    """A clock shared with the emulator. Creates its file if there is none."""

    def __init__(self, path: Path, *, pace: float = 1.0) -> None:
        """Open the clock in `path`. A new clock moves `pace` virtual seconds in each real second."""
        self.path = path
        if not path.exists():
            path.write_bytes(_FILE.pack(0.0, _time(), pace))
        with path.open("r+b") as handle:
            self._shared = mmap.mmap(handle.fileno(), _FILE.size)

    @property
    def offset(self) -> float:
        """How many seconds the virtual clock is ahead of the real one."""
        return self.now() - _time()

    def now(self) -> float:
        """Seconds since the epoch on the virtual clock."""
        moved_by, began, pace = _FILE.unpack_from(self._shared, 0)
        now: float = began + (_time() - began) * pace + moved_by
        return now

    def advance(self, seconds: float) -> None:
        """Jump forward at once, whatever is running.

        A running function loses that much of its remaining time, and its lease may expire: prefer `LocalAws.pass_time`,
        which first waits for functions to finish.
        """
        if seconds < 0:
            raise ValueError(f"time only moves forward, not by {seconds} s")
        moved_by, _, _ = _FILE.unpack_from(self._shared, 0)
        _MOVED_BY.pack_into(self._shared, 0, moved_by + seconds)

    def close(self) -> None:
        """Let go of the shared file."""
        self._shared.close()
