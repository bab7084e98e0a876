"""`doctor`: whether the deployment itself is well."""

from __future__ import annotations

import typer

from smart_redriver.oncall.commands.command import command
from smart_redriver.oncall.exits import Exit
from smart_redriver.oncall.session import Session


def declare(app: typer.Typer) -> None:
    """Add the command to `app`."""
    command(app, "redrive doctor", "redrive doctor --queue orders")(doctor)


def doctor(session: Session) -> Exit:
    """Check the deployment. Each thing that is wrong comes with its remedy; exit code 1 if there is any."""
    from smart_redriver.oncall.checkup import doctor as look

    return look(session)
