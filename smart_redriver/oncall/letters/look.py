"""Looks at letters without taking them: with as few receives as possible, releases them at once, and states the cost.

On a standard queue, a letter that was received three times without being deleted moves to the back and out of the
age metric, so looking is never free.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html

If a copy carries no redrive metadata, the ledger has it under the copy's id. For a copy that a consumer parked it has
none: a pass would have to believe a report that names any id, and could overwrite what is known about another letter.
But the letter's own entry names the copy, so a person's command looks for that entry and then reads it once more.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from threading import Lock

from smart_redriver.engine.aws.state_table import Known
from smart_redriver.engine.messages.letter import Letter, RedriveMetadata
from smart_redriver.engine.passes.ports import DeadLetters, Ledger
from smart_redriver.engine.passes.read import (
    LETTERS_A_RECEIVE,
    ROUND_BYTES,
    ROUND_SIZE,
    read_letters,
)
from smart_redriver.engine.reports.processing import ReceivedOutcome
from smart_redriver.engine.triage.case import Case, metadata_after
from smart_redriver.engine.triage.decision import ParkReason
from smart_redriver.engine.triage.ledger import Entry, Status
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.letters.choice import Choice
from smart_redriver.oncall.letters.fifo_order import COPY, is_cut, out_of_reach
from smart_redriver.oncall.letters.ledger_scan import all_entries, parked_entries
from smart_redriver.oncall.terminal.exits import Misused

#: A look ends well before the letters that it hides come back by themselves.
HIDDEN_FOR = timedelta(seconds=60)
LONGEST_LOOK = timedelta(seconds=45)
#: Letters that a short look gets through on AWS, at ten a receive. A longer look hides letters for longer, so that it
#: sees none twice.
SHORT_LOOK_LETTERS = 1_000
HIDDEN_FOR_LONG = timedelta(minutes=10)
LONGEST_OF_ALL = timedelta(minutes=9)


@dataclass(kw_only=True)
class Look:
    """One look through a queue. Iterate within `with`; on leaving, everything is visible again.

    Attributes:
        is_sent: whether the letters will be sent to their source queues.
        out_of_reach: why letters that were seen can't be taken, by message id, see `reach`.
        is_cut: whether some groups of a FIFO queue may have more letters than the first ten, which alone can be seen.

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
        """Yield at most `limit` letters, each once. Raises CallFailed."""
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
            # Keep only what is needed to release them: a body can be a megabyte.
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
        """How many letters to ask the ledger about in one call. Letters of SQS are hidden while they wait for it."""
        return ROUND_SIZE if self.session.letter_store.finds_by_id else LETTERS_A_RECEIVE

    @property
    def receives(self) -> int:
        """The receives of the look so far."""
        return self.session.aws.calls["ReceiveMessage"] - self._receives

    def cost(self) -> str:
        """The cost of the look, in words."""
        return self.session.letter_store.cost(self.receives, self.seen)


def look_through(
    session: Session,
    out_of: DeadLetters,
    depth: int,
    *,
    is_sent: bool = False,
    is_slow: bool = False,
) -> Look:
    """A look through a whole queue of about `depth` letters. `is_slow`: each may take seconds to look at."""
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
    """Return the part of a letter that is needed to release or name it."""
    return Letter(
        message_id=letter.message_id,
        receipt_handle=letter.receipt_handle,
        body="",
        sent_at=letter.sent_at,
    )


def find(
    session: Session,
    out_of: DeadLetters,
    is_selected: Callable[[Case], bool],
    limit: int,
    *,
    is_sent: bool = False,
) -> tuple[Case | None, Look]:
    """Find the first selected letter among at most `limit`. Also returns the look, which is already over.

    On a FIFO queue this is the letter in its place, and not a copy of it that came back.
    """
    with Look(session=session, out_of=out_of, limit=limit, is_sent=is_sent) as look:
        found = next(
            (
                case
                for case in look
                if is_selected(case) and look.out_of_reach.get(case.message_id) != COPY
            ),
            None,
        )
    return found, look


#: Too short for any backend, or a complete id of SQS: no lookup is needed for these.
_NO_BEGINNING = re.compile(r".{0,5}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def full_ids(session: Session, typed: Sequence[str]) -> list[str]:
    """Complete the ids that a person typed in part. Raises CallFailed, and Misused for a beginning of several ids."""
    if all(map(_NO_BEGINNING.fullmatch, typed)):
        return list(typed)
    beginning = session.letter_store.beginning
    short = {one: begun for one in typed if (begun := beginning(one)) is not None}
    selected = _completed(session, short) if short else {}
    return [selected.get(one, one) for one in typed]


def with_full_ids(session: Session, choice: Choice) -> Choice:
    """Return the choice with complete ids. It asks AWS, so wrong usage is refused before. Raises as `full_ids` does."""
    return replace(choice, ids=frozenset(full_ids(session, sorted(choice.ids))))


def _completed(session: Session, short: Mapping[str, str]) -> dict[str, str]:
    """Return complete ids by what was typed, where a letter has such an id.

    The ledger does not know a letter on its first visit, so an id that it does not know is looked for in the DLQ. If a
    look changes nothing, the DLQ is always read: it may have a second letter with this beginning.
    """
    store = session.letter_store
    known = [(one.original_id, one.current_id) for one in all_entries(session)]
    if store.finds_by_id:
        known += _look_for_ids(session, sys.maxsize)[0]
    selected = _all_selected(short, known)
    unknown = {one: begun for one, begun in short.items() if one not in selected}
    if unknown and not store.finds_by_id:
        seen, cost = _look_for_ids(session, SHORT_LOOK_LETTERS)
        if seen:
            session.terminal.say(cost)
        selected |= _all_selected(unknown, seen)
    return selected


def _all_selected(short: Mapping[str, str], known: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return the selected ids among the known ones, by what was typed."""
    found = {one: _selected(begun, known) for one, begun in short.items()}
    return {one: full for one, full in found.items() if full}


def _selected(begun: str, known: Sequence[tuple[str, str]]) -> str | None:
    selected = {original for original, current in known if original.startswith(begun)}
    selected = selected or {current for _, current in known if current.startswith(begun)}
    if len(selected) > 1:
        raise Misused(
            f"{begun} is the beginning of {len(selected):,} ids: {', '.join(sorted(selected)[:3])}..."
        )
    return next(iter(selected), None)


def _look_for_ids(session: Session, most: int) -> tuple[list[tuple[str, str]], str]:
    """Look at up to `most` letters of the DLQ. Returns their original and current ids, and the cost."""
    limit = min(session.dead_letters.facts().depth, most)
    with Look(session=session, out_of=session.dead_letters, limit=limit) as look:
        return [(case.original_id, case.message_id) for case in look], look.cost()


def ledger_for(session: Session, out_of: DeadLetters) -> Ledger:
    """The ledger for a queue's letters. Only the parking lot's letters also need to be found by the ids of copies."""
    ledger = ByCopy(session) if out_of is session.parking_lot else session.store
    return session.letter_store.ledger(out_of, ledger)


class ByCopy:
    """The ledger, which also finds a letter that its consumer parked by the id of the copy.

    The parked entries are read once, when an unknown id is first asked for. Several threads may ask.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._originals: dict[str, str] | None = None
        self._lock = Lock()

    def read_ledger(self, message_ids: Iterable[str]) -> Known:
        """See `StateStore.read_ledger`. Raises CallFailed."""
        ids = list(message_ids)
        known = self._session.store.read_ledger(ids)
        unknown = [one for one in ids if one not in known.entries and one not in known.metadata]
        originals = {one: self._by_copy()[one] for one in unknown if one in self._by_copy()}
        if not originals:
            return known
        entries = self._session.store.read_ledger(originals.values()).entries
        for copy, original in originals.items():
            entry = entries.get(original)
            if entry is not None and entry.status is Status.PARKED and entry.current_id == copy:
                known.entries[original] = entry
                known.metadata[copy] = metadata_after(entry, entry.queue, None)
        return known

    def write_ledger(
        self,
        entries: Sequence[Entry],
        kept_metadata: Sequence[tuple[str, RedriveMetadata]],
        now: datetime,
    ) -> None:
        """See `StateStore.write_ledger`. Raises CallFailed."""
        self._session.store.write_ledger(entries, kept_metadata, now)

    def write_failures(self, failures: Sequence[ReceivedOutcome], until: datetime) -> None:
        """See `StateStore.write_failures`. Raises CallFailed."""
        self._session.store.write_failures(failures, until)

    def _by_copy(self) -> dict[str, str]:
        """Original ids by the id of the parked copy; if several entries claim one copy, the first report counts."""
        with self._lock:
            if self._originals is None:
                claims = sorted(
                    (entry.parked_at or entry.first_seen, entry.current_id, entry.original_id)
                    for entry in parked_entries(self._session)
                    if entry.park_reason == ParkReason.PERMANENT.value
                )
                self._originals = {copy: original for _, copy, original in reversed(claims)}
            return self._originals
