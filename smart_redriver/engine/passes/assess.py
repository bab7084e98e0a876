"""Looks back: asks the witness, receives the DLQ where a verdict hangs on it, and judges what can be judged.

Nothing leaves the DLQ here, and nothing but the returns' marks is written: see `Entry.counts_as_evidence`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.model import judging
from smart_redriver.engine.model.books import PERIOD, Books
from smart_redriver.engine.model.evidence import LIVE_LOOKBACK
from smart_redriver.engine.passes.hands import Hands
from smart_redriver.engine.passes.lane import Lane
from smart_redriver.engine.passes.pass_state import PassState
from smart_redriver.engine.passes.ports import Witness
from smart_redriver.engine.passes.read import Read, bytes_in_hand, read_letters
from smart_redriver.engine.triage.case import Case
from smart_redriver.engine.triage.decision import Discard
from smart_redriver.engine.triage.ordered import copies_among, without_copies

#: A DLQ of at most this many letters is received as a whole when returns can be in it, or a canary is chosen.
LOOK_LIMIT = 100

#: One of at most this many where the books say that returns are in it. A deeper one is not: receiving and releasing
#: buries letters, and returns queue up at its far end.
SEARCH_LIMIT = 1_000

#: The books are asked from here on: what was in the queue before the first letter, and how much producers send.
BEFORE = LIVE_LOOKBACK + timedelta(minutes=2)


def ask_witness(state: PassState, lane: Lane, now: datetime) -> None:
    """Read the source's books where they can move anything; without them a verdict takes longer."""
    if not lane.wants_books(has_letters=state.dlq.depth > 0):
        return
    circuit = lane.circuit
    since = circuit.failed_at if circuit.left_failing and circuit.failed_at else now
    start = min((one.sent_at for one in circuit.pending), default=since)
    start = min(start, lane.tallied_since() or start)
    try:
        books = state.tools.witness.since(start - BEFORE, now, lane.source.name)
        lane.books = books if books.has_gauges else books.up_to_untold(lane.sent_lately())
    except CallFailed as failed:
        state.failed(failed)


def judge(lane: Lane, now: datetime) -> None:
    """Give every verdict that is certain now."""
    circuit, rulings = lane.judged(now)
    lane.rulings += tuple(one for one in rulings if one.judgement.verdict is not None)
    lane.keeper.change(circuit)


def is_worth_a_look(state: PassState, now: datetime) -> bool:
    """Whether a look at the DLQ can matter for a verdict or the choice of a canary."""
    return 0 < state.dlq.depth <= _letters_to_look_at(state, now)


def look(state: PassState, hands: Hands, now: datetime) -> Read:
    """Receive the DLQ if a verdict or the choice of a canary depends on it. Raises CallFailed."""
    if not is_worth_a_look(state, now):
        return Read()
    limit = _letters_to_look_at(state, now)
    tools = state.tools
    read = read_letters(
        tools.dead_letters,
        tools.memory,
        limit,
        hidden_for=state.hidden_for(),
        max_bytes=bytes_in_hand(state.settings.memory_mib) // 2,
    )
    returns = [(lane, lane.count_returns(some, now)) for lane, some in state.by_lane(read.cases)]
    try:
        marked = hands.mark_returns(read.cases, state.version_to_mark(read.cases), now)
    except CallFailed:
        # A pass that follows at once must not find them hidden.
        state.did(hands.release(read.cases))
        raise
    for lane, some in returns:
        lane.keeper.change(judging.charge(lane.circuit, some))
    if tools.dead_letters.is_fifo:
        marked = discard_copies(state, hands, marked)
    return Read(tuple(marked), read.asked, read.is_end)


def _letters_to_look_at(state: PassState, now: datetime) -> int:
    looks_back = [lane for lane in state.lanes if not lane.has_looked_back(now)]
    has_returns = any(lane.has_returns() for lane in looks_back)
    if has_returns or any(lane.compares(state.dlq.depth, now) for lane in state.lanes):
        return SEARCH_LIMIT
    may_have_returns = any(lane.may_have_returns(now) for lane in looks_back)
    if may_have_returns or any(lane.allow(now).is_trial for lane in state.lanes):
        return LOOK_LIMIT
    return 0


class OnceAMinute:
    """A witness that is asked again when it can have news: CloudWatch's are by the minute, and each answer is paid for."""

    def __init__(self, witness: Witness) -> None:
        self._witness = witness
        self._said: dict[str, tuple[datetime, datetime, Books]] = {}

    def since(self, start: datetime, now: datetime, queue_name: str) -> Books:
        """The books of a time that covers this one, read less than a minute ago. Raises CallFailed."""
        asked_at, since, books = self._said.get(queue_name, (now - PERIOD, now, Books()))
        if now >= asked_at + PERIOD or start < since:
            books = self._witness.since(start, now, queue_name)
            self._said[queue_name] = (now, start, books)
        return books


def discard_copies(state: PassState, hands: Hands, marked: Sequence[Case]) -> list[Case]:
    """Discard copies in hand that have been marked as returned, and answer with the letters that are left.

    Marked first: a copy that is gone and was noted nowhere would look like one that succeeded.
    """
    copies = copies_among(marked)
    if copies:
        state.did(hands.discard([(case, Discard(reason="RETURNED_COPY")) for case in copies]))
    if copies and state.is_dry:
        state.did(
            hands.release(copies)
        )  # no look receives them again: what is before them in their group is hidden
    return without_copies(marked, copies)
