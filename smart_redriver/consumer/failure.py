"""What a report says of an error: its class, the first line of its message, and where it happened. Never a body."""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from redrive.core.outcomes import (
    MAX_ERROR_CLASS,
    MAX_FIRST_LINE,
    MAX_TRACEBACK,
    on_one_line,
    printable,
)

#: Frames nearest to the error, and errors behind it: more is cut off again, and costs time.
_FRAMES = 20
_CAUSES = 5
#: A shorter body is no secret, and as a part of words would only garble them.
_SHORTEST_BODY = 4
_IN_PLACE_OF_BODY = "[body]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One error, fit for a report. `traceback` is empty where none was asked for."""

    error_class: str
    first_line: str
    traceback: str


def failure_of(error: BaseException, body: str, *, is_traced: bool = True) -> Failure:
    """What to report of `error`, met while working on a message with this `body`.

    A message is in it by its first line only, and without the body, if it quotes that. Without its traceback, which
    `is_traced` asks for, it costs a tenth.
    """
    return Failure(
        error_class=_class_of(error),
        first_line=_first_line(error, body),
        traceback=_traceback(error, body) if is_traced else "",
    )


def _traceback(error: BaseException, body: str) -> str:
    chain = list(islice(_chain(error), _CAUSES))
    places = [
        "".join(traceback.format_tb(one.__traceback__, limit=-_FRAMES))
        + f"{_class_of(one)}: {_first_line(one, body)}".removesuffix(": ")
        for one in reversed(chain)
    ]
    return _end_of(printable("\n\n".join(places)))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """The error, what caused it, and so on, as Python's own tracebacks have it."""
    while error is not None:
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _class_of(error: BaseException) -> str:
    kind = type(error)
    name = kind.__qualname__
    full = name if kind.__module__ == "builtins" else f"{kind.__module__}.{name}"
    return on_one_line(full, MAX_ERROR_CLASS)


def _first_line(error: BaseException, body: str) -> str:
    try:
        message = str(error)
    except Exception:  # anybody's __str__
        return ""
    # What is longer than the message is not in it, and need not be spelt in three ways: it may be a megabyte.
    if _SHORTEST_BODY <= len(body) <= len(message):
        for quoted in (body, repr(body)[1:-1], json.dumps(body)[1:-1]):
            message = message.replace(quoted, _IN_PLACE_OF_BODY)
    return on_one_line(message.strip(), MAX_FIRST_LINE).rstrip()


def _end_of(text: str) -> str:
    """The last 4 KB: the error itself is at the end."""
    return text.encode()[-MAX_TRACEBACK:].decode(errors="ignore")
