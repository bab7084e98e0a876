"""The latest look as a text, in a row of our own: the function may be another process at the next."""

from __future__ import annotations

import json
from dataclasses import astuple
from datetime import UTC, datetime

from redrive.postgres.counters import Counters, Proof
from redrive.postgres.live_jobs import Job, Look
from redrive.postgres.live_minutes import LiveMinute


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
    """The look that a text is of; None where it is of none, whoever wrote it."""
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
