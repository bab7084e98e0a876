"""`redrive export` and `redrive import`: letters to a file of JSON lines, and back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from smart_redriver.engine.counts import letters
from smart_redriver.engine.messages.queue_facts import QueueFacts
from smart_redriver.engine.triage.case import Case
from smart_redriver.oncall.audit.trail import recorded
from smart_redriver.oncall.deployment.message_store import Operation, refuse_unless
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.letters.choice import Choice, choice_of, filter_of
from smart_redriver.oncall.letters.export_file import ExportFile, KeptFile, to_be_kept
from smart_redriver.oncall.letters.fifo_order import COPY
from smart_redriver.oncall.letters.look import Look, with_full_ids
from smart_redriver.oncall.letters.presentation import HIDDEN
from smart_redriver.oncall.moving.ending import (
    destinations_in_words,
    end_dry_run,
    finish,
    tally_in_words,
    tell_import_order,
)
from smart_redriver.oncall.moving.importing import ToParkingLot, ToSource
from smart_redriver.oncall.moving.selection import (
    CUT,
    SAMPLES,
    facts_of,
    hidden_from,
    nothing_matches,
    sample,
)
from smart_redriver.oncall.moving.work import NewPause, tell_refused
from smart_redriver.oncall.status.standing import confirm_sending, tell_standing
from smart_redriver.oncall.terminal.exits import Exit, Refused
from smart_redriver.oncall.terminal.words import listed

#: An export hides what it reads until it is done, so that it reads nothing twice.
HIDDEN_FOR = timedelta(minutes=10)
LONGEST_EXPORT = timedelta(minutes=9)


def export(session: Session, file: Path, choice: Choice, *, from_dlq: bool) -> Exit:
    """Write letters to `file`, and leave them where they are. Raises CallFailed and Refused."""
    out_of = session.letters_in(dlq=from_dlq, ids=choice.ids, contains=choice.filter.contains)
    facts = facts_of(session, from_dlq=from_dlq, exactly=True)
    depth, count, unread = facts.depth, 0, Counter[str]()
    with ExportFile(session, file, is_continued=False) as export_file:
        look = Look(
            session=session,
            out_of=out_of,
            limit=depth,
            hidden_for=HIDDEN_FOR,
            longest=LONGEST_EXPORT,
        )
        with look, session.terminal.progress("Exporting", depth) as advance:
            for case in look:
                advance(1)
                is_copy = look.out_of_reach.get(case.message_id) == COPY
                if choice.takes(case) and not is_copy:
                    kept, faults = to_be_kept(session, [case], dlq=from_dlq)
                    count += export_file.write(kept)
                    tell_refused(session.terminal, unread, faults)
    if not count and not unread and not look.is_cut_short:
        session.terminal.warn(look.cost())
        raise nothing_matches(session, choice, facts, from_dlq=from_dlq)
    session.terminal.say(f"Wrote {letters(count)} to {file}; they are still where they were.")
    session.terminal.say(look.cost())
    missing = list(_missing(look, unread, facts))
    for sentence in missing:
        session.terminal.warn(sentence)
    session.terminal.result({"file": str(file), "count": count, "is_complete": not missing})
    return Exit.PARTLY if missing else Exit.DONE


def _missing(look: Look, unread: Counter[str], facts: QueueFacts) -> Iterator[str]:
    """Yield why the file is incomplete; nothing if it is complete."""
    if unread:
        yield f"{letters(unread.total())} could not be read: the file is not complete."
    if look.is_cut_short:
        yield "There were too many for one look: the file is not complete."
    elif look.is_cut:
        yield f"{CUT} The file is not complete."
    elif hidden := hidden_from(look, facts):
        yield f"{letters(hidden)} {HIDDEN} The file is not complete."


def act(session: Session, given: Mapping[str, Any]) -> Exit:
    """Carry out `export`. Its argument is a file, not ids: it takes all letters that match its filters."""
    now = session.clock()
    is_typed = "file" in given
    choice = Choice(filter=filter_of(given, now)) if is_typed else choice_of(given, now)
    choice = with_full_ids(session, choice)
    file = given["file"] if is_typed else session.new_file("exported")
    return export(session, file, choice, from_dlq=given["from_dlq"])


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRequest:
    """The letters to import, and their destination. `others` are queues whose letters this queue adopts."""

    file: Path
    to_source: bool = False
    others: Sequence[str] = ()
    reason: str = ""
    insists: bool = False
    though_there: bool = False
    is_dry_run: bool = False


def import_letters(session: Session, request: ImportRequest) -> Exit:
    """Send the letters of a file. It skips letters that still exist. Raises CallFailed and Refused."""
    to_where = Operation.IMPORT_TO_SOURCE if request.to_source else Operation.IMPORT
    refuse_unless(session.letter_store, to_where)
    others = {*request.others}.union(*map(session.sources_called, request.others))
    file = KeptFile(session, request.file, others)
    total = file.check()  # before the first letter is sent
    if not total:
        raise Refused(f"{request.file} has no letter in it: nothing to do.")
    _tell_plan(session, request, file, total)
    standing = tell_standing(session)
    if request.is_dry_run:
        return end_dry_run(session, {"count": total})
    if request.to_source:
        to = _destinations_of(session, file)
        confirm_sending(session, "Import them?", standing, insists=request.insists, to=to)
    else:
        session.terminal.confirm("Import them?")
    note = session.signed("imported", request.reason)
    importing = (
        ToSource(session, note, insists=request.though_there)
        if request.to_source
        else ToParkingLot(session, note, without_reason="IMPORTED", insists=request.though_there)
    )
    with (
        recorded(session, f"import {file.path} to {importing.where}", request.reason) as ended,
        session.terminal.progress("Importing", total) as advance,
    ):
        pause = NewPause(session) if request.to_source and not request.insists else None
        importing.take_all(file, advance, pause=pause)
        ended.extend(tally_in_words(importing.tally, "imported"))
    return finish(session, importing.tally, Choice(), "imported")


def _destinations_of(session: Session, file: KeptFile) -> Collection[str]:
    """The source queues that the file's letters go to; none if some letter does not say to which it belongs."""
    to: set[str] = set()
    for one in file:
        if one.letter.source_arn is None:
            return ()
        to.add(session.name_of(Case(letter=one.letter)))
    return to


def _tell_plan(session: Session, request: ImportRequest, file: KeptFile, total: int) -> None:
    where = destinations_in_words(session) if request.to_source else "the parking lot"
    say = session.terminal.plan
    may_be_lost = request.though_there and not session.letter_store.keeps_rows
    but = "are out or succeeded" if may_be_lost else "are out, succeeded or still there"
    say(
        f"Plan: send {letters(total)} of {file.path} to {where}, except those that {but} by the ledger."
    )
    if not session.letter_store.keeps_rows:
        say(
            "Letters that were never redriven or parked are not in the ledger: those that are still in the DLQ are "
            "sent, too, and the next pass removes them there."
        )
        if request.others:
            say(
                f"Letters of {listed(list(request.others))} are copied, even those that are still there: they stay, "
                "and go back to their own consumer, too."
            )
    for kept in islice(file, SAMPLES):
        say(f"  such as {kept.letter.original_id}:")
        say(f"      {sample(kept.letter.body)}")
    tell_import_order(session, file, to_source=request.to_source)


def act_import(session: Session, given: Mapping[str, Any]) -> Exit:
    """Carry out `import`."""
    request = ImportRequest(
        file=given["file"],
        to_source=given.get("to_source", False) or given.get("to") == "source",
        others=given.get("from_queue", ()),
        reason=given.get("reason", ""),
        insists=given.get("even_though_paused", False),
        though_there=given.get("even_though_there", False),
        is_dry_run=given.get("dry_run", False),
    )
    return import_letters(session, request)
