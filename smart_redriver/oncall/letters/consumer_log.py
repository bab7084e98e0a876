"""What a consumer logged about one letter: the lines of its log that hold one of the letter's ids.

Which log that is, the last report of a failure says, or the person who asks. Reading it needs `logs:FilterLogEvents`
on the consumer's log group, which the re-driver's own policies do not grant: the log is its owner's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from redrive.core.hearing import Told
from redrive.errors import CallFailed
from smart_redriver.oncall.letters.failures import log_place
from smart_redriver.oncall.stack.logs import Found, Query, read_log
from smart_redriver.oncall.stack.session import Session

#: So many lines tell how one letter failed; the rest is behind the query that is printed.
_MOST_LINES = 50

#: A Lambda function runs for so long at most, and reports at its end.
_LONGEST_INVOCATION = timedelta(minutes=15)
_CLOCKS_DIFFER_BY = timedelta(minutes=1)

#: What can stand in quotes in CloudWatch's filter pattern without ending them.
_PLAIN = re.compile(r"[A-Za-z0-9-]{8,128}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerLog:
    """What was asked, and what was found: None where CloudWatch refused, for the reason in `refused`."""

    query: Query
    found: Found | None
    refused: str = ""


def query_of(
    ids: Iterable[str], failure: Told | None, *, group: str | None, since: datetime, now: datetime
) -> Query | None:
    """Where to look for lines with one of these ids; None where nothing says which log.

    Args:
        ids: all that the letter had.
        failure: its last, which may name group, stream and request.
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
    """Ask CloudWatch. A refusal is part of the answer: the rest about the letter is told all the same."""
    try:
        return ConsumerLog(query=query, found=read_log(session, query, most=_MOST_LINES))
    except CallFailed as failed:
        return ConsumerLog(query=query, found=None, refused=failed.code)


def _any_of(ids: Iterable[str]) -> str:
    return " ".join(f'?"{one}"' for one in sorted(set(ids)) if _PLAIN.fullmatch(one))
