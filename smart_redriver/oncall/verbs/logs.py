"""`redrive logs`: what the function itself logged."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from smart_redriver.oncall.stack.logs import LogLine, Query, read_log
from smart_redriver.oncall.stack.session import Session
from smart_redriver.oncall.terminal.exits import Exit, Misused
from smart_redriver.oncall.terminal.table import printable, printable_line
from smart_redriver.oncall.terminal.words import parse_moment, stamp

#: What Lambda and Powertools put into every line; it says nothing of the event.
_OF_EVERY_LINE = frozenset(
    {
        *("cold_start", "correlation_id", "function_arn", "function_memory_size"),
        *("function_name", "function_request_id", "level", "location", "message"),
        *("sampling_rate", "service", "timestamp", "xray_trace_id"),
    }
)
_EVENT = re.compile(r"[A-Za-z_.]{1,60}")


def logs(session: Session, *, since: str, event: str | None, limit: int) -> Exit:
    """Print the newest lines, oldest first. Raises CallFailed, Misused and Refused."""
    if event is not None and not _EVENT.fullmatch(event):
        raise Misused(f"{event!r} is no event's name. One is for example letter.parked.")
    now = session.clock()
    query = Query(
        group=session.log_group,
        start=parse_moment(since, now),
        end=now + timedelta(minutes=1),
        pattern=f'"{event}"' if event else "",
    )

    def is_meant(line: LogLine) -> bool:
        """The pattern also finds the name in other events."""
        return event is None or (_event(line) or {}).get("message") == event

    found = read_log(session, query, most=limit, meant=is_meant)
    read = [(line, _event(line)) for line in found.lines]
    session.terminal.result(
        {
            "log_group": query.group,
            "command": query.command(),
            "left_off": found.left_off,
            "lines": [
                {"at": stamp(line.at), "event": fields, "text": line.text} for line, fields in read
            ],
        }
    )
    for line, fields in read:
        session.terminal.say(_told(line, fields))
    if not found.lines:
        session.terminal.say(f"It logged nothing since {stamp(query.start)}.")
    if found.left_off:
        session.terminal.warn("There is more: --limit N or a later --since shows other parts.")
    session.terminal.say(f"The query was: {query.command()}")
    return Exit.DONE


def _told(line: LogLine, fields: Mapping[str, Any] | None) -> str:
    if fields is None:
        return "\n".join(
            f"{stamp(line.at)}  {printable_line(one)}" for one in line.text.splitlines()
        )
    shown = " ".join(
        f"{name}={_value(value)}"
        for name, value in fields.items()
        if name not in _OF_EVERY_LINE and value not in (None, "", [], {})
    )
    return f"{stamp(line.at)}  {printable(fields['message'])}  {printable(shown)}"


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _event(line: LogLine) -> Mapping[str, Any] | None:
    """The fields of a structured event; None for another line, such as Lambda's own or a traceback."""
    try:
        fields = json.loads(line.text)
    except ValueError:
        return None
    return fields if isinstance(fields, dict) and isinstance(fields.get("message"), str) else None
