"""The virtual clock: `time.time()` follows a shared file, see `emulator/clock.py`.

Python imports this module by itself, in MiniStack and in every Lambda worker that MiniStack starts, because both have
this folder on PYTHONPATH. It stands alone on purpose: a worker must not be able to import anything else from this
repository.

`time.time` and `time.time_ns` are virtual. Monotonic clocks stay real, and so do socket timeouts and the enforcement of
a Lambda's time limit. `datetime.now()` reads C time and stays real as well, which request signing needs. `time.sleep`
stays real with one exception: a function that sleeps for a second or more sleeps until the virtual clock has passed its
wake-up time. It announces that in a file, so that whatever moves the clock need not wait for it (`overlay.sleepers`).

MiniStack unpacks a function's code anew for each environment. Compiling it took a sixth of such an environment's whole
time, so what one has compiled is kept for the next, by the text of the source.
"""

import os

_clock_file = os.environ.get("LOCAL_AWS_CLOCK")
if _clock_file and not os.path.exists(_clock_file):  # noqa: PTH110 - as below
    import sys

    sys.stderr.write(
        "The demo that this shell was for has ended, and its local AWS with it: use another shell.\n"
    )
    _clock_file = None
if _clock_file:
    import mmap
    import struct
    import time

    with open(_clock_file, "r+b") as _handle:  # noqa: PTH123 - runs in every interpreter: no pathlib
        _shared = mmap.mmap(_handle.fileno(), 24)
    _told_at = struct.Struct("ddd").unpack_from
    _real_time = time.time

    def _virtual_time() -> float:
        """Seconds since the epoch on the virtual clock."""
        moved_by, began, pace = _told_at(_shared, 0)
        return float(began + (_real_time() - began) * pace + moved_by)

    def _virtual_time_ns() -> int:
        """Nanoseconds since the epoch on the virtual clock, which has a resolution of microseconds."""
        return int(_virtual_time() * 1e6) * 1_000

    #: For `emulator.clock`, which in a process like this one must not take this function for the real clock.
    _virtual_time.real = _real_time  # type: ignore[attr-defined]  # functions may have attributes
    time.time = _virtual_time
    time.time_ns = _virtual_time_ns

_asleep_folder = os.environ.get("LOCAL_AWS_ASLEEP")
if _clock_file and _asleep_folder and os.environ.get("AWS_LAMBDA_FUNCTION_NAME"):
    import threading

    #: Shorter sleeps wait for something real: a lock, a thread, another try of a call.
    _SHORTEST_VIRTUAL_SECONDS = 1.0
    _LOOK_EVERY_SECONDS = 0.003
    _real_sleep = time.sleep
    _announcement = os.path.join(_asleep_folder, str(os.getpid()))  # noqa: PTH118 - as above

    def _virtual_sleep(seconds: float) -> None:
        """Sleep until `seconds` have passed on the virtual clock.

        Threads other than the handler's sleep in real time.
        """
        is_handlers = threading.current_thread() is threading.main_thread()
        if seconds < _SHORTEST_VIRTUAL_SECONDS or not is_handlers:
            _real_sleep(seconds)
            return
        wakes_at = _virtual_time() + seconds
        with open(_announcement, "wb") as announced:  # noqa: PTH123 - as above
            announced.write(struct.pack("d", wakes_at))
        try:
            while (left := wakes_at - _virtual_time()) > 0:
                _real_sleep(min(left, _LOOK_EVERY_SECONDS))
        finally:
            os.unlink(_announcement)  # noqa: PTH108 - as above

    if os.path.exists(_announcement):  # noqa: PTH110 - as above
        os.unlink(_announcement)  # noqa: PTH108 - of one that was killed asleep, and had our id
    time.sleep = _virtual_sleep  # type: ignore[assignment]  # nobody here sleeps for a SupportsIndex

_bytecode_folder = os.environ.get("LOCAL_AWS_BYTECODE")
if _bytecode_folder and os.environ.get("AWS_LAMBDA_FUNCTION_NAME"):
    import _imp
    import hashlib
    import marshal
    import sys
    from importlib.machinery import SourceFileLoader
    from typing import Any

    _compile = SourceFileLoader.source_to_code

    def _kept_or_compiled(
        self: SourceFileLoader, data: Any, path: str, folder: str = _bytecode_folder, **more: Any
    ) -> Any:
        kept = os.path.join(folder, hashlib.sha256(data).hexdigest())  # noqa: PTH118 - as above
        try:
            with open(kept, "rb") as file:  # noqa: PTH123 - as above
                code = marshal.load(file)
        except FileNotFoundError:
            code = _compile(self, data, path, **more)
            own = f"{kept}.{os.getpid()}"
            with open(own, "wb") as file:  # noqa: PTH123 - as above
                marshal.dump(code, file)
            os.replace(own, kept)  # noqa: PTH105 - another environment may be reading it
        else:
            # As the import system does, for tracebacks.
            _imp._fix_co_filename(code, path)  # type: ignore[attr-defined]
        return code

    sys.dont_write_bytecode = True
    SourceFileLoader.source_to_code = _kept_or_compiled  # type: ignore[method-assign,assignment]  # for our arguments
