"""What a person does with letters of a table: groups them, looks at one, and sends one back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from psycopg import sql

from redrive.core.case import NO_BATCH
from redrive.core.letter import Letter, Trail
from redrive.core.outgoing import Outgoing, Sent
from redrive.postgres.database import Database
from redrive.postgres.dead_letters import LARGEST, DeadLetters, ParkingLot
from redrive.postgres.source import JobsSource
from redrive.postgres.statements import composed, names_of

#: Of a deeper table the latest tell enough.
GROUPED = 100_000

_GROUPS = """
select coalesce(error_class, ''), count(*), min(failed_at), max(failed_at), max(error_msg)
from (select d.{d_error_class} as error_class, d.{d_failed_at} as failed_at, left(d.{d_error_msg}, 200) as error_msg
      from {dead} d order by d.{d_id} desc limit %(latest)s) latest
group by 1 order by 2 desc, 1 limit %(most)s
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Letters that died of the same class of error."""

    error_class: str
    letters: int
    first: datetime | None
    last: datetime | None
    sample: str


def groups(database: Database, most: int = 20) -> list[Group]:
    """The letters by class of error, the most frequent first. Raises CallFailed."""
    statement: sql.Composed = composed(_GROUPS, names_of(database.place))
    rows = database.run("GroupLetters", statement, {"latest": GROUPED, "most": most})
    return [
        Group(error_class=kind, letters=letters, first=first, last=last, sample=sample or "")
        for kind, letters, first, last, sample in rows
    ]


def find(database: Database, letter_id: str, clock: Callable[[], datetime]) -> Letter | None:
    """The letter of this id (`17`, `dlq-17` or `parked-17`), with payload and stack trace. Raises CallFailed."""
    table, _, number = letter_id.rpartition("-")
    if table not in ("", "dlq", "parked") or not number.isdecimal():
        return None
    kind = ParkingLot if table == "parked" else DeadLetters
    return kind(database, clock, reads=True).at(int(number))


def replay(database: Database, letter: Letter, queue: str, clock: Callable[[], datetime]) -> Sent:
    """Send one letter back at once, in no batch: its return is charged to nobody. Nothing is raised."""
    known = letter.trail
    trail = Trail(
        queue=queue,
        original_id=letter.original_id,
        redrive_count=(known.redrive_count if known else 0) + 1,
        first_seen=known.first_seen if known else letter.sent_at,
        batch=NO_BATCH,
        generation=known.generation if known else 0,
    )
    outgoing = Outgoing(letter=letter, trail=trail, size_limit=LARGEST, delay=timedelta())
    return JobsSource(database, queue, clock).deliver([outgoing])
