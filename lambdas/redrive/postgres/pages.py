"""Reads a table of letters page by page, each letter once: what a queue does with visibility timeouts.

A page is read by id, behind the one before, without a lock: a look costs the same however deep the table is. A letter
that was let go brings the reading back to its place, and what else is in hand there is left out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush
from threading import Lock
from typing import Any

from psycopg import sql

from redrive.core.letter import Letter
from redrive.postgres.database import Database, Row
from redrive.postgres.letters import Handle, letter_of

#: Letters of one page, of which a pass is handed out ten at a time.
PAGE = 100

#: When no letter is held any more.
_END_OF_TIME = datetime(9999, 1, 1, tzinfo=UTC)

#: Before every id that a row can have, but for this one.
BEFORE_ALL = -(1 << 63)


#: Its multiples, less what is whole, are spread as evenly as any number's.
_GOLDEN = 0.618033988749895


def turn_of(now: datetime) -> float:
    """From 0 to 1, and far from that of the minutes before: so passes do not try the same letters again and again."""
    return now.timestamp() / 60 * _GOLDEN % 1


class Pages:
    """One reading of a table by the statement `read`. Safe for threads.

    `begin`: tells the row with which to begin, if any; those before it come last. Without, it is the first.

    `size`: of its pages; None for as much as is asked for, of which nothing waits here and grows old. `among`: of these rows alone, held ones among them; then `read` takes `rows`, too.
    """

    def __init__(
        self,
        database: Database,
        read: sql.Composed,
        *,
        is_parked: bool,
        size: int | None = PAGE,
        among: Sequence[int] | None = None,
        begin: Callable[[], int | None] | None = None,
    ) -> None:
        self._begin = begin
        self._is_before_first = False
        self._database = database
        self._read = read
        self._is_parked = is_parked
        self._size = size
        self._among = None if among is None else list(among)
        self._after = BEFORE_ALL
        self._page: deque[Letter] = deque()
        self._hidden: dict[int, datetime] = {}
        self._by_time: list[tuple[datetime, int]] = []
        self._lock = Lock()

    def take(self, limit: int, now: datetime, hidden_for: timedelta) -> list[Letter]:
        """The next letters, to be handed out again after `hidden_for`. Raises CallFailed."""
        with self._lock:
            self._show_again(now)
            few: list[Letter] = []
            while len(few) < limit and (self._page or self._next_page(limit - len(few), now)):
                letter = self._page.popleft()
                row = Handle.of(letter).row
                if row not in self._hidden:
                    few.append(letter)
                    self._hide(row, now + hidden_for)
            return few

    def hide(self, until: Mapping[int, datetime]) -> None:
        """Hand rows out again from other moments on; those that are over let them go at once."""
        with self._lock:
            for row, moment in until.items():
                self._hide(row, moment)

    def _next_page(self, wanted: int, now: datetime) -> bool:
        """Read the letters behind those that were read last, and behind the last the first; whether there are any."""
        if self._begin is not None:
            first, self._begin = self._begin(), None
            self._is_before_first = first is not None
            self._after = self._after if first is None else first - 1
        if self._turn(wanted, now):
            return True
        if not self._is_before_first:
            return False
        # All of them once more, as some may have been let go; those in hand are left out.
        self._is_before_first, self._after = False, BEFORE_ALL
        return self._turn(wanted, now)

    def _turn(self, wanted: int, now: datetime) -> bool:
        parameters: dict[str, Any] = {
            "after": self._after,
            "limit": self._size or wanted,
            "now": now,
        }
        if self._among is not None:
            parameters |= {"rows": self._among, "now": _END_OF_TIME}
        rows = self._database.run("ReadLetters", self._read, parameters)
        self._page.extend(self._letters(rows, now))
        self._after = rows[-1][0] if rows else self._after
        return bool(rows)

    def _letters(self, rows: list[Row], now: datetime) -> list[Letter]:
        time_to_fail = self._database.place.time_to_fail
        return [
            letter_of(row, is_parked=self._is_parked, time_to_fail=time_to_fail, now=now)
            for row in rows
        ]

    def _hide(self, row: int, moment: datetime) -> None:
        self._hidden[row] = moment
        heappush(self._by_time, (moment, row))

    def _show_again(self, now: datetime) -> None:
        """Go back to the first of the letters whose time is up."""
        while self._by_time and self._by_time[0][0] <= now:
            moment, row = heappop(self._by_time)
            if self._hidden.get(row) == moment:
                del self._hidden[row]
                if row <= self._after:
                    self._after = row - 1
                    self._page.clear()
