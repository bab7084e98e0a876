"""The state that the steps of one pass share: the measured queues, the source contexts, and the effects so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.messages.queue_facts import QueueFacts
from smart_redriver.engine.passes.executor import Effects
from smart_redriver.engine.passes.ports import Tools, renewing
from smart_redriver.engine.passes.source_context import SourceContext
from smart_redriver.engine.triage.case import Case
from smart_redriver.engine.triage.decision import NO_KNOWN_MOMENT, Decision, Hold, HoldReason, Renew
from smart_redriver.engine.triage.retention import SHORTEST_RENEWED, calm_margin, urgent_margin
from smart_redriver.engine.triage.triage import Terms, failed_at

#: Letters stay hidden this much longer than the pass can last.
HIDDEN_MARGIN = timedelta(seconds=30)


@dataclass(kw_only=True)
class PassState:
    """One pass under way. Only the thread of the pass touches it.

    Attributes:
        deadline: when the pass must have stopped by itself.
        is_dry: nothing is applied: no lease, no write, no letter moves.
        effects: everything done so far. `faults`: calls that failed.
        heard: counts of reported outcomes, by result, or by the reason for leaving them out.
        has_unread_reports: more reports may wait than the pass has read.
        oldest: the first send of the oldest letter that was seen and has no new clock.
        last_chances: holds of suspects until their last chance, and of letters until the canary of their cause.
        waiting, waiting_since: letters that were left without a known end, and since when the oldest has been there.
        blocking: how many of these are poison that blocks its message group.

    """

    tools: Tools
    settings: Settings
    deadline: datetime
    is_dry: bool
    is_paused: bool
    dlq: QueueFacts
    parking_lot: QueueFacts
    contexts: tuple[SourceContext, ...]
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
    blocking: int = 0

    def is_over(self) -> bool:
        """Whether it has to stop."""
        return self.tools.clock() >= self.deadline

    def hidden_for(self) -> timedelta:
        """Return how long a letter received now stays hidden: until this pass is surely over."""
        return max(self.deadline - self.tools.clock(), timedelta()) + HIDDEN_MARGIN

    def context_of(self, case: Case) -> SourceContext:
        """Return the context of the letter's queue; the first one for a letter of no known queue."""
        metadata = case.letter.metadata
        for context in self.contexts:
            if context.source.owns(case.source_arn, metadata):
                return context
        return self.contexts[0]

    def name_of(self, case: Case) -> str:
        """The name of the source queue that the letter belongs to."""
        return self.context_of(case).source.name

    def by_context(self, cases: Sequence[Case]) -> Iterator[tuple[SourceContext, list[Case]]]:
        """The letters of each context that has some."""
        if len(self.contexts) == 1:
            if cases:
                yield self.contexts[0], list(cases)
            return
        for context in self.contexts:
            if some := [case for case in cases if self.context_of(case) is context]:
                yield context, some

    def terms(self, context: SourceContext) -> Terms:
        """Return what triage has to know about the queues, for letters of one source queue."""
        by_arn = {one.known_facts.arn: one for one in self.contexts}
        return terms_of(
            context,
            by_arn,
            self.dlq.retention,
            is_flowing=context.is_flowing,
            can_renew=self.dlq.retention >= SHORTEST_RENEWED
            and renewing(self.tools.dead_letters) is not None,
        )

    def version_to_mark(self, cases: Sequence[Case]) -> int:
        """Return the version with which returns among these letters are marked: their context's circuit's."""
        contexts = [context for context, _ in self.by_context(cases)] or [self.contexts[0]]
        return min(context.keeper.version for context in contexts)

    def saw_letter(self, case: Case, what: Decision | None, now: datetime) -> None:
        """Note a letter that was examined, and what was decided about it."""
        self.examined += 1
        if fault := case.letter.metadata_fault:
            self.tools.journal("trail.ignored", message_id=case.message_id, reason=fault)
        is_renewed = isinstance(what, Renew) and not self.is_dry
        sent_at = now if is_renewed else min(case.letter.sent_at, now)
        self.oldest = min(self.oldest or sent_at, sent_at)

    def left(self, case: Case, hold: Hold, terms: Terms, now: datetime) -> None:
        """Note a letter that stays in the DLQ."""
        if hold.reason in (HoldReason.LAST_CHANCE, HoldReason.CAUSE):
            self.last_chances.append(hold)
        elif hold.reason in NO_KNOWN_MOMENT:
            self.waits(case, terms, now)
            self.blocking += hold.reason is HoldReason.BLOCKED

    def waits(self, case: Case, terms: Terms, now: datetime) -> None:
        """Note a letter that is left without a known end."""
        self.waiting += 1
        since = failed_at(case, terms, now)
        self.waiting_since = min(self.waiting_since or since, since)

    def did(self, effects: Effects) -> None:
        """Add up what a step has done, and log it."""
        for event, fields in effects.events:
            self.tools.journal(event, **fields)
        effects.events = []  # logged; a pass may have fifty thousand
        if (sent_at := effects.not_renewed) is not None:
            self.oldest = min(self.oldest or sent_at, sent_at)
        self.effects.add(effects)
        for fault in (*effects.faults, *effects.healed):
            self.tools.journal(
                "entry.failed", call=fault.call, code=fault.code, message_id=fault.key
            )

    def failed(self, failed: CallFailed) -> None:
        """Note a call that failed, and log it."""
        self.faults.append(failed)
        self.tools.tell_failed(failed)
        if failed.left:
            self.did(Effects(faults=[*failed.left]))


#: Letters that can't be delayed go a minute's worth at a time, as there is one pass a minute.
FIFO_AHEAD = timedelta(minutes=1)
#: Letters that the pass itself delivers at a pace go this many seconds' worth at a time: a pass has to end.
DELIVERED_AHEAD = timedelta(seconds=20)


#: A letter that waits in a queue ages there: it may spend this share of the queue's retention waiting, and the rest is
#: left to its consumer.
SHARE_SPENT_WAITING = 0.5


def terms_of(
    context: SourceContext,
    contexts: Mapping[str, SourceContext],
    retention: timedelta,
    *,
    is_flowing: bool,
    can_renew: bool = False,
) -> Terms:
    """Return what triage has to know about the queues, for letters of one source queue.

    Args:
        contexts: all of them, by their queues' ARNs.
        retention: of the DLQ.
        is_flowing: whether a letter that stays is likely to go soon.
        can_renew: see `Terms`.

    """
    is_fifo, longest_delay = context.known_facts.is_fifo, _longest_delay(context)
    ahead = longest_delay or (FIFO_AHEAD if is_fifo else DELIVERED_AHEAD)
    return Terms(
        destinations={arn: one.known_facts.max_message_size for arn, one in contexts.items()},
        home=context.known_facts.arn,
        retention=retention,
        margin=urgent_margin(retention) if is_flowing else calm_margin(retention),
        time_to_fail=context.time_to_fail(),
        is_fifo=is_fifo,
        can_renew=can_renew,
        is_source_empty=context.known_facts.depth == 0,
        longest_delay=longest_delay,
        ahead=ahead if context.ahead is None else context.ahead,
    )


def _longest_delay(context: SourceContext) -> timedelta:
    """Return how long a sent letter may be kept from its consumer: SQS deletes it after its queue's retention.

    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html
    """
    retention = context.known_facts.retention
    if not retention:  # not of a queue
        return context.source.longest_delay
    return min(context.source.longest_delay, retention * SHARE_SPENT_WAITING)
