"""`redrive import`: letters back from a file of JSON lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from smart_redriver.oncall.audit.trail import recorded
from smart_redriver.oncall.deployment.message_store import Operation, refuse_unless
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.letters.choice import Choice
from smart_redriver.oncall.letters.export_file import KeptFile
from smart_redriver.oncall.moving.ending import (
    end_dry_run,
    finish,
    tally_in_words,
    tell_import_order,
)
from smart_redriver.oncall.moving.importing import ToParkingLot, ToSource
from smart_redriver.oncall.moving.selection import SAMPLES, sample
from smart_redriver.oncall.status.standing import confirm_sending, tell_standing
from smart_redriver.oncall.terminal.exits import Exit, Refused
from smart_redriver.oncall.terminal.words import letters, listed


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRequest:
    """What to import and where to. `others` are queues whose letters are to become this one's."""

    file: Path
    to_source: bool = False
    others: Sequence[str] = ()
    reason: str = ""
    insists: bool = False
    is_dry_run: bool = False


def import_letters(session: Session, request: ImportRequest) -> Exit:
    """Send the letters of a file; those that are still about are skipped. Raises CallFailed and Refused."""
    to_where = Operation.IMPORT_TO_SOURCE if request.to_source else Operation.IMPORT
    refuse_unless(session.letter_store, to_where)
    file = KeptFile(session, request.file, request.others)
    total = file.check()  # before the first letter is sent
    if not total:
        raise Refused(f"{request.file} has no letter in it: nothing to do.")
    where = listed(session.place.sources) if request.to_source else "the parking lot"
    say = session.terminal.plan
    say(
        f"Plan: send {letters(total)} of {file.path} to {where}, except those that are still there."
    )
    for kept in islice(file, SAMPLES):
        say(f"  such as {kept.letter.original_id}:")
        say(f"      {sample(kept.letter.body)}")
    tell_import_order(session, file, to_source=request.to_source)
    standing = tell_standing(session)
    if request.is_dry_run:
        return end_dry_run(session, {"count": total})
    if request.to_source:
        confirm_sending(session, "Import them?", standing, insists=request.insists)
    else:
        session.terminal.confirm("Import them?")
    make = ToSource if request.to_source else ToParkingLot
    importing = make(session, request.reason)
    with (
        recorded(session, f"import {file.path} to {importing.where}", request.reason) as ended,
        session.terminal.progress("Importing", total) as advance,
    ):
        importing.take_all(file, advance)
        ended.extend(tally_in_words(importing.tally, "imported"))
    return finish(session, importing.tally, Choice(), "imported")


def act(session: Session, given: Mapping[str, Any]) -> Exit:
    """As declared."""
    request = ImportRequest(
        file=given["file"],
        to_source=given.get("to_source", False) or given.get("to") == "source",
        others=given.get("from_queue", ()),
        reason=given.get("reason", ""),
        insists=given.get("even_though_paused", False),
        is_dry_run=given.get("dry_run", False),
    )
    return import_letters(session, request)
