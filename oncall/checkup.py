"""`redrive doctor`: checks a deployment, and says for each thing that is wrong how to mend it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from oncall.asking import Answer, Asking
from oncall.exits import Exit
from oncall.session import Session
from oncall.table import printable


class Level(str, Enum):
    """How a check came out."""

    GOOD = "good"
    WRONG = "wrong"
    UNKNOWN = "unknown"  # it could not be checked


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was checked. Everything but what is good comes with a remedy."""

    level: Level
    what: str
    remedy: str = ""

    def to_json(self) -> dict[str, str]:
        return {"level": self.level.value, "what": self.what, "remedy": self.remedy}


#: Looks at one side of a deployment. Raises CallFailed and Refused for what it can't do without.
Check = Callable[[Session], Iterable[Finding]]


def good(what: str) -> Finding:
    """All is well here."""
    return Finding(level=Level.GOOD, what=what)


def wrong(what: str, remedy: str) -> Finding:
    """Something has to be mended."""
    return Finding(level=Level.WRONG, what=what, remedy=remedy)


def unknown(what: str, remedy: str) -> Finding:
    """Nobody could look."""
    return Finding(level=Level.UNKNOWN, what=what, remedy=remedy)


def check(is_good: bool, what: str, otherwise: str, remedy: str) -> Finding:
    """One finding of two."""
    return good(what) if is_good else wrong(otherwise, remedy)


def doctor(session: Session) -> Exit:
    """Check every queue that is meant. Raises CallFailed and Refused where the stack itself can't be read."""
    told = {one.place.queue: examine(one) for one in session.each_queue()}
    session.terminal.result(
        {
            "queues": [
                {"queue": queue, "findings": [one.to_json() for one in findings]}
                for queue, findings in told.items()
            ]
        }
    )
    for queue, findings in told.items():
        _tell(session, queue, findings)
    is_wrong = any(one.level is Level.WRONG for findings in told.values() for one in findings)
    return Exit.REFUSED if is_wrong else Exit.DONE


def examine(session: Session) -> list[Finding]:
    """All findings about one queue, in the order of the checks."""
    from oncall.check_access import check_access
    from oncall.check_alarms import check_alarms
    from oncall.check_passes import check_passes
    from oncall.check_queues import check_queues
    from oncall.check_state import check_state

    checks: dict[str, Check] = {
        "queues": check_queues,
        "state table": check_state,
        "passes": check_passes,
        "access": check_access,
        "alarms": check_alarms,
    }
    _ = session.queues, session.store
    for service in _SERVICES:  # one after another: botocore does not build them at the same time
        session.aws.client(service)
    with Asking() as ask:
        answers = {
            name: ask(lambda look=look: list(look(session)))  # type: ignore[misc]  # bound here
            for name, look in checks.items()
        }
        return [one for name, wait in answers.items() for one in _findings(name, wait())]


_SERVICES = ("sqs", "dynamodb", "lambda", "logs", "scheduler", "iam", "kms", "cloudwatch", "sns")


def _findings(name: str, answer: Answer[list[Finding]]) -> Sequence[Finding]:
    if answer.fault is None:
        return answer.value or []
    remedy = "Looking needs the managed policy RedriveViewer; then run it again."
    return [unknown(f"The {name} could not be checked: {answer.fault}", remedy)]


_SIGNS = {Level.GOOD: "ok   ", Level.WRONG: "WRONG", Level.UNKNOWN: "?    "}


def _tell(session: Session, queue: str, findings: Sequence[Finding]) -> None:
    say = session.terminal.say
    say(f"{queue}:")
    for one in findings:
        say(f"  {_SIGNS[one.level]}  {printable(one.what)}")
        if one.remedy:
            say(f"         -> {printable(one.remedy)}")
    count = sum(one.level is Level.WRONG for one in findings)
    say(f"{count or 'Nothing'} to mend." if count != 1 else "1 thing to mend.")
    say()


def attributes_of(session: Session, queue_url: str) -> dict[str, Any]:
    """All attributes of a queue. Raises CallFailed."""
    answer = session.aws.sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["All"])
    attributes: dict[str, Any] = answer["Attributes"]
    return attributes
