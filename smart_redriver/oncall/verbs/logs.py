"""`redrive logs`: what the function itself logged."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from smart_redriver.oncall.deployment.logs import LogLine, Query, read_log
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.terminal.exits import Exit, Misused
from smart_redriver.oncall.terminal.table import folded_command, printable, printable_line
from smart_redriver.oncall.terminal.terminal import Verbatim
from smart_redriver.oncall.terminal.words import parse_moment, stamp

#: Fields that Lambda and Powertools put into every line. They say nothing about the event.
_OF_EVERY_LINE = frozenset(
    {
        *("cold_start", "correlation_id", "function_arn", "function_memory_size"),
        *("function_name", "function_request_id", "level", "location", "message"),
        *("sampling_rate", "service", "timestamp", "xray_trace_id"),
    }
)
_EVENT = re.compile(r"[A-Za-z_.]{1,60}")


#: Lambda's own lines about an invocation.
_OF_LAMBDA = re.compile(r"(START|END|REPORT) RequestId: |INIT_START |EXTENSION\t")
#: What identifies a line of metrics in CloudWatch's embedded format, and one of Lambda's own lines in JSON.
_METRICS, _PLATFORM = "_aws", "platform."


def logs(
    session: Session, *, since: str, event: str | None, limit: int, with_all: bool = False
) -> Exit:
    """Print the newest lines, oldest first. Raises CallFailed, Misused and Refused.

    `with_all` includes the function's metrics and Lambda's own lines.
    """
    if event is not None and not _EVENT.fullmatch(event):
        raise Misused(f"{event!r} is not the name of an event. One is for example letter.parked.")
    now = session.clock()
    query = Query(
        group=session.log_group,
        start=parse_moment(since, now),
        end=now + timedelta(minutes=1),
        pattern=f'"{event}"' if event else "",
    )

    left_out: deque[LogLine] = deque(maxlen=1)

    def is_selected(line: LogLine) -> bool:
        """The pattern also finds the name in other events."""
        if event is not None:
            return (_event(line) or {}).get("message") == event
        if with_all or not _is_noise(line):
            return True
        left_out.append(line)
        return False

    found = read_log(session, query, most=limit, selection=is_selected)
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
        what = "nothing but metrics and Lambda's own lines (--all)" if left_out else "nothing"
        session.terminal.say(f"It logged {what} since {stamp(query.start)}.")
    if found.left_off:
        session.terminal.warn("There is more: --limit N or a later --since shows other parts.")
    session.terminal.say("The query was:")
    session.terminal.say(Verbatim(folded_command(query.command(), session.terminal.columns, "  ")))
    return Exit.DONE


def _told(line: LogLine, fields: Mapping[str, Any] | None) -> str:
    if fields is None:
        return Verbatim(
            "\n".join(f"{stamp(line.at)}  {printable_line(one)}" for one in line.text.splitlines())
        )
    shown = " ".join(
        f"{name}={_value(value)}"
        for name, value in fields.items()
        if name not in _OF_EVERY_LINE and value not in (None, "", [], {})
    )
    return f"{stamp(line.at)}  {printable(fields['message'])}  {printable(shown)}"


def _is_noise(line: LogLine) -> bool:
    if _OF_LAMBDA.match(line.text):
        return True
    fields = _object(line)
    return _METRICS in fields or str(fields.get("type", "")).startswith(_PLATFORM)


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _event(line: LogLine) -> Mapping[str, Any] | None:
    """The fields of a structured event; None for any other line, such as Lambda's own or a traceback."""
    fields = _object(line)
    return fields if isinstance(fields.get("message"), str) else None


def _object(line: LogLine) -> Mapping[str, Any]:
    """The JSON object in a line; an empty one for any other line."""
    try:
        fields = json.loads(line.text)
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def act(session: Session, given: Mapping[str, Any]) -> Exit:
    """Carry out `logs`."""
    return logs(
        session,
        since=given["since"],
        event=given.get("event"),
        limit=given["limit"],
        with_all=given["all"],
    )
