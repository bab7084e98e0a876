"""The lease: the right to be the only pass on a queue, until it expires or is released. Data only."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """Who may work on a queue, and until when."""

    owner: str
    expires_at: datetime
