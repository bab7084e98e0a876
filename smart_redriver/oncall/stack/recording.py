"""Records a person's change in the audit trail: that it begins, and how it ended."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from redrive.errors import CallFailed
from smart_redriver.oncall.stack.audit import Line
from smart_redriver.oncall.stack.changes import BEGUN
from smart_redriver.oncall.stack.session import Session


def record(session: Session, what: str, why: str = "") -> None:
    """Write one line of the audit trail. Raises CallFailed: what can't be recorded is not begun."""
    session.audit.write(Line(at=session.clock(), who=session.who, what=what, why=why))


@contextmanager
def recorded(session: Session, what: str, why: str) -> Iterator[list[str]]:
    """Record that a change begins, and how it ended: what is put into the list. A crash leaves the begin."""
    record(session, f"{what}{BEGUN}", why)
    ended: list[str] = []
    try:
        yield ended
    except BaseException as fault:
        if isinstance(fault, Exception):
            _record_end(session, f"{what}: ended by {type(fault).__name__}: {fault}", why)
        raise
    _record_end(session, f"{what}: {'; '.join(ended) or 'done'}", why)


def _record_end(session: Session, what: str, why: str) -> None:
    try:
        record(session, what, why)
    except CallFailed as failed:
        session.terminal.warn(
            f"How it ended could not be written to the audit trail: {failed.code}."
        )
