"""What producers' own jobs meet, told as the books of a queue are: they testify for the workers, and against poison.

Each look at the tables asks what became of the jobs that the one before saw; `live_jobs` says what that shows.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from redrive.core.books import Books
from redrive.errors import CallFailed
from redrive.postgres.counters import Counters
from redrive.postgres.database import Database
from redrive.postgres.kept_look import decode, encode
from redrive.postgres.live_jobs import MOST, Job, Look, Sighting

#: Jobs that a look takes from either end of the table: the latest, and those whose turn it is.
FEW = 100


class LiveWitness:
    """Looks at all jobs, and keeps the latest look in a table of ours.

    A look that fails is told to whoever asks for the books; until then nothing hangs on it.
    """

    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self._database = database
        self._clock = clock
        self._look: Look | None = None
        self._failure: CallFailed | None = None

    def look(self) -> None:
        """See what has become of jobs since the last look, and note which are there. Nothing is raised."""
        try:
            self._look, self._failure = self._next(), None
        except CallFailed as failed:
            self._failure = failed

    def since(self, start: datetime, now: datetime, queue_name: str) -> Books:  # noqa: ARG002
        """The minutes that are known; none where nothing but redriven jobs was seen. Raises CallFailed."""
        if self._failure is not None:
            raise self._failure
        return self._look.books(start) if self._look else Books()

    def _next(self) -> Look | None:
        known, now = self._database.statements, self._clock()
        ((at, state, latest_ours, *numbers),) = self._database.run("ReadLook", known.read_look, {})
        before = decode(state)
        if at is not None and now <= at:
            return before  # somebody was quicker
        counters = Counters.of(*numbers)
        latest_ours = before.latest_ours if before else latest_ours or 0
        parameters = {
            "seen": [one.id for one in before.jobs] if before else [],
            "after": latest_ours,
            "most": MOST + 1,
            "few": FEW,
            "now": now,
        }
        rows = self._database.run("SeeJobs", known.see_jobs, parameters)
        sightings = [_sighting(*row) for row in rows]
        if before is None:
            look = Look.first(sightings, latest_ours, counters, now)
        else:
            look = before.then(sightings, counters, now)
        kept = {"before": at, "now": now, "state": encode(look) if look else ""}
        self._database.run("KeepLook", known.keep_look, kept)
        return look


def _sighting(
    job: int,
    tries: int | None,
    is_locked: bool,
    is_due: bool | None,
    is_ours: bool,
    has_died: bool | None,
    died_after: int | None,
) -> Sighting:
    there = None
    if tries is not None:
        there = Job(id=job, tries=tries, is_locked=is_locked, is_due=bool(is_due), is_ours=is_ours)
    return Sighting(
        id=job, is_ours=is_ours, job=there, has_died=bool(has_died), died_after=died_after
    )
