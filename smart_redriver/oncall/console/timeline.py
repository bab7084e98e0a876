"""One queue's last hours: what passes did and found out, what people did, how depths and deliveries went."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from smart_redriver.oncall.console.fields import Field, Kind
from smart_redriver.oncall.stack.asking import Answer, Asking
from smart_redriver.oncall.stack.changes import Change, changes_of, short_name
from smart_redriver.oncall.stack.metrics import courses
from smart_redriver.oncall.stack.passes import EndedPass, passes_between
from smart_redriver.oncall.stack.session import Session
from smart_redriver.oncall.terminal.words import letters, stamp

FIELDS = (Field(name="hours", about="So many hours back.", kind=Kind.WHOLE, least=1, most=24),)
_HOURS = 3
#: A chart has about so many points, whatever it spans.
_POINTS = 180
_TONES = {
    "OPEN": "bad",
    "HALF_OPEN": "careful",
    "CLOSED": "good",
    "SUCCESS": "good",
    "FAILURE": "bad",
}


def timeline(session: Session, hours: int = _HOURS) -> dict[str, Any]:
    """All of it, and why, where something could not be read. Raises CallFailed and Refused where the stack can't."""
    now = session.clock()
    start, deployment = now - timedelta(hours=hours), session.place.deployment
    for service in ("logs", "cloudwatch", "dynamodb", "lambda"):
        session.aws.client(service)  # one after another, see `take_snapshot`
    with Asking() as ask:
        asked: dict[str, Callable[[], Answer[Any]]] = {
            "passes": ask(lambda: passes_between(session, start, now)),
            "changes": ask(lambda: _changes(session, start, now)),
            "courses": ask(lambda: courses(session.aws, deployment, start, now, _period(hours))),
        }
        answers = {what: wait() for what, wait in asked.items()}
    passes: list[EndedPass] = sorted(answers["passes"].value or [], key=lambda one: one.at)
    events = [event for one in passes for event in _events(session, one)]
    events += [_told(session, one) for one in answers["changes"].value or []]
    return {
        "queue": session.place.queue,
        "origin": session.place.origin.value,
        "at": stamp(now),
        "since": stamp(start),
        "events": sorted(events, key=lambda one: one["at"], reverse=True),
        "passes": [_pass(one) for one in passes],
        "courses": {
            name: [[int(at.timestamp()), value] for at, value in points]
            for name, points in (answers["courses"].value or {}).items()
        },
        "unknown": {what: one.fault for what, one in answers.items() if one.fault},
    }


def depth_courses(session: Session, hours: int = _HOURS) -> dict[str, Any]:
    """How the depth of DLQ and parking lot went, for a sparkline. Raises CallFailed."""
    now = session.clock()
    start, deployment = now - timedelta(hours=hours), session.place.deployment
    found = courses(session.aws, deployment, start, now, timedelta(minutes=5))
    return {
        name: [[int(at.timestamp()), value] for at, value in found.get(name, ())]
        for name in ("dead_letters", "parked")
    }


def _period(hours: int) -> timedelta:
    """Whole minutes, as CloudWatch wants them."""
    return timedelta(minutes=max(1, round(hours * 60 / _POINTS)))


def _changes(session: Session, start: datetime, now: datetime) -> list[Change]:
    return [one for one in changes_of(session.audit.read_since(start, now)) if one.at >= start]


def _told(session: Session, change: Change) -> dict[str, Any]:
    return {
        "at": stamp(change.at),
        "kind": "change",
        "tone": None,
        "text": session.terminal.spare(f"{short_name(change.who)}: {change.in_words()}"),
    }


def _events(session: Session, ended: EndedPass) -> Iterator[dict[str, Any]]:
    """What a pass has to tell beside its figures."""
    report = ended.report
    for text, kind, tone in (*_verdicts(report), *_circuits(report), *_deeds(report)):
        yield {
            "at": stamp(ended.at),
            "kind": kind,
            "tone": tone,
            "text": session.terminal.spare(text),
        }


def _circuits(report: Any) -> Iterator[tuple[str, str, str | None]]:
    for one in report.get("circuits") or ():
        states: Sequence[str] = one.get("states") or ()
        if len(states) > 1:
            yield f"Circuit of {one['queue']}: {' to '.join(states)}", "circuit", _TONES[states[-1]]


def _verdicts(report: Any) -> Iterator[tuple[str, str, str | None]]:
    for one in report.get("verdicts") or ():
        verdict = one.get("verdict") or "none"
        text = (
            f"Verdict on batch {one['batch']} ({letters(one['size'])}): {verdict}, {one['reason']}"
        )
        yield text, "verdict", _TONES.get(verdict)


def _deeds(report: Any) -> Iterator[tuple[str, str, str | None]]:
    parts = [f"{report[name]:,} {name}" for name in ("redriven", "returned") if report.get(name)]
    parts += [f"{count:,} parked as {why}" for why, count in (report.get("parked") or {}).items()]
    if parts:
        yield f"Pass: {', '.join(parts)}", "pass", None
    if faults := report.get("faults"):
        told = ", ".join(f"{name} ({count:,})" for name, count in faults.items())
        yield f"Faults: {told}", "fault", "bad"


def _pass(ended: EndedPass) -> dict[str, Any]:
    report = ended.report
    circuits = report.get("circuits") or [{}]
    return {
        "at": int(ended.at.timestamp()),
        "state": circuits[0].get("after"),
        "window": report.get("window"),
        "awaiting_verdict": circuits[0].get("awaiting_verdict"),
        "redriven": report.get("redriven", 0),
        "returned": report.get("returned", 0),
    }
