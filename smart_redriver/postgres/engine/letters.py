"""Rows of the DLQ and the parking lot as letters, and how each is known.

A letter is known by its row (`dlq-17`, `parked-17`), but for one that is back from a redrive: that is known by its job
(`job-42`), as SQS keeps the id of a message that it moves. So the ledger meets here what it meets there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from smart_redriver.engine.messages.letter import Attribute, Letter, RedriveMetadata
from smart_redriver.engine.reports.outcomes import CAUSE_LENGTH, MAX_FIRST_LINE, on_one_line

#: They name no trouble: what they say does.
GENERIC = frozenset({"", "exception", "error", "runtimeerror", "standarderror", "throwable"})

#: Parts that differ from letter to letter: quoted texts, ids, numbers.
_DIFFERS = re.compile(
    r"""'[^']*' | "[^"]*" | \b[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}\b | \b0x[0-9a-fA-F]+\b | \b[0-9a-fA-F]{16,}\b | \d+""",
    re.VERBOSE,
)


def first_line(message: str | None) -> str:
    """The first line that says something, as far as it may be told."""
    return on_one_line((message or "").lstrip(), MAX_FIRST_LINE).strip()


def normalised(message: str | None) -> str:
    """The first line with `#` for what differs from letter to letter."""
    return _DIFFERS.sub("#", first_line(message))


def cause_of(error_class: str | None, message: str | None) -> str | None:
    """The class, and where that is one for everything the normalised first line after it;
    None where nothing is said.
    """
    name = first_line(error_class)
    if name.rpartition(".")[2].lower() not in GENERIC:
        return name[-CAUSE_LENGTH:]
    return ": ".join(part for part in (name, normalised(message)) if part)[:CAUSE_LENGTH] or None


#: Names of the attributes that a letter's row is shown by. The first is one that the core takes for an error's kind.
ERROR_TYPE = "ErrorType"
ERROR_MESSAGE = "ErrorMessage"
ATTEMPTS = "Attempts"
FAILED_BY = "FailedBy"
STACK_TRACE = "StackTrace"


@dataclass(frozen=True, slots=True)
class Handle:
    """The row of a letter, from its receipt handle. `job`: the redriven job that it is the return of.

    `redrives`: how often it went, where its row stays the same: each copy has to have an id of its own.
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


#: Before how often a letter went, in the ids of one whose row stays the same: `job-42r3`.
AGAIN = "r"


def job_id(job: int, redrives: int = 0) -> str:
    """The id that a copy of a letter goes by, and comes back with."""
    return f"job-{job}{_copy(redrives)}"


def _copy(redrives: int) -> str:
    return f"{AGAIN}{redrives}" if redrives else ""


def letter_id(handle: Handle) -> str:
    """The id that a letter goes by."""
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
    """The letter that a row of `read_dead`, `look_dead` or their like is.

    Redrive metadata that can't be read counts as absent, and is told. One that does not say when it died has died now,
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
        # The core reckons from here to the death; the row knows that to the second.
        first_received_at=died_at - time_to_fail if told_at == died_at else None,
        metadata=decoded,
        metadata_fault=fault,
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


def _metadata(text: str | None) -> tuple[RedriveMetadata | None, str | None]:
    if text is None:
        return None, None
    try:
        return RedriveMetadata.decode(text), None
    except ValueError as fault:
        return None, str(fault)
