"""The request of a person for the lease that a process keeps between its passes.

    person    lease? refused, so ask ── lease? refused, ask again ─────── lease? granted
    process   ── pass ── wait ── pass ── is it asked for? gives the lease back, and waits ── ...

A request is a lease of its own, in the name of the person's command. It ends by itself, so that a command that was
killed asks for nothing.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from smart_redriver.engine.model.circuit import Lease
from smart_redriver.engine.passes.ports import Memory

#: How long a request lasts. Commands repeat it every two seconds.
ASKED_FOR = timedelta(seconds=10)

#: How long a process leaves the queue alone when asked, which is longer than a command waits before it tries again.
GIVES_WAY_FOR = timedelta(seconds=5)


def ask_for_next_turn(memory: Memory, queue: str, owner: str, now: datetime) -> None:
    """Ask the process that holds the queue's lease to give it back after its pass. Raises CallFailed."""
    _requests(memory, queue).acquire_lease(Lease(owner=owner, expires_at=now + ASKED_FOR), now)


def is_next_turn_asked_for(memory: Memory, queue: str, owner: str, now: datetime) -> bool:
    """Whether a person waits for the queue's lease. Raises CallFailed."""
    over_at_once = Lease(owner=owner, expires_at=now)
    return not _requests(memory, queue).acquire_lease(over_at_once, now)


def _requests(memory: Memory, queue: str) -> Memory:
    """The memory in which a queue's requests are leases: no queue's name has a "#"."""
    return memory.of(f"{queue}#next")
