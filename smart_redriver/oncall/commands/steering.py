"""`pause`, `resume`, `open`, `close`, `drain`, `run`: what the re-driver itself is told."""

from typing import Annotated

import typer

from smart_redriver.oncall.commands.command import Changing, examples
from smart_redriver.oncall.commands.options import EvenThoughPaused, NeededWhy, Why
from smart_redriver.oncall.terminal.exits import Exit

app = typer.Typer()


@app.command(cls=Changing, epilog=examples("redrive pause --for 2h --reason 'database migration'"))
def pause(
    context: typer.Context,
    reason: NeededWhy,
    lasts: Annotated[
        str | None,
        typer.Option("--for", metavar="DURATION", help="Resumes by itself after 90s, 20m, 2h."),
    ] = None,
    even_though_paused: EvenThoughPaused = False,
) -> Exit:
    """Let no pass redrive anything, until `resume` or for a while. Letters near expiry are still kept."""
    from smart_redriver.oncall.terminal.words import parse_lasting
    from smart_redriver.oncall.verbs.pause import pause as hold

    wanted = None if lasts is None else parse_lasting(lasts)
    return hold(context.obj, reason, wanted, insists=even_though_paused)


@app.command(cls=Changing, epilog=examples("redrive resume --reason 'migration is over'"))
def resume(context: typer.Context, reason: Why = None) -> Exit:
    """Let passes work again."""
    from smart_redriver.oncall.verbs.pause import resume as go_on

    return go_on(context.obj, reason or "")


@app.command(
    "open", cls=Changing, epilog=examples("redrive open --reason 'the payment provider is down'")
)
def open_circuit(context: typer.Context, reason: NeededWhy) -> Exit:
    """Force the circuit OPEN: nothing is redriven until the cool-down is over, then canaries decide.

    Where several queues share a DLQ, `--queue` names the one that is meant.
    """
    from redrive.core.circuit import State
    from smart_redriver.oncall.verbs.force import force

    return force(context.obj, State.OPEN, reason)


@app.command(
    "close",
    cls=Changing,
    epilog=examples("redrive close --reason 'the provider is back, I checked'"),
)
def close_circuit(context: typer.Context, reason: NeededWhy) -> Exit:
    """Force the circuit CLOSED: redrives begin with a window of 1.

    Where several queues share a DLQ, `--queue` names the one that is meant.
    """
    from redrive.core.circuit import State
    from smart_redriver.oncall.verbs.force import force

    return force(context.obj, State.CLOSED, reason)


@app.command(
    cls=Changing, epilog=examples("redrive drain", "redrive drain --for 30m --rate 500 --no-follow")
)
def drain(
    context: typer.Context,
    lasts: Annotated[
        str, typer.Option("--for", metavar="DURATION", help="At most so long: 90s, 20m, 2h.")
    ] = "1h",
    window: Annotated[
        int | None, typer.Option(min=1, help="Letters awaiting a verdict. Default: ten times now.")
    ] = None,
    rate: Annotated[
        float | None, typer.Option(min=0.01, help="Letters a second. Default: twice max_rate.")
    ] = None,
    follow: Annotated[
        bool, typer.Option(help="Run passes and show progress until the DLQ is empty.")
    ] = True,
    even_though_paused: EvenThoughPaused = False,
    reason: Why = None,
) -> Exit:
    """After a fix: a larger window and rate for a while. The circuit breaker still stops on failure."""
    from smart_redriver.oncall.terminal.words import parse_lasting
    from smart_redriver.oncall.verbs.drain import DrainRequest
    from smart_redriver.oncall.verbs.drain import drain as begin

    wanted = DrainRequest(
        lasts=parse_lasting(lasts),
        window=window,
        rate=rate,
        reason=reason or "",
        follows=follow,
        insists=even_though_paused,
    )
    return begin(context.obj, wanted)


@app.command(cls=Changing, epilog=examples("redrive run --dry-run", "redrive run --yes"))
def run(
    context: typer.Context,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="What the next pass would do: verdicts, decisions, reasons."
        ),
    ] = False,
    reason: Why = None,
) -> Exit:
    """One pass now."""
    from smart_redriver.oncall.verbs.run import run as go

    return go(context.obj, is_dry_run=dry_run, reason=reason or "")
