"""`redrive doctor`: checks a deployment, and says for each thing that is wrong how to mend it."""

from __future__ import annotations

from collections.abc import Sequence

from smart_redriver.oncall.doctor.checkup import examine
from smart_redriver.oncall.doctor.findings import Finding, Level
from smart_redriver.oncall.stack.session import Session
from smart_redriver.oncall.terminal.exits import Exit
from smart_redriver.oncall.terminal.table import printable
from smart_redriver.oncall.terminal.terminal import Tone


def doctor(session: Session) -> Exit:
    """Check every queue that is meant. Raises CallFailed and Refused where the stack itself can't be read."""
    by_queue = {one.place.queue: examine(one) for one in session.each_queue()}
    session.terminal.result(
        {
            "queues": [
                {"queue": queue, "findings": [one.to_json() for one in findings]}
                for queue, findings in by_queue.items()
            ]
        }
    )
    for queue, findings in by_queue.items():
        _tell(session, queue, findings)
    is_wrong = any(one.level is Level.WRONG for findings in by_queue.values() for one in findings)
    return Exit.REFUSED if is_wrong else Exit.DONE


_SIGNS = {Level.GOOD: "ok   ", Level.WRONG: "WRONG", Level.UNKNOWN: "?    "}
_TONES = {Level.GOOD: Tone.GOOD, Level.WRONG: Tone.BAD, Level.UNKNOWN: Tone.CAREFUL}


def _tell(session: Session, queue: str, findings: Sequence[Finding]) -> None:
    say = session.terminal.say
    say(f"{queue}:")
    for one in findings:
        sign = session.terminal.paint(_SIGNS[one.level], _TONES[one.level])
        say(f"  {sign}  {printable(one.what)}")
        if one.remedy:
            say(f"         -> {printable(one.remedy)}")
    count = sum(one.level is Level.WRONG for one in findings)
    say(f"{count or 'Nothing'} to mend." if count != 1 else "1 thing to mend.")
    say()
