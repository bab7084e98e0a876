"""`redrive import`: letters back from a file of JSON lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from smart_redriver.oncall.letters.choice import Choice
from smart_redriver.oncall.letters.kept_file import KeptFile
from smart_redriver.oncall.moving.ending import finish, tally_in_words
from smart_redriver.oncall.moving.group_order import tell_import_order
from smart_redriver.oncall.moving.importing import ToParkingLot, ToSource
from smart_redriver.oncall.moving.meant import SAMPLES, sample
from smart_redriver.oncall.stack.lodging import Deed, refuse_unless
from smart_redriver.oncall.stack.recording import recorded
from smart_redriver.oncall.stack.session import Session
from smart_redriver.oncall.stack.standing import confirm_sending, tell_standing
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


def import_letters(session: Session, request: ImportRequest) -> Exit:
    """Send the letters of a file; those that are still about are skipped. Raises CallFailed and Refused."""
    if request.to_source:
        refuse_unless(session.lodging, Deed.IMPORT_TO_SOURCE)
    file = KeptFile(session, request.file, request.others)
    total = file.check()  # before the first letter is sent
    if not total:
        raise Refused(f"{request.file} has no letter in it: nothing to do.")
    where = listed(session.place.sources) if request.to_source else "the parking lot"
    say = session.terminal.plan
    say(f"Plan: send {letters(total)} of {file.path} to {where}, but for those still about.")
    for kept in islice(file, SAMPLES):
        say(f"  such as {kept.letter.original_id}:")
        say(f"      {sample(kept.letter.body)}")
    tell_import_order(session, file, to_source=request.to_source)
    standing = tell_standing(session)
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
