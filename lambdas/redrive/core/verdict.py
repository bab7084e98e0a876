"""What one batch shows about the consumer. Pure: evidence in, verdict out.

Three witnesses are heard, and `docs/verdicts.md` tells the same in prose:

* returns: letters of the batch seen in the DLQ again;
* growth of the DLQ that nothing else explains: returns that queue up behind a backlog and are not seen;
* live traffic, for the defence: what the consumer deletes from its queue beside our letters. Asked only when
  it can change a verdict.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

from redrive.core.circuit import Batch, Verdict
from redrive.settings import Settings

#: How long a verdict may wait for a source queue that is backed up before it is given up as no evidence.
MAX_VERDICT_WAIT = timedelta(hours=2)

#: CloudWatch shows what SQS counted two minutes late, now and then three.
METRICS_LAG = timedelta(minutes=3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What CloudWatch counted on the source queue since the batch could first be tried.

    `oldest_age_seconds` is the age of its oldest message now; None where there is no figure.
    """

    received: int
    deleted: int
    oldest_age_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a pass found out before it judges.

    Attributes:
        unexplained: letters by which the DLQ grew beyond what is explained (see `circuit.Depth`).
        saw_every_letter: the pass has received the whole DLQ, so no return hides in it.
        source_backlog: messages waiting in the source queue.
        max_receive_count: receives before SQS moves a message to the DLQ.
        traffic: None until it has been asked for.

    """

    unexplained: float = 0.0
    saw_every_letter: bool = False
    source_backlog: int = 0
    max_receive_count: int = 3
    traffic: Traffic | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The verdict on one batch.

    Attributes:
        verdict: None while it has to wait.
        is_strike: whether a return from this batch speaks against the letter.
        overturned_at: for a success earned by the batch itself, how many returns would overturn it; else 0.
        wants_traffic: what live traffic says could change this.
        charged: how many hidden returns were charged to this batch.

    """

    verdict: Verdict | None
    reason: str
    is_strike: bool = False
    overturned_at: int = 0
    wants_traffic: bool = False
    charged: int = 0


def weigh(
    batch: Batch, evidence: Evidence, settings: Settings, now: datetime, *, is_canary: bool
) -> Judgement:
    """Judge `batch`, or say why the verdict has to wait."""
    is_due = now >= batch.due_at
    # Before all have had time to fail, growth says more about others' letters than about ours.
    hidden = _hidden_returns(batch, evidence) if is_due else 0
    # Suspects are expected to come back: a hidden return is put down to them first.
    hidden_suspects = min(hidden, max(0, batch.suspects - batch.suspects_returned))
    failed = batch.returned + hidden - hidden_suspects
    if not batch.is_complete:
        return _weigh_unfinished(batch, is_due=is_due, settings=settings)

    suspects_succeeded = max(0, batch.suspects - batch.suspects_returned - hidden_suspects)
    weight = batch.size - batch.suspects + suspects_succeeded
    if failed and failed >= settings.failure_rate * weight:
        return _defended(batch, failed, weight, hidden, evidence, settings)
    if not is_due:
        return Judgement(verdict=None, reason="letters may still return")
    if _untried_could_matter(batch, failed, weight, evidence, settings, now):
        if now - batch.due_at < MAX_VERDICT_WAIT:
            return Judgement(
                verdict=None,
                reason="the source queue is backed up",
                wants_traffic=evidence.traffic is None,
            )
        return Judgement(verdict=Verdict.NO_EVIDENCE, reason="the source queue stayed backed up")
    if weight == 0:
        is_in_doubt = is_canary or batch.is_probe
        return _only_suspects(batch, hidden, evidence, settings, is_in_doubt=is_in_doubt)
    if _lacks_proof(evidence):
        if now - batch.due_at < METRICS_LAG:
            return Judgement(verdict=None, reason="no success has been counted yet")
        if evidence.traffic and evidence.traffic.received:
            return Judgement(
                verdict=Verdict.FAILURE, reason="the consumer receives and deletes nothing"
            )
    return Judgement(
        verdict=Verdict.SUCCESS,
        reason=f"{failed} of {weight} returned",
        is_strike=True,
        overturned_at=math.ceil(settings.failure_rate * weight),
        wants_traffic=not evidence.saw_every_letter and evidence.traffic is None,
        charged=hidden,
    )


def _hidden_returns(batch: Batch, evidence: Evidence) -> int:
    if evidence.saw_every_letter:
        return 0
    return min(int(evidence.unexplained), batch.outstanding)


def _weigh_unfinished(batch: Batch, *, is_due: bool, settings: Settings) -> Judgement:
    """A batch whose pass died: how many letters were sent is not known, so nothing can acquit it."""
    if batch.returned and batch.returned >= settings.failure_rate * batch.size:
        return Judgement(verdict=Verdict.FAILURE, reason=f"{batch.returned} returned")
    if is_due:
        return Judgement(verdict=Verdict.NO_EVIDENCE, reason="the pass that sent it did not finish")
    return Judgement(verdict=None, reason="letters may still return")


def _defended(
    batch: Batch, failed: int, weight: int, hidden: int, evidence: Evidence, settings: Settings
) -> Judgement:
    """A batch that failed by its own letters, after live traffic was heard for the consumer.

    Live messages join the evidence one by one, successes and failures alike, so that a handful can't outvote
    a batch of thousands.
    """
    reason = f"{failed} of {weight} returned"
    if evidence.traffic is None:
        return Judgement(verdict=Verdict.FAILURE, reason=reason, wants_traffic=True, charged=hidden)
    live = _live(batch, hidden, evidence, evidence.traffic)
    share = (failed + live.failures) / (weight + live.successes + live.failures)
    if share >= settings.failure_rate:
        return Judgement(verdict=Verdict.FAILURE, reason=reason, charged=hidden)
    return _acquitted(reason, live, hidden)


def _only_suspects(
    batch: Batch, hidden: int, evidence: Evidence, settings: Settings, *, is_in_doubt: bool
) -> Judgement:
    """A batch of which nothing could be expected but that it returned, and it did.

    In a time of doubt about the consumer that proves nothing against the letters either, unless live messages
    show that the consumer is well: without that, a few poison pills would keep each other's probes failing.
    """
    reason = "only suspects were redriven, and all returned"
    if is_in_doubt and evidence.traffic is not None:
        live = _live(batch, hidden, evidence, evidence.traffic)
        if live.successes and live.failures < settings.failure_rate * (
            live.successes + live.failures
        ):
            return _acquitted(reason, live, hidden)
    return Judgement(
        verdict=Verdict.NO_EVIDENCE,
        reason=reason,
        is_strike=not is_in_doubt,
        wants_traffic=is_in_doubt and evidence.traffic is None,
        charged=hidden,
    )


def _acquitted(reason: str, live: _Live, hidden: int) -> Judgement:
    return Judgement(
        verdict=Verdict.SUCCESS,
        reason=f"{reason}, but {live.successes} live messages succeeded",
        is_strike=True,
        charged=hidden,
    )


@dataclass(frozen=True, slots=True)
class _Live:
    """Producers' messages that the consumer met while the batch was out."""

    successes: int
    failures: float


def _live(batch: Batch, hidden: int, evidence: Evidence, traffic: Traffic) -> _Live:
    own_successes = max(0, batch.outstanding - hidden)
    own_receives = own_successes + (batch.size - own_successes) * evidence.max_receive_count
    successes = max(0, traffic.deleted - own_successes)
    failed_receives = max(0, traffic.received - own_receives - successes)
    return _Live(successes, failed_receives / evidence.max_receive_count)


def _untried_could_matter(
    batch: Batch,
    failed: int,
    weight: int,
    evidence: Evidence,
    settings: Settings,
    now: datetime,
) -> bool:
    """Whether letters that may still wait in the source queue could turn success into failure.

    If even the failure of all of them left the verdict as it is, there is nothing to wait for. The age of the
    oldest message tells more than their number: when all that is waiting came after our letters, ours were tried.
    """
    untried = min(evidence.source_backlog, batch.outstanding)
    if not untried or failed + untried < settings.failure_rate * max(1, weight):
        return False
    traffic = evidence.traffic
    if traffic is None or traffic.oldest_age_seconds is None:
        return True
    # A letter's age counts from its send; the figure is of a moment ago.
    return traffic.oldest_age_seconds >= (now - batch.sent_at - METRICS_LAG).total_seconds()


def _lacks_proof(evidence: Evidence) -> bool:
    """Whether returns could hide in the DLQ while no figure shows that the consumer succeeds.

    Where the pass has seen every letter, no return is proof enough. Elsewhere the source queue's figures are
    asked: whatever was processed was deleted.
    """
    traffic = evidence.traffic
    return traffic is not None and not evidence.saw_every_letter and traffic.deleted == 0
