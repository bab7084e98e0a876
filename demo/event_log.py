"""Follows the structured events that a function writes to CloudWatch Logs."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One line of the log: when, a constant name such as `letter.parked`, and its fields."""

    at: datetime
    name: str
    fields: Mapping[str, Any]


class EventLog:
    """The log of one function, read from where the last reading ended."""

    def __init__(self, logs: Any, group: str) -> None:
        self._logs = logs
        self._group = group
        self._read_up_to = 0
        self._seen: set[tuple[str, int, str]] = set()

    def fresh(self) -> list[Event]:
        """The events since the last call, oldest first."""
        pages = self._logs.get_paginator("filter_log_events").paginate(
            logGroupName=self._group, startTime=self._read_up_to
        )
        lines = [line for page in pages for line in page["events"]]
        fresh = [line for line in lines if _identity(line) not in self._seen]
        if fresh:
            # The last moment is asked for again: more may have been logged in it.
            self._read_up_to = max(line["timestamp"] for line in fresh)
            self._seen = {_identity(line) for line in lines}
        events = [_event(line) for line in fresh]
        return [event for event in events if event is not None]


def _identity(line: Mapping[str, Any]) -> tuple[str, int, str]:
    """Return the key that tells two lines apart; the emulator gives them no id."""
    return line["logStreamName"], line["timestamp"], line["message"]


def _event(line: Mapping[str, Any]) -> Event | None:
    """None for what is not ours: Lambda's START, END and REPORT."""
    try:
        fields = json.loads(line["message"])
        name = str(fields["message"])
    except (ValueError, KeyError, TypeError):
        return None
    return Event(at=datetime.fromtimestamp(line["timestamp"] / 1000, UTC), name=name, fields=fields)
