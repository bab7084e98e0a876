"""Letters as a person's own command makes them: body in, body out. `--with CMD`."""

from __future__ import annotations

from dataclasses import replace

from redrive.core.letter import Letter
from smart_redriver.oncall.moving.own_command import OwnCommand
from smart_redriver.oncall.moving.sending import Validate

#: What is said of a letter that the command leaves as it is.
UNCHANGED = "the command leaves it as it is"


class Transformation:
    """Makes letters what a command makes of their bodies. Attributes stay. `check` may refuse what came out."""

    def __init__(self, command: str, check: Validate | None) -> None:
        """Raises Misused where there is no such command."""
        self._command = OwnCommand("--with", command)
        self._check = check
        self._made: dict[str, Letter] = {}

    def fault_of(self, letter: Letter) -> str | None:
        """Why the letter stays what and where it is, if it does; else `take` has what it became."""
        finished = self._command.run(letter.body)
        if finished.fault is not None:
            return f"refused by the command: {finished.fault}"
        try:
            body = _body_of(finished.out, letter)
        except ValueError as fault:
            return f"refused: {fault}"
        if body == letter.body:
            return UNCHANGED
        made = replace(letter, body=body)
        if self._check and (refused := self._check(made)):
            return refused
        self._made[letter.message_id] = made
        return None

    def take(self, letter: Letter) -> Letter:
        """What a letter without fault has become; it is remembered once."""
        return self._made.pop(letter.message_id)


def _body_of(out: bytes, before: Letter) -> str:
    """The body that was put out. Raises ValueError for what SQS would not take."""
    try:
        body = out.decode("utf-8")
    except UnicodeDecodeError as fault:
        raise ValueError("what the command put out is no text") from fault
    if not before.body.endswith("\n"):
        body = body.removesuffix("\n")  # which most commands add
    if not body:
        raise ValueError("the command put out nothing")
    return body
