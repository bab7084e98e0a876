"""How fast the DLQ grows: a table of ten thousand old letters worries nobody, two hundred new ones in five minutes do."""

from __future__ import annotations

from collections.abc import Container
from datetime import datetime, timedelta

from redrive.aws.metrics import QUEUE, Metric, write
from redrive.postgres.database import Database

DEAD_LETTERS_ADDED = Metric(name="DeadLettersAdded", always=True)

#: New is what has died within so long.
LATELY = timedelta(minutes=5)

#: The rows at the end of the table that are looked at; more new ones than that are as bad as so many.
LATEST = 1_000


def added_lately(database: Database, now: datetime) -> int:
    """Letters that have died lately, returned ones among them. Raises CallFailed."""
    parameters = {"since": now - LATELY, "latest": LATEST}
    ((added,),) = database.run("CountNew", database.statements.count_new, parameters)
    return int(added)


def emit_growth(added: int, queue: str, kept: Container[str]) -> None:
    """Write it to the log, as a metric."""
    write({DEAD_LETTERS_ADDED: [added]}, kept, **{QUEUE: queue})
