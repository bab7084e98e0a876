"""`pause`, `resume`, `open`, `close`, `drain`, `run`: orders to the re-driver itself."""

from __future__ import annotations

from typing import Annotated

import typer

from smart_redriver.oncall.commands.command import command
from smart_redriver.oncall.commands.options import Why
from smart_redriver.oncall.stack.session import Session
from smart_redriver.oncall.terminal.exits import Exit

#: Whoever comes after must learn why nothing moves, or everything.
NeededWhy = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="Why: `status` shows it to the next person.")
]


def declare(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    command(app, "redrive pause --for 2h --reason 'database migration'", changes=True)(pause)
    command(app, "redrive resume --reason 'migration is over'", changes=True)(resume)
    command(app, "redrive open --reason 'the payment provider is down'", name="open", changes=True)(
        open_circuit
    )
    command(
        app, "redrive close --reason 'the provider is back, I checked'", name="close", changes=True
    )(close_circuit)
    command(app, "redrive drain", "redrive drain --for 30m --rate 500 --no-follow", changes=True)(
        drain
    )
    command(app, "redrive run --dry-run", "redrive run --yes", changes=True)(run)


def pause(
    session: Session,
    reason: NeededWhy,
    lasts: Annotated[
        str | None,
        typer.Option("--for", metavar="DURATION", help="Resumes by itself after 90s, 20m, 2h."),
    ] = None,
) -> Exit:
    """Let no pass redrive anything, until `resume` or for a while. Letters near expiry are still kept."""
    from smart_redriver.oncall.terminal.words import parse_span
    from smart_redriver.oncall.verbs.pause import pause as hold

    return hold(session, reason, parse_span(lasts) if lasts else None)


def resume(session: Session, reason: Why = "") -> Exit:
    """Let passes work again."""
    from smart_redriver.oncall.verbs.pause import resume as go_on

    return go_on(session, reason)


def open_circuit(session: Session, reason: NeededWhy) -> Exit:
    """Force the circuit OPEN: nothing is redriven until the cool-down is over, then canaries decide."""
    from redrive.core.circuit import State
    from smart_redriver.oncall.verbs.force import force

    return force(session, State.OPEN, reason)


def close_circuit(session: Session, reason: NeededWhy) -> Exit:
    """Force the circuit CLOSED: redrives begin with a window of 1."""
    from redrive.core.circuit import State
    from smart_redriver.oncall.verbs.force import force

    return force(session, State.CLOSED, reason)


def drain(
    session: Session,
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
    reason: Why = "",
) -> Exit:
    """After a fix: a larger window and rate for a while. The circuit breaker still stops on failure."""
    from smart_redriver.oncall.terminal.words import parse_span
    from smart_redriver.oncall.verbs.drain import Drain
    from smart_redriver.oncall.verbs.drain import drain as order

    wanted = Drain(lasts=parse_span(lasts), window=window, rate=rate, reason=reason, follows=follow)
    return order(session, wanted)


def run(
    session: Session,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print each decision and its reason, apply none.")
    ] = False,
    reason: Why = "",
) -> Exit:
    """One pass now."""
    from smart_redriver.oncall.verbs.run import run as go

    return go(session, is_dry_run=dry_run, reason=reason)
