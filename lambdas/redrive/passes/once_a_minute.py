"""A witness for passes that follow each other within seconds."""

from __future__ import annotations

from datetime import datetime

from redrive.core.books import PERIOD, Books
from redrive.passes.ports import Witness


class OnceAMinute:
    """A witness that is asked again when it can have news: CloudWatch's are by the minute, and each answer is paid for."""

    def __init__(self, witness: Witness) -> None:
        self._witness = witness
        self._said: dict[str, tuple[datetime, datetime, Books]] = {}

    def since(self, start: datetime, now: datetime, queue_name: str) -> Books:
        """What it said, not a minute ago, of a time that covers this one. Raises CallFailed."""
        asked_at, since, books = self._said.get(queue_name, (now - PERIOD, now, Books()))
        if now >= asked_at + PERIOD or start < since:
            books = self._witness.since(start, now, queue_name)
            self._said[queue_name] = (now, start, books)
        return books
