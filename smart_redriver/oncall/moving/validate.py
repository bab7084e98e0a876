"""Runs a person's own check on each body before it goes back: `--validate CMD`."""

from __future__ import annotations

import shlex
import shutil
import subprocess

from redrive.core.letter import Letter
from smart_redriver.oncall.moving.sending import Validate
from smart_redriver.oncall.terminal.exits import Misused

#: Ten letters are in hand at once and hidden for five minutes.
TIMEOUT_SECONDS = 10
_LONGEST_REASON = 200


def validator(command: str) -> Validate:
    """A check that gives each body to `command` on standard input; non-zero means no. Raises Misused.

    No shell is started: quote as in a shell, and name one (`sh -c '...'`) to use pipes.
    """
    try:
        arguments = shlex.split(command)
    except ValueError as fault:
        raise Misused(f"--validate {command!r}: {fault}.") from fault
    if not arguments or shutil.which(arguments[0]) is None:
        raise Misused(f"--validate {command!r}: there is no such command.")

    def validate(letter: Letter) -> str | None:
        try:
            finished = subprocess.run(  # noqa: S603 - the caller's own command, with no shell
                arguments,
                input=letter.body.encode(),
                capture_output=True,
                timeout=TIMEOUT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"the validation took longer than {TIMEOUT_SECONDS} s"
        except OSError as fault:
            return f"the validation could not be started: {fault.strerror}"
        if finished.returncode == 0:
            return None
        lines = (finished.stderr or finished.stdout).decode(errors="replace").strip().splitlines()
        reason = lines[-1][:_LONGEST_REASON] if lines else f"exit code {finished.returncode}"
        return f"not valid: {reason}"

    return validate
