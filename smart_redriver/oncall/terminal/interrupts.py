"""Ctrl-C between two rounds instead of in the middle of one; a second one insists."""

from __future__ import annotations

import signal
import threading
from typing import Any


class Interrupts:
    """While entered, notes the first Ctrl-C. `came` says whether it did."""

    def __init__(self) -> None:
        self.came = False
        self._previous: Any = None
        self._is_installed = False

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._note)
            self._is_installed = True
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_installed:
            signal.signal(signal.SIGINT, self._previous)

    def _note(self, *_: object) -> None:
        if self.came:
            raise KeyboardInterrupt
        self.came = True
