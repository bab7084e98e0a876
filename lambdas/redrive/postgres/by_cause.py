"""How many letters died of what: counted by the database, told by the causes that circuits know."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from redrive.postgres.database import Database
from redrive.postgres.letters import moment_of
from redrive.postgres.wording import GENERIC, cause_of

#: Of a deeper table the latest tell enough.
LATEST = 100_000


@dataclass(slots=True, kw_only=True)
class Counted:
    """Letters of one table that died of one cause; None where the table does not say of what.

    `since`: when the first of them came to where it is. `row`: of the last one.
    """

    cause: str | None
    letters: int = 0
    since: datetime | None = None
    row: int = 0


def count_by_cause(database: Database, *, is_parked: bool) -> list[Counted]:
    """The latest letters of a table by their cause, the most frequent first. Raises CallFailed."""
    known = database.statements
    statement = known.group_parked if is_parked else known.group_dead
    parameters = {"latest": LATEST, "generic": sorted(GENERIC)}
    found: dict[str | None, Counted] = {}
    for error_class, message, *counts in database.run("GroupLetters", statement, parameters):
        cause = cause_of(error_class, message)
        _add(found.setdefault(cause, Counted(cause=cause)), *counts)
    return sorted(found.values(), key=lambda one: (-one.letters, one.cause or ""))


def oldest_death(database: Database) -> datetime | None:
    """When the letter died that is first in line; None where there is none. Raises CallFailed."""
    rows = database.run("ReadOldest", database.statements.oldest, {})
    return next((moment_of(at) for (at,) in rows), None)


def _add(group: Counted, letters: int, since: Any, row: int) -> None:
    group.letters += letters
    if (since := moment_of(since)) is not None:
        group.since = min(group.since or since, since)
    group.row = max(group.row, row)
