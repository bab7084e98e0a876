"""`doctor`: whether the deployment itself is well."""

from __future__ import annotations

import typer

from smart_redriver.oncall.commands.command import command
from smart_redriver.oncall.stack.session import Session
from smart_redriver.oncall.terminal.exits import Exit


def declare(app: typer.Typer) -> None:
    """Add the command to `app`."""
    command(app, "redrive doctor", "redrive doctor --queue orders")(doctor)


def doctor(session: Session) -> Exit:
    """Check the deployment. Each thing that is wrong comes with its remedy; exit code 1 if there is any."""
    from smart_redriver.oncall.verbs.doctor import doctor as look

    return look(session)
