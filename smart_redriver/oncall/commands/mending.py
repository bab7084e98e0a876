"""`replay`, `edit`, `undo`, `park`, `delete`, `export`, `import`: letters on their way back, aside, out, or to a file."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from smart_redriver.oncall.commands.command import (
    Changing,
    ChangingMany,
    LookingAtMany,
    examples,
    filter_of,
)
from smart_redriver.oncall.commands.options import (
    All,
    DryRun,
    EvenThoughPaused,
    FromDlq,
    Ids,
    Validate,
    Why,
)
from smart_redriver.oncall.terminal.exits import Exit


class To(str, Enum):
    """Where imported letters go."""

    PARKING_LOT = "parking-lot"
    SOURCE = "source"


app = typer.Typer()


@app.command(
    cls=ChangingMany,
    epilog=examples(
        "redrive replay --all --dry-run",
        "redrive replay --error 'price is null' --validate './check-order' --rate 20",
    ),
)
def replay(
    context: typer.Context,
    ids: Ids = None,
    all_: All = False,
    from_dlq: FromDlq = False,
    rate: Annotated[
        float | None,
        typer.Option(
            min=0, help="Letters a second, 0 for no limit. Default: the setting max_rate."
        ),
    ] = None,
    validate: Validate = None,
    dry_run: DryRun = False,
    even_though_paused: EvenThoughPaused = False,
    reason: Why = None,
) -> Exit:
    """Send parked letters back to their source queue, with no strikes. Ctrl-C stops; again, it goes on."""
    from smart_redriver.oncall.letters.choice import choose
    from smart_redriver.oncall.verbs.replay import ReplayRequest
    from smart_redriver.oncall.verbs.replay import replay as send

    request = ReplayRequest(
        choice=choose(ids or (), filter_of(context), is_all=all_),
        from_dlq=from_dlq,
        rate=rate,
        validate=validate,
        reason=reason or "",
        is_dry_run=dry_run,
        insists=even_though_paused,
    )
    return send(context.obj, request)


@app.command(
    cls=ChangingMany,
    epilog=examples(
        "redrive edit 5a8b1f0e-0000-4000-8000-0123456789ab --reason 'currency was missing'",
        'redrive edit --error KeyError --with "jq -c \'.currency = \\"EUR\\"\'" --dry-run',
    ),
)
def edit(
    context: typer.Context,
    ids: Ids = None,
    all_: All = False,
    command: Annotated[
        str | None,
        typer.Option(
            "--with", metavar="CMD", help="Not by hand: give each body to this command; body out."
        ),
    ] = None,
    from_dlq: FromDlq = False,
    validate: Validate = None,
    export: Annotated[
        Path | None,
        typer.Option(dir_okay=False, help="Keep the originals here. Default: a new file, here."),
    ] = None,
    dry_run: DryRun = False,
    even_though_paused: EvenThoughPaused = False,
    reason: Why = None,
) -> Exit:
    """Mend one letter in $EDITOR, or many by a command. The difference is shown, the originals are kept: see `undo`."""
    from smart_redriver.oncall.letters.choice import choose, choose_one
    from smart_redriver.oncall.verbs.edit import EditRequest
    from smart_redriver.oncall.verbs.edit import edit as mend
    from smart_redriver.oncall.verbs.rewrite import RewriteRequest, rewrite

    file = export or _new_file(context, "edited")
    if command is None:
        one = EditRequest(
            message_id=choose_one(ids or (), filter_of(context), is_all=all_ or dry_run),
            file=file,
            from_dlq=from_dlq,
            validate=validate,
            reason=reason or "",
            insists=even_though_paused,
        )
        return mend(context.obj, one)
    many = RewriteRequest(
        choice=choose(ids or (), filter_of(context), is_all=all_),
        command=command,
        file=file,
        from_dlq=from_dlq,
        validate=validate,
        reason=reason or "",
        is_dry_run=dry_run,
        insists=even_though_paused,
    )
    return rewrite(context.obj, many)


@app.command(cls=Changing, epilog=examples("redrive undo edited-20261121T155439Z.jsonl"))
def undo(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(dir_okay=False, help="What `edit` or `delete` kept.")],
    export: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False, help="Keep here what takes their place. Default: a new file, here."
        ),
    ] = None,
    reason: Why = None,
) -> Exit:
    """Put the letters of a file into the parking lot as they were, in the place of edited copies that came back."""
    from smart_redriver.oncall.verbs.undo import UndoRequest
    from smart_redriver.oncall.verbs.undo import undo as put_back

    kept = export or _new_file(context, "undone")
    return put_back(context.obj, UndoRequest(file=file, kept=kept, reason=reason or ""))


@app.command(
    cls=ChangingMany,
    epilog=examples("redrive park --cause KeyError --reason 'until orders 2.4.2 is out'"),
)
def park(
    context: typer.Context,
    ids: Ids = None,
    all_: All = False,
    dry_run: DryRun = False,
    reason: Why = None,
) -> Exit:
    """Set letters of the DLQ aside in the parking lot, where they wait for a person."""
    from smart_redriver.oncall.letters.choice import choose
    from smart_redriver.oncall.verbs.park import ParkRequest
    from smart_redriver.oncall.verbs.park import park as set_aside

    request = ParkRequest(
        choice=choose(ids or (), filter_of(context), is_all=all_),
        reason=reason or "",
        is_dry_run=dry_run,
    )
    return set_aside(context.obj, request)


@app.command(
    cls=ChangingMany,
    epilog=examples(
        "redrive delete --where 'test' --export test-orders.jsonl --reason 'load test'"
    ),
)
def delete(
    context: typer.Context,
    ids: Ids = None,
    all_: All = False,
    from_dlq: FromDlq = False,
    export: Annotated[
        Path | None,
        typer.Option(dir_okay=False, help="Write them here first. Default: a new file, here."),
    ] = None,
    dry_run: DryRun = False,
    reason: Why = None,
) -> Exit:
    """Delete letters, after writing them to a file that `import` takes. Asks with the count."""
    from smart_redriver.oncall.letters.choice import choose
    from smart_redriver.oncall.verbs.delete import DeleteRequest
    from smart_redriver.oncall.verbs.delete import delete as remove

    request = DeleteRequest(
        choice=choose(ids or (), filter_of(context), is_all=all_),
        file=export or _new_file(context, "deleted"),
        from_dlq=from_dlq,
        reason=reason or "",
        is_dry_run=dry_run,
    )
    return remove(context.obj, request)


@app.command(
    cls=LookingAtMany,
    epilog=examples(
        "redrive export parked.jsonl", "redrive export dlq.jsonl --from-dlq --since 1d"
    ),
)
def export(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(dir_okay=False, help="JSON lines, appended to.")],
    from_dlq: FromDlq = False,
) -> Exit:
    """Write letters to a file, binary attributes included, and leave them where they are."""
    from smart_redriver.oncall.letters.choice import Choice
    from smart_redriver.oncall.verbs.export import export as write

    return write(context.obj, file, Choice(filter=filter_of(context)), from_dlq=from_dlq)


@app.command("import", cls=Changing, epilog=examples("redrive import parked.jsonl --to source"))
def import_letters(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(dir_okay=False, help="What `export` or `delete` wrote.")],
    to: Annotated[To, typer.Option(help="Where they go.")] = To.PARKING_LOT,
    from_queue: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Letters of this other queue are to become letters of this one."
        ),
    ] = None,
    even_though_paused: EvenThoughPaused = False,
    reason: Why = None,
) -> Exit:
    """Send the letters of a file. Those that the ledger says are still about are skipped."""
    from smart_redriver.oncall.verbs.import_letters import ImportRequest
    from smart_redriver.oncall.verbs.import_letters import import_letters as send

    request = ImportRequest(
        file=file,
        to_source=to is To.SOURCE,
        others=from_queue or (),
        reason=reason or "",
        insists=even_though_paused,
    )
    return send(context.obj, request)


def _new_file(context: typer.Context, what: str) -> Path:
    """A file for letters, named by what was done to them and when."""
    return Path(f"{what}-{context.obj.clock():%Y%m%dT%H%M%SZ}.jsonl")
