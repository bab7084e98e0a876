"""Outcomes as consumers report them: what a report can say, and how much of it is believed. Pure.

A report is the body of one message in the outcome queue: JSON with the consumer and a list of outcomes, as in
`smart_redriver/consumer/outcomes.schema.json`. Any sender to that queue may write anything, so no report may surprise a
pass: reading takes bounded work, never raises, and its result fits the ledger and a terminal. A report contains no
time: SQS says when it was sent, and a consumer's clock may be wrong.

A message may also carry an error attribute, which consumers and frameworks attach.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from enum import Enum
from typing import Any

from smart_redriver.engine.messages.letter import Attribute

VERSION = 1

#: The largest message of SQS, so that nothing larger needs to be read.
#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
MAX_REPORT_BYTES = 1_048_576
MAX_OUTCOMES = 1000

#: Characters. Longer texts are cut, not refused: why a letter failed is still worth knowing.
MAX_NAME = 512
MAX_ERROR_CLASS = 200
MAX_FIRST_LINE = 300
MAX_CAUSE = 100
MAX_TRACEBACK = 4096

#: Names under which faults are counted, beside those of fields.
NOT_JSON = "not JSON"
NOT_A_REPORT = "not a report"
TOO_LARGE = "too large"
TOO_MANY = "too many outcomes"

#: The same check as for letter ids in redrive metadata: the ledger must be able to store them.
_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")
#: A queue of SQS with its suffix, or a topic.
_QUEUE = re.compile(r"[A-Za-z0-9._-]{1,249}")
_LARGEST_NUMBER = 10**12
#: Seconds. SQS hides no message for longer.
MAX_RETRY_AFTER = 43_200

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


class Result(str, Enum):
    """The result of one delivery of a message at its consumer.

    PERMANENT: the consumer sent it to the parking lot itself, since no retry can heal its error.
    """

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    PERMANENT = "permanent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumer:
    """The consumer that reports, and where it logged."""

    name: str | None = None
    version: str | None = None
    log_group: str | None = None
    log_stream: str | None = None
    request_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryOutcome:
    """A consumer's claim about one delivery: its ids are well-formed, but may belong to any message.

    Attributes:
        queue: name of the source queue.
        message_id: of the copy that was delivered.
        original_id: from the metadata, or else the message's own id.
        batch, generation: the redrive's, from the metadata; None for a message without metadata.
        receive_count: SQS's, of this copy.
        permanent: whether no retry can heal the error, no matter whether or how the message was parked.
        parked_id: the message's id in the parking lot, with PERMANENT only.
        interrupted: the work was ended from outside, for example by a deployment: no one is at fault.
        retry_after: seconds from the report on for which the letter need not be tried, from the error.
        cause: the consumer's name for the reason of the failure; errors with one cause have the same name.
        traceback: left out by a consumer if another outcome of the report has the same cause; then that one's counts.

    """

    queue: str
    message_id: str
    original_id: str
    result: Result
    batch: int | None = None
    generation: int | None = None
    receive_count: int | None = None
    permanent: bool = False
    parked_id: str | None = None
    interrupted: bool = False
    retry_after: int | None = None
    error_class: str | None = None
    first_line: str | None = None
    cause: str | None = None
    traceback: str | None = None
    consumer: Consumer = field(default_factory=Consumer)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeMessage:
    """A message of the outcome queue: one report, unread. `sent_at` is when SQS took it."""

    message_id: str
    receipt_handle: str
    body: str = field(repr=False)
    sent_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """The outcomes of one report that can be read, and counts of what was wrong with the others."""

    outcomes: tuple[DeliveryOutcome, ...] = ()
    faults: Mapping[str, int] = field(default_factory=Counter)


def parse_outcomes(body: str) -> Parsed:
    """The outcomes in one report, at most `MAX_OUTCOMES` of them; whatever `body` is, nothing is raised."""
    if len(body) > MAX_REPORT_BYTES:
        return _refused(TOO_LARGE)
    try:
        report = json.loads(body)
    except (ValueError, RecursionError):
        return _refused(NOT_JSON)
    if not isinstance(report, dict) or not isinstance(report.get("outcomes"), list):
        return _refused(NOT_A_REPORT)
    if report.get("version") != VERSION or isinstance(report["version"], bool):
        return _refused("version")
    faults: Counter[str] = Counter()
    consumer = _consumer(report.get("consumer"), faults)
    listed = report["outcomes"]
    if len(listed) > MAX_OUTCOMES:
        faults[TOO_MANY] += len(listed) - MAX_OUTCOMES
    outcomes = [
        outcome for one in listed[:MAX_OUTCOMES] if (outcome := _outcome(one, consumer, faults))
    ]
    return Parsed(outcomes=_with_shared_tracebacks(outcomes), faults=faults)


def report_fields(record: DeliveryOutcome | Consumer) -> dict[str, Any]:
    """The fields of a record in a report's form, without empty ones."""
    values = {one.name: getattr(record, one.name) for one in fields(record)}
    values.pop("consumer", None)
    return {
        name: value for name, value in values.items() if value is not None and value is not False
    }


def on_one_line(text: str, length: int) -> str:
    """The first line of `text`, at most `length` characters; no terminal takes it for a command."""
    return printable(text[:length].partition("\n")[0])


def printable(text: str) -> str:
    """`text` with a mark for every character that is neither printed nor a line's end or a tab."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one in "\n\t" else _REPLACEMENT for one in text)


def _with_shared_tracebacks(outcomes: list[DeliveryOutcome]) -> tuple[DeliveryOutcome, ...]:
    """The outcomes; one without a traceback gets that of the first outcome with the same cause."""
    traced = {one.cause: one.traceback for one in reversed(outcomes) if one.cause and one.traceback}
    return tuple(
        replace(one, traceback=traced[one.cause])
        if one.traceback is None and one.cause in traced
        else one
        for one in outcomes
    )


def _refused(fault: str) -> Parsed:
    return Parsed(faults=Counter({fault: 1}))


def _outcome(given: object, consumer: Consumer, faults: Counter[str]) -> DeliveryOutcome | None:
    """One outcome, or None if it can't be used: then `faults` has counted why."""
    if not isinstance(given, dict):
        faults["outcomes"] += 1
        return None
    values, wrong = _read(given, _READERS)
    wrong += [name for name in _NEEDED if name not in values]
    if ("batch" in values) != ("generation" in values):
        wrong.append("generation")
    if (values.get("result") is Result.PERMANENT) != ("parked_id" in values):
        wrong.append("parked_id")
    if wrong:
        faults.update(set(wrong))
        return None
    values.setdefault("original_id", values["message_id"])
    outcome = DeliveryOutcome(**values, consumer=consumer)
    return replace(outcome, permanent=True) if outcome.parked_id else outcome


def _consumer(given: object, faults: Counter[str]) -> Consumer:
    """The consumer that reports, as far as it can be read: an outcome counts without it."""
    values, wrong = _read(given, _NAMES) if isinstance(given, dict) else ({}, [])
    if wrong or not isinstance(given, dict | None):
        faults["consumer"] += 1
    return Consumer(**values)


_Reader = Callable[[Any], Any]


def _read(
    given: Mapping[str, object], readers: Mapping[str, _Reader]
) -> tuple[dict[str, Any], list[str]]:
    """The known fields by name, and the names of faulty ones."""
    values: dict[str, Any] = {}
    wrong = []
    for name, read in readers.items():
        if given.get(name) is not None:
            try:
                values[name] = read(given[name])
            except ValueError:
                wrong.append(name)
    return values, wrong


def _matching(pattern: re.Pattern[str]) -> _Reader:
    def read(value: object) -> str:
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise ValueError
        return value

    return read


def _line(length: int) -> _Reader:
    return lambda value: on_one_line(_text(value), length)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError  # noqa: TRY004 - one error for every fault of a field
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError  # noqa: TRY004
    return value


def _seconds(value: object) -> int:
    return min(_number(value), MAX_RETRY_AFTER)


def _number(value: object) -> int:
    """A whole number within the ledger's bounds; JSON has 7.0 for 7."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError  # noqa: TRY004
    if not 0 <= value <= _LARGEST_NUMBER or value != int(value):
        raise ValueError
    return int(value)


_NEEDED = ("queue", "message_id", "result")

_READERS: Mapping[str, _Reader] = {
    "queue": _matching(_QUEUE),
    "message_id": _matching(_ID),
    "original_id": _matching(_ID),
    "result": Result,
    "batch": _number,
    "generation": _number,
    "receive_count": _number,
    "permanent": _flag,
    "parked_id": _matching(_ID),
    "interrupted": _flag,
    "retry_after": _seconds,
    "error_class": _line(MAX_ERROR_CLASS),
    "first_line": _line(MAX_FIRST_LINE),
    "cause": _line(MAX_CAUSE),
    "traceback": lambda value: printable(_text(value)[:MAX_TRACEBACK]),
}

_NAMES: Mapping[str, _Reader] = {one.name: _line(MAX_NAME) for one in fields(Consumer)}


#: Names under which consumers and frameworks attach an error, compared without case and punctuation: the kind
#: of error before its text, which differs from letter to letter.
ERROR_NAMES = (
    "errortype",
    "errorcode",
    "exceptiontype",
    "exceptionclass",
    "exception",
    "error",
    "errormessage",
    "exceptionmessage",
    "failurereason",
)

#: Enough to tell errors apart; an entry of the ledger should stay below two write units of 1 KB.
ERROR_LENGTH = 120

#: Characters of a cause. A circuit keeps some causes for each batch that is out, and its item must stay small.
CAUSE_LENGTH = 100


def error_of(attributes: Mapping[str, Attribute]) -> str | None:
    """The first of the known error attributes, on one line; None if there is none.

    A mere number says less than any text: Lambda gives its letters an HTTP status beside the error's message.
    """
    plain = {"".join(filter(str.isalnum, name)).lower(): name for name in attributes}
    texts = [attributes[plain[one]].get("StringValue") for one in ERROR_NAMES if one in plain]
    told = [" ".join(text.split())[:ERROR_LENGTH] for text in texts if text and text.strip()]
    return min(told, key=str.isdecimal, default=None)
