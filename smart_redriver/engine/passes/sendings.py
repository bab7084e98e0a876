"""The letters of a batch that went out, and the batch that they make."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from smart_redriver.engine.model.batch import Batch, CauseCount, Heard
from smart_redriver.engine.model.tally import Tally


@dataclass(frozen=True, slots=True)
class Sending:
    """One letter of a batch that its source took.

    `has_succeeded` is known where the source's answer is the outcome; `cause` is that answer, where it is a failure.
    `is_unseen`: it would come back out of sight.
    """

    source: str
    delay: timedelta
    is_suspect: bool
    has_succeeded: bool | None = None
    cause: str | None = None
    is_unseen: bool = False


def settled(batch: Batch, sendings: Sequence[Sending]) -> Batch:
    """The batch with what its source has answered of deliveries.

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
    """The batch with all that it has, once its last letter went out.

    Args:
        time_to_count: from a letter's first try to the moment when, having failed, it can be counted.

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


def tally_of(batch: Batch, sendings: Sequence[Sending]) -> Tally:
    """The numbers of a batch whose letters are kept until it is known what became of them."""
    unseen = [one for one in sendings if one.is_unseen]
    return Tally(
        batch=batch.id,
        sent_at=batch.sent_at,
        sent_by=batch.tried_by,
        due_at=batch.due_at,
        size=batch.size,
        unseen=len(unseen),
        suspects=sum(one.is_suspect for one in unseen),
    )
