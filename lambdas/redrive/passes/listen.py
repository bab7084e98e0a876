"""Takes in what consumers have reported: outcomes for the ledger and for the batches that wait for a verdict.

    receive 10 ─► read ledger ─► hear ─► write ledger ─► delete 10 ─► receive 10 ─► ...

The circuit is written later, with the verdicts. A crash in between loses what was heard of a batch, and nothing else:
the other witnesses then take their time. What is not written is not deleted, and comes again.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from redrive.core.hearing import Hearing, Told, hear
from redrive.core.ledger import Entry
from redrive.core.outcomes import OutcomeMessage, parse_outcomes
from redrive.errors import CallFailed
from redrive.passes.pass_state import PassState
from redrive.passes.ports import Reports

#: Outcomes that one look takes in; further ones wait for the next, which is due at once.
MOST_OUTCOMES = 10_000


class Listener:
    """The reports of one pass. `peek` is for free where there are none; `listen` wants the lease."""

    def __init__(self, state: PassState) -> None:
        self._state = state
        self._in_hand: list[OutcomeMessage] = []
        self._dry: dict[str, Entry] = {}
        self._untouched: list[OutcomeMessage] = []

    @property
    def has_reports(self) -> bool:
        """Whether some are in hand."""
        return bool(self._in_hand)

    def peek(self) -> None:
        """Receive the first few reports."""
        if self._state.tools.reports is not None:
            self._in_hand = self._received(self._state.tools.reports)

    def listen(self) -> None:
        """Take in reports until there are none, or enough. A call that fails ends it: the reports come again."""
        reports, state = self._state.tools.reports, self._state
        heard: Counter[str] = Counter()
        while reports is not None and self._in_hand:
            try:
                heard += self._take_in(reports, self._in_hand, state.tools.clock())
            except CallFailed as failed:
                state.failed(failed)
                break
            self._in_hand = []
            if heard.total() >= MOST_OUTCOMES or state.tools.clock() >= state.deadline:
                break
            self._in_hand = self._received(reports)
        state.heard += heard
        if heard:
            state.tools.journal("outcomes.heard", **heard)

    def release(self) -> None:
        """Let others have what was received and not taken in."""
        left, self._in_hand, self._untouched = [*self._in_hand, *self._untouched], [], []
        if left and self._state.tools.reports is not None:
            self._state.effects.saw(self._state.tools.reports.release(left))

    def _received(self, reports: Reports) -> list[OutcomeMessage]:
        try:
            return reports.receive(hidden_for=self._state.hidden_for())
        except CallFailed as failed:
            self._state.failed(failed)
            return []

    def _take_in(self, reports: Reports, some: list[OutcomeMessage], now: datetime) -> Counter[str]:
        """Hear what some reports say, and what of it counts. Raises CallFailed with nothing deleted."""
        told, unreadable = _told(some)
        hearing = self._hear(told)
        if self._state.is_dry:
            self._dry |= hearing.entries
            self._untouched += some
        else:
            memory = self._state.tools.memory
            memory.write_failures(list(hearing.details.values()), now)
            memory.write_ledger(list(hearing.entries.values()), [], now)
            self._state.effects.saw(reports.delete(some))
        for lane in self._state.lanes:
            lane.heard(hearing, now)
        return hearing.counts + unreadable

    def _hear(self, told: list[Told]) -> Hearing:
        state = self._state
        receives = {lane.source.name: lane.max_receives() for lane in state.lanes}
        ids = [one.outcome.original_id for one in told if one.outcome.queue in receives]
        known = state.tools.memory.read_ledger(ids).entries if ids else {}
        canaries = {
            one.canary_id
            for lane in state.lanes
            for one in lane.circuit.causes
            if one.canary_id is not None
        }
        return hear(told, known | self._dry, receives, canaries)


def _told(reports: list[OutcomeMessage]) -> tuple[list[Told], Counter[str]]:
    """The outcomes in reports, and what could not be read of them, by why."""
    told: list[Told] = []
    unreadable: Counter[str] = Counter()
    for one in reports:
        parsed = parse_outcomes(one.body)
        told += [Told(outcome=outcome, at=one.sent_at) for outcome in parsed.outcomes]
        unreadable.update({f"unreadable: {fault}": n for fault, n in parsed.faults.items()})
    return told, unreadable
