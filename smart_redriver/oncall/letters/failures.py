"""How a letter failed the last time, as its consumer reported it, and where its consumer's log tells more.

All of it is what somebody sent to the outcome queue: it is shown, and never obeyed. A command that a person is to
paste names only what CloudWatch takes for a log group and stream, quoted for a shell.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from typing import Any

from redrive.core.hearing import Told
from redrive.core.outcomes import Consumer
from redrive.errors import CallFailed
from smart_redriver.oncall.stack.session import Session
from smart_redriver.oncall.terminal.table import printable
from smart_redriver.oncall.terminal.words import ago, stamp

#: https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_GetLogEvents.html
_LOG_GROUP = re.compile(r"[A-Za-z0-9_./#][A-Za-z0-9_./#-]{0,511}")
_LOG_STREAM = re.compile(r"[^:*\s-][^:*]{0,511}")


def last_failure(session: Session, original_id: str) -> Told | None:
    """The last failure that was reported of a letter. One that can't be read is told, and is none."""
    try:
        return session.store.load_failure(original_id)
    except CallFailed as failed:
        session.terminal.warn(f"How it failed could not be read ({failed.call}: {failed.code}).")
        return None


def log_command(consumer: Consumer) -> str | None:
    """The command that opens the consumer's log; None where what was reported names none."""
    place = log_place(consumer.log_group, consumer.log_stream)
    if place is None:
        return None
    group, stream = place
    return (
        f"aws logs get-log-events --log-group-name {shlex.quote(group)} "
        f"--log-stream-name {shlex.quote(stream)}"
    )


def log_place(group: str | None, stream: str | None) -> tuple[str, str] | None:
    """Log group and stream as a consumer reported them; None where it named none that CloudWatch would take."""
    if group and stream and _LOG_GROUP.fullmatch(group) and _LOG_STREAM.fullmatch(stream):
        return group, stream
    return None


def failure_to_json(told: Told | None) -> dict[str, Any] | None:
    """A failure as `--json` shows it."""
    if told is None:
        return None
    outcome = told.outcome
    return {
        "reported_at": stamp(told.at),
        "error_class": outcome.error_class,
        "first_line": outcome.first_line,
        "traceback": outcome.traceback,
        "receive_count": outcome.receive_count,
        "permanent": outcome.permanent,
        "consumer": asdict(outcome.consumer),
        "log_command": log_command(outcome.consumer),
    }


def failure_facts(told: Told, now: datetime) -> dict[str, str]:
    """A failure by the names of its facts; empty is what was not reported."""
    outcome, consumer = told.outcome, told.outcome.consumer
    who = " ".join(part for part in (consumer.name, consumer.version) if part)
    return {
        "Failed": ": ".join(part for part in (outcome.error_class, outcome.first_line) if part),
        "Reported": f"{stamp(told.at)} ({ago(told.at, now)})"
        + (f", by {who}" if who else "")
        + (f", at receive {outcome.receive_count}" if outcome.receive_count else "")
        + (", as permanent" if outcome.permanent else ""),
        "Request": consumer.request_id or "",
        "Log group": consumer.log_group or "",
        "Log stream": consumer.log_stream or "",
        "Log": log_command(consumer) or "",
    }


def traceback_lines(told: Told) -> Iterator[str]:
    """The traceback line by line, indented as it was, with nothing in it that a terminal obeys."""
    for line in (told.outcome.traceback or "").splitlines():
        indent = line[: len(line) - len(line.lstrip())].expandtabs()
        yield indent + printable(line)
