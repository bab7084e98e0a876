"""The last pass, from the function's own log: every pass ends with its report, whatever it did."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from smart_redriver.oncall.stack.logs import Query, read_log
from smart_redriver.oncall.stack.session import Session

#: A day holds the last pass of the rarest schedule.
_SEARCHED = timedelta(days=1)
_FINISHED = "pass.finished"
#: Of other lines that say the word, the newest report is not far away.
_MOST_LINES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class LastPass:
    """When a pass ended last, and its report."""

    at: datetime
    report: Mapping[str, Any]

    @property
    def least_to_expiry(self) -> timedelta | None:
        """The time that the letter nearest to its expiry had left then; None where the pass saw none."""
        seconds = self.report.get("least_seconds_to_expiry")
        return None if seconds is None else timedelta(seconds=int(seconds))


def last_pass(session: Session) -> LastPass | None:
    """The last pass in the log, looked for where it is most likely first. Raises CallFailed and Refused."""
    now = session.clock()
    minutes = max(10, 3 * session.settings.schedule_minutes)
    for searched in (timedelta(minutes=minutes), _SEARCHED):
        if found := _newest(session, now - searched, now):
            return found
    return None


def _newest(session: Session, start: datetime, end: datetime) -> LastPass | None:
    query = Query(
        group=session.log_group,
        start=start,
        end=end + timedelta(minutes=1),
        pattern=f'"{_FINISHED}"',
    )
    newest: LastPass | None = None
    for line in read_log(session, query, most=_MOST_LINES).lines:
        report = _report(line.text)
        if report and (newest is None or line.at >= newest.at):
            newest = LastPass(at=line.at, report=report)
    return newest


def _report(line: str) -> Mapping[str, Any] | None:
    try:
        fields = json.loads(line)
    except ValueError:
        return None
    return fields if isinstance(fields, dict) and fields.get("message") == _FINISHED else None
