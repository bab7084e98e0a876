"""Rows of the DLQ and the parking lot as letters, and how each is known.

A letter is known by its row (`dlq-17`, `parked-17`), but for one that is back from a redrive: that is known by its job
(`job-42`), as SQS keeps the id of a message that it moves. So the ledger meets here what it meets there.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from redrive.core.letter import Attribute, Letter, Trail

#: Names of the attributes that a letter's row is shown by. The first is one that the core takes for an error's kind.
ERROR_TYPE = "ErrorType"
ERROR_MESSAGE = "ErrorMessage"
ATTEMPTS = "Attempts"
FAILED_BY = "FailedBy"
STACK_TRACE = "StackTrace"


@dataclass(frozen=True, slots=True)
class Handle:
    """Which row a letter is: what its receipt handle says. `job`: of ours, that it is the return of."""

    is_parked: bool
    row: int
    job: int | None = None

    def __str__(self) -> str:
        return f"{'parked' if self.is_parked else 'dlq'}:{self.row}:{'' if self.job is None else self.job}"

    @classmethod
    def of(cls, letter: Letter) -> Handle:
        """The row of a letter that an adapter made."""
        table, row, job = letter.receipt_handle.split(":")
        return cls(table == "parked", int(row), int(job) if job else None)


def job_id(job: int) -> str:
    """The id that a copy of a letter goes by, and comes back with."""
    return f"job-{job}"


def letter_id(handle: Handle) -> str:
    """The id that a letter goes by."""
    if handle.job is not None:
        return job_id(handle.job)
    return f"{'parked' if handle.is_parked else 'dlq'}-{handle.row}"


def letter_of(
    row: tuple[Any, ...], *, is_parked: bool, time_to_fail: timedelta, now: datetime
) -> Letter:
    """The letter that a row of `read_dead`, `look_dead` or their like is.

    A trail that can't be read counts as absent, and is told. One that does not say when it died has died now, and has no
    first receive.
    """
    row_id, job, trail, failed_at, error_class, message, attempts, failed_by, body, stack = row
    handle = Handle(is_parked, row_id, job)
    told_at = moment_of(failed_at)
    died_at = min(told_at or now, now)
    decoded, fault = _trail(trail)
    return Letter(
        message_id=letter_id(handle),
        receipt_handle=str(handle),
        body=body or "",
        attributes=_attributes(error_class, message, attempts, failed_by, stack),
        sent_at=died_at,
        # The core reckons from here to the death; the row knows that to the second.
        first_received_at=died_at - time_to_fail if told_at == died_at else None,
        trail=decoded,
        trail_fault=fault,
    )


def moment_of(value: object) -> datetime | None:
    """A moment that a row tells, be its column one without a zone or of a day; None for what is none."""
    if isinstance(value, datetime):
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    return None


def error_of(letter: Letter) -> tuple[str | None, str | None]:
    """Class and message of what a letter died of, as its row has them."""
    return _text(letter.attributes, ERROR_TYPE), _text(letter.attributes, ERROR_MESSAGE)


def _attributes(
    error_class: str | None,
    message: str | None,
    attempts: str | None,
    failed_by: str | None,
    stack: str | None,
) -> dict[str, Attribute]:
    texts = {ERROR_TYPE: error_class, ERROR_MESSAGE: message, FAILED_BY: failed_by}
    texts |= {STACK_TRACE: stack}
    told: dict[str, Attribute] = {
        name: {"DataType": "String", "StringValue": text} for name, text in texts.items() if text
    }
    if attempts is not None:
        told[ATTEMPTS] = {"DataType": "Number", "StringValue": attempts}
    return told


def _text(attributes: Any, name: str) -> str | None:
    return attributes[name]["StringValue"] if name in attributes else None


def _trail(text: str | None) -> tuple[Trail | None, str | None]:
    if text is None:
        return None, None
    try:
        return Trail.decode(text), None
    except ValueError as fault:
        return None, str(fault)
