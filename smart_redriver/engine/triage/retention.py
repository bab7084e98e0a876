"""The retention guard's arithmetic: when a letter is near expiry, and when a queue has to be looked through. Pure.

A standard queue's DLQ counts a message's age from its very first send, so a letter can expire while nobody receives
it, whatever the circuit's state. Renewing it gives it a new clock, and so does parking it.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/setting-up-dead-letter-queue-retention.html
"""

from __future__ import annotations

from datetime import datetime, timedelta

from smart_redriver.engine.messages.letter import Letter

#: While nothing flows, a letter with less time left than this is near expiry: how long that lasts is unknown. On a
#: queue of short retention it is a quarter of that.
CALM_MARGIN = timedelta(days=2)

#: While letters flow, most of them go before they expire; a letter nearer to its end than this is saved. On a queue of
#: short retention it is an eighth of that.
URGENT_MARGIN = timedelta(hours=1)

#: SQS keeps no message for longer; letters that a table keeps longer do not expire.
#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-queues.html
LONGEST_RETENTION = timedelta(days=14)

#: In a queue that keeps messages for less than this, a renewed letter could expire before a pass meets it again.
SHORTEST_RENEWED = timedelta(hours=1)

#: A letter near its expiry has to be found well before: the queue is looked through twice within the margin.
SWEEPS_PER_MARGIN = 2

#: Letters with time left that one sweep receives. SQS promises no order, so a deeper DLQ is looked through bit by bit.
SWEEP_LIMIT = 10_000

#: Each letter of a deep DLQ should be received this often within the margin. Five sweeps that receive letters at random
#: miss fewer than one in a hundred.
MEETINGS_PER_MARGIN = 5

#: The least time between sweeps: a sweep of ten thousand letters takes most of a minute.
BETWEEN_SWEEPS = timedelta(minutes=5)


def calm_margin(retention: timedelta) -> timedelta:
    """Return how long before its end a letter counts as near expiry while nothing flows."""
    return min(CALM_MARGIN, retention / 4)


def urgent_margin(retention: timedelta) -> timedelta:
    """Return how long before its end a letter counts as near expiry while letters flow."""
    return min(URGENT_MARGIN, retention / 8)


def is_expiring(letter: Letter, retention: timedelta, margin: timedelta, now: datetime) -> bool:
    """Whether the letter has less than `margin` left to live in a queue of this retention."""
    return letter.sent_at + retention - now < margin


def is_worth_renewing(letter: Letter, retention: timedelta, now: datetime) -> bool:
    """Whether a parked letter has used up half its time: renewing early makes sweeps of the lot rare."""
    return letter.sent_at + retention / 2 <= now


def is_due(sweep_at: datetime | None, now: datetime) -> bool:
    """Whether a queue must be looked through; at once if it holds letters with an unknown past."""
    return sweep_at is None or sweep_at <= now


def next_sweep(
    oldest: datetime | None,
    retention: timedelta,
    source_retention: timedelta,
    margin: timedelta,
    now: datetime,
) -> datetime:
    """Return when to look through the DLQ again; `oldest` is the first send of its oldest letter.

    A letter that arrives meanwhile can be as old as the source queue lets it become.
    """
    newcomer_expires = now + max(retention - source_retention, timedelta())
    first_expires = min(newcomer_expires, oldest + retention) if oldest else newcomer_expires
    return max(now + margin / SWEEPS_PER_MARGIN, first_expires - margin)


def while_some_are_hidden(sweep_at: datetime, retention: timedelta, now: datetime) -> datetime:
    """Return when to look through the DLQ again if not all of its letters could be seen:
    `sweep_at` at the latest.

    The oldest letter may be a hidden one, held until shortly before its expiry.
    """
    if retention > LONGEST_RETENTION:
        return sweep_at
    return min(sweep_at, now + urgent_margin(retention) / SWEEPS_PER_MARGIN)


def until_all_are_met(
    sweep_at: datetime, retention: timedelta, met: int, depth: int, now: datetime
) -> datetime:
    """Return when to look through the rest of a deep DLQ after a sweep of `met` letters: `sweep_at` at the latest."""
    if retention > LONGEST_RETENTION:
        return sweep_at
    sweeps = MEETINGS_PER_MARGIN * max(1.0, depth / max(1, met))
    return min(sweep_at, now + max(BETWEEN_SWEEPS, calm_margin(retention) / sweeps))


def next_lot_sweep(oldest: datetime, retention: timedelta) -> datetime:
    """Return when to look through the parking lot; `oldest` is the send of its oldest letter."""
    return oldest + retention - calm_margin(retention)
