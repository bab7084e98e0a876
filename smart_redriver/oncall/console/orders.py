"""What may be changed from the page: the command's verbs, as the API takes them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from redrive.core.circuit import State
from smart_redriver.oncall.console.fields import Field, Kind
from smart_redriver.oncall.console.task import Task
from smart_redriver.oncall.letters.choice import Choice, choose, read_filter
from smart_redriver.oncall.letters.edit_form import form_of
from smart_redriver.oncall.letters.fingerprints import fingerprint_of_form
from smart_redriver.oncall.stack.session import Session
from smart_redriver.oncall.terminal.exits import LONGEST_REASON, Exit, Misused, Refused
from smart_redriver.oncall.terminal.words import parse_lasting
from smart_redriver.oncall.verbs.delete import DeleteRequest, delete
from smart_redriver.oncall.verbs.drain import DrainRequest, drain
from smart_redriver.oncall.verbs.edit import EditRequest, edit
from smart_redriver.oncall.verbs.export import export
from smart_redriver.oncall.verbs.force import force
from smart_redriver.oncall.verbs.import_letters import ImportRequest, import_letters
from smart_redriver.oncall.verbs.park import ParkRequest, park
from smart_redriver.oncall.verbs.pause import pause, resume
from smart_redriver.oncall.verbs.replay import ReplayRequest, replay
from smart_redriver.oncall.verbs.run import run
from smart_redriver.oncall.verbs.undo import UndoRequest, undo

Given = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """One order that can be given. `act` plans, asks and does, on the session's terminal."""

    name: str
    about: str
    fields: tuple[Field, ...]
    act: Callable[[Session, Given], Exit]


#: Which letters; all that are given must be true of a letter.
FILTERS = (
    Field(name="contains", about="Text that the body contains."),
    Field(name="where", about="A JMESPath expression that is true of the JSON body."),
    Field(name="since", about="First seen, or parked, since then: 2h, 3d, or ISO 8601."),
    Field(name="until", about="First seen, or parked, before then."),
    Field(name="parked_as", about="Why it was parked, such as MAX_ATTEMPTS."),
    Field(name="error", about="Text within what its consumer said."),
    Field(name="cause", about="Text within its cause."),
)
_IDS = Field(name="ids", about="Letters, by current or original ids.", kind=Kind.TEXTS)
_ALL = Field(name="all", about="Every letter.", kind=Kind.FLAG)
_FROM_DLQ = Field(
    name="from_dlq", about="Letters of the DLQ instead of the parking lot.", kind=Kind.FLAG
)
_WHY = Field(name="reason", about="Why, for the audit trail.", longest=LONGEST_REASON)
_NEEDED_WHY = replace(_WHY, about="Why: the status shows it to the next person.", is_needed=True)
_CHOICE = (_IDS, _ALL, *FILTERS)
_FILE = Field(
    name="file",
    about="A file that this console kept, in the folder in which it was started.",
    is_needed=True,
)
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,120}\.jsonl")


def _choice(session: Session, given: Given) -> Choice:
    filters = {one.name: given.get(one.name) for one in FILTERS}
    wanted = read_filter(session.clock(), **filters)
    return choose(given.get("ids", ()), wanted, is_all=given.get("all", False))


def _new_file(session: Session, what: str) -> Path:
    """A file for letters, named as the command names it, which the page is told."""
    name = f"{what}-{session.clock():%Y%m%dT%H%M%SZ}.jsonl"
    if isinstance(session.terminal, Task):
        session.terminal.file = name
    return Path(name)


def kept_file(name: str) -> Path:
    """A file of letters in this folder. Raises Misused for any other: a request does not say where to read."""
    if not _FILE_NAME.fullmatch(name) or not Path(name).is_file():
        raise Misused(f"There is no file {name!r} of letters in the console's folder.")
    return Path(name)


def _replay(session: Session, given: Given) -> Exit:
    request = ReplayRequest(
        choice=_choice(session, given),
        from_dlq=given.get("from_dlq", False),
        rate=given.get("rate"),
        reason=given.get("reason", ""),
    )
    return replay(session, request)


def _park(session: Session, given: Given) -> Exit:
    request = ParkRequest(choice=_choice(session, given), reason=given.get("reason", ""))
    return park(session, request)


def _delete(session: Session, given: Given) -> Exit:
    request = DeleteRequest(
        choice=_choice(session, given),
        file=_new_file(session, "deleted"),
        from_dlq=given.get("from_dlq", False),
        reason=given.get("reason", ""),
    )
    return delete(session, request)


def _edit(session: Session, given: Given) -> Exit:
    def hand(form: str) -> str:
        if fingerprint_of_form(form) != given["was"]:
            raise Refused("The letter is not as it was when you opened it. Open it once more.")
        return form_of(json.dumps(given["attributes"]), given["body"])

    request = EditRequest(
        message_id=given["id"],
        file=_new_file(session, "edited"),
        from_dlq=given.get("from_dlq", False),
        reason=given.get("reason", ""),
    )
    return edit(session, request, lambda: hand)


def _undo(session: Session, given: Given) -> Exit:
    request = UndoRequest(
        file=kept_file(given["file"]),
        kept=_new_file(session, "undone"),
        reason=given.get("reason", ""),
    )
    return undo(session, request)


def _import(session: Session, given: Given) -> Exit:
    request = ImportRequest(
        file=kept_file(given["file"]),
        to_source=given.get("to_source", False),
        reason=given.get("reason", ""),
    )
    return import_letters(session, request)


def _export(session: Session, given: Given) -> Exit:
    choice = _choice(session, given)
    file = _new_file(session, "exported")
    return export(session, file, choice, from_dlq=given.get("from_dlq", False))


def _pause(session: Session, given: Given) -> Exit:
    lasts = parse_lasting(given["for"]) if "for" in given else None
    return pause(session, given["reason"], lasts)


def _drain(session: Session, given: Given) -> Exit:
    request = DrainRequest(
        lasts=parse_lasting(given.get("for", "1h")),
        window=given.get("window"),
        rate=given.get("rate"),
        reason=given.get("reason", ""),
    )
    return drain(session, request)


_LASTS = Field(name="for", about="For so long: 90s, 20m, 2h.")
_RATE = Field(
    name="rate",
    about="Letters a second, 0 for no limit. Default: the setting max_rate.",
    kind=Kind.NUMBER,
    least=0,
)

VERBS = (
    Verb(
        name="replay",
        about="Send parked letters back to their source queue or target, with no strikes.",
        fields=(*_CHOICE, _FROM_DLQ, _RATE, _WHY),
        act=_replay,
    ),
    Verb(
        name="edit",
        about="Send a mended copy of one letter, and keep the original in a file.",
        fields=(
            Field(name="id", about="The letter, by an id.", is_needed=True),
            Field(name="was", about="Its `fingerprint`, as it was opened.", is_needed=True),
            Field(name="body", about="The mended body.", is_needed=True),
            Field(
                name="attributes",
                about="The mended attributes, as `show` has them.",
                kind=Kind.OBJECT,
                is_needed=True,
            ),
            _FROM_DLQ,
            _WHY,
        ),
        act=_edit,
    ),
    Verb(
        name="park",
        about="Set letters of the DLQ aside in the parking lot.",
        fields=(*_CHOICE, _WHY),
        act=_park,
    ),
    Verb(
        name="delete",
        about="Delete letters, after writing them to a file that `undo` takes.",
        fields=(*_CHOICE, _FROM_DLQ, _WHY),
        act=_delete,
    ),
    Verb(
        name="undo",
        about="Put the letters of a file into the parking lot as they were.",
        fields=(_FILE, _WHY),
        act=_undo,
    ),
    Verb(
        name="export",
        about="Write letters to a file, and leave them where they are.",
        fields=(*_CHOICE, _FROM_DLQ),
        act=_export,
    ),
    Verb(
        name="import",
        about="Send the letters of a file that are not about any more.",
        fields=(
            _FILE,
            Field(
                name="to_source",
                about="To their source queue or target instead of the parking lot.",
                kind=Kind.FLAG,
            ),
            _WHY,
        ),
        act=_import,
    ),
    Verb(
        name="pause",
        about="Let no pass redrive anything, until resumed or for a while.",
        fields=(_NEEDED_WHY, _LASTS),
        act=_pause,
    ),
    Verb(
        name="resume",
        about="Let passes work again.",
        fields=(_WHY,),
        act=lambda session, given: resume(session, given.get("reason", "")),
    ),
    Verb(
        name="open",
        about="Force the circuit OPEN: nothing is redriven until canaries decide.",
        fields=(_NEEDED_WHY,),
        act=lambda session, given: force(session, State.OPEN, given["reason"]),
    ),
    Verb(
        name="close",
        about="Force the circuit CLOSED: redrives begin with a window of 1.",
        fields=(_NEEDED_WHY,),
        act=lambda session, given: force(session, State.CLOSED, given["reason"]),
    ),
    Verb(
        name="drain",
        about="After a fix: a larger window and rate for a while. The breaker still stops on failure.",
        fields=(
            Field(name="for", about="At most so long: 90s, 20m, 2h. Default: 1h."),
            Field(
                name="window",
                about="Letters awaiting a verdict. Default: ten times now.",
                kind=Kind.WHOLE,
                least=1,
            ),
            Field(
                name="rate",
                about="Letters a second. Default: twice max_rate.",
                kind=Kind.NUMBER,
                least=0.01,
            ),
            _WHY,
        ),
        act=_drain,
    ),
    Verb(
        name="run",
        about="One pass now, or what the next one would do.",
        fields=(
            Field(name="dry_run", about="Only tell what it would do.", kind=Kind.FLAG),
            _WHY,
        ),
        act=lambda session, given: run(
            session, is_dry_run=given.get("dry_run", False), reason=given.get("reason", "")
        ),
    ),
)
