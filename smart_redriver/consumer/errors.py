"""Which errors no retry can heal."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode


class PermanentError(Exception):
    """Raised by a consumer for a message that can never succeed: it goes to the parking lot at once."""


#: An error's class, or its name as `top package.class` where naming it must not import it.
ErrorKind = type[BaseException] | str

#: What is permanent unless a consumer says otherwise.
PERMANENT: tuple[ErrorKind, ...] = (
    PermanentError,
    json.JSONDecodeError,
    UnicodeDecodeError,
    "pydantic.ValidationError",
    "pydantic_core.ValidationError",  # where version 2 of pydantic has it
)

#: Bytes that could stand in a body by chance.
_BY_CHANCE = 4


def is_permanent(error: BaseException, body: str, kinds: tuple[ErrorKind, ...] = PERMANENT) -> bool:
    """Whether `error` is of one of the `kinds`, and about the message with this `body`.

    What is no JSON, or no text, may as well be the answer of a service that is down, and that heals.
    """
    if isinstance(error, json.JSONDecodeError) and error.doc != body:
        return False
    if isinstance(error, UnicodeDecodeError) and not _holds(body, error.object):
        return False
    return any(
        isinstance(error, kind) if isinstance(kind, type) else kind in _names(error)
        for kind in kinds
    )


def _holds(body: str, data: bytes) -> bool:
    """Whether `data` is in the body, as Base64: itself it can't be, as a body is text."""
    return len(data) > _BY_CHANCE and any(
        encode(data).decode().rstrip("=") in body for encode in (b64encode, urlsafe_b64encode)
    )


def _names(error: BaseException) -> set[str]:
    return {f"{one.__module__.partition('.')[0]}.{one.__qualname__}" for one in type(error).__mro__}
