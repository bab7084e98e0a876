"""The outcomes of producers' own jobs, minute by minute: evidence for the workers, and against poison pills.

A job that a look saw was committed. At the next look it is still there, or it has died, or it is gone and has
succeeded. Most jobs are done between two looks; for those, Postgres's counters prove a lower bound. Nothing else
counts: an unseen id may never have been committed, and a look that saw nothing proves nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import astuple, dataclass, replace
from datetime import UTC, datetime
from typing import NamedTuple, Self

from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.model.queue_metrics import Minute, QueueMetrics
from smart_redriver.postgres.engine.counters import Counters, Proof
from smart_redriver.postgres.engine.database import Database

#: How many minutes to keep: longer than a verdict ever waits.
MINUTES_KEPT = 240


class LiveMinute(NamedTuple):
    """A minute of the metrics, like `engine.model.queue_metrics.Minute`. `at`: since the epoch, in minutes.

    `live`: how many of its jobs were never letters.
    """

    at: int
    sent: int = 0
    received: int = 0
    deleted: int = 0
    visible: int = 0
    in_flight: int = 0
    delayed: int = 0
    live: int = 0

    @property
    def minute(self) -> Minute:
        """The minute in the form of queue metrics."""
        return Minute(
            at=datetime.fromtimestamp(60 * self.at, UTC),
            sent=self.sent,
            received=self.received,
            deleted=self.deleted,
            visible=self.visible,
            in_flight=self.in_flight,
            delayed=self.delayed,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The changes between two looks. `met`: new jobs. `tries`: tries that began."""

    met: int = 0
    succeeded: int = 0
    failed: int = 0
    tries: int = 0
    live: int = 0

    def __add__(self, other: Evidence) -> Evidence:
        """Add both."""
        return Evidence(
            met=self.met + other.met,
            succeeded=self.succeeded + other.succeeded,
            failed=self.failed + other.failed,
            tries=self.tries + other.tries,
            live=self.live + other.live,
        )


class Gauges(NamedTuple):
    """Existing jobs: untouched, in hand, and waiting. `live`: those that were never letters."""

    visible: int = 0
    in_flight: int = 0
    delayed: int = 0
    live: int = 0


def minute_of(moment: datetime) -> int:
    """Return the minute of a moment, counted from the epoch."""
    return int(moment.timestamp()) // 60


def all_new(*, succeeded: int = 0, failed: int = 0) -> Evidence:
    """Producers' jobs that came and ended between two looks, each after at least one try."""
    both = succeeded + failed
    return Evidence(met=both, succeeded=succeeded, failed=failed, tries=both, live=both)


def opened(at: datetime, gauges: Gauges) -> tuple[LiveMinute, ...]:
    """The minute before, with the jobs that exist from then on."""
    return (_gauged(LiveMinute(minute_of(at) - 1), gauges),)


def added(
    minutes: tuple[LiveMinute, ...], since: datetime, evidence: Evidence
) -> tuple[LiveMinute, ...]:
    """Add evidence since a moment to that moment's minute, so that nothing counts later than it happened."""
    at, last = minute_of(since), minutes[-1]
    if last.at < at:
        minutes = (*minutes, last._replace(at=at, sent=0, received=0, deleted=0, live=0))
    return tuple(_with(one, evidence) if one.at == at else one for one in minutes)


def _with(one: LiveMinute, evidence: Evidence) -> LiveMinute:
    return one._replace(
        sent=one.sent + evidence.met,
        received=one.received + evidence.tries,
        deleted=one.deleted + evidence.succeeded,
        live=one.live + evidence.live,
    )


def told_until(
    minutes: tuple[LiveMinute, ...], now: datetime, gauges: Gauges
) -> tuple[LiveMinute, ...]:
    """Add the existing jobs to the last minute and to all minutes until now. The oldest minutes are dropped."""
    last, end = minutes[-1], minute_of(now)
    passed = (LiveMinute(at) for at in range(max(last.at + 1, end - MINUTES_KEPT), end))
    told = (*minutes[:-1], *(_gauged(one, gauges) for one in (last, *passed)))
    return told[-MINUTES_KEPT:]


def _gauged(one: LiveMinute, gauges: Gauges) -> LiveMinute:
    return one._replace(
        visible=gauges.visible,
        in_flight=gauges.in_flight,
        delayed=gauges.delayed,
        live=one.live + gauges.live,
    )


#: The most jobs to look for again. If more of ours are out, their own outcomes say enough.
MOST = 5_000


class Job(NamedTuple):
    """A job to look for again. `tries`: begun so far."""

    id: int
    tries: int
    is_locked: bool
    is_due: bool
    is_ours: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenJob:
    """A job as one look found it. `job`: None if it is gone. `died_after`: its tries, if it has died."""

    id: int
    is_ours: bool
    job: Job | None = None
    has_died: bool = False
    died_after: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The latest look, and what all looks have shown.

    Attributes:
        at, previous: the time of this look, and of the one before.
        jobs: jobs to look for at the next look.
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
        cls, seen_jobs: Sequence[SeenJob], latest_ours: int, counters: Counters, now: datetime
    ) -> Self | None:
        """The first look; None if there are too many jobs to look for."""
        jobs = _there(seen_jobs, ())
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

    def then(self, seen_jobs: Sequence[SeenJob], counters: Counters, now: datetime) -> Look | None:
        """The look after this one; None if there are too many jobs to look for."""
        before = {one.id: one for one in self.jobs}
        jobs = _there(seen_jobs, before)
        ours = {one.id for one in seen_jobs if one.is_ours and one.id > self.latest_ours}
        if max(len(jobs), len(ours)) > MOST:
            return None
        # Jobs of ours that are gone without being looked for are known from before. Their outcome is not processed yet.
        news = (one for one in seen_jobs if one.job or one.id in before or one.id in ours)
        seen = sum((_seen(one, before.get(one.id)) for one in news), Evidence())
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

    def metrics(self, start: datetime) -> QueueMetrics:
        """The metrics from `start` on; none if they would only cover our own jobs."""
        first, end = minute_of(start), minute_of(self.previous)
        told = [one for one in self.minutes if first <= one.at < end]
        if not any(one.live for one in told):
            return QueueMetrics()
        return QueueMetrics(tuple(one.minute for one in told))


def _there(seen_jobs: Iterable[SeenJob], known: Container[int]) -> tuple[Job, ...]:
    """Jobs to look for again. Untouched ones whose time has not come are left out."""
    return tuple(
        one
        for one in (each.job for each in seen_jobs)
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


def _seen(now: SeenJob, before: Job | None) -> Evidence:
    """The evidence of one sighting, compared with what was known about the job."""
    if now.job is not None:
        return _still_there(now.job, before)
    is_ours = before.is_ours if before else now.is_ours
    ended = Evidence(met=before is None, live=not is_ours)
    # A try that was under way had already begun.
    least = 0 if before and before.is_locked else 1
    if now.has_died:
        tries = max(least, (now.died_after or 0) - (before.tries if before else 0))
        return replace(ended, failed=1, tries=tries)
    return replace(ended, succeeded=1, tries=least)


def _still_there(job: Job, before: Job | None) -> Evidence:
    """Tries of a job since the last look. For others' jobs, the time of tries before the first look is unknown."""
    if before is not None:
        return Evidence(tries=max(0, job.tries - before.tries))
    is_news = bool(_there((SeenJob(id=job.id, is_ours=job.is_ours, job=job),), ()))
    return Evidence(
        met=is_news, tries=max(job.tries, job.is_locked) if job.is_ours else job.is_locked
    )


def encode(look: Look) -> str:
    """The text of a look."""
    told = {
        "at": look.at.timestamp(),
        "previous": look.previous.timestamp(),
        "jobs": look.jobs,
        "latest_ours": look.latest_ours,
        "counters": astuple(look.counters),
        "proof": look.proof,
        "minutes": look.minutes,
    }
    return json.dumps(told, separators=(",", ":"))


def decode(text: str | None) -> Look | None:
    """The look in a text; None if there is none, whoever wrote it."""
    try:
        told = json.loads(text or "")
        return Look(
            at=_moment(told["at"]),
            previous=_moment(told["previous"]),
            jobs=tuple(_job(*one) for one in told["jobs"]),
            latest_ours=int(told["latest_ours"]),
            counters=Counters.of(*told["counters"]),
            proof=Proof(*map(int, told["proof"])),
            minutes=_minutes(told["minutes"]),
        )
    except (ValueError, TypeError, LookupError, ArithmeticError, OSError, RecursionError):
        return None


def _minutes(told: list[list[int]]) -> tuple[LiveMinute, ...]:
    minutes = tuple(LiveMinute(*map(int, one)) for one in told)
    if not minutes:
        raise ValueError("a look has a minute at least")
    return minutes


def _job(job: int, tries: int, is_locked: bool, is_due: bool, is_ours: bool) -> Job:
    return Job(int(job), int(tries), bool(is_locked), bool(is_due), bool(is_ours))


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


#: How many jobs a look takes from either end of the table: the latest, and those that are due next.
FEW = 100


class JobMetricsReader:
    """Looks at all jobs, and keeps the latest look in a table of ours.

    A failed look is reported to callers of the metrics. Nothing depends on it before then.
    """

    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self._database = database
        self._clock = clock
        self._look: Look | None = None
        self._failure: CallFailed | None = None

    def look(self) -> None:
        """See what became of jobs since the last look, and note the existing ones. Raises nothing."""
        try:
            self._look, self._failure = self._next(), None
        except CallFailed as failed:
            self._failure = failed

    def since(self, start: datetime, now: datetime, queue_name: str) -> QueueMetrics:  # noqa: ARG002
        """The known minutes; none if only redriven jobs were seen. Raises CallFailed."""
        if self._failure is not None:
            raise self._failure
        return self._look.metrics(start) if self._look else QueueMetrics()

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
        seen_jobs = [_seen_job(*row) for row in rows]
        if before is None:
            look = Look.first(seen_jobs, latest_ours, counters, now)
        else:
            look = before.then(seen_jobs, counters, now)
        kept = {"before": at, "now": now, "state": encode(look) if look else ""}
        self._database.run("KeepLook", known.keep_look, kept)
        return look


def _seen_job(
    job: int,
    tries: int | None,
    is_locked: bool,
    is_due: bool | None,
    is_ours: bool,
    has_died: bool | None,
    died_after: int | None,
) -> SeenJob:
    there = None
    if tries is not None:
        there = Job(id=job, tries=tries, is_locked=is_locked, is_due=bool(is_due), is_ours=is_ours)
    return SeenJob(
        id=job, is_ours=is_ours, job=there, has_died=bool(has_died), died_after=died_after
    )
