"""Rows of the DLQ and the parking lot as letters, and their ids.

A letter's id comes from its row (`dlq-17`, `parked-17`). If it is back from a redrive, its id comes from its job
(`job-42`), just as SQS keeps the id of a message that it moves. So ids mean the same to the ledger here as in SQS.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from smart_redriver.engine.messages.letter import Attribute, Letter, RedriveMetadata
from smart_redriver.engine.reports.outcomes import CAUSE_LENGTH, MAX_FIRST_LINE, on_one_line

#: Classes that do not identify a fault; their messages do.
GENERIC = frozenset({"", "exception", "error", "runtimeerror", "standarderror", "throwable"})

#: Parts that differ between letters: quoted texts, ids, numbers.
_DIFFERS = re.compile(
    r"""'[^']*' | "[^"]*" | \b[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}\b | \b0x[0-9a-fA-F]+\b | \b[0-9a-fA-F]{16,}\b | \d+""",
    re.VERBOSE,
)


def first_line(message: str | None) -> str:
    """The first line that is not empty, cut to the length that may be reported."""
    return on_one_line((message or "").lstrip(), MAX_FIRST_LINE).strip()


def normalised(message: str | None) -> str:
    """The first line with `#` for what differs from letter to letter."""
    return _DIFFERS.sub("#", first_line(message))


def cause_of(error_class: str | None, message: str | None) -> str | None:
    """The class, followed by the normalised first line if the class is a general one; None if there is neither."""
    name = first_line(error_class)
    if name.rpartition(".")[2].lower() not in GENERIC:
        return name[-CAUSE_LENGTH:]
    return ": ".join(part for part in (name, normalised(message)) if part)[:CAUSE_LENGTH] or None


#: Names of the attributes that show a letter's row. The core reads the first one as the kind of an error.
ERROR_TYPE = "ErrorType"
ERROR_MESSAGE = "ErrorMessage"
ATTEMPTS = "Attempts"
FAILED_BY = "FailedBy"
STACK_TRACE = "StackTrace"


@dataclass(frozen=True, slots=True)
class Handle:
    """The row of a letter, from its receipt handle. `job`: the redriven job that returned as this letter.

    `redrives`: how often it went back, if its row stays the same: each copy needs an id of its own.
    """

    is_parked: bool
    row: int
    job: int | None = None
    redrives: int = 0

    def __str__(self) -> str:
        job = "" if self.job is None else self.job
        return f"{'parked' if self.is_parked else 'dlq'}:{self.row}:{job}:{self.redrives}"

    @classmethod
    def of(cls, letter: Letter) -> Handle:
        """The row of a letter that an adapter made."""
        table, row, job, redrives = letter.receipt_handle.split(":")
        return cls(table == "parked", int(row), int(job) if job else None, int(redrives))


#: Precedes the number of redrives in the id of a letter whose row stays the same: `job-42r3`.
AGAIN = "r"


def job_id(job: int, redrives: int = 0) -> str:
    """The id of a letter's copy, with which it comes back."""
    return f"job-{job}{_copy(redrives)}"


def _copy(redrives: int) -> str:
    return f"{AGAIN}{redrives}" if redrives else ""


def letter_id(handle: Handle) -> str:
    """The id of a letter."""
    if handle.job is not None:
        return job_id(handle.job, handle.redrives)
    return f"{'parked' if handle.is_parked else 'dlq'}-{handle.row}{_copy(handle.redrives)}"


def letter_of(
    row: tuple[Any, ...],
    *,
    is_parked: bool,
    time_to_fail: timedelta,
    now: datetime,
    is_by_state: bool = False,
) -> Letter:
    """Make a letter from a row of `read_dead`, `look_dead` or a similar statement.

    Unreadable redrive metadata counts as absent, and is reported. A letter without a time of death counts as dead now,
    and has no first receive.
    """
    row_id, job, metadata, failed_at, error_class, message, attempts, failed_by, body, stack = row
    decoded, fault = _metadata(metadata)
    handle = Handle(is_parked, row_id, job)
    if is_by_state and decoded is not None:
        handle = replace(handle, redrives=decoded.redrive_count)
    told_at = moment_of(failed_at)
    died_at = min(told_at or now, now)
    return Letter(
        message_id=letter_id(handle),
        receipt_handle=str(handle),
        body=body or "",
        attributes=_attributes(error_class, message, attempts, failed_by, stack),
        sent_at=died_at,
        # The core calculates from here to the death, which the row has to the second.
        first_received_at=died_at - time_to_fail if told_at == died_at else None,
        metadata=decoded,
        metadata_fault=fault,
    )


def moment_of(value: object) -> datetime | None:
    """A moment from a row, even from a column without a zone or with only a date; None for anything else."""
    if isinstance(value, datetime):
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    return None


def error_of(letter: Letter) -> tuple[str | None, str | None]:
    """Class and message of a letter's error, from its row."""
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


def _metadata(text: str | None) -> tuple[RedriveMetadata | None, str | None]:
    if text is None:
        return None, None
    try:
        return RedriveMetadata.decode(text), None
    except ValueError as fault:
        return None, str(fault)
