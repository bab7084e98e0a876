"""A batch of letters in one statement, and what becomes of it where the statement is refused for one of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta

from redrive.core.outgoing import Outgoing, Sent
from redrive.errors import CallFailed, EntryFault
from redrive.postgres.letters import Handle
from redrive.postgres.refusals import About, StatementRefused

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
