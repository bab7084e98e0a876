"""The orders in which a fake queue keeps its messages. It never searches any of them.

A message changes its place far more often than anyone asks, so an entry is not removed when it stops being true. Its
stamp shows that, and it is dropped when it comes to the front. That keeps every step O(log n), with a million letters
as with ten.
"""

import heapq
from collections.abc import Callable
from random import Random

from fakes.sqs.message import Message

_Entry = tuple[float, int, int, Message]

_COMPACT_ABOVE = 1024


class Timeline:
    """Messages ordered by a time. An entry is valid as long as its message keeps the same stamp."""

    def __init__(self, stamp: Callable[[Message], int]) -> None:
        self._stamp = stamp
        self._entries: list[_Entry] = []
        self._compact_at = _COMPACT_ABOVE

    def add(self, at: float, message: Message) -> None:
        """Enter a message under a time. Entries from before its stamp changed are void."""
        heapq.heappush(self._entries, (at, message.serial, self._stamp(message), message))
        if len(self._entries) > self._compact_at:
            self._compact()

    def first_at(self) -> float | None:
        """The earliest time, or None when there is nothing."""
        while self._entries:
            at, _, stamp, message = self._entries[0]
            if stamp == self._stamp(message):
                return at
            heapq.heappop(self._entries)
        return None

    def pop(self) -> Message:
        """Take the message whose time `first_at` returned."""
        return heapq.heappop(self._entries)[3]

    def _compact(self) -> None:
        # Doubling keeps this O(1) per entry over time, and lets deleted messages be freed.
        self._entries = [entry for entry in self._entries if entry[2] == self._stamp(entry[3])]
        heapq.heapify(self._entries)
        self._compact_at = max(_COMPACT_ABOVE, 2 * len(self._entries))


class FrontOfLine:
    """The visible messages: a receive draws at random among the few with the smallest place.

    A standard queue is only roughly in order, and receives from a large backlog return its oldest part: a message that
    just arrived is received only when nearly all older ones are gone.
    """

    def __init__(self, rng: Random, width: int) -> None:
        self._rng = rng
        self._width = width
        self._line = Timeline(stamp=lambda message: message.turn)
        self._front: list[tuple[int, Message]] = []

    def add(self, message: Message) -> None:
        """Put a message at its place in the line."""
        self._line.add(message.place, message)

    def draw(self) -> Message | None:
        """Take one of the first few visible messages, or None when there is none."""
        while True:
            while len(self._front) < self._width and self._line.first_at() is not None:
                message = self._line.pop()
                self._front.append((message.turn, message))
            if not self._front:
                return None
            chosen = int(self._rng.random() * len(self._front))
            self._front[chosen], self._front[-1] = self._front[-1], self._front[chosen]
            turn, message = self._front.pop()
            if turn == message.turn:
                return message
