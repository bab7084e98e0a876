"""Whether passes run: the schedule, the last pass, and what it was refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from smart_redriver.oncall.doctor.findings import Finding, check, good, wrong
from smart_redriver.oncall.stack.passes import EndedPass, last_pass
from smart_redriver.oncall.stack.schedule import ENABLED, schedule_state
from smart_redriver.oncall.stack.session import Session
from smart_redriver.oncall.terminal.words import ago

#: Missed passes that are no accident any more; the alarm on silence counts the same.
_MISSED = 3


def check_passes(session: Session) -> Iterator[Finding]:
    """Look at schedule and log. Raises CallFailed and Refused."""
    yield _judge_schedule(schedule_state(session))
    last = last_pass(session)
    yield judge_last_pass(last, session.settings.schedule_minutes, session.clock())
    if last is not None:
        yield from judge_report(last.report)


def judge_last_pass(last: EndedPass | None, schedule_minutes: int, now: datetime) -> Finding:
    """Whether the last pass was within three times the rhythm of an idle queue."""
    remedy = "`redrive run` runs one now and shows why it fails; `redrive logs` shows what the function logged."
    if last is None:
        return wrong("No pass has ended within the last day.", remedy)
    is_recent = now - last.at <= _MISSED * timedelta(minutes=schedule_minutes)
    sentence = f"The last pass was {ago(last.at, now)}"
    return check(
        is_recent, f"{sentence}.", f"{sentence}, of one each {schedule_minutes} min.", remedy
    )


def judge_report(report: Mapping[str, Any]) -> Iterator[Finding]:
    """What AWS refused the last pass: every call that it needs is made sooner or later."""
    faults = report.get("faults") or {}
    if not faults:
        yield good("AWS refused the last pass nothing.")
    for fault, count in sorted(faults.items()):
        call, _, code = fault.partition(":")
        yield wrong(
            f"AWS refused the last pass {call} {count} times: {code}.",
            _remedy(call, code),
        )


def _remedy(call: str, code: str) -> str:
    if "Kms" in code or "KMS" in code:
        return "The function may not use the queue's key: name the key's ARN in the list of queues, and see docs/deploy.md for the key's policy."
    if "AccessDenied" in code:
        return f"The function may not call {call}: deploy the stack anew, and see docs/deploy.md for queues of other owners."
    return "If it lasts, look at `redrive logs`; a single one is made up for by the next pass."


def _judge_schedule(state: str | None) -> Finding:
    return check(
        state == ENABLED,
        "The schedule is on.",
        "The schedule is off." if state else "There is no schedule for the function.",
        "Enable it in EventBridge Scheduler." if state else "Deploy the stack anew.",
    )
