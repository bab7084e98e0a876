"""`redrive doctor`: checks a deployment, and says how to fix each fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from smart_redriver.engine.config.backends import BACKENDS
from smart_redriver.engine.counts import several
from smart_redriver.engine.errors import SettingsError
from smart_redriver.oncall.deployment.deployment_file import is_file
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.doctor.checkup import examine
from smart_redriver.oncall.doctor.findings import Finding, Level
from smart_redriver.oncall.terminal.exits import Exit, Misused
from smart_redriver.oncall.terminal.table import printable
from smart_redriver.oncall.terminal.terminal import Tone


def doctor(session: Session, *, with_all: bool = False) -> Exit:
    """Check every selected queue. `with_all` also lists what is well.

    Raises CallFailed and Refused if the stack itself can't be read.
    """
    queues = session.each_queue()
    found = {one.place.queue: examine(one) for one in queues}
    names = {one.place.queue: one.place.name for one in queues}
    return _told(session, found, names, with_all=with_all)


def preview(session: Session, file: Path | None, library: str | None) -> Exit:
    """Check the database in a file, or those of the selected queues; for a library if one is named.

    Everything is listed. A missing grant that a migration would make is no fault.

    Raises Misused, SettingsError, CallFailed and Refused.
    """
    if file is not None:
        if is_file(str(file)):
            raise Misused(f"{file} is the file of a process: `redrive doctor --stack {file}`.")
        (look,) = (one.load("preview") for one in BACKENDS.values() if one.preview)
        findings = list(look(session, _text_of(file), library))
        return _told(session, {str(file): findings}, {}, with_all=True)
    by_queue: dict[str, Sequence[Finding]] = {}
    for one in session.each_queue():
        location = one.place.deployment.location
        backend = BACKENDS[one.place.origin]
        if location is None or not backend.preview:
            raise Misused(
                f"{one.place.queue} has no tables: --library is for queues in a database."
            )
        by_queue[one.place.queue] = list(backend.load("preview")(one, location.encode(), library))
    return _told(session, by_queue, {}, with_all=True)


def _told(
    session: Session,
    by_queue: Mapping[str, Sequence[Finding]],
    names: Mapping[str, str],
    *,
    with_all: bool,
) -> Exit:
    """Tell the findings. `names`: what people call a queue, if not by its first source."""
    session.terminal.result(
        {
            "queues": [
                {"queue": queue, "findings": [one.to_json() for one in findings]}
                for queue, findings in by_queue.items()
            ]
        }
    )
    for queue, findings in by_queue.items():
        _tell(session, names.get(queue, queue), findings, with_all=with_all)
    is_wrong = any(one.level is Level.WRONG for findings in by_queue.values() for one in findings)
    return Exit.REFUSED if is_wrong else Exit.DONE


def _text_of(file: Path) -> str:
    try:
        return file.read_text()
    except OSError as error:
        raise Misused(f"{file} can't be read: {error.strerror}.") from error
    except UnicodeError as error:
        raise Misused(f"{file} can't be read: it is not text.") from error


_SIGNS = {Level.GOOD: "ok   ", Level.WRONG: "WRONG", Level.UNKNOWN: "?    "}
_TONES = {Level.GOOD: Tone.GOOD, Level.WRONG: Tone.BAD, Level.UNKNOWN: Tone.CAREFUL}


#: Faults come first.
_ORDER = {Level.WRONG: 0, Level.UNKNOWN: 1, Level.GOOD: 2}


def _tell(session: Session, queue: str, findings: Sequence[Finding], *, with_all: bool) -> None:
    say = session.terminal.say
    say(f"{queue}:")
    for one in sorted(findings, key=lambda one: _ORDER[one.level]):
        if one.level is Level.GOOD and not with_all:
            continue
        sign = session.terminal.paint(_SIGNS[one.level], _TONES[one.level])
        say(f"  {sign}  {printable(one.what)}")
        if one.remedy:
            say(f"         -> {printable(one.remedy)}")
    count = Counter(one.level for one in findings)
    say(_sum(count[Level.WRONG], count[Level.UNKNOWN]))
    if not with_all:
        say(f"{count[Level.GOOD]:,} checks are well: --all lists them.")
    say()


def _sum(wrong: int, unknown: int) -> str:
    to_fix = f"{several(wrong, 'thing')} to fix" if wrong else "Nothing to fix"
    if not unknown:
        return f"{to_fix}."
    return (
        f"{to_fix}{'' if wrong else ' was found'}. See also {several(unknown, 'thing')} marked ?."
    )


def act(session: Session, given: Mapping[str, Any]) -> Exit:
    """Carry out `doctor`."""
    file, library = given.get("database"), given.get("library")
    if file is None and library is None:
        return doctor(session, with_all=given["all"])
    try:
        return preview(session, file, library)
    except SettingsError as unfit:
        raise Misused(str(unfit)) from unfit
