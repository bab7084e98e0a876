"""Runs a person's own check on each body before it goes back: `--validate CMD`."""

from __future__ import annotations

from redrive.core.letter import Letter
from smart_redriver.oncall.moving.own_command import OwnCommand
from smart_redriver.oncall.moving.sending import Validate


def validator(command: str) -> Validate:
    """A check that gives each body to `command`. Raises Misused."""
    own = OwnCommand("--validate", command)

    def validate(letter: Letter) -> str | None:
        fault = own.run(letter.body).fault
        return f"not valid: {fault}" if fault else None

    return validate
