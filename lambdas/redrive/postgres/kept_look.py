"""The latest look as a text, in a row of our own: the function may be another process at the next."""

from __future__ import annotations

import json
from dataclasses import astuple
from datetime import UTC, datetime

from redrive.core.books import Minute
from redrive.postgres.counters import Counters
from redrive.postgres.live_jobs import Job, LiveMinute, Look


def encode(look: Look) -> str:
    """The text of a look."""
    told = {
        "at": look.at.timestamp(),
        "previous": look.previous.timestamp(),
        "jobs": [astuple(one) for one in look.jobs],
        "latest_ours": look.latest_ours,
        "counters": astuple(look.counters),
        "proved": look.proved,
        "known_lately": look.known_lately,
        "unburied": look.unburied,
        "minutes": [_told(one) for one in look.minutes],
    }
    return json.dumps(told, separators=(",", ":"))


def decode(text: str | None) -> Look | None:
    """The look that a text is of; None where it is of none, whoever wrote it."""
    try:
        told = json.loads(text or "null")
        return told and Look(
            at=_moment(told["at"]),
            previous=_moment(told["previous"]),
            jobs=tuple(_job(*one) for one in told["jobs"]),
            latest_ours=int(told["latest_ours"]),
            counters=_counters(*told["counters"]),
            proved=int(told["proved"]),
            known_lately=int(told["known_lately"]),
            unburied=int(told["unburied"]),
            minutes=tuple(_minute(*one) for one in told["minutes"]),
        )
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None


def _told(one: LiveMinute) -> tuple[float | int | None, ...]:
    minute = one.minute
    gauges = (minute.visible, minute.in_flight, minute.delayed)
    sums = (minute.sent, minute.received, minute.deleted)
    return (minute.at.timestamp(), *sums, *gauges, one.live)


def _minute(
    at: float,
    sent: int,
    received: int,
    deleted: int,
    visible: int,
    in_flight: int,
    delayed: int,
    live: int,
) -> LiveMinute:
    minute = Minute(
        at=_moment(at),
        sent=sent,
        received=received,
        deleted=deleted,
        visible=visible,
        in_flight=in_flight,
        delayed=delayed,
    )
    return LiveMinute(minute=minute, live=live)


def _job(job: int, tries: int, is_locked: bool, is_due: bool, is_ours: bool) -> Job:
    return Job(id=job, tries=tries, is_locked=is_locked, is_due=is_due, is_ours=is_ours)


def _counters(epoch: str, *numbers: int) -> Counters:
    changed, inserted, updated, live, analyzed, vacuumed, buried, can_tell = numbers
    return Counters(
        epoch=epoch,
        changed=changed,
        inserted=inserted,
        updated=updated,
        live=live,
        analyzed=analyzed,
        vacuumed=vacuumed,
        buried=buried,
        can_tell=bool(can_tell),
    )


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
