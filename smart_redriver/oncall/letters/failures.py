"""A letter's last failure, as its consumer reported it, and the lines of the consumer's log with one of its ids.

A report is text that somebody sent to the outcome queue: the command shows it and never obeys it. A command printed
for a person to paste contains only names that CloudWatch accepts for a log group and stream, quoted for a shell.
Reading the log needs `logs:FilterLogEvents` on the consumer's log group; the re-driver's own policies do not grant it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.reports.outcomes import Consumer
from smart_redriver.engine.reports.processing import ReceivedOutcome
from smart_redriver.oncall.deployment.logs import Found, Query, read_log
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.terminal.table import printable
from smart_redriver.oncall.terminal.words import ago, stamp

#: https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_GetLogEvents.html
_LOG_GROUP = re.compile(r"[A-Za-z0-9_./#][A-Za-z0-9_./#-]{0,511}")
_LOG_STREAM = re.compile(r"[^:*\s-][^:*]{0,511}")


def last_failure(session: Session, original_id: str) -> ReceivedOutcome | None:
    """The last failure that was reported for a letter. An unreadable one is mentioned, and counts as none."""
    try:
        return session.store.load_failure(original_id)
    except CallFailed as failed:
        session.terminal.warn(f"How it failed could not be read ({failed.in_short}).")
        return None


def log_command(consumer: Consumer) -> str | None:
    """The command that opens the consumer's log; None if the report names no log."""
    place = log_place(consumer.log_group, consumer.log_stream)
    if place is None:
        return None
    group, stream = place
    return (
        f"aws logs get-log-events --log-group-name {shlex.quote(group)} "
        f"--log-stream-name {shlex.quote(stream)}"
    )


def log_place(group: str | None, stream: str | None) -> tuple[str, str] | None:
    """Log group and stream as a consumer reported them; None if CloudWatch would not accept the names."""
    if group and stream and _LOG_GROUP.fullmatch(group) and _LOG_STREAM.fullmatch(stream):
        return group, stream
    return None


def failure_to_json(told: ReceivedOutcome | None) -> dict[str, Any] | None:
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


def failure_facts(told: ReceivedOutcome, now: datetime) -> dict[str, str]:
    """A failure's facts by name. A fact that was not reported is empty."""
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
    }


def traceback_lines(told: ReceivedOutcome) -> Iterator[str]:
    """The traceback line by line with its indentation, and nothing in it that a terminal obeys."""
    for line in (told.outcome.traceback or "").splitlines():
        indent = line[: len(line) - len(line.lstrip())].expandtabs()
        yield indent + printable(line)


#: This many lines show how one letter failed; the printed query finds the rest.
_MOST_LINES = 50

#: The longest that a Lambda function runs. It reports at its end.
_LONGEST_INVOCATION = timedelta(minutes=15)
_CLOCKS_DIFFER_BY = timedelta(minutes=1)

#: Ids that can be quoted in a CloudWatch filter pattern without ending the quotes.
_PLAIN = re.compile(r"[A-Za-z0-9-]{8,128}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerLog:
    """A search and its result: None if CloudWatch refused, for the reason in `refused`."""

    query: Query
    found: Found | None
    refused: str = ""


def query_of(
    ids: Iterable[str],
    failure: ReceivedOutcome | None,
    *,
    group: str | None,
    since: datetime,
    now: datetime,
) -> Query | None:
    """Return the query for log lines with one of these ids; None if nothing names the log.

    Args:
        ids: all ids that the letter had.
        failure: its last failure, which may name group, stream and request.
        group: the log group to search instead, from `since` on.

    """
    if group is not None:
        return Query(group=group, start=since, end=now, pattern=_any_of(ids))
    if failure is None:
        return None
    consumer = failure.outcome.consumer
    place = log_place(consumer.log_group, consumer.log_stream)
    if place is None:
        return None
    named, stream = place
    return Query(
        group=named,
        streams=(stream,),
        start=failure.at - _LONGEST_INVOCATION,
        end=failure.at + _CLOCKS_DIFFER_BY,
        pattern=_any_of([*ids, consumer.request_id or ""]),
    )


def read_consumer_log(session: Session, query: Query) -> ConsumerLog:
    """Ask CloudWatch. A refusal is part of the answer, so that the rest about the letter is still shown."""
    try:
        return ConsumerLog(query=query, found=read_log(session, query, most=_MOST_LINES))
    except CallFailed as failed:
        return ConsumerLog(query=query, found=None, refused=failed.code)


def _any_of(ids: Iterable[str]) -> str:
    return " ".join(f'?"{one}"' for one in sorted(set(ids)) if _PLAIN.fullmatch(one))
