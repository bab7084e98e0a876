"""A connection on which everything together takes no longer than a given time, however slowly the other side drips.

A socket's own time-out counts from one read to the next, and shutting it down does not stop who floods it. As much of a
socket as `http.client` needs.
"""

from __future__ import annotations

import io
import socket
import ssl
import time
from collections.abc import Callable

#: What is sent at once.
_CHUNK = 16_384
#: What is read of an answer at most: `http.client` takes a line of 64 KiB, and we want the first one.
_MOST_READ = 131_072


class TimedConnection:
    """Sends, and hands out a file to read the answer from. Every step raises OSError when the time is over."""

    def __init__(
        self,
        connection: socket.socket,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._until = clock() + seconds

    def shake_hands(self) -> None:
        """The handshake of TLS, where it is spoken. Raises ssl.SSLCertVerificationError, too."""
        if isinstance(self._connection, ssl.SSLSocket):
            self._allow_what_is_left()
            self._connection.do_handshake()

    def sendall(self, data: bytes) -> None:
        """Send all of it."""
        rest = memoryview(data)
        while rest:
            self._allow_what_is_left()
            rest = rest[self._connection.send(rest[:_CHUNK]) :]

    def makefile(self, _mode: str) -> io.BufferedReader:
        """What the other side says, and not more of it than an answer's first lines can be."""
        return io.BufferedReader(_Said(self))

    def recv_into(self, buffer: memoryview) -> int:
        """Read what is there, or wait for it."""
        self._allow_what_is_left()
        return self._connection.recv_into(buffer)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _allow_what_is_left(self) -> None:
        left = self._until - self._clock()
        if left <= 0:
            raise TimeoutError("the time for the whole is over")
        self._connection.settimeout(left)


class _Said(io.RawIOBase):
    def __init__(self, connection: TimedConnection) -> None:
        super().__init__()
        self._connection = connection
        self._left = _MOST_READ

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # what BufferedReader gives
        if not self._left:
            raise OSError("the answer is too long")
        count = self._connection.recv_into(memoryview(buffer)[: self._left])
        self._left -= count
        return count
