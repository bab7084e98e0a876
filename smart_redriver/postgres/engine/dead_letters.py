"""The tables that letters are taken from: the DLQ, and (`parking_lot`) where they are parked. Rows in, letters out.

Nothing hides a letter in hand from another pass or person, because only one of them can move it. A table of ours notes
letters that should wait longer. A batch is one statement. If it is refused for one letter, the others go without it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush
from threading import Lock
from typing import Any, LiteralString

from psycopg import sql

from smart_redriver.engine.errors import CallFailed, EntryFault
from smart_redriver.engine.messages.letter import Letter
from smart_redriver.engine.messages.outgoing import Outgoing, Sent
from smart_redriver.engine.messages.queue_facts import QueueFacts
from smart_redriver.postgres.engine.database import About, Database, Row, StatementRefused
from smart_redriver.postgres.engine.letters import Handle, letter_id, letter_of
from smart_redriver.postgres.engine.place import DEAD_COLUMNS, OF_PARKED
from smart_redriver.postgres.engine.statements import composed, names_of
from smart_redriver.postgres.engine.texts import PARK

#: A letter that is not there, or that somebody else has in hand: the next look shows which.
NOT_THERE = "LetterNotThere"
_NOT_THERE_DETAIL = "it is locked, or gone, or a trigger keeps it in its table"

#: The code for letters whose move was not begun.
NOT_TRIED = "NotTried"

#: No statement begins later than this after the first. If four statements took their full time, halving has isolated
#: one letter of ten, and there is a moment left for the others.
LONGEST = timedelta(seconds=125)

#: Moves letters in one statement, and returns the new id of each by its row. Raises CallFailed.
Move = Callable[[Sequence[Outgoing]], dict[int, str]]

Clock = Callable[[], float]


class Batches:
    """Moves letters, by halves if a refusal may be about one of them. Raises nothing.

    Attributes:
        sent: all other letters by id, each with its new id or a fault.
        refused: letters that were refused alone, for a reason that may be their own or the table's.

    """

    def __init__(self, call: str, move: Move, clock: Clock = time.monotonic) -> None:
        self._call = call
        self._move = move
        self._clock = clock
        self._until = clock() + LONGEST.total_seconds()
        self.sent = Sent()
        self.refused: list[tuple[Outgoing, StatementRefused]] = []

    @property
    def is_over(self) -> bool:
        """Whether no further statement may begin."""
        return self._clock() > self._until

    def run(self, some: Sequence[Outgoing]) -> None:
        """Move letters of one table."""
        try:
            moved = self._move(some)
        except CallFailed as failed:
            self._refused(some, failed)
            return
        for one in some:
            if new_id := moved.get(Handle.of(one.letter).row):
                self.sent.new_ids[one.letter.message_id] = new_id
            else:
                self._failed([one], CallFailed(self._call, NOT_THERE, _NOT_THERE_DETAIL))

    def _refused(self, some: Sequence[Outgoing], failed: CallFailed) -> None:
        if not isinstance(failed, StatementRefused):
            self._failed(some, failed)
        elif len(some) > 1 and failed.may_be_one:
            self.sent.healed.append(EntryFault.of(failed, some[0].letter.message_id))
            half = len(some) // 2
            for part in (some[:half], some[half:]):
                if self.is_over:
                    self._failed(part, CallFailed(self._call, NOT_TRIED, failed.detail))
                else:
                    self.run(part)
        elif failed.about is About.SOME:
            self.refused += [(one, failed) for one in some]
        else:
            self._failed(some, failed, is_of_target=failed.about is About.EVERYBODY)

    def _failed(
        self, some: Sequence[Outgoing], failed: CallFailed, *, is_of_target: bool = False
    ) -> None:
        self.sent.faults += [
            EntryFault.of(failed, one.letter.message_id, is_of_target=is_of_target) for one in some
        ]


def by_table(outgoing: Sequence[Outgoing]) -> Iterator[list[Outgoing]]:
    """Split letters into those of the DLQ and those of the parking lot."""
    for is_parked in (False, True):
        some = [one for one in outgoing if Handle.of(one.letter).is_parked is is_parked]
        if some:
            yield some


#: Letters in the first page, which a pass gets ten at a time. Each further page is twice as large, up to this size.
PAGE = 100
LARGEST_PAGE = 1_000

#: A time after which no letter is held.
_END_OF_TIME = datetime(9999, 1, 1, tzinfo=UTC)

#: Comes before every id that a row can have, except this one.
BEFORE_ALL = -(1 << 63)


#: The fractional parts of its multiples are as evenly spread as possible.
_GOLDEN = 0.618033988749895


def turn_of(now: datetime) -> float:
    """Return a number from 0 to 1, far from those of the minutes before, so that passes try other letters each time."""
    return now.timestamp() / 60 * _GOLDEN % 1


class Pages:
    """One reading of a table by the statement `read`. It is thread-safe.

    `begin` returns the row to begin with, if any; the rows before it come last. Without it, the first row is first.

    `size`: the size of the first page; None to read only as much as is asked for, so that no letter waits here.
    `among`: only these rows, including held ones; `read` then takes `rows`, too. `contains`: text in payloads, for a
    `read` that takes it.
    """

    def __init__(
        self,
        database: Database,
        read: sql.Composed,
        *,
        is_parked: bool,
        size: int | None = PAGE,
        among: Sequence[int] | None = None,
        contains: str | None = None,
        begin: Callable[[], int | None] | None = None,
    ) -> None:
        self._begin = begin
        self._is_before_first = False
        self._database = database
        self._read = read
        self._is_parked = is_parked
        self._size = size
        self._among = None if among is None else list(among)
        self._contains = contains
        self._after = BEFORE_ALL
        self._page: deque[Letter] = deque()
        self._hidden: dict[int, datetime] = {}
        self._by_time: list[tuple[datetime, int]] = []
        self._lock = Lock()

    def take(self, limit: int, now: datetime, hidden_for: timedelta) -> list[Letter]:
        """Return the next letters. They can be handed out again after `hidden_for`. Raises CallFailed."""
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
        """Change when rows can be handed out again. A moment in the past releases a row at once."""
        with self._lock:
            for row, moment in until.items():
                self._hide(row, moment)

    def _next_page(self, wanted: int, now: datetime) -> bool:
        """Read the next page; after the last letter comes the first. Returns whether there are any."""
        if self._begin is not None:
            first, self._begin = self._begin(), None
            self._is_before_first = first is not None
            self._after = self._after if first is None else first - 1
        if self._turn(wanted, now):
            return True
        if not self._is_before_first:
            return False
        # Read all of them again, because some may have been released; those in hand are left out.
        self._is_before_first, self._after = False, BEFORE_ALL
        return self._turn(wanted, now)

    def _turn(self, wanted: int, now: datetime) -> bool:
        parameters: dict[str, Any] = {
            "after": self._after,
            "limit": self._size or wanted,
            "now": now,
            "contains": self._contains,
        }
        if self._among is not None:
            parameters |= {"rows": self._among, "now": _END_OF_TIME}
        rows = self._database.run("ReadLetters", self._read, parameters)
        if self._size:
            self._size = min(2 * self._size, LARGEST_PAGE)
        self._page.extend(self._letters(rows, now))
        self._after = rows[-1][0] if rows else self._after
        return bool(rows)

    def _letters(self, rows: list[Row], now: datetime) -> list[Letter]:
        time_to_fail = self._database.place.time_to_fail
        is_by_state = self._database.place.library is not None
        return [
            letter_of(
                row,
                is_parked=self._is_parked,
                time_to_fail=time_to_fail,
                now=now,
                is_by_state=is_by_state,
            )
            for row in rows
        ]

    def _hide(self, row: int, moment: datetime) -> None:
        self._hidden[row] = moment
        heappush(self._by_time, (moment, row))

    def _show_again(self, now: datetime) -> None:
        """Go back to the first letter whose time is up."""
        while self._by_time and self._by_time[0][0] <= now:
            moment, row = heappop(self._by_time)
            if self._hidden.get(row) == moment:
                del self._hidden[row]
                if row <= self._after:
                    self._after = row - 1
                    self._page.clear()


#: No row of these tables expires.
NEVER = timedelta(days=36_500)

#: The largest value that Postgres stores, so every existing row fits.
LARGEST = 1 << 30

#: Rows are counted one by one up to this number. Beyond it, the planner's estimate is near enough.
COUNTED = 10_000

#: How long after their end to forget holds of letters that left without us.
_HOLDS_KEPT = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveCheck:
    """The answer that no native move runs, as Postgres has none."""

    is_running: bool = False
    fault: CallFailed | None = None


class DeadLetters:
    """A table of letters, without their payloads: a pass moves payloads without reading them.

    A redrive takes its row with it. A row that is still there was restored from a backup without the ledger, and is a
    letter: `delete` reports it, and removes nothing.
    """

    is_fifo = False
    _is_parked = False

    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        place, known = database.place, database.statements
        self._database = database
        self._clock = clock
        self._in_hand: dict[str, Letter] = {}
        self.name = place.parked if self._is_parked else place.dead_letters
        self.url = place.url(self.name)
        if self._is_parked:
            self._count, self._there = known.count_parked, known.are_parked
        else:
            self._count, self._there = known.count_dead, known.are_dead
        self._pages = self._make_pages()
        self._is_numbered = known.number is None

    def facts(self, *, counted: int = COUNTED) -> QueueFacts:
        """Return the number of letters: exact up to a limit, an estimate beyond. Raises CallFailed."""
        self._number()
        parameters = {"now": self._clock(), "most": counted}
        ((free, held),) = self._database.run("CountLetters", self._count, parameters)
        return QueueFacts(
            arn=self.url,
            visible=free,
            in_flight=held,
            delayed=0,
            visibility_timeout=timedelta(),
            retention=NEVER,
            max_message_size=LARGEST,
        )

    def receive(self, limit: int, *, hidden_for: timedelta) -> list[Letter]:
        """Read at most `limit` letters; this object hands out none again within `hidden_for`. Raises CallFailed."""
        if not self._is_numbered:
            self._number()
        few = self._pages.take(limit, self._clock(), hidden_for)
        self._in_hand |= {one.message_id: one for one in few if one.metadata is None}
        return few

    def in_hand(self, message_id: str) -> Letter | None:
        """A letter with this id that was handed out. It is returned only once."""
        return self._in_hand.pop(message_id, None)

    def delete(self, letters: Iterable[Letter]) -> list[EntryFault]:
        """Check that letters are gone. Returns faults for those that are still there."""
        letters = list(letters)
        try:
            there = self.still_there(letters)
        except CallFailed as failed:
            return [EntryFault.of(failed, one.message_id) for one in letters]
        return [
            EntryFault(
                call="DeleteLetters",
                key=one.message_id,
                code="StillThere",
                detail="its row is in the table",
            )
            for one in letters
            if one.message_id in there
        ]

    def still_there(self, letters: Sequence[Letter]) -> set[str]:
        """Message ids of the letters whose rows are in the table. Raises CallFailed."""
        rows = {Handle.of(one).row: one.message_id for one in letters}
        left = self._database.run("FindLetters", self._there, {"rows": list(rows)})
        return {rows[row] for (row,) in left}

    def hide(self, letters: Iterable[tuple[Letter, timedelta]]) -> list[EntryFault]:
        """Hold letters for a time from now; zero releases at once. Returns faults for those that were not changed."""
        now, known = self._clock(), self._database.statements
        until = {Handle.of(one).row: (one, now + hidden_for) for one, hidden_for in letters}
        self._pages.hide({row: at for row, (_, at) in until.items()})
        held = {row: (one, at) for row, (one, at) in until.items() if at > now}
        if not held:
            return []
        parameters = {
            "is_parked": self._is_parked,
            "rows": list(held),
            "until": [at for _, at in held.values()],
        }
        try:
            self._database.run("HoldLetters", known.hold, parameters)
            self._database.run("ForgetHolds", known.forget_holds, {"before": now - _HOLDS_KEPT})
        except CallFailed as failed:
            return [EntryFault.of(failed, one.message_id) for one, _ in held.values()]
        return []

    def check_move(self, arn: str) -> MoveCheck:  # noqa: ARG002
        """Return that no task is moving letters: Postgres has none."""
        return MoveCheck()

    def _number(self) -> None:
        """Give numbers to dead jobs that have none, if their ids are not numbers. Raises CallFailed."""
        if number := self._database.statements.number:
            self._database.run("NumberLetters", number, {})
            self._is_numbered = True

    def _make_pages(self) -> Pages:
        known = self._database.statements
        if self._is_parked:
            return Pages(self._database, known.read_parked, is_parked=True)
        return Pages(self._database, known.read_dead, is_parked=False, begin=self._somewhere)

    def _somewhere(self) -> int | None:
        """The row to begin with, a different one each minute; None if there is none. Raises CallFailed.

        Otherwise, a letter that nobody can take or move would be the first letter of each pass, and every canary.
        """
        parameters = {"turn": turn_of(self._clock()), "most": COUNTED}
        ((row,),) = self._database.run(
            "FindBeginning", self._database.statements.somewhere, parameters
        )
        return None if row is None else int(row)


#: Before the name of a column: in the list of columns, of the row in the DLQ, of that row when it has left.
_PREFIXES: tuple[LiteralString, ...] = ("", "d.", "g.")


class ParkingLot(DeadLetters):
    """The table that holds letters for a person. Letters are moved to it with all columns that both tables have."""

    _is_parked = True

    def park(self, outgoing: Sequence[Outgoing]) -> Sent:
        """Move letters here from the DLQ, each with its metadata. A letter that is already parked stays."""
        batches = Batches("ParkLetters", self._park)
        if outgoing:
            batches.run(outgoing)
        batches.sent.faults += [
            EntryFault.of(failed, one.letter.message_id) for one, failed in batches.refused
        ]
        return batches.sent

    def _park(self, some: Sequence[Outgoing]) -> dict[int, str]:
        handles = [Handle.of(one.letter) for one in some]
        parameters = {
            "rows": [one.row for one in handles],
            "trails": [one.metadata.encode() for one in some],
            "left_jobs": [one.job for one in handles],
            "now": self._clock(),
        }
        rows = self._database.run("ParkLetters", self._statement(), parameters)
        counts = {Handle.of(one.letter).row: one.metadata.redrive_count for one in some}
        by_state = bool(self._database.place.library)
        return {row: letter_id(Handle(True, row, None, counts[row] * by_state)) for (row,) in rows}

    def _statement(self) -> sql.Composed:
        """Compose the statement with the further columns that exist now. Raises CallFailed.

        A table may get or lose a column between two passes.
        """
        place, known = self._database.place, self._database.statements
        if place.library:
            return known.park
        called = [place.column(f"jobs_dlq.{one}") for one in DEAD_COLUMNS]
        told = {"known": [*called, *place.carried, *OF_PARKED]}
        beside = [name for (name,) in self._database.run("ReadColumns", known.beside, told)]
        lists = {
            f"{prefix.strip('.')}beside": sql.Composed(
                [sql.SQL(f", {prefix}") + sql.Identifier(one.replace("%", "%%")) for one in beside]
            )
            for prefix in _PREFIXES
        }
        return composed(PARK, {**names_of(place), **lists})
