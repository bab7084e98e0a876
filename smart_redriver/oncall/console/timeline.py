"""One queue's last hours: what passes did and found, what people did, and the course of depths and deliveries."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from smart_redriver.engine.counts import letters
from smart_redriver.engine.headline import short_name
from smart_redriver.engine.reports.outcomes import Result
from smart_redriver.oncall.audit.trail import Change, changes_of, trail_of
from smart_redriver.oncall.deployment.aws import Answer, Asking
from smart_redriver.oncall.deployment.metrics import Course, courses
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.status.passes import EndedPass, acts_in_words, is_dry, passes_between
from smart_redriver.oncall.terminal.words import stamp
from smart_redriver.oncall.verbs.options import Kind, Option

OPTIONS = (Option(name="hours", about="So many hours back.", kind=Kind.WHOLE, least=1, most=24),)
_HOURS = 3
#: A chart has about this many points, regardless of its span.
_POINTS = 180
#: A headline that comes and goes with each batch: letters are out for less time than an outcome takes.
_AT_FIRST = "outcome is not due yet"
#: Each share covers the last minutes. In a single minute it jumps, because messages deleted in it were received before.
_SMOOTHED_OVER = timedelta(minutes=5)
#: A chart of a day has a figure every eight minutes.
_HOLDS = timedelta(minutes=10)
_DECIDED = ("SUCCESS", "FAILURE")
_FIGURES = re.compile(r"[\d:,.%-]+")
_TONES = {
    "OPEN": "bad",
    "HALF_OPEN": "careful",
    "CLOSED": "good",
    "SUCCESS": "good",
    "FAILURE": "bad",
}


#: Like a `Course`. None means that there is no figure from then on.
_Broken = list[tuple[datetime, float | None]]


def _to_json(
    found: Mapping[str, Sequence[tuple[datetime, float | None]]],
) -> dict[str, list[list[float | None]]]:
    return {
        name: [[int(at.timestamp()), value] for at, value in points]
        for name, points in found.items()
    }


def timeline(session: Session, hours: int = _HOURS) -> dict[str, Any]:
    """Return the timeline, and faults of parts that could not be read. Raises CallFailed and Refused."""
    now = session.clock()
    start, deployment = now - timedelta(hours=hours), session.place.deployment
    for service in ("logs", "cloudwatch", "dynamodb", "lambda"):
        session.aws.client(service)  # one by one, see `take_snapshot`
    with Asking() as ask:
        asked: dict[str, Callable[[], Answer[Any]]] = {
            "passes": ask(lambda: passes_between(session, start, now)),
            "changes": ask(lambda: _changes(session, start, now)),
            "courses": ask(lambda: courses(session.aws, deployment, start, now, _period(hours))),
        }
        answers = {what: wait() for what, wait in asked.items()}
    passes: list[EndedPass] = sorted(answers["passes"].value or [], key=lambda one: one.at)
    events = _all_events(session, passes, answers["changes"].value or [])
    found = answers["courses"].value or {}
    return {
        "queue": session.place.queue,
        "origin": session.place.origin.value,
        "at": stamp(now),
        "since": stamp(start),
        "events": sorted(events, key=lambda one: one["at"], reverse=True),
        "passes": [_pass(one) for one in passes],
        "courses": _to_json(found),
        "shares": _to_json(_shares(found, passes, now)),
        "states": _spans(passes, start, now),
        "unknown": {what: one.fault for what, one in answers.items() if one.fault},
    }


def _all_events(
    session: Session, passes: Sequence[EndedPass], changes: Sequence[Change]
) -> list[dict[str, Any]]:
    return [
        *(event for one in passes for event in _events(session, one)),
        *_seen(session, passes),
        *(_told(session, one) for one in changes),
    ]


def depth_courses(session: Session, hours: int = _HOURS) -> dict[str, Any]:
    """Read the course of the depths of the DLQ and the parking lot, for a sparkline. Raises CallFailed."""
    now = session.clock()
    start, deployment = now - timedelta(hours=hours), session.place.deployment
    found = courses(session.aws, deployment, start, now, timedelta(minutes=5))
    return {
        name: [[int(at.timestamp()), value] for at, value in found.get(name, ())]
        for name in ("dead_letters", "parked")
    }


def _shares(
    found: Mapping[str, Course], passes: Sequence[EndedPass], now: datetime
) -> dict[str, _Broken]:
    """The shares of successes, from 0 to 1, by what they are shares of.

    A queue's deliveries say most about the consumer, because they include live messages. Verdicts are used
    if deliveries are not counted.
    """
    told = [
        (one.at.replace(second=0, microsecond=0), one.report)
        for one in passes
        if not is_dry(one.report)
    ]
    if "delivered" in found:
        deleted = dict(found["deleted"])
        counted = [(at, deleted.get(at, 0), received) for at, received in found["delivered"]]
        shares = {"deliveries": _share(counted, now)}
    else:
        shares = {"judged batches": _share([(at, *_judged(one)) for at, one in told], now)}
    reported = [(at, *_reported(one)) for at, one in told]
    if any(outcomes for _, _, outcomes in reported):
        shares["reported letters"] = _share(reported, now)
    return shares


def _judged(report: Mapping[str, Any]) -> tuple[int, int]:
    """Count a pass's verdicts: successes, and all that were decided."""
    fell = [one["verdict"] for one in report.get("verdicts") or ()]
    return fell.count("SUCCESS"), sum(map(fell.count, _DECIDED))


def _reported(report: Mapping[str, Any]) -> tuple[int, int]:
    """Count the letters that consumers reported in a pass: successes, and all."""
    heard = report.get("heard") or {}
    return heard.get(Result.SUCCEEDED.value, 0), sum(heard.get(each.value, 0) for each in Result)


def _share(counted: Sequence[tuple[datetime, float, float]], now: datetime) -> _Broken:
    """Return the share of good ones over the last minutes, from (moment, good, all); None from a gap on."""
    course: _Broken = []
    seen = [(at, good, everything) for at, good, everything in counted if everything]
    first, good, everything = 0, 0.0, 0.0
    for at, more_good, more in seen:
        _end(course, at)
        good, everything = good + more_good, everything + more
        while seen[first][0] <= at - _SMOOTHED_OVER:
            good, everything = good - seen[first][1], everything - seen[first][2]
            first += 1
        # Deleted messages were received a while before, perhaps in the minutes that are left out.
        course.append((at, min(1.0, good / everything)))
    _end(course, now)
    return course


def _end(course: _Broken, now: datetime) -> None:
    """End the course if its last figure is too old to be valid."""
    if course and now - course[-1][0] > _HOLDS:
        course.append((course[-1][0] + _HOLDS, None))


def _spans(passes: Sequence[EndedPass], start: datetime, now: datetime) -> list[dict[str, Any]]:
    """The states of the first source queue's circuit as passes found and left it, the oldest first."""
    spans: list[dict[str, Any]] = []
    for one in passes:
        circuit = (one.report.get("circuits") or [{}])[0]
        # If it differs from how the last pass left it, a person has changed it. A dry run changes nothing.
        for state in (circuit.get("before"), None if is_dry(one.report) else circuit.get("after")):
            if state and (not spans or spans[-1]["state"] != state):
                at = one.at if spans else start
                spans.append({"state": state, "since": int(at.timestamp())})
    ends = [*(span["since"] for span in spans[1:]), int(now.timestamp())]
    return [span | {"until": end} for span, end in zip(spans, ends, strict=False)]


def _period(hours: int) -> timedelta:
    """The period in whole minutes, as CloudWatch requires."""
    return timedelta(minutes=max(1, round(hours * 60 / _POINTS)))


def _changes(session: Session, start: datetime, now: datetime) -> list[Change]:
    return [one for one in changes_of(trail_of(session).read_since(start, now)) if one.at >= start]


def _told(session: Session, change: Change) -> dict[str, Any]:
    return {
        "at": stamp(change.at),
        "kind": "change",
        "tone": None,
        "text": session.terminal.spare(f"{short_name(change.who)}: {change.in_words()}"),
    }


def _events(session: Session, ended: EndedPass) -> Iterator[dict[str, Any]]:
    """Yield the events of a pass: verdicts, changes of circuits, operations."""
    report = ended.report
    for text, kind, tone in (*_verdicts(report), *_circuits(report), *_operations(report)):
        yield {
            "at": stamp(ended.at),
            "kind": kind,
            "tone": tone,
            "text": session.terminal.spare(text),
        }


def _seen(session: Session, passes: Sequence[EndedPass]) -> Iterator[dict[str, Any]]:
    """The headlines that passes found, whenever the headline changed: not when only its figures did."""
    before = ""
    for one in passes:
        text = one.report.get("headline") or ""
        kind = _FIGURES.sub("", text)
        if text and _AT_FIRST not in text and kind != before:
            before = kind
            yield {
                "at": stamp(one.at),
                "kind": "seen",
                "tone": None,
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


def _operations(report: Any) -> Iterator[tuple[str, str, str | None]]:
    acts = acts_in_words(report)
    if acts:
        yield f"{'Dry run' if is_dry(report) else 'Pass'}: {', '.join(acts)}", "pass", None
    if faults := report.get("faults"):
        told = ", ".join(f"{name} ({count:,})" for name, count in faults.items())
        yield f"Faults: {told}", "fault", "bad"


def _pass(ended: EndedPass) -> dict[str, Any]:
    report = ended.report
    circuits = report.get("circuits") or [{}]
    acts = {} if is_dry(report) else report
    return {
        "at": int(ended.at.timestamp()),
        "state": circuits[0].get("after"),
        "window": report.get("window"),
        "awaiting_verdict": circuits[0].get("awaiting_verdict"),
        "letters_per_second": circuits[0].get("letters_per_second"),
        "redriven": acts.get("redriven", 0),
        "returned": report.get("returned", 0),
    }
