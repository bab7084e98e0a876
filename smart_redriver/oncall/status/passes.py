"""Whether passes run: reports in the function's log, the schedule that starts passes, and the queues they can read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from smart_redriver.engine.config.settings import Mode, Settings
from smart_redriver.engine.errors import GONE, TRANSIENT_FAULTS
from smart_redriver.engine.headline import Passes
from smart_redriver.engine.messages.queue_facts import QueueFacts
from smart_redriver.engine.report import Outcome
from smart_redriver.oncall.deployment.aws import Answer, ask
from smart_redriver.oncall.deployment.logs import Query, read_log
from smart_redriver.oncall.deployment.session import Session

#: Even the rarest schedule has a pass within a day.
_SEARCHED = timedelta(days=1)
_FINISHED = "pass.finished"
#: SQS keeps no message longer than 14 days; for a table, a pass reports a century.
_NOTHING_EXPIRES = 366 * 86_400
#: A day has fewer passes than this, and a line is some KB.
_MOST_LINES = 5_000
#: After this many missing passes, a process is considered not at work.
_MISSED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedPass:
    """The end of a pass, and its report."""

    at: datetime
    report: Mapping[str, Any]

    @property
    def least_to_expiry(self) -> timedelta | None:
        """The time that the letter nearest to its expiry had left then.

        None if the pass saw no letter, or if none expires.
        """
        seconds = self.report.get("least_seconds_to_expiry")
        if seconds is None or int(seconds) > _NOTHING_EXPIRES:
            return None
        return timedelta(seconds=int(seconds))

    @property
    def age_of_oldest(self) -> timedelta | None:
        """The age of the oldest letter that the pass saw."""
        seconds = self.report.get("oldest_letter_seconds")
        return None if seconds is None else timedelta(seconds=int(seconds))


def fault_of(last: EndedPass | None) -> str:
    """The call for which a pass failed, and its code; empty if it did not fail, or of a fault that passes by itself."""
    if last is None or last.report.get("outcome") != Outcome.FAILED.value:
        return ""
    call, _, why = str(last.report.get("reason") or "").partition(": ")
    code = why.partition(": ")[0]
    return f"{call}: {code}" if code and code not in TRANSIENT_FAULTS else ""


def source_facts(session: Session, number: int) -> QueueFacts:
    """The facts of a source queue, by its place among those of its DLQ. Raises CallFailed and Refused."""
    return session.sources[number].facts()


def unread_by(answer: Answer[QueueFacts]) -> str:
    """Why no pass can read a source queue; empty if it can.

    It is gone: another fault may only be this person's, because the re-driver has rights and a network of its own.
    """
    return answer.fault or "" if answer.code in GONE else ""


def unread_sources(session: Session, dlq: QueueFacts | None) -> dict[str, str]:
    """The source queues that letters wait for and that are gone, each with why it can't be read.

    Targets can't be asked.
    """
    if dlq is None or not dlq.depth or session.place.deployment.targets:
        return {}
    answers = {
        name: ask(partial(source_facts, session, number))
        for number, name in enumerate(session.place.sources)
    }
    return {name: why for name, answer in answers.items() if (why := unread_by(answer))}


def is_dry(report: Mapping[str, Any]) -> bool:
    """Whether it is the report of a dry run, which acts on no letter."""
    return report.get("mode") == Mode.DRY_RUN.value


def acts_in_words(report: Mapping[str, Any]) -> list[str]:
    """What a pass did to letters, or what a dry run would have done, and the letters that returned."""
    acts, would = report, ""
    if is_dry(report):  # an older version reported what it would do as done
        acts, would = report.get("would") or report, "would be "
    parts = [
        f"{acts[name]:,} {would}{name}"
        for name in ("redriven", "discarded", "renewed")
        if acts.get(name)
    ]
    parts += [
        f"{count:,} {would}parked as {why}" for why, count in (acts.get("parked") or {}).items()
    ]
    parts += [f"{report[name]:,} {name}" for name in ("bounced", "returned") if report.get(name)]
    return parts


def last_pass(session: Session) -> EndedPass | None:
    """Find the last pass: of a function in its log, the most likely time first; of a process in the state table.

    Raises CallFailed and Refused.
    """
    if session.place.process is not None:
        found = session.store.load_pass()
        return EndedPass(at=found[0], report=found[1]) if found else None
    now = session.clock()
    minutes = max(10, 3 * session.settings.schedule_minutes)
    for searched in (timedelta(minutes=minutes), _SEARCHED):
        passes = passes_between(session, now - searched, now)
        if newest := max(reversed(passes), key=lambda one: one.at, default=None):
            return newest
    return None


def passes_of_process(
    last: EndedPass | None, started_at: datetime | None, settings: Settings, now: datetime
) -> Passes:
    """Whether a process makes passes, judged by its last pass, or by its start while its first pass goes on."""
    silent_since = now - _MISSED * timedelta(minutes=settings.schedule_minutes)
    ended_at = last.at if last else None
    is_at_work = any(at is not None and at >= silent_since for at in (ended_at, started_at))
    return Passes.RUN if is_at_work else Passes.NO_PROCESS


def find_passes(session: Session) -> Passes:
    """Whether passes run. Raises CallFailed and Refused.

    A function's passes are assumed to run, because AWS allows few calls to its schedule.
    """
    if session.place.process is None:
        return Passes.RUN
    last, started_at = last_pass(session), session.store.load_start()
    return passes_of_process(last, started_at, session.settings, session.clock())


def passes_between(session: Session, start: datetime, end: datetime) -> list[EndedPass]:
    """The passes that ended then according to the log, roughly in order. Raises CallFailed and Refused."""
    query = Query(
        group=session.log_group,
        start=start,
        end=end + timedelta(minutes=1),
        pattern=f'"{_FINISHED}"',
    )
    lines = read_log(session, query, most=_MOST_LINES).lines
    return [EndedPass(at=one.at, report=report) for one in lines if (report := _report(one.text))]


def _report(line: str) -> Mapping[str, Any] | None:
    try:
        fields = json.loads(line)
    except ValueError:
        return None
    return fields if isinstance(fields, dict) and fields.get("message") == _FINISHED else None


#: CloudFormation shortens the names that it makes, but keeps their beginning.
_NAME_KEPT = 20

ENABLED = "ENABLED"


def schedule_state(session: Session) -> str | None:
    """The state of the schedule that starts passes; None if there is none. Raises CallFailed and Refused."""
    arn = session.function_configuration["FunctionArn"]
    request: dict[str, Any] = {"NamePrefix": session.place.stack[:_NAME_KEPT]}
    while True:
        page = session.aws.client("scheduler").list_schedules(**request)
        for one in page["Schedules"]:
            if one["Target"]["Arn"] == arn:
                return str(one["State"])
        if "NextToken" not in page:
            return None
        request["NextToken"] = page["NextToken"]
