"""What becomes of all jobs, from look to look, as books that tell of each minute. Pure.

A job that a look saw was committed. At the next look it is there, or it has died, or it is gone: then it has succeeded.
Most are done between two looks; of those Postgres's counters prove how many at least. Nothing else is told: an id
that nobody saw may never have been committed, and a look that met nothing says nothing.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Self

from redrive.core.books import PERIOD, Books, Minute
from redrive.postgres.counters import Counters, deleted_at_least

#: Jobs that are looked for again, at most. Where more of ours are out, their own outcomes say enough.
MOST = 5_000

#: Minutes that are kept: more than a verdict ever waits.
MINUTES_KEPT = 240


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
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
class LiveMinute:
    """A minute of the books. `live`: how many jobs it tells of that were never letters."""

    minute: Minute
    live: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What came to light between two looks. `met`: jobs that are news. `tries`: that began."""

    met: int = 0
    succeeded: int = 0
    failed: int = 0
    tries: int = 0
    live: int = 0

    def __add__(self, other: Tally) -> Tally:
        """Both together."""
        return Tally(
            met=self.met + other.met,
            succeeded=self.succeeded + other.succeeded,
            failed=self.failed + other.failed,
            tries=self.tries + other.tries,
            live=self.live + other.live,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The latest look, and what all looks have shown.

    Attributes:
        at, previous: when it was, and the one before it.
        jobs: to be looked for at the next.
        latest_ours: the highest number of a job of ours.
        proved: deletes that the counters proved at this look, less all that is known of them otherwise. They count at
            the next: what a worker's session did to the other table may be told a moment later. Below zero it is what
            is known of and not proved yet.
        known_lately: of that, what this look has shown: a session may tell of it as late as the next.
        unburied: below zero, deaths that were seen and are not in the counters yet.

    """

    at: datetime
    previous: datetime
    jobs: tuple[Job, ...]
    latest_ours: int
    counters: Counters
    proved: int = 0
    known_lately: int = 0
    unburied: int = 0
    minutes: tuple[LiveMinute, ...] = ()

    @classmethod
    def first(
        cls, sightings: Sequence[Sighting], latest_ours: int, counters: Counters, now: datetime
    ) -> Self | None:
        """A look that nothing is known from before; None where there are too many jobs to look for."""
        jobs = _there(sightings, ())
        if len(jobs) > MOST:
            return None
        opening = _gauged(Minute(at=minute_of(now) - PERIOD), jobs)
        return cls(
            at=now,
            previous=now,
            jobs=jobs,
            latest_ours=latest_ours,
            counters=counters,
            minutes=(LiveMinute(minute=opening),),
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
        proved, known, unburied, unseen, dead = self._unseen(seen, counters)
        minutes = _added(self.minutes, self.previous, _all_new(succeeded=unseen))
        minutes = _added(minutes, self.at, seen + _all_new(failed=dead))
        live = sum(not one.is_ours for one in jobs)
        return Look(
            at=now,
            previous=self.at,
            jobs=jobs,
            latest_ours=max(ours, default=self.latest_ours),
            counters=counters,
            proved=proved,
            known_lately=known,
            unburied=unburied,
            minutes=_until(minutes, self.at, now, jobs, live)[-MINUTES_KEPT:],
        )

    def books(self, start: datetime) -> Books:
        """The books from `start` on; none where they would tell of nobody's jobs but ours."""
        told = [one for one in self.minutes if start <= one.minute.at < minute_of(self.previous)]
        if not any(one.live for one in told):
            return Books()
        return Books(tuple(one.minute for one in told))

    def _unseen(self, seen: Tally, counters: Counters) -> tuple[int, int, int, int, int]:
        """`proved`, `known_lately`, `unburied` after this look, and successes and deaths of jobs that nobody saw."""
        before = self.counters
        if not counters.goes_on_from(before):
            return 0, seen.succeeded, 0, 0, 0
        buried = counters.buried - before.buried
        known = buried + seen.succeeded
        # What was known of before may have been deleted where an ANALYZE forgot it: it is not waited for any longer.
        is_forgotten = counters.analyzed != before.analyzed
        owed = max(-self.known_lately, self.proved) if is_forgotten else self.proved
        proved = owed - known
        dead = self.unburied + buried - seen.failed
        return (
            min(0, proved) + deleted_at_least(before, counters),
            known,
            min(0, dead),
            max(0, proved),
            max(0, dead),
        )


def minute_of(moment: datetime) -> datetime:
    """The start of its minute."""
    return moment.replace(second=0, microsecond=0)


def _there(sightings: Iterable[Sighting], known: Container[int]) -> tuple[Job, ...]:
    """Jobs to be looked for again: of those that nobody has met yet, not those whose time is to come."""
    return tuple(
        one
        for one in (each.job for each in sightings)
        if one and (one.is_ours or one.tries or one.is_locked or one.is_due or one.id in known)
    )


def _seen(now: Sighting, before: Job | None) -> Tally:
    """What one sighting tells, beside what was known of the job."""
    is_ours = before.is_ours if before else now.is_ours
    ended = Tally(met=before is None, live=not is_ours)
    # A try that was under way has begun before.
    least = 0 if before and before.is_locked else 1
    if now.job is not None:
        known = before.tries if before else now.job.tries - now.job.is_locked if not is_ours else 0
        is_news = before is None and (
            now.job.tries or now.job.is_locked or now.job.is_due or is_ours
        )
        return Tally(met=bool(is_news), tries=max(0, now.job.tries - known))
    if now.has_died:
        tries = max(least, (now.died_after or 0) - (before.tries if before else 0))
        return replace(ended, failed=1, tries=tries)
    return replace(ended, succeeded=1, tries=least)


def _all_new(*, succeeded: int = 0, failed: int = 0) -> Tally:
    """Jobs of producers that came and ended between two looks, each after one try at least."""
    both = succeeded + failed
    return Tally(met=both, succeeded=succeeded, failed=failed, tries=both, live=both)


def _added(
    minutes: tuple[LiveMinute, ...], since: datetime, tally: Tally
) -> tuple[LiveMinute, ...]:
    """With what came to light since some moment: in its minute, so that nothing counts as later than it was."""
    at = minute_of(since)
    if not any(one.minute.at == at for one in minutes):
        last = minutes[-1].minute
        if last.at > at:
            return minutes  # it is no longer kept
        minutes = (*minutes, LiveMinute(minute=replace(last, at=at, sent=0, received=0, deleted=0)))
    return tuple(_with(one, tally) if one.minute.at == at else one for one in minutes)


def _with(one: LiveMinute, tally: Tally) -> LiveMinute:
    minute = replace(
        one.minute,
        sent=one.minute.sent + tally.met,
        received=one.minute.received + tally.tries,
        deleted=one.minute.deleted + tally.succeeded,
    )
    return replace(one, minute=minute, live=one.live + tally.live)


def _until(
    minutes: tuple[LiveMinute, ...],
    since: datetime,
    now: datetime,
    jobs: Sequence[Job],
    live: int,
) -> tuple[LiveMinute, ...]:
    """With the jobs that are there now, in the minute of `since` and in all between that and now."""
    first, told = minute_of(since), list(minutes)
    last = told[-1]
    told[-1] = replace(last, minute=_gauged(last.minute, jobs), live=last.live + live)
    at = max(first, last.minute.at) + PERIOD
    while at < minute_of(now) and len(told) <= len(minutes) + MINUTES_KEPT:
        told.append(LiveMinute(minute=_gauged(Minute(at=at), jobs), live=live))
        at += PERIOD
    return tuple(told)


def _gauged(minute: Minute, jobs: Sequence[Job]) -> Minute:
    in_flight = sum(one.is_locked for one in jobs)
    visible = sum(one.is_due and not one.tries and not one.is_locked for one in jobs)
    return replace(
        minute, visible=visible, in_flight=in_flight, delayed=len(jobs) - visible - in_flight
    )
