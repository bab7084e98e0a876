"""The message groups of a world's FIFO queues: which of them each message belongs to."""

from __future__ import annotations

from random import Random


class Groups:
    """Deals messages to groups at random but evenly: no group has two more messages than another."""

    def __init__(self, count: int, rng: Random) -> None:
        self._names = [f"group-{number}" for number in range(count)]
        self._rng = rng
        self._deck: list[str] = []

    def fields(self, body: str) -> dict[str, str]:
        """The other fields of a producer's message: its group, and its body (which is unique) as deduplication id."""
        if not self._deck:
            self._deck = self._rng.sample(self._names, len(self._names))
        return {"MessageGroupId": self._deck.pop(), "MessageDeduplicationId": body}
