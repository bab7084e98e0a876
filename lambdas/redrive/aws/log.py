"""The function's log: one JSON object a line, with what Lambda says of the invocation in each.

A pass tells of each letter, so a line has to be cheap: with Powertools' logger a line took 37 µs, a tenth of all
that a pass does for a letter, and with this one 5 (docs/benchmarks/profile.md).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import datetime
from typing import Any, TextIO

_encode = json.JSONEncoder(separators=(",", ":"), default=str).encode


class Log:
    """A pass's journal, to standard output or another stream. `about` is in every line."""

    def __init__(
        self, clock: Callable[[], datetime], stream: TextIO | None = None, **about: object
    ) -> None:
        self._clock = clock
        self._stream = stream
        self._about = {"level": "INFO", **about}

    def __call__(self, event: str, /, **fields: Any) -> None:
        """Write one event, in one piece: Lambda takes what is written for a line of its log."""
        timestamp = self._clock().isoformat(timespec="milliseconds")
        line = {"message": event, "timestamp": timestamp, **self._about, **fields}
        (self._stream or sys.stdout).write(_encode(line) + "\n")
