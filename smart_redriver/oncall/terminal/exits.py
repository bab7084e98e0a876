"""How a command ends: its exit code, and the refusal that ends it early. Standard library only."""

from __future__ import annotations

from enum import IntEnum

#: Of what a person gives as a reason, in characters: it is kept with the circuit, which every pass reads.
LONGEST_REASON = 500


class Exit(IntEnum):
    """Exit codes, as docs/command.md promises them."""

    DONE = 0
    REFUSED = 1  # refused, declined or failed; nothing was changed, or it says what was
    USAGE = 2
    PARTLY = 3  # some of it was done; running it again goes on


class Refused(Exception):  # noqa: N818 - it is what happened, and is caught by that name
    """Raised to end a command with one sentence that says what is wrong and what to do next."""

    def __init__(self, message: str, code: Exit = Exit.REFUSED) -> None:
        self.code = code
        super().__init__(message)


class Misused(Refused):
    """Raised when the command's arguments make no sense together."""

    def __init__(self, message: str) -> None:
        super().__init__(message, Exit.USAGE)
