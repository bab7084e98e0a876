"""The verdict on one batch: ordered rules, the first that applies. Pure: evidence in, verdict out.

`docs/verdicts.md` says the same in prose. Success is shown, never presumed: an outcome that is still unknown when its
time is up is no evidence. A verdict falls as soon as it is certain, in either direction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.model.batch import Batch, Verdict
from smart_redriver.engine.model.evidence import Evidence

#: How long a verdict may wait for letters that are still in the source queue when all had time to fail.
LONGEST_WAIT = timedelta(hours=2)

#: The same wait if the source's metrics can't be read at all: a verdict that nothing can acquit is not worth hours.
LONGEST_WAIT_WITHOUT_METRICS = timedelta(minutes=10)

#: The same wait for metrics that can be read but do not cover that time yet: CloudWatch takes up to 15 minutes for a
#: queue that was long unused, and more in its bad hours.
#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/monitoring-using-cloudwatch.html
LONGEST_WAIT_FOR_LATE_METRICS = timedelta(minutes=20)

#: How long to wait for producers' messages when letters came back and the consumer may be well.
LIVE_PATIENCE = timedelta(minutes=20)

#: If this many producers' messages succeed beside a canary, they have shown what further canaries would show.
MANY_LIVE_SUCCESSES = 15

#: Failed tries that show a failure: a single one may be chance.
FEWEST_FAILED_TRIES = 2

#: If nearly half of a batch comes back, the consumer may have gone up and down during it. A success is clear if fewer
#: letters came back than this share of what makes a failure.
CLEAR_SHARE = 0.8

#: If this many times as many suspects came back, a letter without strikes that came back with them is no outage.
FEW_AMONG_SUSPECTS = 3

#: If at least this share of a batch succeeded, the consumer is up: an outage spares no letter. The letters that came
#: back may be poison.
MIXED_SHARE = 0.1

#: A success may multiply the window by this: if the letters themselves show it, or if others vouch for it.
GROWTH_WHERE_SHOWN = 4
GROWTH_WHERE_VOUCHED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The verdict on one batch.

    Attributes:
        verdict: None while it has to wait.
        is_strike: whether a return from this batch speaks against the letter.
        is_clear: clearly too few came back for a failure, or others vouch for the consumer.
        was_alone: letters that may be poison came back, and no message succeeded to compare them with.
        overturned_at: for a success shown by the batch itself, how many returns would overturn it; else 0.
        growth: the factor by which the window may grow.
        shown_window: for a mixture, the window that its successes have shown to be safe; else 0.
        is_overload: its letters were too many at once.
        vouched_per_minute: producers' messages that succeed a minute: letters at that rate are safe, too.
        is_beyond_doubt: so many producers' messages succeeded that no further canary could show more.

    """

    verdict: Verdict | None
    reason: str
    is_strike: bool = False
    is_clear: bool = False
    was_alone: bool = False
    overturned_at: int = 0
    growth: int = 1
    shown_window: int = 0
    is_overload: bool = False
    vouched_per_minute: float = 0.0
    is_beyond_doubt: bool = False

    @property
    def is_mixture(self) -> bool:
        """Whether as many messages failed as in an outage, but others succeeded."""
        return self.shown_window > 0


def weigh(
    batch: Batch,
    evidence: Evidence,
    settings: Settings,
    now: datetime,
    *,
    is_canary: bool,
    was_up: bool,
) -> Judgement:
    """Judge `batch`, or say why the verdict has to wait. `was_up`: see `Circuit.was_up`."""
    if not batch.is_complete:
        return _unfinished(batch, settings, now)
    return (
        _shown_success(batch, evidence, settings)
        or _vouched_success(batch, evidence, settings)
        or _mixture(batch, evidence, settings, now, is_canary=is_canary)
        or _shown_failure(batch, evidence, settings, now, was_up=was_up)
        or _nothing_but_failed_tries(batch, evidence, settings, now, was_up=was_up)
        or _unknown(batch, evidence, now)
    )


def _unfinished(batch: Batch, settings: Settings, now: datetime) -> Judgement:
    """A batch whose pass died: how many letters were sent is not known, so nothing can acquit it."""
    if batch.returned and batch.returned >= settings.failure_rate * batch.size:
        return Judgement(verdict=Verdict.FAILURE, reason=f"{batch.returned} returned")
    if now >= batch.due_at:
        return Judgement(verdict=Verdict.NO_EVIDENCE, reason="the pass that sent it did not finish")
    return Judgement(verdict=None, reason="letters may still return")


def _shown_success(batch: Batch, evidence: Evidence, settings: Settings) -> Judgement | None:
    """So many succeeded that the verdict stands even if every unknown letter fails."""
    succeeded = evidence.succeeded
    # Suspects are expected to return, so unknown outcomes are attributed to them first.
    unknown = batch.size - succeeded - max(batch.suspects, evidence.suspects_failed)
    worst = max(evidence.failed, unknown)
    weight = succeeded + worst
    # Beside suspects that came back, one more letter is more likely a suspect than half of an outage.
    is_one_more = worst == 1 and evidence.suspects_failed >= FEW_AMONG_SUSPECTS
    if not succeeded or (worst >= settings.failure_rate * weight and not is_one_more):
        return None
    is_clear = is_one_more or worst < CLEAR_SHARE * settings.failure_rate * weight
    return Judgement(
        verdict=Verdict.SUCCESS,
        reason=f"{succeeded} of {batch.size} succeeded",
        is_strike=is_clear or evidence.live.is_none,
        is_clear=is_clear,
        # More letters must return than this verdict counted as failed: the evidence it rests on can't overturn it.
        overturned_at=max(math.ceil(settings.failure_rate * weight), worst + 1),
        growth=GROWTH_WHERE_SHOWN,
        vouched_per_minute=evidence.live.per_minute,
        is_beyond_doubt=evidence.live.succeeded >= MANY_LIVE_SUCCESSES,
    )


def _vouched_success(batch: Batch, evidence: Evidence, settings: Settings) -> Judgement | None:
    """Producers' messages succeed meanwhile: the consumer is well, and letters that come back are at fault."""
    live = evidence.live
    came_back = evidence.failed + evidence.suspects_failed
    were_tried = evidence.were_tried or came_back >= batch.size
    outweighs_all = evidence.met - evidence.deleted < settings.failure_rate * evidence.met
    by_all = outweighs_all and live.met >= batch.size and live.succeeded > 0
    if not were_tried or not (by_all or live.vouches_for(came_back, settings.failure_rate)):
        return None
    messages = "live message" if live.succeeded == 1 else "live messages"
    return Judgement(
        verdict=Verdict.SUCCESS,
        reason=f"{came_back} of {batch.size} returned, but {live.succeeded} {messages} succeeded",
        is_strike=True,
        is_clear=True,
        growth=GROWTH_WHERE_VOUCHED,
        vouched_per_minute=live.per_minute,
        is_beyond_doubt=live.succeeded >= MANY_LIVE_SUCCESSES,
    )


def _mixture(
    batch: Batch, evidence: Evidence, settings: Settings, now: datetime, *, is_canary: bool
) -> Judgement | None:
    """As many messages failed as in an outage, ours or producers', but others succeeded: there is no outage.

    The failed letters may be at fault. Beside producers' messages, their next tries will show it. Without those, no
    message may succeed beside them again.
    """
    succeeded, failed = evidence.succeeded, evidence.failed
    weight = batch.size - evidence.suspects_failed
    if failed < settings.failure_rate * weight:
        succeeded = weight - failed
        if evidence.deleted < succeeded or not _are_ours(batch, evidence, now, is_canary=is_canary):
            return None
    if succeeded < max(1, MIXED_SHARE * weight):
        return None
    return Judgement(
        verdict=Verdict.SUCCESS,
        reason=f"{failed} of {batch.size} returned, but {succeeded} messages succeeded",
        is_strike=evidence.live.is_none,
        shown_window=GROWTH_WHERE_SHOWN * succeeded,
    )


def _are_ours(batch: Batch, evidence: Evidence, now: datetime, *, is_canary: bool) -> bool:
    """Whether the messages that succeeded meanwhile are letters.

    If producers' tries mostly fail, the successes are not theirs. On a queue without producers the successes are ours:
    this canary, or letters of earlier batches that are still there.
    """
    others_fail = evidence.others_failed_tries > evidence.deleted and now >= batch.due_at
    return evidence.were_tried and (others_fail or (is_canary and not evidence.live.is_expected))


def _shown_failure(
    batch: Batch, evidence: Evidence, settings: Settings, now: datetime, *, was_up: bool
) -> Judgement | None:
    """So many failed that the verdict stands even if every unknown letter succeeds, and no message vouches.

    Suspects are expected to return. Their return says nothing about a consumer that was well, nor does it show that
    one is well again.
    """
    failed, suspects_failed = evidence.failed, evidence.suspects_failed
    weight = batch.size - suspects_failed
    has_failed = failed >= max(1, settings.failure_rate * weight)
    if not has_failed and suspects_failed < batch.size:
        return None
    came_back = failed + suspects_failed
    if _live_may_speak(batch, evidence, came_back, now):
        return Judgement(
            verdict=None, reason=f"{came_back} returned; live messages may still speak"
        )
    are_few = _are_few_others(batch, evidence)
    may_more_succeed = came_back < batch.size and now < known_by(batch, evidence)
    if has_failed and are_few and may_more_succeed:
        return None  # one more success would turn the returns into strikes
    if was_up and (not has_failed or are_few):
        were = "hardly any but" if failed else "only"
        reason = f"{were} suspects were redriven, and all returned"
        return Judgement(verdict=Verdict.NO_EVIDENCE, reason=reason, was_alone=True)
    return Judgement(verdict=Verdict.FAILURE, reason=f"{came_back} of {batch.size} returned")


def _are_few_others(batch: Batch, evidence: Evidence) -> bool:
    """Whether hardly any letters but suspects were redriven. Contradicting reports and returns excuse no letter."""
    suspects, others = evidence.suspects_failed, batch.size - evidence.suspects_failed
    has_room = evidence.failed + suspects <= batch.size
    return has_room and 0 < others <= suspects // FEW_AMONG_SUSPECTS


def _live_may_speak(batch: Batch, evidence: Evidence, came_back: int, now: datetime) -> bool:
    """Whether producers' messages may still outweigh the letters that came back."""
    live = evidence.live
    if not live.is_expected or (evidence.has_metrics and live.has_spoken(came_back)):
        return False
    return now < batch.tried_by + LIVE_PATIENCE and not _nothing_succeeds(evidence)


def _nothing_succeeds(evidence: Evidence) -> bool:
    """Whether others fail, too, as far as is known."""
    return evidence.has_metrics and evidence.deleted == 0 and evidence.others_failed_tries > 1


def _nothing_but_failed_tries(
    batch: Batch, evidence: Evidence, settings: Settings, now: datetime, *, was_up: bool
) -> Judgement | None:
    """The consumer receives messages and deletes none, whether letters or producers' messages."""
    if evidence.deleted or not (evidence.has_metrics or evidence.is_heard):
        return None
    if 2 * batch.suspects > batch.size and was_up and not _nothing_succeeds(evidence):
        return None  # suspects were expected to fail, and the tries are mostly theirs
    is_early = now < batch.tried_by + LIVE_PATIENCE
    if evidence.live.is_expected and is_early and evidence.others_failed_tries <= 1:
        return None  # they may all be tries of our own letters: other messages may still speak
    if evidence.failed_tries < max(FEWEST_FAILED_TRIES, settings.failure_rate * batch.size):
        return None
    return Judgement(
        verdict=Verdict.FAILURE,
        reason=f"{evidence.failed_tries} tries failed, none succeeded",
    )


def _unknown(batch: Batch, evidence: Evidence, now: datetime) -> Judgement:
    if now < batch.due_at:
        return Judgement(verdict=None, reason="letters are out")
    if now < known_by(batch, evidence):
        return Judgement(verdict=None, reason="the source queue's metrics are late")
    if not evidence.has_metrics and now < batch.due_at + LONGEST_WAIT_WITHOUT_METRICS:
        return Judgement(verdict=None, reason="the source queue's metrics can't be read")
    if evidence.is_still_there and now < batch.due_at + LONGEST_WAIT:
        return Judgement(verdict=None, reason="the source queue still holds letters")
    return Judgement(verdict=Verdict.NO_EVIDENCE, reason="what became of the letters is not known")


def known_by(batch: Batch, evidence: Evidence) -> datetime:
    """When the batch's letters have had time to fail, and late metrics time to show it."""
    late = LONGEST_WAIT_FOR_LATE_METRICS if evidence.are_metrics_late else timedelta()
    return batch.due_at + late
