"""FIFO queues: of a group one letter is out at a time, and the next one goes when it is known what became of it. Pure.

    in the DLQ                          at its consumer
    L1  L2  L3  ...                                         L1 is sent on, and kept at its place
    L1  L2  L3  ...                     copy of L1          the group waits
    L1  L2  L3  ...   copy of L1                            it came back: L1 is redriven again, its copy discarded
        L2  L3  ...                                         it succeeded: L1 is discarded, L2 is next

A letter that came back would stand behind its whole group otherwise, and of a group SQS hands out no more than ten
messages before the first of them is deleted: nobody could get at it, to send it before the others.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/FIFO-queues-understanding-logic.html
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from enum import Enum

from smart_redriver.engine.config.settings import FifoPoison, Settings
from smart_redriver.engine.model.batch import Judged, Verdict
from smart_redriver.engine.model.circuit import Circuit
from smart_redriver.engine.model.tally import Tally
from smart_redriver.engine.triage.case import Case, GroupView
from smart_redriver.engine.triage.decision import (
    Decision,
    Discard,
    Hold,
    HoldReason,
    Park,
    ParkReason,
    Redrive,
)
from smart_redriver.engine.triage.ledger import Entry, Status
from smart_redriver.engine.triage.retention import is_expiring
from smart_redriver.engine.triage.triage import Terms, hold_unless_expiring

#: Why letters are parked that their consumer can't process; others can't stay, whatever their group waits for.
POISON = frozenset({ParkReason.MAX_ATTEMPTS, ParkReason.PERMANENT, ParkReason.GAVE_UP})

#: So long after it must have failed, a copy is taken for done although messages are in its source queue, or the end of
#: its group was out of sight: what follows it stands behind it, if it should be in the source queue still.
LONGEST_OUT = timedelta(hours=2)
#: As long where nothing shows that the consumer was at work: switched off, it may have received none of them.
LONGEST_OUT_UNSEEN = timedelta(hours=24)


#: What the end of an answer cut off is looked at again for so long, to see all of its group.
CUT_PATIENCE = timedelta(minutes=10)

#: Sent again sooner, a letter that was done would be repeated while SQS swallows repetitions of what has the same id.
#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/using-messagededuplicationid-property.html
DEDUPLICATION_WINDOW = timedelta(minutes=5)


class Fate(Enum):
    """What became of the copy of a letter that is kept at its place."""

    OUT = "OUT"
    BACK = "BACK"
    DONE = "DONE"


def fate(case: Case, circuit: Circuit, terms: Terms, settings: Settings, now: datetime) -> Fate:
    """What became of the copy of a kept letter, as far as it can be told.

    A report tells it, a copy that was met, or a batch that succeeded as a whole. Else time does: what has had time to
    fail, and is neither in its source queue nor with its group, is done. Of a group of ten or more the end can't be
    seen: there numbers tell, see `tally`, and what they can't explain is sent again.
    """
    entry = case.entry
    assert entry is not None, "a kept letter is known by its entry"  # noqa: S101
    if known := known_fate(entry):
        return known
    if circuit.pending_batch(entry.batch):
        return Fate.OUT
    judged, tally = circuit.judged_batch(entry.batch), circuit.tally(entry.batch)
    if _has_succeeded(judged, tally):
        return Fate.DONE
    settled_at = (entry.last_redrive or now) + terms.time_to_fail
    settled_at += timedelta(seconds=settings.verdict_grace_seconds)
    has_left = terms.is_source_empty or (tally is not None and tally.is_gone)
    if now < settled_at or not (has_left or now - settled_at >= _longest(judged, tally, now)):
        return Fate.OUT
    if case.group_view is GroupView.WHOLE:
        return Fate.DONE
    if case.group_view is GroupView.CUT and now < settled_at + CUT_PATIENCE:
        return Fate.OUT  # the next look is likely to show all of it
    if tally is not None and tally.is_unexplained:
        is_over = now >= (entry.last_redrive or now) + terms.time_to_fail + DEDUPLICATION_WINDOW
        return Fate.BACK if is_over else Fate.OUT
    if now < settled_at + LONGEST_OUT or (tally is not None and tally.is_read(now)):
        return Fate.OUT
    return Fate.BACK if tally is None or _has_failed(case, judged, circuit) else Fate.DONE


def _has_succeeded(judged: Judged | None, tally: Tally | None) -> bool:
    """Whether every letter of the batch is done, or was met."""
    is_whole = judged is not None and judged.has_succeeded_as_a_whole
    return is_whole or (tally is not None and tally.is_accounted)


def _longest(judged: Judged | None, tally: Tally | None, now: datetime) -> timedelta:
    """How long a copy may be out while messages are in its source queue, once it had time to fail.

    Where the books can be read they would show that it has left: it is there as long as they don't, and nobody at work.
    """
    is_seen = judged is not None and judged.verdict is not Verdict.NO_EVIDENCE
    if tally is None or not tally.is_read(now):
        return LONGEST_OUT if is_seen else LONGEST_OUT_UNSEEN
    return LONGEST_OUT_UNSEEN if is_seen else timedelta.max


def known_fate(entry: Entry) -> Fate | None:
    """What became of the copy of a kept letter, where its consumer reported the end of it or a pass has met it."""
    if entry.status is Status.RETURNED or (entry.status is Status.REDRIVEN and entry.is_settled):
        return Fate.BACK
    if entry.status in (Status.SUCCEEDED, Status.PARKED):
        return Fate.DONE
    return None


def _has_failed(case: Case, judged: Judged | None, circuit: Circuit) -> bool:
    """Whether anything failed since the copy was sent, where no numbers tell what became of it.

    Not that it failed, unless something else did: sent again and again, one that succeeds would be done each time.
    """
    sent_at = case.last_try
    if circuit.failed_at is not None and sent_at is not None and circuit.failed_at >= sent_at:
        return True
    return judged is not None and judged.verdict is Verdict.FAILURE


def in_order(
    decided: Sequence[tuple[Case, Decision]], terms: Terms, settings: Settings, now: datetime
) -> Iterator[tuple[Case, Decision]]:
    """What becomes of letters, in the order of their receive, when each waits for those before it in its group."""
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
    """Letters near expiry before others that are, as far as can be seen: out and kept, one would bar the way to those.

    Of a group SQS shows ten at most, and none while one of them is hidden: a pass could park no more than nine.
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
    case: Case, decision: Redrive | Hold | Park, reason: HoldReason, terms: Terms, now: datetime
) -> Hold | Park:
    return hold_unless_expiring(case, decision.strikes, reason, terms, now)


def copies_among(cases: Iterable[Case]) -> list[Case]:
    """Letters in hand that came back while what they are copies of is in hand, too: it stands before them in their group.

    What an accepted send has replaced is nothing to be a copy of. One that the ledger does not know, since a write was lost,
    has to have the same body: a consumer may have copied the trail on to a message of its own.
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
    """The letters that stay when their copies are discarded, with what the ledger knows since these were met."""
    known = {case.original_id: case.entry for case in copies}
    gone = {case.message_id for case in copies}
    return [
        replace(case, entry=known.get(case.original_id, case.entry))
        for case in cases
        if case.message_id not in gone
    ]
