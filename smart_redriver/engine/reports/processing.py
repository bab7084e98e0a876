"""Processes consumers' reports: changes to ledger entries, and to the batches that await their verdict. Pure.

An outcome is a claim by any sender to the outcome queue. It counts if the ledger knows the very copy that it is about,
and only once: reports come twice, late and out of order. An outcome that is left out or lost makes a verdict slower.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from smart_redriver.engine.config.targets import is_fifo
from smart_redriver.engine.messages.letter import RedriveMetadata
from smart_redriver.engine.model.batch import CauseCount, Heard
from smart_redriver.engine.reports.outcomes import (
    CAUSE_LENGTH,
    ERROR_LENGTH,
    DeliveryOutcome,
    Result,
)
from smart_redriver.engine.triage.case import NO_BATCH
from smart_redriver.engine.triage.decision import ParkReason
from smart_redriver.engine.triage.ledger import Entry, Status

#: Why an outcome was left out.
ANOTHER_QUEUE = "of another queue"
UNKNOWN_LETTER = "of a letter that the ledger does not know"
ANOTHER_COPY = "of an earlier copy, or none of ours"
HEARD_BEFORE = "heard before"
NO_LONGER_OUT = "of a letter that is back"
INTERRUPTED = "interrupted"

#: Statuses of a letter that its consumer may have. A letter that was seen in the DLQ again can only have failed.
_OUT = frozenset({Status.REDRIVEN, Status.REPLAYED})
_MAY_FAIL = _OUT | {Status.RETURNED, Status.FAILED}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedOutcome:
    """One outcome, and when SQS received its report."""

    outcome: DeliveryOutcome
    at: datetime


@dataclass(slots=True, kw_only=True)
class ProcessedReports:
    """The changes from some outcomes.

    Attributes:
        entries: the ledger's entries afterwards, by original id.
        details: the outcome that is worth keeping in full, by original id: how a letter failed for good.
        heard: what was reported, by queue and batch.
        recovered: when letters succeeded after failing, by queue and cause of the failure.
        live: when a message that was never redriven was last reported as done, by queue: its consumer, which had
            failed, works again.
        counts: outcomes by result, or by the reason for leaving them out.

    """

    entries: dict[str, Entry] = field(default_factory=dict)
    details: dict[str, ReceivedOutcome] = field(default_factory=dict)
    heard: dict[tuple[str, int], Heard] = field(default_factory=dict)
    recovered: dict[tuple[str, str], list[datetime]] = field(default_factory=dict)
    live: dict[str, datetime] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)


def with_kept_metadata(
    received: ReceivedOutcome, kept: Mapping[str, RedriveMetadata]
) -> ReceivedOutcome:
    """The outcome of a copy that had no room for its metadata, with the metadata that the ledger kept for it."""
    outcome = received.outcome
    metadata = kept.get(outcome.message_id) if outcome.batch is None else None
    if metadata is None or metadata.queue != outcome.queue:
        return received
    known = replace(
        outcome,
        original_id=metadata.original_id,
        batch=metadata.batch,
        generation=metadata.generation,
    )
    return replace(received, outcome=known)


def process_reports(
    received: Iterable[ReceivedOutcome],
    entries: Mapping[str, Entry],
    max_receives: Mapping[str, int],
    canaries: Set[str] = frozenset(),
) -> ProcessedReports:
    """Apply outcomes to ledger entries and counts.

    Args:
        entries: the ledger's entries for the outcomes' letters, by original id.
        max_receives: how often a message is received before SQS moves it to the DLQ, by source queue name.
        canaries: original ids of letters that are expected to fail.

    """
    processed = ProcessedReports()
    for one in received:
        outcome = one.outcome
        receives = max_receives.get(outcome.queue)
        if receives is None:
            processed.counts[ANOTHER_QUEUE] += 1
            continue
        if outcome.interrupted:
            processed.counts[INTERRUPTED] += 1
            continue
        entry = processed.entries.get(outcome.original_id) or entries.get(outcome.original_id)
        if entry is None:
            _process_first_failure(processed, one, receives)
        elif late := _why_late(outcome, entry):
            processed.counts[late] += 1
        else:
            _process(processed, one, entry, receives, entry.original_id in canaries)
    return processed


def _why_late(outcome: DeliveryOutcome, entry: Entry) -> str | None:
    """Return why no outcome of this message is awaited; None if one is."""
    if not _is_of_current_copy(outcome, entry):
        return ANOTHER_COPY
    if entry.status in (_MAY_FAIL if outcome.result is Result.FAILED else _OUT):
        return None
    return HEARD_BEFORE if entry.is_settled else NO_LONGER_OUT


def _changed(received: ReceivedOutcome, entry: Entry, max_receives: int) -> Entry | None:
    """The entry after an outcome; None if the outcome says nothing new."""
    if entry.is_settled:
        return None
    if received.outcome.result is not Result.FAILED:
        return _ended(received, entry)
    tries = _tries(received.outcome, entry, max_receives)
    return _failed(received, entry, tries, max_receives) if tries > entry.failed_tries else None


def _process(
    processed: ProcessedReports,
    received: ReceivedOutcome,
    entry: Entry,
    max_receives: int,
    is_canary: bool,
) -> None:
    outcome = received.outcome
    changed = _changed(received, entry, max_receives)
    if changed is None:
        processed.counts[HEARD_BEFORE] += 1
        return
    processed.entries[entry.original_id] = changed
    processed.counts[outcome.result.value] += 1
    if changed.is_settled and outcome.result is not Result.SUCCEEDED:
        processed.details[entry.original_id] = received
    if entry.status is Status.REDRIVEN and entry.batch is not None:
        key = (outcome.queue, entry.batch)
        known = processed.heard.get(key, Heard())
        processed.heard[key] = known + _share(
            entry, changed, outcome.result, is_canary or entry.is_suspect
        )
    if outcome.result is Result.SUCCEEDED and entry.cause:
        processed.recovered.setdefault((outcome.queue, entry.cause), []).append(received.at)


def _process_first_failure(
    processed: ProcessedReports, received: ReceivedOutcome, max_receives: int
) -> None:
    """A message that was never redriven: worth remembering if it becomes a letter, though nothing relies on it."""
    outcome = received.outcome
    if outcome.batch is not None or outcome.original_id != outcome.message_id:
        processed.counts[UNKNOWN_LETTER] += 1
        return
    processed.counts[outcome.result.value] += 1
    if outcome.result is Result.SUCCEEDED:
        processed.live[outcome.queue] = max(
            received.at, processed.live.get(outcome.queue, received.at)
        )
    is_passing = outcome.result is Result.FAILED and not _is_last(outcome, max_receives)
    if outcome.result is Result.SUCCEEDED or is_passing:
        return
    entry = Entry(
        original_id=outcome.original_id,
        queue=outcome.queue,
        first_seen=received.at,
        status=Status.FAILED,
        current_id=outcome.message_id,
    )
    if outcome.result is Result.PERMANENT:
        changed = _ended(received, entry)
    else:
        changed = _failed(received, entry, _tries(outcome, entry, max_receives), max_receives)
    processed.entries[entry.original_id] = changed
    processed.details[entry.original_id] = received


def _is_of_current_copy(outcome: DeliveryOutcome, entry: Entry) -> bool:
    return (
        outcome.queue == entry.queue
        and outcome.message_id in (entry.current_id, entry.left_id)
        and (outcome.batch or NO_BATCH) == (entry.batch or NO_BATCH)
    )


def _tries(outcome: DeliveryOutcome, entry: Entry, max_receives: int) -> int:
    """Failed deliveries of the copy, including this one, but never more than SQS can have made.

    A report without a receive count means one failure, however often it comes.
    """
    return min(outcome.receive_count or max(1, entry.failed_tries), max_receives)


def _is_last(outcome: DeliveryOutcome, max_receives: int) -> bool:
    """Whether SQS moves the message to the DLQ now; a report without a receive count is taken for the last receive's.

    Not for a FIFO queue: there a letter that is taken for failed goes again while it is still tried, and its group
    follows.
    """
    if outcome.receive_count is None:
        return max_receives == 1 or not is_fifo(outcome.queue)
    return outcome.receive_count >= max_receives


def _failed(received: ReceivedOutcome, entry: Entry, tries: int, max_receives: int) -> Entry:
    outcome = received.outcome
    changed = entry.failed(
        tries=tries,
        is_last=tries >= max_receives,
        cause=_cause(outcome),
        error=error_line(outcome),
        permanent=outcome.permanent,
    )
    if outcome.retry_after is None or not changed.is_settled:
        return changed
    return changed.told_to_wait(until=received.at + timedelta(seconds=outcome.retry_after))


def _ended(received: ReceivedOutcome, entry: Entry) -> Entry:
    outcome = received.outcome
    if outcome.result is Result.SUCCEEDED:
        return entry.succeeded(received.at)
    described = replace(entry, cause=_cause(outcome), error=error_line(outcome))
    return described.parked_by_consumer(
        parked_id=outcome.parked_id or entry.current_id,
        reason=ParkReason.PERMANENT.value,
        now=received.at,
    )


def _share(before: Entry, after: Entry, result: Result, is_suspect: bool) -> Heard:
    """The part of one outcome in the counts of its batch."""
    has_failed = result is Result.FAILED and after.is_settled
    is_first = before.failed_tries == 0 and after.failed_tries > 0
    return Heard(
        succeeded=int(result is Result.SUCCEEDED),
        failed=int(has_failed and not is_suspect),
        suspects_failed=int(has_failed and is_suspect),
        parked=int(result is Result.PERMANENT),
        tries=max(0, after.failed_tries - before.failed_tries),
        causes=(CauseCount(cause=after.cause, letters=1),) if is_first and after.cause else (),
    )


def _cause(outcome: DeliveryOutcome) -> str | None:
    """The consumer's name for the cause, or the end of the error's class: a circuit has room only for short names."""
    return outcome.cause or (outcome.error_class or "")[-CAUSE_LENGTH:] or None


def error_line(outcome: DeliveryOutcome) -> str | None:
    """Class and first line of a delivery's error, as short as the ledger keeps it."""
    parts = [part for part in (outcome.error_class, outcome.first_line) if part]
    return ": ".join(parts)[:ERROR_LENGTH] or None
