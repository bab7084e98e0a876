"""The evidence about one batch before it is judged, from all witnesses. Pure.

Every letter of a batch has succeeded, has failed or is unknown. Only witnesses decide, and they know lower bounds of
the first two. A success needs a deletion. A failure needs a letter that was seen again, or that is neither deleted nor
in its queue any more. The outcomes of producers' own messages at the same time testify for the consumer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum

from smart_redriver.engine.model.batch import Batch, Heard, Judged
from smart_redriver.engine.model.queue_metrics import PERIOD, Account, QueueMetrics, minute_of

#: How far back producers' messages say how often more of them may be expected.
LIVE_LOOKBACK = timedelta(minutes=15)

#: A canary goes when producers' messages succeed. CloudWatch shows that some minutes later, when they may all be done:
#: their outcomes from this long before the canary count as simultaneous.
VOUCHED_BEFORE_CANARY = timedelta(minutes=5)

#: One live success is a coincidence. The more letters failed, the more live successes it takes to outweigh them.
FEWEST_LIVE_SUCCESSES = 2
FAILURES_PER_LIVE_SUCCESS = 15

#: If at least this share of messages fails while others succeed, one kind of message may be broken. A single failure
#: has its own reasons.
MANY_FAIL = 0.1
FEWEST_THAT_FAIL = 2


class LiveOutcome(str, Enum):
    """Outcomes of producers' own messages in the last minutes."""

    UNSEEN = "UNSEEN"
    SUCCEEDS = "SUCCEEDS"
    FAILS = "FAILS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """Outcomes of producers' messages while a batch was out.

    Attributes:
        met: messages that the consumer could receive beside the batch's letters.
        succeeded: how many of these were deleted, at least.
        finished: how many were deleted or moved to the DLQ, at least.
        failed: how many moved to the DLQ, at least.
        per_minute: successes a minute.
        is_expected: producers send often enough that their messages are worth waiting for.

    """

    met: int = 0
    succeeded: int = 0
    finished: int = 0
    failed: int = 0
    per_minute: float = 0.0
    is_expected: bool = False

    @property
    def is_none(self) -> bool:
        """Whether the consumer met none. Where producers send nothing, it met letters of earlier batches."""
        return not (self.met and self.is_expected)

    def vouches_for(self, failed: int, failure_rate: float) -> bool:
        """Whether the consumer is well although `failed` letters came back: too few failed beside them."""
        return self.succeeded >= _enough(failed) and (
            self.met - self.succeeded < failure_rate * self.met
        )

    def has_spoken(self, failed: int) -> bool:
        """Whether enough of these messages have finished to outweigh `failed` letters."""
        if self.finished >= FEWEST_LIVE_SUCCESSES and not self.succeeded:
            return True
        return self.finished >= _enough(failed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The outcomes of one batch, as far as they are known.

    Attributes:
        succeeded, failed: letters of the batch, at least; `failed` counts only letters without strikes.
        suspects_failed: letters with strikes that came back, as expected.
        live: the outcomes of producers' messages meanwhile.
        met, deleted: all messages that the consumer could receive meanwhile, and those that it deleted.
        failed_tries: receives of any message that ended without a delete. `others_failed_tries`: those that our own
            letters can't account for.
        were_tried: no message waits in the source queue that may be our letter and was never received.
        is_still_there: the source queue holds messages, so unknown outcomes may still show.
        has_metrics: the source's metrics cover the time in which its letters were first tried.
        are_metrics_late: they can be read, but do not cover that time yet.
        is_heard: the consumer has reported on the batch's letters.

    """

    succeeded: int = 0
    failed: int = 0
    suspects_failed: int = 0
    live: Live = Live()
    met: int = 0
    deleted: int = 0
    failed_tries: int = 0
    others_failed_tries: int = 0
    were_tried: bool = False
    is_still_there: bool = False
    has_metrics: bool = False
    are_metrics_late: bool = False
    is_heard: bool = False

    def unknown_of(self, batch: Batch) -> int:
        """Letters of the batch whose outcome is unknown."""
        return max(0, batch.size - self.succeeded - self.failed - self.suspects_failed)

    @property
    def is_mixed(self) -> bool | None:
        """Whether many messages without strikes fail while others succeed; None if none succeeds.

        Producers' messages decide if there are any: the letters that are left are those that fail.
        """
        told = self.live if self.live.finished else self
        succeeded, failed = told.succeeded, told.failed
        if not succeeded:
            return None
        return failed >= max(FEWEST_THAT_FAIL, MANY_FAIL * (failed + succeeded))


def gather_evidence(
    batch: Batch,
    others: Sequence[Batch | Judged],
    metrics: QueueMetrics | None,
    *,
    max_receives: int,
    vouched_before: timedelta = timedelta(),
    believes_successes: bool = True,
) -> Evidence:
    """Combine what the consumer's reports, the returns and the source's metrics say about `batch`.

    Args:
        batch: includes the returns seen and the outcomes reported so far.
        others: the queue's other batches; its metrics include their letters, too.
        metrics: None if CloudWatch could not be read; that makes the verdict slower, never bolder.
        max_receives: how often a message is received before SQS moves it to the DLQ.
        vouched_before: outcomes of producers' messages from this long before the batch testify for the consumer, too.
        believes_successes: reported successes count, and not only those in the metrics.

    """
    seen = _seen(batch, others, metrics, max_receives, vouched_before)
    if not believes_successes:
        batch = replace(batch, heard=replace(batch.heard, succeeded=0))
    return _with_reports(seen, batch, max_receives)


def _with_reports(seen: Evidence, batch: Batch, max_receives: int) -> Evidence:
    """Return the larger of what was seen and what was heard: each knows only some of the letters.

    A letter that the consumer parked was deleted, so the metrics show a success. It is none: a consumer that considers
    everything unhealable must get no more letters.
    """
    heard = batch.heard
    if heard == Heard():
        return seen
    failed = min(batch.size, max(seen.failed, heard.failed) + heard.parked)
    suspects_failed = max(seen.suspects_failed, heard.suspects_failed)
    return replace(
        seen,
        succeeded=max(
            min(seen.succeeded, max(0, batch.size - failed - suspects_failed)),
            min(heard.succeeded, batch.size - batch.seen_again),
        ),
        failed=failed,
        suspects_failed=suspects_failed,
        deleted=max(seen.deleted, heard.succeeded),
        failed_tries=max(
            seen.failed_tries,
            heard.tries if seen.has_metrics else _telling_tries(heard, batch.size, max_receives),
        ),
        is_heard=True,
    )


def _telling_tries(heard: Heard, size: int, max_receives: int) -> int:
    """Failed tries that count while no metrics say whether anything was deleted.

    Many tries of one letter say nothing about the others: each letter counts once, unless the whole batch has failed.
    """
    letters = max(
        sum(one.letters for one in heard.causes), math.ceil(heard.tries / max(1, max_receives))
    )
    return heard.tries if letters >= size else letters


def _seen(
    batch: Batch,
    others: Sequence[Batch | Judged],
    metrics: QueueMetrics | None,
    max_receives: int,
    vouched_before: timedelta,
) -> Evidence:
    seen = Evidence(failed=batch.returned, suspects_failed=batch.suspects_returned)
    if metrics is None:
        return seen
    start = minute_of(batch.sent_at)
    sent_before = _sent_before(metrics, others, start)
    account = metrics.account(start)
    if account is None or account.until <= batch.first_try_at:
        return replace(seen, live=Live(is_expected=sent_before > 0), are_metrics_late=True)
    ours = [batch, *(one for one in others if one.id != batch.id and one.sent_at >= start)]
    others_met = max(0, account.met - batch.size)
    has_metrics = account.until >= batch.tried_by + PERIOD
    moved = max(0, account.moved - others_met) if has_metrics else 0
    return Evidence(
        succeeded=min(_surely_done(batch, others, metrics), batch.size - batch.seen_again),
        failed=max(batch.returned, min(moved, batch.size) - batch.suspects),
        suspects_failed=batch.suspects_returned,
        live=_live(batch, others, metrics, start - vouched_before),
        met=account.met,
        deleted=account.deleted,
        failed_tries=account.failed_tries,
        others_failed_tries=max(0, account.failed_tries - max_receives * _out(ours, others)),
        were_tried=_were_tried(batch, account),
        is_still_there=account.left > 0,
        has_metrics=has_metrics,
        are_metrics_late=not has_metrics,
    )


def _surely_done(batch: Batch, others: Sequence[Batch | Judged], metrics: QueueMetrics) -> int:
    """Letters of the batch that were deleted for sure, even if all other messages that have not come back were, too.

    Several spans may show this: from this batch on; from an earlier batch on, because letters that came back were not
    deleted; and from this batch to the next, whose letters were not deleted yet.
    """
    start = minute_of(batch.sent_at)
    others = [one for one in others if one.id != batch.id and start - LIVE_LOOKBACK <= one.sent_at]
    sent = {minute_of(one.sent_at) for one in others}
    starts = {start, *(at for at in sent if at < start)}
    after = min((at for at in sent if at > start), default=None)
    accounts = [metrics.account(at) for at in starts]
    if after is not None:
        accounts.append(metrics.account(start, after))
    return max(_done_within(batch.size, others, account) for account in accounts)


def _done_within(size: int, others: Iterable[Batch | Judged], account: Account | None) -> int:
    if account is None:
        return 0
    others_failed = sum(one.seen_again for one in others if _is_counted(one, account))
    others_met = max(0, account.met - size)
    return max(0, account.done - max(0, others_met - others_failed))


def _is_counted(batch: Batch | Judged, account: Account) -> bool:
    """Whether the account includes the sends of all its letters: they take seconds and may count a minute later."""
    return account.since <= batch.sent_at <= account.until - PERIOD


def _out(ours: Iterable[Batch | Judged], others: Iterable[Batch | Judged]) -> int:
    """Letters of ours that may have been tried: those sent since then, and those of earlier batches that may be out."""
    since = {one.id: one.size for one in ours}
    earlier = (one for one in others if one.id not in since)
    return sum(since.values()) + sum(
        max(0, (one.size if isinstance(one, Batch) else one.unaccounted) - one.seen_again)
        for one in earlier
    )


def _live(
    batch: Batch, others: Sequence[Batch | Judged], metrics: QueueMetrics, start: datetime
) -> Live:
    """Return the outcomes of producers' messages since `start`."""
    account = metrics.account(start)
    if account is None:
        return Live()
    sent_before = _sent_before(metrics, others, start)
    met_ones = (one for one in others if start <= one.sent_at < account.until)
    ours = [batch, *(one for one in met_ones if one.id != batch.id)]
    size = sum(one.size for one in ours)
    met = max(0, account.met - size)
    may_be_ours = size - sum(one.seen_again for one in ours)
    succeeded = min(met, max(0, account.done - may_be_ours))
    minutes = max(1.0, (account.until - start) / PERIOD)
    return Live(
        met=met,
        succeeded=succeeded,
        finished=max(succeeded, min(met, account.done + account.moved - size)),
        # Messages present when the span began may be letters of earlier batches.
        failed=max(0, min(met, account.moved - size - account.present)),
        per_minute=succeeded / minutes,
        is_expected=account.sent > size or sent_before > 0,
    )


def _sent_before(metrics: QueueMetrics, others: Iterable[Batch | Judged], start: datetime) -> int:
    """Producers' messages in the quarter of an hour before `start`."""
    since = start - LIVE_LOOKBACK
    account = metrics.account(since, start)
    ours = sum(one.size for one in others if since <= one.sent_at < start)
    return max(0, account.sent - ours) if account else 0


def _were_tried(batch: Batch, account: Account) -> bool:
    """Whether the messages that wait now came after the batch's letters: they are few enough for a minute's work."""
    return account.waiting <= account.deleted_lately and account.until >= batch.tried_by + PERIOD


def _enough(failed: int) -> int:
    return max(FEWEST_LIVE_SUCCESSES, math.ceil(failed / FAILURES_PER_LIVE_SUCCESS))


def live_outcome(metrics: QueueMetrics | None, since: datetime, our_tries: int = 0) -> LiveOutcome:
    """Return the outcomes of all messages in the last minutes, letters and others.

    Args:
        metrics: None if CloudWatch could not be read.
        since: when the last judged batch was sent; no verdict rests on anything later.
        our_tries: failed tries that letters of judged batches may account for; a verdict has counted them already.

    The shortest span that has something to say decides, so that the end of an outage shows at once.

    """
    if metrics is None or not metrics.minutes:
        return LiveOutcome.UNSEEN
    end = metrics.minutes[-1].at + PERIOD
    for span in (timedelta(minutes=3), LIVE_LOOKBACK):
        account = metrics.account(max(since + PERIOD, end - span))
        if account is None:
            continue
        failed = max(0, account.failed_tries - account.present)
        if account.deleted >= FEWEST_LIVE_SUCCESSES and account.deleted > failed:
            return LiveOutcome.SUCCEEDS
        if not account.deleted and account.failed_tries - our_tries >= FEWEST_LIVE_SUCCESSES:
            return LiveOutcome.FAILS
    return LiveOutcome.UNSEEN
