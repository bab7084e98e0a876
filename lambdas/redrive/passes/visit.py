"""One visit of the function: passes one after another, as long as the consumer reports and the next look is due at once.

    pass ─► report says: again in 5 s ─► wait ─► pass ─► report says: in a minute ─► end

So a window is sent, heard of, judged and followed by the next within one invocation: a consumer that has come back gets
its letters at the rate that it bears, and not one window a minute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from redrive.core.books import PERIOD, Books
from redrive.core.report import Report
from redrive.errors import CallFailed
from redrive.passes.ports import Tools, Witness
from redrive.passes.redrive_pass import lease_until, run_pass
from redrive.passes.reporting import BUSY_SECONDS
from redrive.settings import Settings


def run_visit(
    tools: Tools, settings: Settings, *, deadline: datetime, pause: Callable[[float], None]
) -> Iterator[Report]:
    """Run passes until the next look is not due before the schedule's, and yield the report of each.

    Args:
        deadline: when the last of them has to have stopped by itself.
        pause: waits for so many seconds.

    """
    ends = min(deadline, tools.clock() + LONGEST)
    lease = lease_until(tools, deadline)
    tools = replace(tools, witness=OnceAMinute(tools.witness))
    try:
        while True:
            report = run_pass(tools, settings, deadline=deadline, lease=lease)
            yield report
            wait = timedelta(seconds=report.look_again_seconds)
            is_soon = report.look_again_seconds < BUSY_SECONDS
            if not is_soon or tools.clock() + wait + _WORTH_STARTING > ends:
                return
            pause(wait.total_seconds())
    finally:
        try:
            lease.give_back()
        except CallFailed as failed:  # it expires by itself; what the passes did stands
            tools.journal("call.failed", call=failed.call, code=failed.code, detail=failed.detail)


#: No pass is begun shortly before this. The schedule ticks every minute: whom the third tick finds at work it leaves
#: alone, and letters would wait for the fourth.
LONGEST = timedelta(minutes=3)

#: Before its end, a pass that has less time than this is not begun.
_WORTH_STARTING = timedelta(seconds=10)


class OnceAMinute:
    """A witness that is asked again when it can have news: CloudWatch's are by the minute, and each answer is paid for."""

    def __init__(self, witness: Witness) -> None:
        self._witness = witness
        self._said: dict[str, tuple[datetime, datetime, Books]] = {}

    def since(self, start: datetime, now: datetime, queue_name: str) -> Books:
        """What it said, not a minute ago, of a time that covers this one. Raises CallFailed."""
        asked_at, since, books = self._said.get(queue_name, (now - PERIOD, now, Books()))
        if now >= asked_at + PERIOD or start < since:
            books = self._witness.since(start, now, queue_name)
            self._said[queue_name] = (now, start, books)
        return books
