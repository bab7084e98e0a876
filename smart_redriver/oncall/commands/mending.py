"""`replay`, `edit`, `undo`: letters on their way back, as they are or mended."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from smart_redriver.oncall.commands.command import (
    Changing,
    ChangingMany,
    examples,
    filter_of,
    new_file,
)
from smart_redriver.oncall.commands.options import (
    All,
    DryRun,
    EvenThoughPaused,
    FromDlq,
    Ids,
    Validate,
    Why,
    finite,
)
from smart_redriver.oncall.terminal.exits import Exit

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
            min=0,
            callback=finite,
            help="Letters a second, 0 for no limit. Default: the setting max_rate.",
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
    from smart_redriver.oncall.letters.editor import own_editor
    from smart_redriver.oncall.verbs.edit import EditRequest
    from smart_redriver.oncall.verbs.edit import edit as mend
    from smart_redriver.oncall.verbs.rewrite import RewriteRequest, rewrite

    file = export or new_file(context, "edited")
    if command is None:
        one = EditRequest(
            message_id=choose_one(ids or (), filter_of(context), is_all=all_ or dry_run),
            file=file,
            from_dlq=from_dlq,
            validate=validate,
            reason=reason or "",
            insists=even_though_paused,
        )
        return mend(context.obj, one, partial(own_editor, context.obj.terminal))
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

    kept = export or new_file(context, "undone")
    return put_back(context.obj, UndoRequest(file=file, kept=kept, reason=reason or ""))
