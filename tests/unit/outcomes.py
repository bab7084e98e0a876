"""One ordinary outcome of a delivery, so that a test names only what it is about."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from smart_redriver.engine.reports.outcomes import DeliveryOutcome, Result
from smart_redriver.engine.reports.processing import (
    ProcessedReports,
    ReceivedOutcome,
    process_reports,
)
from smart_redriver.engine.triage.ledger import Entry
from tests.unit.examples import NOW, QUEUE, an_entry

MAX_RECEIVES = 3


def an_outcome(**changes: Any) -> DeliveryOutcome:
    """The success of the letter that `an_entry` is of: the copy that was redriven in batch 7."""
    usual: dict[str, Any] = {
        "queue": QUEUE,
        "message_id": "second",
        "original_id": "first",
        "batch": 7,
        "generation": 2,
        "result": Result.SUCCEEDED,
        "receive_count": 1,
    }
    return DeliveryOutcome(**usual | changes)


def a_failure(receive: int | None = MAX_RECEIVES, **changes: Any) -> DeliveryOutcome:
    """One of its failures: the last, unless said otherwise."""
    usual = {"result": Result.FAILED, "receive_count": receive, "error_class": "Declined"}
    return an_outcome(**usual | changes)


def a_parking(**changes: Any) -> DeliveryOutcome:
    """The consumer has parked it."""
    usual = {"result": Result.PERMANENT, "parked_id": "third", "permanent": True}
    return an_outcome(**usual | {"error_class": "BadOrder", "first_line": "no items"} | changes)


def a_first_failure(receive: int | None = MAX_RECEIVES, **changes: Any) -> DeliveryOutcome:
    """A producer's message fails that was never redriven."""
    stranger = {"message_id": "new", "original_id": "new", "batch": None, "generation": None}
    return a_failure(receive, **stranger | changes)


def ledger(*entries: Entry) -> dict[str, Entry]:
    """What the ledger knows; the one ordinary letter unless others are given."""
    return {one.original_id: one for one in entries or (an_entry(),)}


def heard(
    *outcomes: DeliveryOutcome,
    entries: Mapping[str, Entry] | None = None,
    at: datetime = NOW,
    canaries: frozenset[str] = frozenset(),
) -> ProcessedReports:
    """What these outcomes change, in this order."""
    told = [ReceivedOutcome(outcome=one, at=at) for one in outcomes]
    known = ledger() if entries is None else entries
    return process_reports(told, known, {QUEUE: MAX_RECEIVES}, canaries)
