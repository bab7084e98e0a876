"""`redrive doctor`: checks a deployment, and says for each thing that is wrong how to mend it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from smart_redriver.oncall.asking import Answer, Asking
from smart_redriver.oncall.check_access import check_access
from smart_redriver.oncall.check_alarms import check_alarms
from smart_redriver.oncall.check_passes import check_passes
from smart_redriver.oncall.check_queues import check_queues
from smart_redriver.oncall.check_state import check_state
from smart_redriver.oncall.exits import Exit
from smart_redriver.oncall.findings import Finding, Level, unknown
from smart_redriver.oncall.session import Session
from smart_redriver.oncall.table import printable

#: Looks at one side of a deployment. Raises CallFailed and Refused for what it can't do without.
Check = Callable[[Session], Iterable[Finding]]


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
