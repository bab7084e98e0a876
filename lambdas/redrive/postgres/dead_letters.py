"""The tables that letters are taken from: the DLQ, and (`parking_lot`) where they are parked. Rows in, letters out.

Nothing hides a letter from another pass or person while it is in hand, as only one of them can move it; what is to wait
longer is noted in a table of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from redrive.core.letter import Letter
from redrive.core.queue_facts import QueueFacts
from redrive.errors import CallFailed, EntryFault
from redrive.postgres.database import Database
from redrive.postgres.letters import Handle
from redrive.postgres.pages import Pages, turn_of

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
    """Nobody but the re-driver moves these letters by a task of its own."""

    is_running: bool = False
    fault: CallFailed | None = None


class DeadLetters:
    """A table of letters, without their payloads: a pass moves what it does not read.

    A redrive has taken its row with it. One that is still there was put back from a backup that the ledger knows nothing
    of, and is a letter: `delete` tells of it, and removes nothing.
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

    def facts(self, *, counted: int = COUNTED) -> QueueFacts:
        """How many letters there are: exact up to so many, an estimate beyond. Raises CallFailed."""
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
        """At most `limit` letters, none of which this object hands out again within `hidden_for`. Raises CallFailed."""
        few = self._pages.take(limit, self._clock(), hidden_for)
        self._in_hand |= {one.message_id: one for one in few if one.trail is None}
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
        """Nobody else moves them."""
        return MoveCheck()

    def _make_pages(self) -> Pages:
        known = self._database.statements
        if self._is_parked:
            return Pages(self._database, known.read_parked, is_parked=True)
        return Pages(self._database, known.read_dead, is_parked=False, begin=self._somewhere)

    def _somewhere(self) -> int | None:
        """A letter, another in each minute; None where there is none. Raises CallFailed.

        What stays where it is, as nobody takes it or moves it, would otherwise be the first that each pass meets, and every canary.
        """
        parameters = {"turn": turn_of(self._clock()), "most": COUNTED}
        ((row,),) = self._database.run(
            "FindBeginning", self._database.statements.somewhere, parameters
        )
        return None if row is None else int(row)
