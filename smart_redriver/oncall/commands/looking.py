"""`status`, `watch`, `causes`, `letters`, `parked`, `show`, `logs`, `history`: nothing here changes anything."""

from typing import Annotated

import typer

from smart_redriver.oncall.commands.command import (
    FULL_NAMES,
    Looking,
    LookingAtMany,
    examples,
    filter_of,
)
from smart_redriver.oncall.commands.options import Cause, Contains, Id, Since, Until, Where, named
from smart_redriver.oncall.terminal.exits import Exit

app = typer.Typer()

Links = Annotated[bool, typer.Option("--links", help="Where the AWS console shows it.")]


@app.command(
    cls=Looking,
    epilog=examples(
        "redrive status",
        "redrive status --queue orders --json",
        "redrive status --home shop-eu --home shop-us/us-east-1",
    ),
)
def status(
    context: typer.Context,
    links: Links = False,
    overview: Annotated[
        bool, typer.Option("--overview", help="A line for each queue that is not quiet.")
    ] = False,
    home: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PROFILE[/REGION]",
            help="Overview of another account or Region, or of several: say it again for each.",
        ),
    ] = None,
) -> Exit:
    """What is wrong, and what happens next: circuit, depths, last pass, alarms. Of all queues unless one is named."""
    from smart_redriver.oncall.verbs.status import Shown
    from smart_redriver.oncall.verbs.status import status as tell

    shown = Shown(
        links=links,
        full_names=context.meta[FULL_NAMES],
        overview=overview,
        homes=tuple(home or ()),
    )
    return tell(context.obj, shown)


@app.command(cls=Looking, epilog=examples("redrive watch", "redrive watch --every 2"))
def watch(
    context: typer.Context,
    every: Annotated[float, typer.Option(min=0.5, metavar="SECONDS", help="How often.")] = 5.0,
    times: Annotated[
        int | None, typer.Option(min=1, help="End after so many looks instead of at Ctrl-C.")
    ] = None,
    links: Links = False,
) -> Exit:
    """The same as `status`, live, until Ctrl-C."""
    from smart_redriver.oncall.verbs.status import Shown
    from smart_redriver.oncall.verbs.status import watch as go_on

    shown = Shown(links=links, full_names=context.meta[FULL_NAMES])
    return go_on(context.obj, shown, every_seconds=every, times=times)


@app.command(cls=Looking, epilog=examples("redrive causes", "redrive causes --queue orders --json"))
def causes(context: typer.Context) -> Exit:
    """Why letters are stuck, as their consumers reported it, the most frequent cause first. From the ledger alone."""
    from smart_redriver.oncall.verbs.causes import causes as tell

    return tell(context.obj)


@app.command(
    cls=Looking,
    epilog=examples(
        "redrive letters", "redrive letters --where \"customer.country == 'DE'\" --body"
    ),
)
def letters(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, help="Look at so many at most.")] = 20,
    contains: Contains = None,
    where: Where = None,
    since: Since = None,
    until: Until = None,
    cause: Cause = None,
    body: Annotated[bool, typer.Option("--body", help="Show the bodies, too.")] = False,
    held: Annotated[
        bool,
        typer.Option("--held", help="List those hidden until their time, from the ledger."),
    ] = False,
) -> Exit:
    """Peek at the DLQ. Looking is not free on SQS: it counts as a receive, and what it cost is told."""
    from smart_redriver.oncall.letters.choice import read_filter
    from smart_redriver.oncall.verbs.letters import held as tell_held
    from smart_redriver.oncall.verbs.letters import peek

    wanted = read_filter(
        context.obj.clock(), contains=contains, where=where, since=since, until=until, cause=cause
    )
    if held:
        return tell_held(context.obj, wanted)
    return peek(context.obj, wanted, limit=limit, with_body=body)


@app.command(
    cls=LookingAtMany,
    epilog=examples("redrive parked", "redrive parked --list --parked-as MAX_ATTEMPTS --since 2h"),
)
def parked(
    context: typer.Context,
    as_list: Annotated[bool, typer.Option("--list", help="Letter by letter.")] = False,
    limit: Annotated[int, typer.Option(min=1, help="List so many at most.")] = 100,
) -> Exit:
    """What waits in the parking lot for a person, by reason and error. From the ledger: nothing is received."""
    from smart_redriver.oncall.verbs.parked import parked as tell

    return tell(context.obj, filter_of(context), as_list=as_list, limit=limit)


@app.command(cls=Looking, epilog=examples("redrive show 5a8b1f0e-0000-4000-8000-0123456789ab"))
def show(
    context: typer.Context,
    message_id: Id,
    look: Annotated[
        int, typer.Option(min=0, help="Look for its body among so many letters at most.")
    ] = 100,
    logs: Annotated[
        bool, typer.Option("--logs", help="What its consumer logged about it, too.")
    ] = False,
    log_group: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", parser=named, help="Search this log group, where no report names one."
        ),
    ] = None,
) -> Exit:
    """One letter, by any id it ever had: where it is, its history attempt by attempt, its attributes and body."""
    from smart_redriver.oncall.verbs.show import Wanted
    from smart_redriver.oncall.verbs.show import show as tell

    wanted = Wanted(look=look, logs=logs or log_group is not None, log_group=log_group)
    return tell(context.obj, message_id, wanted)


@app.command(
    cls=Looking,
    epilog=examples("redrive logs", "redrive logs --since 2h --event letter.parked"),
)
def logs(
    context: typer.Context,
    since: Annotated[str, typer.Option(metavar="WHEN", help="2h, 3d, or ISO 8601.")] = "30m",
    event: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Only these events, such as letter.parked."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="The newest so many at most.")] = 100,
    all_: Annotated[
        bool, typer.Option("--all", help="Its metrics and Lambda's own lines, too.")
    ] = False,
) -> Exit:
    """What the re-driver's own function logged: its events, one a line, and its tracebacks."""
    from smart_redriver.oncall.verbs.logs import logs as tell

    return tell(context.obj, since=since, event=event, limit=limit, with_all=all_)


@app.command(cls=Looking, epilog=examples("redrive history", "redrive history --days 7"))
def history(
    context: typer.Context,
    days: Annotated[int, typer.Option(min=1, max=400, help="So many days back.")] = 30,
) -> Exit:
    """Who changed what, when and why, from the audit trail."""
    from smart_redriver.oncall.verbs.history import history as tell

    return tell(context.obj, days=days)
