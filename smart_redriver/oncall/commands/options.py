"""Arguments and options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

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
        metavar="TEXT", help="Only those whose cause, as `causes` groups them, contains this."
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
Why = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, for the audit trail.")]
