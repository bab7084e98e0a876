"""Letters that are there and can't be taken now: hidden until their time, or in the hands of a pass or a person."""

from __future__ import annotations

from datetime import datetime

from redrive.core.ledger import Entry, Status
from redrive.core.queue_facts import QueueFacts
from smart_redriver.oncall.letters.presentation import held_until
from smart_redriver.oncall.terminal.words import ago, stamp

#: What is hidden until no known moment comes back within minutes: so long a pass or a command hides it.
TRY_AGAIN = "try again in five minutes"
_IN_HAND = f"hidden: in somebody's hands, such as a pass's; {TRY_AGAIN}"
_IN_THE_DLQ = (Status.RETURNED, Status.FAILED)


def hidden_in_words(entry: Entry | None, facts: QueueFacts, now: datetime) -> str | None:
    """How a letter is hidden that was not met in its queue, of these facts; None where nothing there is."""
    until = held_until(entry) if entry else None
    if until and until > now:
        return f"hidden until {stamp(until)} ({ago(until, now)})"
    return _IN_HAND if facts.in_flight else None


def belongs(entry: Entry, *, to_dlq: bool) -> bool:
    """Whether the ledger says that the letter is in this queue, for sure."""
    return entry.status in (_IN_THE_DLQ if to_dlq else (Status.PARKED,))
