"""`doctor`: whether the deployment itself is well."""

import typer

from smart_redriver.oncall.commands.command import Looking, examples
from smart_redriver.oncall.terminal.exits import Exit

app = typer.Typer()


@app.command(cls=Looking, epilog=examples("redrive doctor", "redrive doctor --queue orders"))
def doctor(context: typer.Context) -> Exit:
    """Check the deployment. Each thing that is wrong comes with its remedy; exit code 1 if there is any."""
    from smart_redriver.oncall.verbs.doctor import doctor as look

    return look(context.obj)
