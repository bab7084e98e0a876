"""A person's own command, which is given each body: `--validate CMD`, `--with CMD`."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from dataclasses import dataclass

from smart_redriver.engine.messages.letter import Letter
from smart_redriver.oncall.moving.sending import Validate
from smart_redriver.oncall.terminal.exits import Misused

#: Ten letters are in hand at once and hidden for five minutes.
TIMEOUT_SECONDS = 10
_LONGEST_REASON = 200


@dataclass(frozen=True, slots=True)
class Finished:
    """What it made of one body: its output, or why there is none."""

    out: bytes = b""
    fault: str | None = None


class OwnCommand:
    """A command that is given one body at a time on standard input. Non-zero means no.

    No shell is started: quote as in a shell, and name one (`sh -c '...'`) to use pipes.
    """

    def __init__(self, option: str, command: str) -> None:
        """`option` is what the person typed before it. Raises Misused where there is no such command."""
        try:
            self._arguments = shlex.split(command)
        except ValueError as fault:
            raise Misused(f"{option} {command!r}: {fault}.") from fault
        if not self._arguments or shutil.which(self._arguments[0]) is None:
            raise Misused(f"{option} {command!r}: there is no such command.")

    def run(self, body: str) -> Finished:
        """Give it one body, for ten seconds at most."""
        try:
            ended = subprocess.run(  # noqa: S603 - the caller's own command, with no shell
                self._arguments,
                input=body.encode(),
                capture_output=True,
                timeout=TIMEOUT_SECONDS,
                check=False,
                # A Ctrl-C in the terminal is for all of its group: the command would die of it, as if it had said no.
                process_group=0,
            )
        except subprocess.TimeoutExpired:
            return Finished(fault=f"it took longer than {TIMEOUT_SECONDS} s")
        except OSError as fault:
            return Finished(fault=f"it could not be started: {fault.strerror}")
        if ended.returncode == 0:
            return Finished(ended.stdout)
        lines = (ended.stderr or ended.stdout).decode(errors="replace").strip().splitlines()
        why = lines[-1][:_LONGEST_REASON] if lines else f"exit code {ended.returncode}"
        return Finished(fault=why)


def validator(command: str) -> Validate:
    """A check that gives each body to `command`. Raises Misused."""
    own = OwnCommand("--validate", command)

    def validate(letter: Letter) -> str | None:
        fault = own.run(letter.body).fault
        return f"not valid: {fault}" if fault else None

    return validate
