"""`park`, `delete`, `export`, `import`: letters set aside, taken out, written to a file and read from one."""

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
    new_file,
)
from smart_redriver.oncall.commands.options import (
    All,
    DryRun,
    EvenThoughPaused,
    FromDlq,
    Ids,
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
        file=export or new_file(context, "deleted"),
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
