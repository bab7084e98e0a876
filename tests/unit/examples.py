"""One ordinary letter, entry, batch and circuit, so that a test names only what it is about."""

from datetime import UTC, datetime, timedelta
from typing import Any

from smart_redriver.engine.messages.letter import Letter, RedriveMetadata
from smart_redriver.engine.model.batch import Batch, Judged, Verdict
from smart_redriver.engine.model.circuit import Circuit
from smart_redriver.engine.triage.ledger import Entry, Status

NOW = datetime(2026, 1, 10, 12, tzinfo=UTC)
QUEUE = "orders"
SOURCE_ARN = "arn:aws:sqs:eu-west-1:123456789012:orders"


def ago(**units: float) -> datetime:
    return NOW - timedelta(**units)


def ahead(**units: float) -> datetime:
    return NOW + timedelta(**units)


def some_metadata(**changes: Any) -> RedriveMetadata:
    usual: dict[str, Any] = {
        "queue": QUEUE,
        "original_id": "first",
        "redrive_count": 1,
        "first_seen": ago(hours=1),
        "batch": 7,
        "generation": 2,
    }
    return RedriveMetadata(**usual | changes)


def a_letter(**changes: Any) -> Letter:
    """A letter on its first visit to the DLQ."""
    usual: dict[str, Any] = {
        "message_id": "first",
        "receipt_handle": "handle",
        "body": "a body",
        "sent_at": ago(hours=1),
        "source_arn": SOURCE_ARN,
    }
    return Letter(**usual | changes)


def a_returned_letter(batch: int = 7, **changes: Any) -> Letter:
    """The copy that was redriven in `batch`, in the DLQ again."""
    metadata = changes.pop("metadata", some_metadata(batch=batch))
    return a_letter(**{"message_id": "second", "metadata": metadata} | changes)


def an_entry(**changes: Any) -> Entry:
    """The ledger's entry of a letter that was redriven once, in batch 7."""
    usual: dict[str, Any] = {
        "original_id": "first",
        "queue": QUEUE,
        "first_seen": ago(hours=1),
        "status": Status.REDRIVEN,
        "current_id": "second",
        "replaced_ids": ("first",),
        "redrive_count": 1,
        "batch": 7,
        "generation": 2,
    }
    return Entry(**usual | changes)


def a_batch(**changes: Any) -> Batch:
    """A batch of four that was sent ten minutes ago and is due now."""
    usual: dict[str, Any] = {
        "id": 7,
        "generation": 2,
        "sent_at": ago(minutes=10),
        "first_try_at": ago(minutes=9),
        "due_at": NOW,
        "size": 4,
    }
    return Batch(**usual | changes)


def a_judged(size: int = 4, returned: int = 0, *, minutes: float = 9, **changes: Any) -> Judged:
    """Another batch, sent some minutes ago and judged a success already."""
    usual: dict[str, Any] = {
        "id": 8,
        "generation": 2,
        "verdict": Verdict.SUCCESS,
        "is_strike": True,
        "sent_at": ago(minutes=minutes),
        "size": size,
        "returned": returned,
    }
    return Judged(**usual | changes)


def a_circuit(**changes: Any) -> Circuit:
    """A CLOSED circuit with nothing out."""
    usual: dict[str, Any] = {
        "queue": QUEUE,
        "changed_at": ago(hours=1),
        "window": 8,
        "version": 20,
        "generation": 2,
    }
    return Circuit(**usual | changes)
