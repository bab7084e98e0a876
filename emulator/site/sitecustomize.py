"""The virtual clock: `time.time()` runs ahead of the real clock by the offset in a shared file.

Python imports this module by itself, in MiniStack and in every Lambda worker that MiniStack
spawns, because both have this folder on PYTHONPATH. It stands alone on purpose: a worker must
be able to import nothing else of this repository.

Only `time.time` and `time.time_ns` move. Monotonic clocks stay real, and so do sleeps, socket
timeouts and the enforcement of a Lambda's time limit. `datetime.now()` reads C time and stays
real as well, which is what request signing needs.
"""

import os

_clock_file = os.environ.get("LOCAL_AWS_CLOCK")
if _clock_file:
    import mmap
    import struct
    import time

    with open(_clock_file, "r+b") as _handle:  # noqa: PTH123 - runs in every interpreter: no pathlib
        _shared = mmap.mmap(_handle.fileno(), 8)
    _offset_at = struct.Struct("d").unpack_from
    _real_time, _real_time_ns = time.time, time.time_ns

    def _virtual_time() -> float:
        """Seconds since the epoch on the virtual clock."""
        return _real_time() + float(_offset_at(_shared, 0)[0])

    def _virtual_time_ns() -> int:
        """Nanoseconds since the epoch on the virtual clock."""
        return _real_time_ns() + int(_offset_at(_shared, 0)[0] * 1e9)

    time.time = _virtual_time
    time.time_ns = _virtual_time_ns
