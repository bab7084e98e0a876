"""The lease of one visit: taken when there is work, kept between its looks, given back at its end."""

from __future__ import annotations

from datetime import datetime

from redrive.core.lease import Lease
from redrive.passes.ports import Memory


class LeaseKeeper:
    """Takes the lease once, and gives back only what it has taken."""

    def __init__(self, memory: Memory, lease: Lease) -> None:
        self._memory = memory
        self._lease = lease
        self._is_held = False

    def take(self, now: datetime) -> bool:
        """Whether the lease is ours now. Raises CallFailed."""
        self._is_held = self._is_held or self._memory.acquire_lease(self._lease, now)
        return self._is_held

    def give_back(self) -> None:
        """Let others have it. Raises CallFailed: then it expires by itself."""
        if self._is_held:
            self._is_held = False
            self._memory.release_lease(self._lease)
