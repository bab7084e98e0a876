"""What the steps of one pass share: the queues as they were measured, the lanes, and what was done so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from redrive.core.case import Case
from redrive.core.decision import Hold, HoldReason
from redrive.core.levels import NO_KNOWN_MOMENT
from redrive.core.queue_facts import QueueFacts
from redrive.core.triage import Terms, failed_at
from redrive.errors import CallFailed
from redrive.passes.effects import Effects
from redrive.passes.lane import Lane
from redrive.passes.ports import Tools
from redrive.passes.terms import terms_of
from redrive.settings import Settings

#: Letters stay hidden this much longer than the pass can last.
HIDDEN_MARGIN = timedelta(seconds=30)


@dataclass(kw_only=True)
class PassState:
    """One pass under way. Only the thread of the pass touches it.

    Attributes:
        deadline: when it has to have stopped by itself.
        is_dry: nothing is applied: no lease, no write, no letter moves.
        effects: all that was done so far. `faults`: calls that failed.
        heard: outcomes that consumers reported, by their result, or by why they were left out.
        has_unread_reports: more of them may wait than the pass has read.
        oldest: the first send of the oldest letter that was seen.
        last_chances: holds of suspects until their last chance, and of letters until the canary of their cause.
        waiting, waiting_since: letters that were left for no known moment, and since when the oldest has been there.

    """

    tools: Tools
    settings: Settings
    deadline: datetime
    is_dry: bool
    is_paused: bool
    dlq: QueueFacts
    parking_lot: QueueFacts
    lanes: tuple[Lane, ...]
    effects: Effects = field(default_factory=Effects)
    faults: list[CallFailed] = field(default_factory=list)
    heard: Counter[str] = field(default_factory=Counter)
    has_unread_reports: bool = False
    examined: int = 0
    oldest: datetime | None = None
    is_out_of_time: bool = False
    last_chances: list[Hold] = field(default_factory=list)
    waiting: int = 0
    waiting_since: datetime | None = None

    def is_over(self) -> bool:
        """Whether it has to stop."""
        return self.tools.clock() >= self.deadline

    def hidden_for(self) -> timedelta:
        """How long a letter received now stays hidden: until this pass is surely over."""
        return max(self.deadline - self.tools.clock(), timedelta()) + HIDDEN_MARGIN

    def lane_of(self, case: Case) -> Lane:
        """The lane of the queue that the letter belongs to; the first one's for a letter of nobody's."""
        trail = case.letter.trail
        for lane in self.lanes:
            if lane.source.owns(case.source_arn, trail):
                return lane
        return self.lanes[0]

    def name_of(self, case: Case) -> str:
        """The name of the source queue that the letter belongs to."""
        return self.lane_of(case).source.name

    def by_lane(self, cases: Sequence[Case]) -> Iterator[tuple[Lane, list[Case]]]:
        """The letters of each lane that has some."""
        if len(self.lanes) == 1:
            if cases:
                yield self.lanes[0], list(cases)
            return
        for lane in self.lanes:
            if some := [case for case in cases if self.lane_of(case) is lane]:
                yield lane, some

    def terms(self, lane: Lane) -> Terms:
        """What triage has to know of the queues, for letters of one lane."""
        by_arn = {one.known_facts.arn: one for one in self.lanes}
        return terms_of(lane, by_arn, self.dlq.retention, is_flowing=lane.is_flowing)

    def version_to_mark(self, cases: Sequence[Case]) -> int:
        """The version that returns among these letters are noted with: of their lane's circuit."""
        lanes = [lane for lane, _ in self.by_lane(cases)] or [self.lanes[0]]
        return min(lane.keeper.version for lane in lanes)

    def saw_letter(self, case: Case, now: datetime) -> None:
        """Note a letter that was examined."""
        self.examined += 1
        if fault := case.letter.trail_fault:
            self.tools.journal("trail.ignored", message_id=case.message_id, reason=fault)
        sent_at = min(case.letter.sent_at, now)
        self.oldest = min(self.oldest or sent_at, sent_at)

    def left(self, case: Case, hold: Hold, terms: Terms, now: datetime) -> None:
        """Note a letter that stays in the DLQ."""
        if hold.reason in (HoldReason.LAST_CHANCE, HoldReason.CAUSE):
            self.last_chances.append(hold)
        elif hold.reason in NO_KNOWN_MOMENT:
            self.waiting += 1
            since = failed_at(case, terms, now)
            self.waiting_since = min(self.waiting_since or since, since)

    def did(self, effects: Effects) -> None:
        """Take in what a step has done, and tell it."""
        for event, fields in effects.events:
            self.tools.journal(event, **fields)
        effects.events = []  # told; a pass may have fifty thousand
        self.effects.add(effects)
        for fault in (*effects.faults, *effects.healed):
            self.tools.journal(
                "entry.failed", call=fault.call, code=fault.code, message_id=fault.key
            )

    def failed(self, failed: CallFailed) -> None:
        """Take in a call that failed, and tell it."""
        self.faults.append(failed)
        self.tools.journal("call.failed", call=failed.call, code=failed.code, detail=failed.detail)
