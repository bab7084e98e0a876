"""The executor of a pass, which acts on letters, and its effects as a value for the log, the report and the batch.

The live executor is in `apply`, and the dry run's in `dry_run`; both report what they did in the same way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Protocol, TypeVar

from smart_redriver.engine.errors import CallFailed, EntryFault
from smart_redriver.engine.messages.queue_facts import QueueFacts
from smart_redriver.engine.model.batch import Batch, CauseCount, Heard
from smart_redriver.engine.model.fifo_counts import BatchCounts
from smart_redriver.engine.passes.ports import Source
from smart_redriver.engine.triage.case import Case
from smart_redriver.engine.triage.decision import Decision, Discard, Hold, Park, Redrive, Renew
from smart_redriver.engine.triage.ordered import is_out_of_sight


@dataclass(frozen=True, slots=True)
class Sending:
    """One letter of a batch that its source accepted.

    `has_succeeded` is known if the source's answer is the outcome; if that is a failure, `cause` is the answer.
    `is_unseen`: the letter would come back out of sight.
    """

    source: str
    delay: timedelta
    is_suspect: bool
    has_succeeded: bool | None = None
    cause: str | None = None
    is_unseen: bool = False


def settled(batch: Batch, sendings: Sequence[Sending]) -> Batch:
    """The batch with its source's answers to deliveries.

    A success counts as if the consumer had reported it; a failed letter has never left the DLQ,
    and is seen again there.
    """
    outcomes = Counter((one.has_succeeded, one.is_suspect) for one in sendings)
    causes = Counter(one.cause for one in sendings if one.cause is not None)
    returned, suspects_returned = outcomes[False, False], outcomes[False, True]
    told = Heard(
        succeeded=outcomes[True, False] + outcomes[True, True],
        tries=returned + suspects_returned,
        causes=tuple(CauseCount(cause=one, letters=many) for one, many in causes.items()),
    )
    return replace(
        batch,
        returned=batch.returned + returned,
        suspects_returned=batch.suspects_returned + suspects_returned,
        heard=batch.heard + told,
    )


def completed(
    batch: Batch, sendings: Sequence[Sending], now: datetime, time_to_count: timedelta
) -> Batch:
    """The batch with all its letters, once the last has gone out.

    Args:
        time_to_count: the time from a letter's first try until its failure can be counted.

    """
    delays = [one.delay for one in sendings]
    last_try_at = now + max(delays)
    return replace(
        settled(batch, sendings),
        size=len(delays),
        suspects=sum(one.is_suspect for one in sendings),
        first_try_at=batch.sent_at + min(delays),
        last_try_at=last_try_at,
        due_at=last_try_at + time_to_count,
        is_complete=True,
    )


def batch_counts_of(batch: Batch, sendings: Sequence[Sending]) -> BatchCounts:
    """The numbers of a batch whose letters are kept until their outcome is known."""
    unseen = [one for one in sendings if one.is_unseen]
    return BatchCounts(
        batch=batch.id,
        sent_at=batch.sent_at,
        sent_by=batch.tried_by,
        due_at=batch.due_at,
        size=batch.size,
        unseen=len(unseen),
        suspects=sum(one.is_suspect for one in unseen),
    )


Event = tuple[str, dict[str, Any]]


@dataclass(slots=True)
class Effects:
    """The effects of a step. Steps that run side by side make one each; the pass adds them up.

    Attributes:
        counts: letters by what was done with them, in the report's words.
        parked, held: letters by reason.
        sendings: the letters that were redriven.
        faults: entries that were not accepted. `healed`: entries that were accepted at another try.
        removed: letters that left the DLQ.
        not_renewed: the first send of the oldest letter that should have been renewed but could not be for the moment.
        bounced: letters that stay in the DLQ because their target took them and failed.
        stuck: letters that stay in the DLQ because neither their source nor the parking lot accepts them as they are.
        refusals: by source queue, the code with which it refused letters.
        is_cut: the pass ended before all decisions were carried out; the other letters are unchanged.
        failure: the failed call that ended the step; everything before it stands.

    """

    events: list[Event] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    parked: Counter[str] = field(default_factory=Counter)
    held: Counter[str] = field(default_factory=Counter)
    faults: list[EntryFault] = field(default_factory=list)
    healed: list[EntryFault] = field(default_factory=list)
    sendings: list[Sending] = field(default_factory=list)
    removed: int = 0
    not_renewed: datetime | None = None
    bounced: list[Case] = field(default_factory=list)
    stuck: list[Case] = field(default_factory=list)
    refusals: dict[str, str] = field(default_factory=dict)
    is_cut: bool = False
    failure: CallFailed | None = None

    def add(self, other: Effects) -> None:
        """Add what another step has done."""
        self.events += other.events
        self.counts += other.counts
        self.parked += other.parked
        self.held += other.held
        self.faults += other.faults
        self.healed += other.healed
        self.sendings += other.sendings
        self.removed += other.removed
        left = [at for at in (self.not_renewed, other.not_renewed) if at is not None]
        self.not_renewed = min(left, default=None)
        self.bounced += other.bounced
        self.stuck += other.stuck
        self.refusals |= other.refusals
        self.is_cut |= other.is_cut
        self.failure = self.failure or other.failure

    def tell(self, event: str, case: Case, reason: str, **more: object) -> None:
        """Note for the log what was done with a letter."""
        self.events.append(
            (
                event,
                {
                    "message_id": case.message_id,
                    "original_id": case.original_id,
                    "redrive_count": case.redrives,
                    "reason": reason,
                    **more,
                },
            )
        )

    def saw(self, faults: Sequence[EntryFault]) -> None:
        """Note entries that were not accepted."""
        self.faults += faults


Decided = Sequence[tuple[Case, Decision]]
D = TypeVar("D", Redrive, Park, Renew, Hold, Discard)


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """A source that letters can go back to, their batch, and the circuit's `version` that has the batch."""

    source: Source
    facts: QueueFacts
    batch: Batch | None = None
    version: int = 0


class Executor(Protocol):
    """The acts of a pass on letters. A dry run's executor does nothing and reports the same."""

    def carry_out(
        self,
        decided: Decided,
        destinations: Mapping[str, Destination],
        now: datetime,
        *,
        version_to_mark: int | None,
        is_one_of_many: bool = False,
    ) -> Effects: ...
    def mark_returns(self, cases: Sequence[Case], version: int, now: datetime) -> list[Case]: ...
    def discard(self, discards: Sequence[tuple[Case, Discard]]) -> Effects: ...
    def release(self, cases: Sequence[Case]) -> Effects: ...


def only(decided: Decided, kind: type[D]) -> list[tuple[Case, D]]:
    """The letters of one kind of decision."""
    return [(case, what) for case, what in decided if isinstance(what, kind)]


def marked_returns(
    cases: Sequence[Case], version: int, now: datetime, name_of: Callable[[Case], str]
) -> list[Case]:
    """The letters, with returns marked as such."""
    return [
        replace(
            case,
            entry=case.known(name_of(case)).returned(
                message_id=case.message_id, version=version, now=now
            ),
        )
        if case.is_unseen_return(version)
        else case
        for case in cases
    ]


def count_redrives(
    effects: Effects,
    name: str,
    redrives: Sequence[tuple[Case, Redrive]],
    *,
    settles_at_once: bool,
) -> None:
    """Count letters that were redriven to the source of this name, and log each."""
    has_succeeded = True if settles_at_once else None

    @cache  # most in a round are alike, and a pass keeps those of all its letters
    def sending(delay: timedelta, is_suspect: bool, is_unseen: bool) -> Sending:
        return Sending(name, delay, is_suspect, has_succeeded=has_succeeded, is_unseen=is_unseen)

    effects.counts["redriven"] += len(redrives)
    for case, decision in redrives:
        effects.sendings.append(sending(decision.delay, decision.is_suspect, is_out_of_sight(case)))
        effects.tell("letter.redriven", case, decision.reason, delay=decision.delay.seconds)


def count_renewals(effects: Effects, renewals: Sequence[tuple[Case, Renew]]) -> None:
    """Count letters that were sent to the queue they are in once more, and log each."""
    effects.counts["renewed"] += len(renewals)
    for case, decision in renewals:
        effects.tell("letter.renewed", case, decision.reason)


def count_holds(effects: Effects, holds: Sequence[tuple[Case, Hold]]) -> None:
    """Count letters that stay in the DLQ, and log each."""
    for case, hold in holds:
        effects.held[hold.reason.value] += 1
        effects.tell("letter.held", case, hold.reason.value)
