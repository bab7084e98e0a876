"""The tables that letters are taken from: the DLQ, and (`parking_lot`) where they are parked. Rows in, letters out.

Nothing hides a letter from another pass or person while it is in hand, as only one of them can move it; what is to wait
longer is noted in a table of ours. A batch is one statement; where it is refused for one letter, the others go alone.
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

#: A letter that is not there, or that somebody else has in hand: the next look tells.
NOT_THERE = "LetterNotThere"
_NOT_THERE_DETAIL = "it is locked, or gone, or a trigger keeps it in its table"

#: Code of what was not begun any more.
NOT_TRIED = "NotTried"

#: No further statement is begun so long after the first. Where four of them took all the time that a statement has, one
#: letter of ten is alone by halves, and there is a moment left for the others.
LONGEST = timedelta(seconds=125)

#: Moves letters in one statement; the new id of each by its row. Raises CallFailed.
Move = Callable[[Sequence[Outgoing]], dict[int, str]]

Clock = Callable[[], float]


class Batches:
    """Moves letters, by halves where a refusal may be about one of them. Nothing is raised.

    Attributes:
        sent: every other letter is in it under its own id, with its new one or with a fault.
        refused: letters that were refused when they were alone, for what may be their own fault or the table's.

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
        """Whether nothing further may be begun."""
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
    """Letters of the DLQ, and letters of the parking lot."""
    for is_parked in (False, True):
        some = [one for one in outgoing if Handle.of(one.letter).is_parked is is_parked]
        if some:
            yield some


#: Letters of the first page, of which a pass is handed out ten at a time; each further one is twice as large, up to
#: this.
PAGE = 100
LARGEST_PAGE = 1_000

#: When no letter is held any more.
_END_OF_TIME = datetime(9999, 1, 1, tzinfo=UTC)

#: Before every id that a row can have, but for this one.
BEFORE_ALL = -(1 << 63)


#: Its multiples, less what is whole, are spread as evenly as any number's.
_GOLDEN = 0.618033988749895


def turn_of(now: datetime) -> float:
    """Return a number from 0 to 1, far from those of the minutes before, so that passes try other letters each time."""
    return now.timestamp() / 60 * _GOLDEN % 1


class Pages:
    """One reading of a table by the statement `read`. Safe for threads.

    `begin`: tells the row with which to begin, if any; those before it come last. Without, it is the first.

    `size`: of its first page; None for as much as is asked for, of which nothing waits here and grows old.
    `among`: of these rows alone, held ones among them; then `read` takes `rows`, too. `contains`: what payloads have in
    them, for a `read` that takes it.
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
        """Go back to the first of the letters whose time is up."""
        while self._by_time and self._by_time[0][0] <= now:
            moment, row = heappop(self._by_time)
            if self._hidden.get(row) == moment:
                del self._hidden[row]
                if row <= self._after:
                    self._after = row - 1
                    self._page.clear()


#: No row of these tables expires.
NEVER = timedelta(days=36_500)

#: The largest value that Postgres stores; what is there, fits.
LARGEST = 1 << 30

#: Rows are counted one by one up to here; beyond it the planner's own estimate is near enough.
COUNTED = 10_000

#: Holds are forgotten so long after their end, of letters that left without us.
_HOLDS_KEPT = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveCheck:
    """The answer that no native move runs, as Postgres has none."""

    is_running: bool = False
    fault: CallFailed | None = None


class DeadLetters:
    """A table of letters, without their payloads: a pass moves what it does not read.

    A redrive has taken its row with it. One that is still there was put back from a backup that the ledger knows
    nothing of, and is a letter: `delete` tells of it, and removes nothing.
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
        """A letter of this id that was handed out; it is told once."""
        return self._in_hand.pop(message_id, None)

    def delete(self, letters: Iterable[Letter]) -> list[EntryFault]:
        """Make sure that letters are gone; what comes back is still there."""
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
        """MessageIds of the letters whose rows are in the table. Raises CallFailed."""
        rows = {Handle.of(one).row: one.message_id for one in letters}
        left = self._database.run("FindLetters", self._there, {"rows": list(rows)})
        return {rows[row] for (row,) in left}

    def hide(self, letters: Iterable[tuple[Letter, timedelta]]) -> list[EntryFault]:
        """Keep letters, held for a time from now; zero releases at once. What comes back was not changed."""
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
        """Give numbers to dead jobs that have none, where their ids are no numbers. Raises CallFailed."""
        if number := self._database.statements.number:
            self._database.run("NumberLetters", number, {})
            self._is_numbered = True

    def _make_pages(self) -> Pages:
        known = self._database.statements
        if self._is_parked:
            return Pages(self._database, known.read_parked, is_parked=True)
        return Pages(self._database, known.read_dead, is_parked=False, begin=self._somewhere)

    def _somewhere(self) -> int | None:
        """A letter, another in each minute; None where there is none. Raises CallFailed.

        What stays where it is, as nobody takes it or moves it, would otherwise be the first that each pass meets,
        and every canary.
        """
        parameters = {"turn": turn_of(self._clock()), "most": COUNTED}
        ((row,),) = self._database.run(
            "FindBeginning", self._database.statements.somewhere, parameters
        )
        return None if row is None else int(row)


#: Before the name of a column: in the list of columns, of the row in the DLQ, of that row when it has left.
_PREFIXES: tuple[LiteralString, ...] = ("", "d.", "g.")


class ParkingLot(DeadLetters):
    """The table that holds letters for a person: letters are moved to it, too,
    with all that both tables have a column for.
    """

    _is_parked = True

    def park(self, outgoing: Sequence[Outgoing]) -> Sent:
        """Move letters here out of the DLQ, each with its metadata. One that is parked already stays."""
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
        """Compose the statement with the present further columns: a table may get or lose one between two passes.
        Raises CallFailed.
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
