"""The `redrive` command: its app, and the order in which `redrive --help` lists what there is."""

from __future__ import annotations

from typing import Annotated

import typer

from smart_redriver.oncall.commands import checking, keeping, looking, mending, serving, steering

_ABOUT = """See, understand and act on the dead letters of a deployed smart re-driver.

Nothing is changed but by replay, edit, undo, park, delete, import, pause, resume, open, close, drain and run, and
those show their plan and ask. Exit codes: 0 done, 1 refused or failed, 2 usage, 3 partly done.
"""

# Rich makes help prettier and three times as slow. Nor are annotations texts in `commands`: Typer would compile each of
# three hundred at every start.
app = typer.Typer(
    name="redrive",
    help=_ABOUT,
    epilog="\b\nFor example:\n  redrive status\n  redrive parked\n  redrive replay --all",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _tell_version(is_asked: bool) -> None:
    if is_asked:
        from importlib.metadata import version

        typer.echo(version("smart-redriver"))
        raise typer.Exit


@app.callback()
def _redrive(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_tell_version, is_eager=True, help="Tell it, and end."),
    ] = False,
) -> None:
    pass


for group in (looking, mending, keeping, steering, checking, serving):
    app.add_typer(group.app)
