"""Reads a span of time from a CloudWatch Logs log group, within bounds because a person waits for it."""

from __future__ import annotations

import shlex
import sys
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from smart_redriver.oncall.deployment.session import Session

#: A page may be empty and still not be the last: it ends after a second of searching.
#: https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_FilterLogEvents.html
MOST_PAGES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A search in the logs.

    `pattern` is CloudWatch's filter pattern; an empty one matches all lines. Without `streams`, all are searched.
    """

    group: str
    start: datetime
    end: datetime
    pattern: str = ""
    streams: Sequence[str] = ()

    def to_request(self) -> dict[str, Any]:
        """The arguments of FilterLogEvents."""
        request: dict[str, Any] = {
            "logGroupName": self.group,
            "startTime": _milliseconds(self.start),
            "endTime": _milliseconds(self.end),
        }
        if self.pattern:
            request["filterPattern"] = self.pattern
        if self.streams:
            request["logStreamNames"] = list(self.streams)
        return request

    def command(self) -> str:
        """The same query for the AWS CLI, quoted for a shell."""
        words = ["aws", "logs", "filter-log-events", "--log-group-name", self.group]
        if self.streams:
            words += ["--log-stream-names", *self.streams]
        words += ["--start-time", str(_milliseconds(self.start))]
        words += ["--end-time", str(_milliseconds(self.end))]
        if self.pattern:
            words += ["--filter-pattern", self.pattern]
        return shlex.join(words)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One event of a log."""

    at: datetime
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The newest lines, oldest first. `left_off`: there are more lines."""

    lines: tuple[LogLine, ...]
    left_off: bool


def _any(_: LogLine) -> bool:
    return True


def read_log(
    session: Session, query: Query, *, most: int, selection: Callable[[LogLine], bool] = _any
) -> Found:
    """The newest `most` lines that are `selected`, as far as the log could be searched. Raises CallFailed."""
    request, logs = query.to_request(), session.aws.client("logs")
    newest: deque[LogLine] = deque(maxlen=min(most, sys.maxsize))
    seen = 0
    for _ in range(MOST_PAGES):
        page = logs.filter_log_events(**request)
        for event in page.get("events", ()):
            at = datetime.fromtimestamp(event["timestamp"] / 1000, UTC)
            line = LogLine(at=at, text=event.get("message", "").rstrip())
            if selection(line):
                newest.append(line)
                seen += 1
        if not page.get("nextToken"):
            break
        request["nextToken"] = page["nextToken"]
    else:
        return Found(lines=tuple(newest), left_off=True)
    return Found(lines=tuple(newest), left_off=seen > most)


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
