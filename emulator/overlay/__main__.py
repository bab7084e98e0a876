"""MiniStack with its gaps closed. Started by `emulator.process`, in the emulator's environment."""

import os
import signal
import sys
import threading
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from .patching import wrap

SUPPORTED = "1.5.33"


def main() -> None:
    _check_version()
    from emulator.clock import Clock

    from . import control, turns

    _install_patches()
    turn = turns.Turn()
    clock = Clock(Path(os.environ["LOCAL_AWS_CLOCK"]))
    control.serve(turns.Stepper(clock, turn), Path(os.environ["LOCAL_AWS_CONTROL"]))
    turns.start_ticker(turn, float(os.environ.get("LOCAL_AWS_TICK_SECONDS", "0.05")))
    if os.environ.get("LOCAL_AWS_ENDS_WITH_STDIN"):
        threading.Thread(target=_end_with_stdin, daemon=True).start()

    from ministack import app

    _date_answers_in_real_time(clock)
    _send_headers_with_the_body()
    app._port_is_bindable = lambda *_: False  # under TLS it would also take port 443
    sys.argv = sys.argv[:1]
    app.main()


def _date_answers_in_real_time(clock: Any) -> None:
    """The `Date` header must be real, because callers outside live in real time.

    The JavaScript SDK takes a Date far from its own as a skewed clock: it retries every error (half a minute for each
    "does not exist" of the CDK) and shifts the time with which it signs.
    """
    from email.utils import formatdate

    from ministack import app

    def real_date(**options: Any) -> str:
        return formatdate(clock.now() - clock.offset, **options)

    app.formatdate = real_date


def _send_headers_with_the_body() -> None:
    """Send an answer in one write: with two, the server and its caller took a tenth more of the processor."""
    import h11

    held: WeakKeyDictionary[Any, bytes] = WeakKeyDictionary()

    @wrap(h11.Connection, "send")
    def send(run: Any, connection: Any, event: Any) -> Any:
        data = run(connection, event)
        if isinstance(event, h11.Response):
            held[connection] = data
            return b""  # which asyncio does not write
        return held.pop(connection, b"") + (data or b"")


def _check_version() -> None:
    """Refuse other releases: every patch replaces a private function of this one."""
    try:
        installed = version("ministack")
    except PackageNotFoundError:
        installed = "none"
    if installed != SUPPORTED:
        sys.exit(
            f"emulator: this overlay patches ministack {SUPPORTED}, but {installed} is installed "
            "in the emulator's environment. Install the pinned release, or review every patch."
        )


def _install_patches() -> None:
    from . import (
        alarms,
        cloudformation,
        iam,
        lambda_events,
        lambda_failures,
        lambda_logs,
        lambda_workers,
        metrics,
        sleepers,
        sqs_consume,
        sqs_moves,
        sqs_requests,
        sqs_send,
        turns,
    )

    patches = (
        sqs_send,
        sqs_consume,
        sqs_moves,
        lambda_workers,
        lambda_logs,
        sleepers,
        lambda_events,
        lambda_failures,
        metrics,
        alarms,
        cloudformation,
        iam,
        turns,
    )
    for patch in patches:
        patch.install()
    sqs_requests.serialise_access()  # last, because it locks what the other patches have put in


def _end_with_stdin() -> None:
    """End when the parent does, even if it was killed, because its end of the pipe then closes."""
    while sys.stdin.buffer.read(4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
