"""FIFO queues: one letter of a group is out at a time; the next one goes when its outcome is known. Pure.

    in the DLQ                          at its consumer
    L1  L2  L3  ...                                         L1 is sent on, and kept at its place
    L1  L2  L3  ...                     copy of L1          the group waits
    L1  L2  L3  ...   copy of L1                            it came back: L1 is redriven again, its copy discarded
        L2  L3  ...                                         it succeeded: L1 is discarded, L2 is next

Otherwise a letter that came back would stand behind its whole group. SQS hands out no more than ten messages of a group
before the first of them is deleted, so no pass could reach the letter to send it before the others.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/FIFO-queues-understanding-logic.html

Only a few copies that would come back out of sight go at a time: see `LookAhead`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum

from smart_redriver.engine.config.settings import FifoPoison, Settings
from smart_redriver.engine.model.batch import Judged, Verdict
from smart_redriver.engine.model.circuit import Circuit
from smart_redriver.engine.model.fifo_counts import BatchCounts, allowance
from smart_redriver.engine.model.permit import REPORTS_EXPECTED
from smart_redriver.engine.triage.case import Case, GroupView
from smart_redriver.engine.triage.decision import (
    Decision,
    Discard,
    Hold,
    HoldReason,
    Park,
    ParkReason,
    Redrive,
    Renew,
)
from smart_redriver.engine.triage.ledger import Entry, Status
from smart_redriver.engine.triage.retention import is_expiring
from smart_redriver.engine.triage.triage import Terms, hold_unless_expiring

#: Reasons to park letters that their consumer can't process. Letters parked for other reasons can't stay, whatever
#: their group waits for.
POISON = frozenset({ParkReason.MAX_ATTEMPTS, ParkReason.PERMANENT, ParkReason.GAVE_UP})

#: A copy counts as done this long after it must have failed, although its source queue holds messages or the end of its
#: group is out of sight. If it is still in the source queue after all, the next letter stands behind it.
LONGEST_OUT = timedelta(hours=2)
#: The same if nothing shows that the consumer was at work: if it was switched off, it may have received none.
LONGEST_OUT_UNSEEN = timedelta(hours=24)


#: If the end of an answer cut a group off, it is received again for this long, to see all of it.
CUT_PATIENCE = timedelta(minutes=10)

#: Within this time SQS drops a repeated message with the same id: a letter that was done must not be sent again sooner.
#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/using-messagededuplicationid-property.html
DEDUPLICATION_WINDOW = timedelta(minutes=5)


class Fate(Enum):
    """The outcome of the copy of a letter that is kept at its place."""

    OUT = "OUT"
    BACK = "BACK"
    DONE = "DONE"


def fate(case: Case, circuit: Circuit, terms: Terms, settings: Settings, now: datetime) -> Fate:
    """Return the outcome of a kept letter's copy, as far as it is known.

    A report shows it, a copy that was seen again, or a batch that succeeded as a whole. Otherwise time decides: a copy
    is done if it has had time to fail and is neither in its source queue nor in its group. The end of a group of ten or
    more is out of sight: there numbers decide, see `batch_counts`, and a copy that they can't explain is sent again.
    """
    entry = case.entry
    assert entry is not None, "a kept letter is known by its entry"  # noqa: S101
    if known := known_fate(entry):
        return known
    if case.letter.copy_has_left:
        return Fate.DONE  # or it came back as a new letter, which can't be recognized as this one
    if circuit.pending_batch(entry.batch):
        return Fate.OUT
    batch = _Told(circuit.judged_batch(entry.batch), circuit.batch_counts(entry.batch))
    if batch.has_succeeded:
        return Fate.DONE
    settled_at = (entry.last_redrive or now) + terms.time_to_fail
    settled_at += timedelta(seconds=settings.verdict_grace_seconds)
    has_left = terms.is_source_empty or batch.has_left
    if now < settled_at or not (has_left or now - settled_at >= batch.longest_out(now)):
        return Fate.OUT
    return _once_it_left(case, batch, circuit, settled_at, terms, now)


def _once_it_left(
    case: Case, batch: _Told, circuit: Circuit, settled_at: datetime, terms: Terms, now: datetime
) -> Fate:
    """The fate of a copy that has left its source queue: its group shows it, or the batch's numbers do."""
    if case.group_view is GroupView.WHOLE:
        return Fate.DONE
    if case.group_view is GroupView.CUT and now < settled_at + CUT_PATIENCE:
        return Fate.OUT  # the next look is likely to show all of it
    batch_counts = batch.batch_counts
    if batch_counts is not None and batch_counts.is_unexplained:
        is_over = now >= (case.last_try or now) + terms.time_to_fail + DEDUPLICATION_WINDOW
        return Fate.BACK if is_over else Fate.OUT
    if now < settled_at + LONGEST_OUT or batch.is_read(now):
        return Fate.OUT
    return Fate.BACK if batch_counts is None or batch.has_failed(case, circuit) else Fate.DONE


@dataclass(frozen=True, slots=True)
class _Told:
    """The verdict on a copy's batch, and the batch's numbers."""

    judged: Judged | None
    batch_counts: BatchCounts | None

    @property
    def has_succeeded(self) -> bool:
        """Whether every letter of the batch is done or was seen again."""
        is_whole = self.judged is not None and self.judged.has_succeeded_as_a_whole
        return is_whole or (self.batch_counts is not None and self.batch_counts.is_accounted)

    @property
    def has_left(self) -> bool:
        """Whether the metrics show that none of its letters is in the source queue any more."""
        return self.batch_counts is not None and self.batch_counts.is_gone

    def is_read(self, now: datetime) -> bool:
        """Whether the metrics could be read lately, so that they can be expected to tell."""
        return self.batch_counts is not None and self.batch_counts.is_read(now)

    def longest_out(self, now: datetime) -> timedelta:
        """The longest time that a copy may be out after its time to fail, while messages are in its source queue.

        If the metrics can be read, they would show that it has left: until they do, it is there, and no consumer is at
        work.
        """
        is_seen = self.judged is not None and self.judged.verdict is not Verdict.NO_EVIDENCE
        if not self.is_read(now):
            return LONGEST_OUT if is_seen else LONGEST_OUT_UNSEEN
        return LONGEST_OUT_UNSEEN if is_seen else timedelta.max

    def has_failed(self, case: Case, circuit: Circuit) -> bool:
        """Whether anything failed since the copy was sent, for when no numbers show its outcome.

        If nothing else failed, the copy is not taken for failed: a letter that succeeds would be sent and done again
        and again.
        """
        sent_at = case.last_try
        if circuit.failed_at is not None and sent_at is not None and circuit.failed_at >= sent_at:
            return True
        return self.judged is not None and self.judged.verdict is Verdict.FAILURE


def known_fate(entry: Entry) -> Fate | None:
    """Return the outcome of a kept letter's copy if its consumer reported it or a pass has seen the copy."""
    if entry.status is Status.RETURNED or (entry.status is Status.REDRIVEN and entry.is_settled):
        return Fate.BACK
    if entry.status in (Status.SUCCEEDED, Status.PARKED):
        return Fate.DONE
    return None


def in_order(
    decided: Sequence[tuple[Case, Decision]], terms: Terms, settings: Settings, now: datetime
) -> Iterator[tuple[Case, Decision]]:
    """Yield decisions in the order of receive; each letter waits for the letters before it in its group."""
    waiting: set[str] = set()
    bars = _bar_the_way([case for case, _ in decided], terms, now)
    for case, decision in decided:
        group = _group(case)
        what = decision
        if isinstance(what, Redrive) and case.message_id in bars:
            what = Park(reason=ParkReason.EXPIRING, strikes=what.strikes)
        if isinstance(what, Park) and _blocks(what, settings):
            what = _hold(case, what, HoldReason.BLOCKED, terms, now)
        elif group in waiting and not isinstance(what, Park | Discard):
            what = _hold(case, what, HoldReason.GROUP, terms, now)
        if not isinstance(what, Park | Discard):
            waiting.add(group)
        yield case, what


def _bar_the_way(cases: Sequence[Case], terms: Terms, now: datetime) -> set[str]:
    """Letters near expiry that stand before others near expiry, as far as can be seen: kept, they would bar the way.

    SQS shows at most ten letters of a group, and none while one of them is hidden: a pass could park no more than nine.
    """
    bars, behind = set(), set()
    for case in reversed(cases):
        if is_expiring(case.letter, terms.retention, terms.margin, now):
            if _group(case) in behind or case.group_view is not GroupView.WHOLE:
                bars.add(case.message_id)
            behind.add(_group(case))
    return bars


def _group(case: Case) -> str:
    return case.letter.group_id or case.message_id


def _blocks(park: Park, settings: Settings) -> bool:
    return settings.fifo_poison is FifoPoison.BLOCK and park.reason in POISON


def _hold(
    case: Case,
    decision: Redrive | Hold | Park | Renew,
    reason: HoldReason,
    terms: Terms,
    now: datetime,
) -> Hold | Park | Renew:
    return hold_unless_expiring(case, decision.strikes, reason, terms, now)


def copies_among(cases: Iterable[Case]) -> list[Case]:
    """Returned copies in hand whose originals are in hand, too: an original stands before its copies in their group.

    A letter that an accepted send has replaced is no original. A copy that the ledger does not know, because a write
    was lost, must have the same body: a consumer may have copied the metadata to a message of its own.
    """
    originals: dict[str, Case] = {}
    copies = []
    for case in cases:
        kept = case.entry.kept_id if case.entry else None
        names = {case.original_id, kept} - {case.message_id}
        original = next((originals[name] for name in names if name in originals), None)
        if original is not None and (_is_known(case) or case.letter.body == original.letter.body):
            copies.append(case)
        elif not case.is_replaced:
            originals[case.message_id] = case
    return copies


def _is_known(copy: Case) -> bool:
    entry = copy.entry
    return entry is not None and (
        copy.message_id == entry.current_id or entry.has_replaced(copy.message_id)
    )


def without_copies(cases: Sequence[Case], copies: Sequence[Case]) -> list[Case]:
    """The letters that stay when their copies are discarded, with their ledger entries since the copies were found."""
    known = {case.original_id: case.entry for case in copies}
    gone = {case.message_id for case in copies}
    return [
        replace(case, entry=known.get(case.original_id, case.entry))
        for case in cases
        if case.message_id not in gone
    ]


Due = tuple[Case, Redrive]


def is_out_of_sight(case: Case) -> bool:
    """Whether its copy would come back where no pass sees it.

    Letters that the end of an answer cut off are likely to be seen the next time, unless the copy is already presumed
    to be back.
    """
    return case.group_view is GroupView.FULL or (
        case.group_view is GroupView.CUT and case.is_presumed
    )


class LookAhead:
    """Chooses which out-of-sight letters go in one pass: so few that each outcome can be determined.

    Four times as many go at once as were accounted for in one minute; after a batch with an unknown outcome, only one.
    Suspects go by themselves: they are likely to fail, and then all others that went with them would have to go again.
    If the consumer reports, all of them go.
    """

    def __init__(self, circuit: Circuit, now: datetime) -> None:
        heard_at = circuit.heard_at
        self._is_told = heard_at is not None and now <= heard_at + REPORTS_EXPECTED
        unseen = [one for one in circuit.counted_batches if one.unseen]
        out = sum(one.unseen for one in unseen if one.is_open(now))
        self._room = allowance(unseen) - out
        self._is_first = not out
        self._was_suspect = bool(unseen and unseen[-1].suspects)

    def let_through(self, due: Sequence[Due]) -> tuple[list[Due], list[Due]]:
        """Return the letters that may go, in their order, and those that have to wait."""
        hidden = [one for one in due if is_out_of_sight(one[0])]
        if self._is_told or not hidden:
            return list(due), []
        going = {case.message_id for case, _ in self._chosen(hidden)}
        stays = {case.message_id for case, _ in hidden} - going
        return (
            [one for one in due if one[0].message_id not in stays],
            [one for one in due if one[0].message_id in stays],
        )

    def _chosen(self, hidden: Sequence[Due]) -> Sequence[Due]:
        suspects = [one for one in hidden if not one[1].is_unblemished]
        others = [one for one in hidden if one[1].is_unblemished]
        # They take turns, or the first ones would keep the others from ever going.
        if suspects and not (self._was_suspect and others):
            going = suspects if self._is_first else []  # else all wait until nothing is out
            self._room = 0
            return going
        chosen = others[: max(0, self._room)]
        self._room -= len(chosen)
        self._is_first = self._is_first and not chosen
        return chosen
