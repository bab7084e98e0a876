"""Looking at letters without taking them: as few receives as possible, released at once, and what it cost is told.

On a standard queue a letter that was received three times without being deleted goes to the back and out of the
age metric, so looking is never free.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from smart_redriver.engine.messages.letter import Letter
from smart_redriver.engine.passes.ports import DeadLetters
from smart_redriver.engine.passes.read import (
    LETTERS_A_RECEIVE,
    ROUND_BYTES,
    ROUND_SIZE,
    read_letters,
)
from smart_redriver.engine.triage.case import Case
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.letters.by_copy import ledger_for
from smart_redriver.oncall.letters.reach import COPY, is_cut, out_of_reach

#: A look ends well before the letters that it hides come back by themselves.
HIDDEN_FOR = timedelta(seconds=60)
LONGEST_LOOK = timedelta(seconds=45)
#: What a short look gets through on AWS, at ten letters a receive. Beyond it letters are hidden for longer, so that
#: none is met twice.
SHORT_LOOK_LETTERS = 1_000
HIDDEN_FOR_LONG = timedelta(minutes=10)
LONGEST_OF_ALL = timedelta(minutes=9)


@dataclass(kw_only=True)
class Look:
    """One look through a queue. Iterate within `with`; on leaving, everything is visible again.

    Attributes:
        is_sent: whether the letters are looked for to be sent to their source queues.
        out_of_reach: why letters that were met can't be taken, by message id, see `reach`.
        is_cut: whether it met groups of a FIFO queue of which no more than the first ten letters can be seen.

    """

    session: Session
    out_of: DeadLetters
    limit: int
    hidden_for: timedelta = HIDDEN_FOR
    longest: timedelta = LONGEST_LOOK
    seen: int = 0
    is_cut_short: bool = False
    is_sent: bool = False
    out_of_reach: dict[str, str] = field(default_factory=dict)
    is_cut: bool = False
    _held: list[Letter] = field(default_factory=list)
    _receives: int = 0

    def __enter__(self) -> Look:
        self._receives = self.session.aws.calls["ReceiveMessage"]
        return self

    def __exit__(self, *_: object) -> None:
        if self._held:
            self.out_of.hide((letter, timedelta()) for letter in self._held)
        self._held = []

    def __iter__(self) -> Iterator[Case]:
        """At most `limit` letters, each once. Raises CallFailed."""
        ends_at = self.session.clock() + self.longest
        ledger = ledger_for(self.session, self.out_of)
        ids: set[str] = set()
        while self.seen < self.limit:
            if self.session.clock() >= ends_at:
                self.is_cut_short = True
                return
            few = min(self._at_once, self.limit - self.seen)
            read = read_letters(
                self.out_of, ledger, few, hidden_for=self.hidden_for, max_bytes=ROUND_BYTES
            )
            # Only what is needed to release them: a body may have a megabyte.
            self._held += [handle_only(case.letter) for case in read.cases]
            fresh = [case for case in read.cases if case.message_id not in ids]
            ids |= {case.message_id for case in fresh}
            self.seen += len(fresh)
            if self.out_of.is_fifo:
                self._note_order(read.cases)
            yield from fresh
            if read.is_end or not fresh:
                return

    def _note_order(self, cases: Sequence[Case]) -> None:
        here = [case for case in cases if not case.is_replaced]
        self.out_of_reach |= out_of_reach(here, is_sent=self.is_sent)
        self.is_cut |= any(is_cut(case) for case in cases)

    @property
    def _at_once(self) -> int:
        """Letters that the ledger is asked about in one call. Those of SQS are hidden while they wait for it."""
        return ROUND_SIZE if self.session.letter_store.finds_by_id else LETTERS_A_RECEIVE

    @property
    def receives(self) -> int:
        """What the look cost so far, in calls."""
        return self.session.aws.calls["ReceiveMessage"] - self._receives

    def cost(self) -> str:
        """What the look cost, in words."""
        return self.session.letter_store.cost(self.receives, self.seen)


def look_through(
    session: Session,
    out_of: DeadLetters,
    depth: int,
    *,
    is_sent: bool = False,
    is_slow: bool = False,
) -> Look:
    """A look through the whole of a queue, of about `depth` letters. `is_slow`: each may take seconds to look at."""
    is_short = depth <= SHORT_LOOK_LETTERS and not is_slow
    return Look(
        session=session,
        out_of=out_of,
        limit=sys.maxsize,
        hidden_for=HIDDEN_FOR if is_short else HIDDEN_FOR_LONG,
        longest=LONGEST_LOOK if is_short else LONGEST_OF_ALL,
        is_sent=is_sent,
    )


def handle_only(letter: Letter) -> Letter:
    """As much of the letter as releasing or naming it takes."""
    return Letter(
        message_id=letter.message_id,
        receipt_handle=letter.receipt_handle,
        body="",
        sent_at=letter.sent_at,
    )


def find(
    session: Session,
    out_of: DeadLetters,
    is_meant: Callable[[Case], bool],
    limit: int,
    *,
    is_sent: bool = False,
) -> tuple[Case | None, Look]:
    """The first letter that is meant among at most `limit`, and the look that found it, already over.

    Of a FIFO queue the letter at its place, and not a copy of it that came back.
    """
    with Look(session=session, out_of=out_of, limit=limit, is_sent=is_sent) as look:
        found = next(
            (
                case
                for case in look
                if is_meant(case) and look.out_of_reach.get(case.message_id) != COPY
            ),
            None,
        )
    return found, look
