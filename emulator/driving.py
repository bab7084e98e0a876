"""Drive a running emulator through its work directory, from any process."""

import json
import urllib.error
import urllib.request
from pathlib import Path

from .clock import Clock

#: Names in a work directory: the clock, and the port of the overlay's control door.
CLOCK_FILE = "clock"
CONTROL_FILE = "control"

#: If the door does not answer this long after the patience is over, it counts as dead.
_GRACE_SECONDS = 30
#: Loopback calls must not go through a proxy that the environment names.
_LOOPBACK = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class LocalAwsError(Exception):
    """The emulator did not start, or did not come to rest; the message says what was seen."""


def pass_time(
    work_dir: Path, seconds: float, *, step: float = 30.0, patience: float = 300.0
) -> None:
    """See `LocalAws.pass_time`."""
    if seconds < 0 or step <= 0:
        raise ValueError(f"time passes forward: seconds={seconds}, step={step}")
    clock = Clock(work_dir / CLOCK_FILE)
    now = clock.now()
    clock.close()
    end = now + seconds
    while now < end:
        now = min(now + step, end)
        _step(work_dir, until=now, patience=patience)


def settle(work_dir: Path, *, patience: float = 300.0) -> None:
    """See `LocalAws.settle`."""
    _step(work_dir, until=0.0, patience=patience)


def _step(work_dir: Path, *, until: float, patience: float) -> None:
    try:
        port = (work_dir / CONTROL_FILE).read_text()
        body = json.dumps({"until": until, "patience": patience}).encode()
        call = urllib.request.Request(f"http://127.0.0.1:{port}/step", data=body, method="POST")
        _LOOPBACK.open(call, timeout=patience + _GRACE_SECONDS).close()
    except urllib.error.HTTPError as answer:
        raise LocalAwsError(json.loads(answer.read())["error"]) from None
    except OSError as fault:
        raise LocalAwsError(f"no answer from the emulator in {work_dir}: {fault}") from fault
