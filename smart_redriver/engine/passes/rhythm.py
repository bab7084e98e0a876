"""When to look again: about every minute while there is something to wait for, else when the schedule says so.

The function is invoked every minute. What it remembers from one invocation to the next, in its own memory, spares the
invocations that find nothing due; without a memory, after a cold start, it looks.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from smart_redriver.engine.report import Report

#: A schedule's tick may come a little early.
TOLERANCE = timedelta(seconds=10)


@dataclass(slots=True)
class Rhythm:
    """Remembers when the next look is due."""

    next_look: datetime | None = None

    def is_due(self, now: datetime) -> bool:
        """Whether a tick of the schedule has to look."""
        return self.next_look is None or now >= self.next_look - TOLERANCE

    def looked(self, report: Report, now: datetime) -> None:
        """Note what a pass said."""
        self.next_look = now + timedelta(seconds=report.look_again_seconds)
