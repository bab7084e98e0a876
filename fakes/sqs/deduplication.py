"""The deduplication window of a FIFO queue: what was sent within the last five minutes is not accepted again.

Source: botocore sqs SendMessage, MessageDeduplicationId: the window starts with the first copy, and goes on when that
was received and deleted. There is no record of how SQS answers a deduplicated send: here with the first copy's id and
sequence number, like MiniStack. Nor of when a changed scope takes effect: here at once.
"""

import hashlib
from collections import deque
from typing import NamedTuple

WINDOW_SECONDS = 300

#: A deduplication id, with its group if that is the scope.
Key = tuple[str, str | None]


class FirstCopy(NamedTuple):
    """The answer that the sender of the first copy got."""

    message_id: str
    sequence_number: str


class DeduplicationWindow:
    """The sends of the last five minutes, in a queue or in each of its groups."""

    def __init__(self) -> None:
        self._copies: dict[Key, FirstCopy] = {}
        self._ends: deque[tuple[float, Key]] = deque()

    def first_copy(self, key: Key, now: float) -> FirstCopy | None:
        """The copy that was sent with this key within the window; None if there was none."""
        while self._ends and self._ends[0][0] <= now:
            del self._copies[self._ends.popleft()[1]]
        return self._copies.get(key)

    def note(self, key: Key, copy: FirstCopy, now: float) -> None:
        """Remember a message that was accepted."""
        self._copies[key] = copy
        self._ends.append((now + WINDOW_SECONDS, key))


def content_hash(body: str) -> str:
    """The id that ContentBasedDeduplication gives: a hash of the body alone, whatever the attributes are."""
    return hashlib.sha256(body.encode()).hexdigest()
