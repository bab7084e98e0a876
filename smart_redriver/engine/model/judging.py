"""Gives verdicts: charges returns and reports to batches, weighs each batch, and moves the circuit. Pure.

`verdict` says what one batch shows, and `breaker` what that does to the circuit. This module decides when, for which
batch, and what else follows: strikes, circuits by cause, and verdicts that late returns overturn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.model.batch import Batch, Heard, Judged, Verdict
from smart_redriver.engine.model.breaker import failed, succeeded
from smart_redriver.engine.model.causes import with_failures, with_successes
from smart_redriver.engine.model.circuit import Circuit, State
from smart_redriver.engine.model.evidence import Evidence
from smart_redriver.engine.model.fifo_counts import counted
from smart_redriver.engine.model.permit import (
    cause_cool_down,
    fails_together,
    failures_beyond,
    is_flapping,
    is_mixed,
    is_up_briefly,
)
from smart_redriver.engine.model.queue_metrics import Account, QueueMetrics
from smart_redriver.engine.model.verdict import (
    GROWTH_WHERE_SHOWN,
    MIXED_SHARE,
    Judgement,
    known_by,
    weigh,
)

#: A batch was too large if its share of successes is below this part of a smaller batch's share, and the smaller batch
#: was large enough that chance plays little part.
SHARE_OF_TOO_MANY = 0.35
FEWEST_TO_COMPARE = 5

#: If many letters fail while others succeed, failures in a row that are likelier than this may be chance, and not the
#: beginning of an outage.
CHANCE_OF_OUTAGE = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """One verdict and the circuit's state before and after it, for the report and the log."""

    queue: str
    batch: Batch
    judgement: Judgement
    evidence: Evidence
    before: State
    after: State


def judge(
    circuit: Circuit,
    evidence: Mapping[int, Evidence],
    settings: Settings,
    now: datetime,
    *,
    roll: float,
    is_undelayed: bool = False,
) -> tuple[Circuit, tuple[Ruling, ...]]:
    """Judge every batch that can be judged, oldest first, and move the circuit accordingly.

    Args:
        evidence: what is known about each batch that awaits its verdict, by its id.
        roll: uniform in [0, 1), for the jitter of a cool-down.
        is_undelayed: the source can't delay letters, so that the consumer may take them together.

    """
    rulings: list[Ruling] = []
    circuit = _overturn(circuit, settings, now, roll)
    for batch in circuit.pending:
        if circuit.pending_batch(batch.id) is None:
            continue  # voided by a change of state that an earlier verdict brought
        known = evidence.get(batch.id, Evidence())
        judgement = weigh(
            batch,
            known,
            settings,
            now,
            is_canary=circuit.state is State.HALF_OPEN,
            was_up=circuit.was_up,
        )
        judgement = _in_its_time(judgement, circuit, batch, known, settings, now)
        after = circuit
        if judgement.verdict is not None:
            after = _fallen(
                circuit,
                batch,
                judgement,
                judgement.verdict,
                known,
                settings,
                now,
                roll,
                is_apart=batch.is_apart and not is_undelayed,
            )
        if after.flaps and fails_together(after):
            # Batches failed right after a trial because of their company, and not because of the time.
            after = replace(after, flaps=0)
        rulings.append(_ruling(batch, judgement, known, circuit, after))
        circuit = after
    return circuit, tuple(rulings)


def _in_its_time(
    judgement: Judgement,
    circuit: Circuit,
    batch: Batch,
    known: Evidence,
    settings: Settings,
    now: datetime,
) -> Judgement:
    """What the batch shows by itself, in the light of what earlier batches have shown of the consumer."""
    if judgement.is_mixture and circuit.flaps:
        # A consumer that goes up and down may have been met in both phases.
        judgement = replace(judgement, is_strike=False)
    if judgement.is_mixture and is_flapping(circuit):
        judgement = replace(judgement, verdict=Verdict.FAILURE, shown_window=0)
    if judgement.verdict is Verdict.FAILURE:
        judgement = _unless_by_chance(judgement, circuit, batch, known, settings, now)
    if judgement.verdict is Verdict.SUCCESS and _were_too_many(circuit, batch, known):
        judgement = replace(judgement, is_overload=True, is_strike=judgement.is_clear)
    if is_up_briefly(circuit, now) and not _are_few(batch, known):
        # The letters that came back may have met a bad phase, and the others a good one.
        judgement = replace(judgement, is_strike=False)
    return judgement


def _unless_by_chance(
    judgement: Judgement,
    circuit: Circuit,
    batch: Batch,
    evidence: Evidence,
    settings: Settings,
    now: datetime,
) -> Judgement:
    """The failure, unless chance explains it: many letters fail lately while others succeed.

    Letters with unknown outcomes may have succeeded. If there are live messages, they decide instead.
    """
    is_quiet = circuit.was_up and evidence.live.is_none
    # If the consumer flaps, the mixture comes from its phases, and a failure is the end of one.
    may_be_chance = is_quiet and not is_flapping(circuit)
    if not may_be_chance or not is_mixed(circuit, batch.sent_at, settings):
        return judgement
    if evidence.unknown_of(batch) and now < known_by(batch, evidence):
        return replace(judgement, verdict=None, reason="others may have succeeded")
    in_a_row = 0 if evidence.succeeded else evidence.failed
    in_a_row += _failed_since_success(circuit)
    if circuit.fared.chance_that_all_fail(in_a_row) <= CHANCE_OF_OUTAGE:
        return judgement
    reason = f"{judgement.reason}, as many do beside others that succeed"
    return replace(judgement, verdict=Verdict.NO_EVIDENCE, reason=reason, was_alone=True)


def _failed_since_success(circuit: Circuit) -> int:
    """Letters that came back since the last batch that succeeded, or since the state last changed."""
    failed = 0
    for judged in reversed(circuit.judged):
        if judged.verdict is Verdict.SUCCESS or judged.generation != circuit.generation:
            break
        failed += judged.returned
    return failed


def _are_few(batch: Batch, evidence: Evidence) -> bool:
    """Whether so few letters came back, or may yet, that a consumer that went down meanwhile is no explanation."""
    unknown = batch.unblemished - evidence.succeeded
    worst = max(evidence.failed, unknown)
    return batch.unblemished > 0 and worst <= MIXED_SHARE * batch.unblemished


def _were_too_many(circuit: Circuit, batch: Batch, evidence: Evidence) -> bool:
    """Whether a far smaller share succeeded than in a batch of a quarter its size: poison would hit both alike."""
    smaller = next(
        (
            one
            for one in reversed(circuit.judged)
            if FEWEST_TO_COMPARE <= one.size <= batch.size // 4
        ),
        None,
    )
    if smaller is None or evidence.failed <= evidence.succeeded:
        return False
    shown = smaller.size - max(smaller.seen_again, smaller.unaccounted)
    return evidence.succeeded < SHARE_OF_TOO_MANY * shown / smaller.size * batch.unblemished


def _fallen(
    circuit: Circuit,
    batch: Batch,
    judgement: Judgement,
    verdict: Verdict,
    known: Evidence,
    settings: Settings,
    now: datetime,
    roll: float,
    *,
    is_apart: bool,
) -> Circuit:
    """The circuit after a verdict, with everything else that follows from it."""
    is_whole = verdict is Verdict.SUCCESS and known.succeeded >= batch.size
    after = circuit.with_verdict(
        batch,
        verdict,
        is_strike=judgement.is_strike,
        was_alone=judgement.was_alone,
        overturned_at=judgement.overturned_at,
        unaccounted=_unaccounted(batch, judgement, known),
        is_whole=is_whole,
        is_apart=is_apart,
    )
    if known.succeeded > batch.unblemished:
        after = replace(after, suspect_succeeded_at=now)
    is_current = batch.generation == circuit.generation
    if _is_still_mixed(circuit, batch, known, settings):
        after = replace(after, mixed_at=now)
    if known.succeeded and not judgement.is_overload and is_current:
        after = replace(after, fared=circuit.fared.and_then(known.failed, known.succeeded))
    after = _record(after, batch, judgement, settings, now, roll)
    if is_whole:
        after = _free_causes(after, batch, now)
    if verdict is Verdict.SUCCESS:
        after = _hold_causes(after, batch.heard, settings, now, roll)
    return after


def _is_still_mixed(circuit: Circuit, batch: Batch, known: Evidence, settings: Settings) -> bool:
    """Whether the batch shows a mixture, or can't show that an earlier one is over."""
    if known.is_mixed is not None:
        return known.is_mixed
    # If letters fail on a quiet queue, no other message can say otherwise: the last finding still holds.
    is_quiet = not known.live.is_expected and known.failed + known.suspects_failed > 0
    is_current = batch.generation == circuit.generation
    return is_current and is_quiet and is_mixed(circuit, batch.sent_at, settings)


def _unaccounted(batch: Batch, judgement: Judgement, evidence: Evidence) -> int:
    """Letters of a success whose outcome is still unknown, if no other messages could be compared with them."""
    if judgement.verdict is not Verdict.SUCCESS or evidence.live.is_expected:
        return 0
    return max(0, batch.size - evidence.succeeded - batch.seen_again)


def _record(
    circuit: Circuit,
    batch: Batch,
    judgement: Judgement,
    settings: Settings,
    now: datetime,
    roll: float,
) -> Circuit:
    if batch.generation != circuit.generation:
        return circuit
    match judgement.verdict:
        case Verdict.SUCCESS:
            return succeeded(circuit, batch, judgement, settings, now)
        case Verdict.FAILURE:
            is_full = circuit.state is State.HALF_OPEN and batch.size > settings.canary_size
            if is_full and is_flapping(circuit) and failures_beyond(circuit):
                circuit = replace(circuit, good_window=batch.size // (2 * GROWTH_WHERE_SHOWN))
            return failed(
                _up_until(circuit, batch.sent_at),
                judgement.reason,
                settings,
                now,
                roll,
                is_probe=batch.is_probe,
            )
        case _:
            return circuit


def charge(circuit: Circuit, returns: Mapping[tuple[int, bool], int]) -> Circuit:
    """The circuit with returns charged to the batches that they come from.

    Args:
        returns: how many letters returned, by (batch id, whether the letter was a suspect).

    A return from a judged batch may overturn a success of this generation; `judge` checks that.

    """
    for (batch_id, was_suspect), count in returns.items():
        if batch := circuit.pending_batch(batch_id):
            if was_suspect:
                batch = replace(batch, suspects_returned=batch.suspects_returned + count)
            else:
                batch = replace(batch, returned=batch.returned + count)
            circuit = circuit.with_batch(batch)
        elif (judged := circuit.judged_batch(batch_id)) and not was_suspect:
            circuit = _with_judged(circuit, replace(judged, returned=judged.returned + count))
            if judged.verdict is Verdict.SUCCESS and judged.generation == circuit.generation:
                circuit = replace(circuit, fared=circuit.fared.and_also(count))
        if batch_counts := circuit.batch_counts(batch_id):
            circuit = circuit.with_counts(
                replace(batch_counts, came_back=batch_counts.came_back + count)
            )
    return circuit


def note_reports(
    circuit: Circuit, heard: Mapping[int, Heard], settings: Settings, now: datetime, roll: float
) -> Circuit:
    """The circuit with consumers' reports on batches, by batch id.

    Failures of a judged batch's letters that are reported later count only for the circuits by cause.
    """
    for batch_id, told in heard.items():
        if batch := circuit.pending_batch(batch_id):
            circuit = circuit.with_batch(replace(batch, heard=batch.heard + told))
        elif (judged := circuit.judged_batch(batch_id)) and judged.is_strike:
            circuit = _hold_causes(circuit, told, settings, now, roll)
        if batch_counts := circuit.batch_counts(batch_id):
            circuit = circuit.with_counts(
                replace(batch_counts, reported=batch_counts.reported + told.ended)
            )
    return replace(circuit, heard_at=now)


def count_unseen(circuit: Circuit, metrics: QueueMetrics | None) -> Circuit:
    """The circuit with what the metrics show by now about batches that have letters out of sight."""
    if metrics is None:
        return circuit
    for batch_counts in circuit.counted_batches:
        if (counts := counted(batch_counts, circuit.batches, metrics)) is not batch_counts:
            circuit = circuit.with_counts(counts)
    return circuit


def judge_left_failing(
    circuit: Circuit, account: Account | None, settings: Settings, now: datetime, roll: float
) -> Circuit:
    """Count a further round of failed tries as one more failure, for letters that no batch awaits any more.

    When all letters are out, no further batch can fail: a consumer that keeps them for hours would hide its outage.

    Args:
        account: of the source's metrics since the last failure was counted.

    """
    letters = circuit.left_failing
    if account is None or not letters or account.deleted:
        return circuit
    if account.failed_tries_of_all < letters:
        return circuit
    reason = f"{account.failed_tries_of_all} further tries failed, none succeeded"
    return failed(circuit, reason, settings, now, roll, is_probe=True)


def _up_until(circuit: Circuit, sent_at: datetime) -> Circuit:
    """The circuit with how long the consumer was up, after a batch sent at `sent_at` failed.

    It went down between the last batch that succeeded and this one: half-way, as far as is known.
    """
    up_since = circuit.up_since
    if up_since is None or sent_at <= up_since:
        return circuit
    successes = [one.sent_at for one in circuit.judged if one.verdict is Verdict.SUCCESS]
    shown_at = max((at for at in successes if up_since <= at <= sent_at), default=up_since)
    up = shown_at - up_since + (sent_at - shown_at) / 2
    return replace(circuit, up_seconds=int(up.total_seconds()))


def _overturn(circuit: Circuit, settings: Settings, now: datetime, roll: float) -> Circuit:
    """Charge a success as a failure once late returns have overturned it, and take back its strikes."""
    for judged in circuit.judged:
        if judged.verdict is Verdict.SUCCESS and 0 < judged.overturned_at <= judged.returned:
            overturned = replace(judged, verdict=Verdict.FAILURE, is_strike=False)
            circuit = _with_judged(circuit, overturned)
            if judged.generation == circuit.generation:
                reason = f"{judged.returned} letters of batch {judged.id} returned late"
                circuit = failed(circuit, reason, settings, now, roll)
    return circuit


def _free_causes(circuit: Circuit, batch: Batch, now: datetime) -> Circuit:
    """Release a held cause when its canary's batch succeeded as a whole, reported or not."""
    freed = {one.cause: [batch.sent_at] for one in circuit.causes if one.canary_batch == batch.id}
    return replace(circuit, causes=with_successes(circuit.causes, freed, now)) if freed else circuit


def _hold_causes(
    circuit: Circuit, heard: Heard, settings: Settings, now: datetime, roll: float
) -> Circuit:
    """Hold a cause's letters together once enough of them failed while others succeeded."""
    letters = {one.cause: one.letters for one in heard.causes}
    cools_for = cause_cool_down(1, settings, roll)
    return replace(circuit, causes=with_failures(circuit.causes, letters, cools_for, now))


def _with_judged(circuit: Circuit, changed: Judged) -> Circuit:
    judged = tuple(changed if batch.id == changed.id else batch for batch in circuit.judged)
    return replace(circuit, judged=judged)


def _ruling(
    batch: Batch, judgement: Judgement, evidence: Evidence, before: Circuit, after: Circuit
) -> Ruling:
    return Ruling(
        queue=after.queue,
        batch=batch,
        judgement=judgement,
        evidence=evidence,
        before=before.state,
        after=after.state,
    )
