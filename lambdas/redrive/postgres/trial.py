"""Whether a table of jobs takes anybody: other letters are tried, and rolled back.

Where a letter is all that there is, a job with nothing in it has to do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from redrive.core.outgoing import Outgoing
from redrive.errors import CallFailed, DatabaseLost
from redrive.postgres.database import Database
from redrive.postgres.letters import Handle
from redrive.postgres.pages import turn_of
from redrive.postgres.refusals import About, StatementRefused


def takes_another(
    database: Database,
    refused: Sequence[Outgoing],
    now: datetime,
    is_over: Callable[[], bool],
) -> bool:
    """Whether anything would go in that is none of these, all of one table. Of what is tried, nothing stays.

    Ten letters are tried at the most, from all over their table, others each time, and none once `is_over` says so.
    Raises DatabaseLost, where nobody can tell.
    """
    handles = [Handle.of(one.letter) for one in refused]
    is_parked, known = handles[0].is_parked, database.statements
    others = known.others_parked if is_parked else known.others_dead
    try:
        asked = {"rows": [one.row for one in handles], "turn": turn_of(now)}
        rows = database.run("FindOthers", others, asked)
        if not rows:
            return len(handles) == 1 and _would_take_a_job(database, handles[0], now)
        return any(
            not is_over() and _would_go(database, row, now, is_parked=is_parked) for (row,) in rows
        )
    except DatabaseLost:
        raise
    except CallFailed:
        return False


def _would_take_a_job(database: Database, alone: Handle, now: datetime) -> bool:
    """Whether a job with nothing in it would go in, and nothing but that keeps the letter where it is. Raises CallFailed."""
    known = database.statements
    delete = known.delete_parked if alone.is_parked else known.delete_dead
    return bool(
        database.rehearse("TryJob", known.try_job, {"now": now})
        and database.rehearse("TryLetter", delete, {"rows": [alone.row]})
    )


def _would_go(database: Database, row: int, now: datetime, *, is_parked: bool) -> bool:
    """Raises CallFailed where nothing can be learned of the others, either."""
    known = database.statements
    statement = known.redrive_parked if is_parked else known.redrive_dead
    parameters = {"rows": [row], "run_after": [now], "trails": [""], "left_jobs": [None]}
    try:
        return bool(database.rehearse("TryLetter", statement, {**parameters, "now": now}))
    except StatementRefused as why:
        if why.about is About.EVERYBODY:
            raise
        return False
