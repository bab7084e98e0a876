"""`console`: the same as a web page, on this machine."""

from importlib.util import find_spec
from typing import Annotated

import typer

from smart_redriver.oncall.commands.command import Looking, examples
from smart_redriver.oncall.terminal.exits import Exit, Refused

app = typer.Typer()

#: What the extra `console` brings beside `oncall`, by the names that are imported.
_NEEDED = ("starlette", "uvicorn")


@app.command(
    cls=Looking, epilog=examples("redrive console", "redrive console --read-only --port 8700")
)
def console(
    context: typer.Context,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Where to listen; 0 for any that is free.")
    ] = 0,
    host: Annotated[
        str, typer.Option(help="Listen at this address of this machine instead of loopback.")
    ] = "127.0.0.1",
    read_only: Annotated[
        bool, typer.Option("--read-only", help="For looking only: nothing can be changed.")
    ] = False,
) -> Exit:
    """Serve a page on this machine to see, understand and act from, until Ctrl-C. Changes ask, as the commands do."""
    if missing := [name for name in _NEEDED if find_spec(name) is None]:
        raise Refused(
            f"redrive console needs {' and '.join(missing)}: install smart-redriver[console], the package with "
            "this extra."
        )
    from smart_redriver.oncall.console.server import serve

    return serve(context.obj, host=host, port=port, is_read_only=read_only)
