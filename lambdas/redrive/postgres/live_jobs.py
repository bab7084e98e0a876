"""What becomes of all jobs, from look to look, as books that tell of each minute. Pure.

A job that a look saw was committed. At the next look it is there, or it has died, or it is gone: then it has succeeded.
Most are done between two looks; of those Postgres's counters prove how many at least. Nothing else is told: an id
that nobody saw may never have been committed, and a look that met nothing says nothing.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple, Self

from redrive.core.books import Books
from redrive.postgres.counters import Counters, Proof
from redrive.postgres.live_minutes import (
    Gauges,
    LiveMinute,
    Tally,
    added,
    all_new,
    minute_of,
    opened,
    told_until,
)

#: Jobs that are looked for again, at most. Where more of ours are out, their own outcomes say enough.
MOST = 5_000


class Job(NamedTuple):
    """A job that is to be looked for again. `tries`: begun so far."""

    id: int
    tries: int
    is_locked: bool
    is_due: bool
    is_ours: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """What a look found of a job. `job`: None where it is gone; `died_after`: tries, where it has died."""

    id: int
    is_ours: bool
    job: Job | None = None
    has_died: bool = False
    died_after: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The latest look, and what all looks have shown.

    Attributes:
        at, previous: when it was, and the one before it.
        jobs: to be looked for at the next.
        latest_ours: the highest number of a job of ours.

    """

    at: datetime
    previous: datetime
    jobs: tuple[Job, ...]
    latest_ours: int
    counters: Counters
    proof: Proof = Proof()
    minutes: tuple[LiveMinute, ...] = ()

    @classmethod
    def first(
        cls, sightings: Sequence[Sighting], latest_ours: int, counters: Counters, now: datetime
    ) -> Self | None:
        """A look that nothing is known from before; None where there are too many jobs to look for."""
        jobs = _there(sightings, ())
        if len(jobs) > MOST:
            return None
        return cls(
            at=now,
            previous=now,
            jobs=jobs,
            latest_ours=latest_ours,
            counters=counters,
            minutes=opened(now, _gauges(jobs)),
        )

    def then(self, sightings: Sequence[Sighting], counters: Counters, now: datetime) -> Look | None:
        """The look after this one; None where there are too many jobs to look for."""
        before = {one.id: one for one in self.jobs}
        jobs = _there(sightings, before)
        ours = {one.id for one in sightings if one.is_ours and one.id > self.latest_ours}
        if max(len(jobs), len(ours)) > MOST:
            return None
        # What of ours is gone and was not looked for is known from before, and its outcome not taken in yet.
        news = (one for one in sightings if one.job or one.id in before or one.id in ours)
        seen = sum((_seen(one, before.get(one.id)) for one in news), Tally())
        proof, unseen = self.proof.then(self.counters, counters, seen.succeeded, seen.failed)
        # The counters' proof is a look old.
        minutes = added(self.minutes, self.previous, all_new(succeeded=unseen.succeeded))
        minutes = added(minutes, self.at, seen + all_new(failed=unseen.failed))
        return Look(
            at=now,
            previous=self.at,
            jobs=jobs,
            latest_ours=max(ours, default=self.latest_ours),
            counters=counters,
            proof=proof,
            minutes=told_until(minutes, now, _gauges(jobs)),
        )

    def books(self, start: datetime) -> Books:
        """The books from `start` on; none where they would tell of nobody's jobs but ours."""
        first, end = minute_of(start), minute_of(self.previous)
        told = [one for one in self.minutes if first <= one.at < end]
        if not any(one.live for one in told):
            return Books()
        return Books(tuple(one.minute for one in told))


def _there(sightings: Iterable[Sighting], known: Container[int]) -> tuple[Job, ...]:
    """Jobs to be looked for again: of those that nobody has met yet, not those whose time is to come."""
    return tuple(
        one
        for one in (each.job for each in sightings)
        if one and (one.is_ours or one.tries or one.is_locked or one.is_due or one.id in known)
    )


def _gauges(jobs: Sequence[Job]) -> Gauges:
    visible = sum(one.is_due and not one.tries and not one.is_locked for one in jobs)
    in_flight = sum(one.is_locked for one in jobs)
    return Gauges(
        visible=visible,
        in_flight=in_flight,
        delayed=len(jobs) - visible - in_flight,
        live=sum(not one.is_ours for one in jobs),
    )


def _seen(now: Sighting, before: Job | None) -> Tally:
    """What one sighting tells, beside what was known of the job."""
    if now.job is not None:
        return _still_there(now.job, before)
    is_ours = before.is_ours if before else now.is_ours
    ended = Tally(met=before is None, live=not is_ours)
    # A try that was under way has begun before.
    least = 0 if before and before.is_locked else 1
    if now.has_died:
        tries = max(least, (now.died_after or 0) - (before.tries if before else 0))
        return replace(ended, failed=1, tries=tries)
    return replace(ended, succeeded=1, tries=least)


def _still_there(job: Job, before: Job | None) -> Tally:
    """Tries of a job since the last look. Of others' jobs those before the first sight are of nobody knows when."""
    if before is not None:
        return Tally(tries=max(0, job.tries - before.tries))
    is_news = bool(_there((Sighting(id=job.id, is_ours=job.is_ours, job=job),), ()))
    return Tally(met=is_news, tries=max(job.tries, job.is_locked) if job.is_ours else job.is_locked)
