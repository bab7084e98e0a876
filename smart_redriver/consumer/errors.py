"""Errors that no retry can fix, and errors that say when to try again."""

from __future__ import annotations

import copyreg
import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any


class PermanentError(Exception):
    """Raised by a consumer for a message that can never succeed: it goes to the parking lot at once."""


class RetryableError(Exception):
    """Raised by a consumer for a message that should not be tried again for `after` seconds. It costs no strike."""

    def __init__(self, *args: object, after: float) -> None:
        super().__init__(*args)
        self.after = float(after)

    def __reduce__(self) -> tuple[Any, ...]:
        # Python's own calls `__init__` without `after`, and an error that can't be unpickled breaks a process pool.
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


#: An error's class, or its name as `top package.class` to avoid an import.
ErrorKind = type[BaseException] | str

#: Errors that are permanent unless a consumer says otherwise.
PERMANENT: tuple[ErrorKind, ...] = (
    PermanentError,
    json.JSONDecodeError,
    UnicodeDecodeError,
    "pydantic.ValidationError",
    "pydantic_core.ValidationError",  # where version 2 of pydantic has it
)


def checked_kinds(kinds: Iterable[ErrorKind]) -> tuple[ErrorKind, ...]:
    """The kinds as a tuple. Raises TypeError for one kind without a tuple, and for anything that is no kind."""
    if isinstance(kinds, str | type):
        raise TypeError(f"permanent={kinds!r}: give a tuple of errors, also for one")
    checked = tuple(kinds)
    for kind in checked:
        is_class = isinstance(kind, type) and issubclass(kind, BaseException)
        if not is_class and not isinstance(kind, str):
            raise TypeError(f"permanent: {kind!r} is neither an error's class nor a name")
    return checked


#: This many bytes or fewer may be in a body by chance.
_BY_CHANCE = 4
#: The longest time that SQS can hide a message, in seconds.
MAX_RETRY_AFTER = 43_200
#: How many errors of a chain to look at.
_CAUSES = 5
#: https://www.rfc-editor.org/rfc/rfc9110#field.retry-after
_RETRY_AFTER = "retry-after"


def is_permanent(error: BaseException, body: str, kinds: tuple[ErrorKind, ...] = PERMANENT) -> bool:
    """Whether `error` is of one of the `kinds`, and about the message with this `body`.

    The text or bytes that can't be read may instead be the answer of a service that is down, which is not permanent.
    A group of errors is permanent if all its errors are. It looks at each error once.
    """
    met = {id(error)}
    errors = [error]
    for one in errors:
        if _is_of_kind(one, body, kinds):
            continue
        if not (grouped := grouped_in(one)):
            return False
        for other in grouped:
            if id(other) not in met:
                met.add(id(other))
                errors.append(other)
    return True


def _is_of_kind(error: BaseException, body: str, kinds: tuple[ErrorKind, ...]) -> bool:
    if isinstance(error, json.JSONDecodeError) and error.doc != body:
        return False
    if isinstance(error, UnicodeDecodeError) and not _holds(body, error.object):
        return False
    return any(
        isinstance(error, kind) if isinstance(kind, type) else kind in _names(error)
        for kind in kinds
    )


def grouped_in(error: BaseException) -> tuple[BaseException, ...]:
    """The errors in a group of errors; none for any other error."""
    return error.exceptions if isinstance(error, BaseExceptionGroup) else ()


def retry_after_of(error: BaseException, now: datetime) -> int | None:
    """Seconds until the message should be tried again, by the error or one that caused it; at most 12 hours.

    For a group of errors, it is the longest time that any of them names. It looks at each error once.

    They come from `RetryableError.after`, from a number called `retry_after`, as clients of many services have, or from
    the header `Retry-After` of the answer that requests, httpx, urllib, aiohttp and botocore keep with their errors.
    """
    return _retry_after(error, now, _CAUSES, set())


def _retry_after(
    error: BaseException | None, now: datetime, depth: int, met: set[int]
) -> int | None:
    if error is None or depth == 0 or id(error) in met:
        return None
    met.add(id(error))
    with suppress(Exception):  # attributes of unknown classes
        if (seconds := _named_by(error, now)) is not None:
            return max(0, int(min(seconds, MAX_RETRY_AFTER)))
    grouped = [_retry_after(one, now, depth - 1, met) for one in grouped_in(error)]
    told = [seconds for seconds in grouped if seconds is not None]
    behind = error.__cause__ or error.__context__
    return max(told) if told else _retry_after(behind, now, depth - 1, met)


def _named_by(error: BaseException, now: datetime) -> float | None:
    if isinstance(error, RetryableError):
        return error.after
    value = getattr(error, "retry_after", None)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    header = next((one for one in map(_header, _headers(error)) if one), None)
    return seconds_of(header, now) if header else None


def seconds_of(header: str, now: datetime) -> float | None:
    """Parse `Retry-After`, which is seconds or a date; None if it is neither."""
    if header.strip().isdecimal():
        return float(header)
    with suppress(ValueError):
        at = parsedate_to_datetime(header)
        return (at.replace(tzinfo=at.tzinfo or UTC) - now).total_seconds()
    return None


def _headers(error: BaseException) -> list[Any]:
    response = getattr(error, "response", None)
    if isinstance(response, Mapping):
        return [response.get("ResponseMetadata", {}).get("HTTPHeaders")]
    return [getattr(response, "headers", None), getattr(error, "headers", None)]


def _header(headers: Any) -> str | None:
    if headers is None:
        return None
    found = {str(name).lower(): value for name, value in headers.items()}.get(_RETRY_AFTER)
    return None if found is None else str(found)


def _holds(body: str, data: bytes) -> bool:
    """Whether `data` is in the body as Base64. The bytes themselves can't be, because a body is text."""
    return len(data) > _BY_CHANCE and any(
        encode(data).decode().rstrip("=") in body for encode in (b64encode, urlsafe_b64encode)
    )


def _names(error: BaseException) -> set[str]:
    return {f"{one.__module__.partition('.')[0]}.{one.__qualname__}" for one in type(error).__mro__}
