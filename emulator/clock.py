"""The virtual clock as tests and the demo see it: real time plus an offset in a shared file.

The file holds one 8-byte float, the offset in seconds. `site/sitecustomize.py` adds it to
`time.time()` in MiniStack and in its Lambda workers. An aligned 8-byte store is seen whole by
other processes on the machines this runs on, so readers need no lock.
"""

import mmap
import struct
import time
from pathlib import Path

_OFFSET = struct.Struct("d")

#: The real clock, also where `time.time` is virtual already: in MiniStack's process, and in that of a person who looks
#: around. The offset must not be added twice.
_time = getattr(time.time, "real", time.time)


class Clock:
    """A clock shared with the emulator. Creates its file when there is none."""

    def __init__(self, path: Path) -> None:
        """Open the clock in `path`."""
        self.path = path
        if not path.exists():
            path.write_bytes(_OFFSET.pack(0.0))
        with path.open("r+b") as handle:
            self._shared = mmap.mmap(handle.fileno(), _OFFSET.size)

    @property
    def offset(self) -> float:
        """Seconds by which the virtual clock is ahead of the real one."""
        offset: float = _OFFSET.unpack_from(self._shared, 0)[0]
        return offset

    def now(self) -> float:
        """Seconds since the epoch on the virtual clock."""
        now: float = _time() + self.offset
        return now

    def advance(self, seconds: float) -> None:
        """Jump forward at once, whatever is running.

        A function that is running loses that much of its remaining time, and a lease it holds
        may expire: prefer `LocalAws.pass_time`, which waits for functions to finish first.
        """
        if seconds < 0:
            raise ValueError(f"time only moves forward, not by {seconds} s")
        _OFFSET.pack_into(self._shared, 0, self.offset + seconds)

    def close(self) -> None:
        """Let go of the shared file."""
        self._shared.close()
