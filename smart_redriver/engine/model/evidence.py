"""The evidence about one batch before it is judged, from all witnesses. Pure.

Every letter of a batch is succeeded, failed or unknown. A witness knows lower bounds of the first two, and nobody
else decides: a success is counted only where a deletion was, a failure where a letter was seen again or is neither
deleted nor in its queue any more. What producers' own messages met at the same time testifies for the consumer.
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

#: A canary goes when producers' messages succeed; known some minutes later, they may all be done by then. What they
#: met so long before it counts as at the same time.
VOUCHED_BEFORE_CANARY = timedelta(minutes=5)

#: One live success is a coincidence. More letters that failed want more of them to be outweighed.
FEWEST_LIVE_SUCCESSES = 2
FAILURES_PER_LIVE_SUCCESS = 15

#: Where at least such a share of messages fails while others succeed, a kind of them may be broken.
#: One that fails has its own reasons.
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
        met: messages that the consumer could meet beside the batch's letters.
        succeeded: those of them that were deleted, at least.
        finished: those of them that were deleted or moved to the DLQ, at least.
        failed: those of them that moved to the DLQ, at least.
        per_minute: successes a minute.
        is_expected: producers send here often enough for their word to be worth waiting for.

    """

    met: int = 0
    succeeded: int = 0
    finished: int = 0
    failed: int = 0
    per_minute: float = 0.0
    is_expected: bool = False

    def vouches_for(self, failed: int, failure_rate: float) -> bool:
        """Whether the consumer is well although `failed` letters came back: too few failed beside them."""
        return self.succeeded >= _enough(failed) and (
            self.met - self.succeeded < failure_rate * self.met
        )

    def has_spoken(self, failed: int) -> bool:
        """Whether as many of them have come to an end as can outweigh `failed` letters."""
        if self.finished >= FEWEST_LIVE_SUCCESSES and not self.succeeded:
            return True
        return self.finished >= _enough(failed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The outcomes of one batch, as far as they are known.

    Attributes:
        succeeded, failed: letters of the batch, at least; of the failed only those without strikes.
        suspects_failed: letters with strikes that came back, which was to be expected of them.
        live: what producers' messages met meanwhile.
        met, deleted: all messages that the consumer could meet meanwhile, and those it was done with.
        failed_tries: receives of any message that came to nothing. `others_failed_tries`: more of them than our own
            letters can account for.
        were_tried: nothing waits in the source queue that may be ours and was never received.
        is_still_there: messages are in the source queue, so that what is unknown may still show.
        has_metrics: the source's metrics cover the time in which its letters were first tried.
        are_metrics_late: they can be read, and do not yet.
        is_heard: the consumer has reported of its letters.

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
        """Letters of the batch of which nothing is known."""
        return max(0, batch.size - self.succeeded - self.failed - self.suspects_failed)

    @property
    def is_mixed(self) -> bool | None:
        """Whether many fail of whom nothing was known while others succeed; None where nobody succeeds.

        Producers' messages tell it where there are any: of letters, those are left that fail.
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
    """Put together what the consumer's reports, the returns and the source's metrics say of `batch`.

    Args:
        batch: with the returns that were seen and the outcomes that were heard so far.
        others: the further batches of the queue, whose letters are in its metrics, too.
        metrics: None where CloudWatch could not be asked; that makes the verdict slower, never bolder.
        max_receives: of one message, before SQS moves it to the DLQ.
        vouched_before: what producers' messages met so long before the batch testifies for the consumer, too.
        believes_successes: reported ones count, and not those in the metrics alone.

    """
    seen = _seen(batch, others, metrics, max_receives, vouched_before)
    if not believes_successes:
        batch = replace(batch, heard=replace(batch.heard, succeeded=0))
    return _with_reports(seen, batch, max_receives)


def _with_reports(seen: Evidence, batch: Batch, max_receives: int) -> Evidence:
    """Return the larger of what was seen and what was heard: each knows only some of the letters.

    A letter that the consumer parked was deleted, and so it stands in the metrics as a success. It is none: a consumer
    that takes everything for unhealable is to be given no more.
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
    """Failed tries where no metrics say whether anything was deleted: of one letter many say nothing of the others.

    Each letter counts once, unless all of the batch have failed.
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
    """Letters of the batch that were deleted, even if all other messages were that have not come back.

    Several spans may tell. From the batch on; from one before it on, as letters that came back were not deleted; and
    until the one after it, of which nothing was deleted yet.
    """
    start = minute_of(batch.sent_at)
    sent = {minute_of(one.sent_at) for one in others if one.id != batch.id}
    starts = {start, *(at for at in sent if start - LIVE_LOOKBACK <= at < start)}
    after = min((at for at in sent if at > start), default=None)
    accounts = [metrics.account(at) for at in starts]
    if after is not None:
        accounts.append(metrics.account(start, after))
    return max(_done_within(batch, others, account) for account in accounts)


def _done_within(batch: Batch, others: Iterable[Batch | Judged], account: Account | None) -> int:
    if account is None:
        return 0
    others_failed = sum(
        one.seen_again for one in others if one.id != batch.id and _is_counted(one, account)
    )
    others_met = max(0, account.met - batch.size)
    return max(0, account.done - max(0, others_met - others_failed))


def _is_counted(batch: Batch | Judged, account: Account) -> bool:
    """Whether the account has the sends of all of its letters, which take seconds, and may count in the minute after."""
    return account.since <= minute_of(batch.sent_at) and batch.sent_at + PERIOD <= account.until


def _out(ours: Iterable[Batch | Judged], others: Iterable[Batch | Judged]) -> int:
    """Letters of ours that can have been tried: those sent since then, and of earlier batches what may still be out."""
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
    """Whether what waits now came after the batch's letters: it is worked off within the minute, or it is nothing."""
    return account.waiting <= account.deleted_lately and account.until >= batch.tried_by + PERIOD


def _enough(failed: int) -> int:
    return max(FEWEST_LIVE_SUCCESSES, math.ceil(failed / FAILURES_PER_LIVE_SUCCESS))


def live_outcome(metrics: QueueMetrics | None, since: datetime) -> LiveOutcome:
    """Return the outcomes of all messages in the last minutes, letters and others.

    Args:
        metrics: None where CloudWatch could not be asked.
        since: what was before says nothing any more: the circuit's last change.

    The shortest span that has something to say is heard, so that an outage's end shows at once.

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
        if not account.deleted and account.failed_tries >= FEWEST_LIVE_SUCCESSES:
            return LiveOutcome.FAILS
    return LiveOutcome.UNSEEN
