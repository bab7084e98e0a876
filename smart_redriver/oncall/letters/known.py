"""What is known of a letter in hand, and what its next copy carries when a person sends it."""

from __future__ import annotations

from dataclasses import replace

from redrive.passes.rounds import Examined

from redrive.aws.sqs import Queues
from redrive.core.ledger import Entry, Status
from redrive.core.letter import Trail
from redrive.core.triage import count_redrives

#: The batch of a person's send: none. Batches are numbered from 1, so its return is charged to no verdict.
NO_BATCH = 0


def entry_of(one: Examined, queue: str) -> Entry:
    """The letter's entry; from its trail, or new, where the ledger has none."""
    letter = one.letter
    if one.entry is not None:
        return replace(one.entry, source_arn=letter.source_arn or one.entry.source_arn)
    trail = letter.trail
    return Entry(
        original_id=letter.original_id,
        queue=queue,
        first_seen=trail.first_seen if trail else letter.sent_at,
        status=Status.RETURNED,
        current_id=letter.message_id,
        redrive_count=trail.redrive_count if trail else 0,
        generation=trail.generation if trail else 0,
        source_arn=letter.source_arn,
    )


def next_trail(one: Examined, entry: Entry, queues: Queues, *, is_redriven: bool) -> Trail:
    """The trail of a copy that a person sends: to its source queue, one redrive on, or to the parking lot."""
    return Trail(
        queue=queues.name_of(entry.source_arn),
        original_id=entry.original_id,
        redrive_count=count_redrives(one.letter, one.entry) + is_redriven,
        first_seen=entry.first_seen,
        batch=NO_BATCH,
        generation=entry.generation,
    )


def is_replaced(one: Examined) -> bool:
    """Whether an accepted send has replaced this copy already, so that it may only be deleted."""
    return one.entry is not None and one.entry.has_replaced(one.letter.message_id)
