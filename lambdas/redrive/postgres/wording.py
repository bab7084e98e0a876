"""What a worker wrote of an error, as a cause: the same text for the same trouble, whatever order it was met with."""

from __future__ import annotations

import re

from redrive.core.cause import CAUSE_LENGTH
from redrive.core.outcomes import MAX_FIRST_LINE, on_one_line

#: They name no trouble: what they say does.
GENERIC = frozenset({"", "exception", "error", "runtimeerror", "standarderror", "throwable"})

#: What differs from letter to letter: quoted texts, ids, numbers.
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
    """The class, and where that is one for everything the normalised first line after it; None where nothing is said."""
    name = first_line(error_class)
    if name.rpartition(".")[2].lower() not in GENERIC:
        return name[-CAUSE_LENGTH:]
    return ": ".join(part for part in (name, normalised(message)) if part)[:CAUSE_LENGTH] or None
