"""Takes in what consumers have reported: outcomes for the ledger and for the batches that wait for a verdict.

    receive 10 ─► read ledger ─► hear ─► write ledger ─► delete 10 ─► receive 10 ─► ...

The circuit is written later, with the verdicts. A crash in between loses what was heard of a batch, and nothing else:
the other witnesses then take their time. What is not written is not deleted, and comes again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta

from redrive.core.hearing import Hearing, Told, hear, with_kept_trail
from redrive.core.ledger import Entry
from redrive.core.outcomes import OutcomeMessage, parse_outcomes
from redrive.errors import CallFailed, EntryFault
from redrive.passes.effects import Effects
from redrive.passes.pass_state import PassState
from redrive.passes.ports import Reports

#: What one look takes in, reports and outcomes together, and for how long. Further reports wait for the next look, so
#: that whoever sends them without end, or with nothing in them, keeps no letter from going.
MOST_AT_ONCE = 10_000
LONGEST = timedelta(seconds=30)


class Listener:
    """The reports of one pass. `peek` is for free where there are none; `listen` wants the lease."""

    def __init__(self, state: PassState) -> None:
        self._state = state
        self._in_hand: list[OutcomeMessage] = []
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
        read, until = 0, min(state.deadline, state.tools.clock() + LONGEST)
        while reports is not None and self._in_hand:
            try:
                heard += self._take_in(reports, self._in_hand, state.tools.clock())
            except CallFailed as failed:
                state.failed(failed)
                state.has_unread_reports = True
                break
            read += len(self._in_hand)
            self._in_hand = []
            if heard.total() + read >= MOST_AT_ONCE or state.tools.clock() >= until:
                state.has_unread_reports = True
                break
            self._in_hand = self._received(reports)
        state.heard += heard
        if heard:
            state.tools.journal("outcomes.heard", **heard)

    def release(self) -> None:
        """Let others have what was received and not taken in."""
        left, self._in_hand, self._untouched = [*self._in_hand, *self._untouched], [], []
        if left and self._state.tools.reports is not None:
            self._note(self._state.tools.reports.release(left))

    def _note(self, faults: list[EntryFault]) -> None:
        effects = Effects()
        effects.saw(faults)
        self._state.did(effects)

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
        memory = self._state.tools.memory
        memory.write_failures(list(hearing.details.values()), now)
        memory.write_ledger(list(hearing.entries.values()), [], now)
        if self._state.is_dry:
            self._untouched += [replace(one, body="") for one in some]
        else:
            self._note(reports.delete(some))
        for lane in self._state.lanes:
            lane.heard(hearing, now)
        return hearing.counts + unreadable

    def _hear(self, told: list[Told]) -> Hearing:
        state = self._state
        receives = {lane.source.name: lane.max_receives() for lane in state.lanes}
        told, known = self._looked_up(told, receives)
        canaries = {
            one.canary_id
            for lane in state.lanes
            for one in lane.circuit.causes
            if one.canary_id is not None
        }
        return hear(told, known, receives, canaries)

    def _looked_up(
        self, told: list[Told], queues: Collection[str]
    ) -> tuple[list[Told], dict[str, Entry]]:
        """The outcomes by their letters' original ids, and what the ledger knows of these. Raises CallFailed."""
        memory = self._state.tools.memory
        ids = [one.outcome.original_id for one in told if one.outcome.queue in queues]
        if not ids:
            return told, {}
        known = memory.read_ledger(ids)
        told = [with_kept_trail(one, known.trails) for one in told] if known.trails else told
        further = {one.outcome.original_id for one in told}.difference(ids)
        return told, known.entries | (memory.read_ledger(further).entries if further else {})


def _told(reports: list[OutcomeMessage]) -> tuple[list[Told], Counter[str]]:
    """The outcomes in reports, and what could not be read of them, by why."""
    told: list[Told] = []
    unreadable: Counter[str] = Counter()
    for one in reports:
        parsed = parse_outcomes(one.body)
        told += [Told(outcome=outcome, at=one.sent_at) for outcome in parsed.outcomes]
        unreadable.update({f"unreadable: {fault}": n for fault, n in parsed.faults.items()})
    return told, unreadable
