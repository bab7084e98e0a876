"""The lease, for work by hand: letters and ledger are changed by one at a time, a pass or a person.

Work of any length is cut into shifts of a minute. Between two a pass may run; a command that is killed leaves the
queue to others when its shift would have ended.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from redrive.core.lease import Lease
from redrive.errors import CallFailed
from smart_redriver.oncall.stack.session import Session
from smart_redriver.oncall.terminal.exits import Refused

SHIFT = timedelta(seconds=60)
#: What finishing the letters in hand may take after the shift's end; the lease covers it.
STOPPING_TIME = timedelta(seconds=30)
#: A pass lasts four minutes at most.
PATIENCE = timedelta(minutes=5)
_ASK_AGAIN_SECONDS = 2.0


def new_owner() -> str:
    """Whom the lease belongs to while one command runs: of two of one person's commands, too, one waits for the other."""
    return f"oncall-{uuid.uuid4()}"


@contextmanager
def shift(session: Session, owner: str) -> Iterator[datetime]:
    """Hold the lease; the moment when the shift is over. Waits for a pass to end. Raises Refused and CallFailed."""
    lease = _acquired(session, owner)
    try:
        yield lease.expires_at - STOPPING_TIME
    finally:
        try:
            session.store.release_lease(lease)
        except CallFailed as failed:
            session.terminal.warn(
                f"The lease could not be given back ({failed.code}); it ends by itself within "
                f"{int((SHIFT + STOPPING_TIME).total_seconds())} s."
            )


def _acquired(session: Session, owner: str) -> Lease:
    patient_until = session.clock() + PATIENCE
    is_told = False
    while (now := session.clock()) < patient_until:
        lease = Lease(owner=owner, expires_at=now + SHIFT + STOPPING_TIME)
        if session.store.acquire_lease(lease, now):
            return lease
        if not is_told:
            session.terminal.warn(
                "Another pass or person is at work on this queue; waiting for it to end."
            )
            is_told = True
        session.sleep(_ASK_AGAIN_SECONDS)
    raise Refused("The queue has been at work for five minutes. `redrive status` says with what.")
