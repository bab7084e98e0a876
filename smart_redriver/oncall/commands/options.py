"""Arguments and options that several commands have."""

import math
from typing import Annotated

import typer

from smart_redriver.oncall.terminal.exits import LONGEST_REASON


def finite(value: float | None) -> float | None:
    """A number that is one: to Python `inf` and `nan` are, too."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is no number that anything can be done at.")
    return value


Contains = Annotated[
    str | None, typer.Option(metavar="TEXT", help="Only letters whose body contains this.")
]
Where = Annotated[
    str | None,
    typer.Option(metavar="JMESPATH", help="Only letters of whose JSON body this is true."),
]
Since = Annotated[
    str | None,
    typer.Option(
        metavar="WHEN", help="Only those first seen, or parked, since then: 2h, 3d, or ISO 8601."
    ),
]
Until = Annotated[
    str | None,
    typer.Option(metavar="WHEN", help="Only those first seen, or parked, before then."),
]
ParkedAs = Annotated[
    str | None,
    typer.Option(metavar="REASON", help="Only those parked for this, such as MAX_ATTEMPTS."),
]
Error = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="Only those whose consumer's error contains this."),
]
Cause = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT",
        help="Only those whose cause, as `causes` and `letters` group them, contains this.",
    ),
]
Id = Annotated[str, typer.Argument(metavar="ID", help="Any id that the letter has or had.")]
Ids = Annotated[list[str] | None, typer.Argument(metavar="ID", help="Current or original ids.")]
All = Annotated[bool, typer.Option("--all", help="Every letter.")]
FromDlq = Annotated[
    bool, typer.Option("--from-dlq", help="Letters of the DLQ instead of the parking lot.")
]
Validate = Annotated[
    str | None,
    typer.Option(metavar="CMD", help="Give each body to this command; those that it refuses stay."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the plan, do nothing.")]
EvenThoughPaused = Annotated[
    bool,
    typer.Option(
        "--even-though-paused",
        help="Do not ask once more where it is paused, or its circuit is not CLOSED.",
    ),
]


def said(text: str) -> str:
    """The text of a `--reason`; an empty one is misuse."""
    if not text.strip():
        raise typer.BadParameter("It is empty: say why, for whoever comes after you.")
    if len(text.strip()) > LONGEST_REASON:
        raise typer.BadParameter(
            f"It has {len(text.strip()):,} characters: say it in {LONGEST_REASON:,}."
        )
    return text.strip()


def named(text: str) -> str:
    """The name of something that is looked for; an empty one is misuse."""
    if not text.strip():
        raise typer.BadParameter("It is empty: leave it out, or name one.")
    return text.strip()


Why = Annotated[
    str | None,
    typer.Option("--reason", metavar="TEXT", parser=said, help="Why, for the audit trail."),
]
#: Whoever comes after must learn why nothing moves, or everything.
NeededWhy = Annotated[
    str,
    typer.Option(
        "--reason",
        metavar="TEXT",
        parser=said,
        help="Why: `status` shows it to the next person.",
    ),
]
