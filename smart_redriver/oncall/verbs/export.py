"""`redrive export`: letters to a file of JSON lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.letters.choice import Choice, choice_of, filter_of
from smart_redriver.oncall.letters.export_file import ExportFile, to_be_kept
from smart_redriver.oncall.letters.look import Look
from smart_redriver.oncall.letters.reach import COPY
from smart_redriver.oncall.moving.selection import CUT, facts_of, nothing_matches
from smart_redriver.oncall.moving.work import tell_refused
from smart_redriver.oncall.terminal.exits import Exit
from smart_redriver.oncall.terminal.words import letters

#: An export hides what it reads until it is done, so that it reads nothing twice.
HIDDEN_FOR = timedelta(minutes=10)
LONGEST_EXPORT = timedelta(minutes=9)


def export(session: Session, file: Path, choice: Choice, *, from_dlq: bool) -> Exit:
    """Write letters to `file` and leave them where they are. Raises CallFailed and Refused."""
    out_of = session.letters_in(dlq=from_dlq, ids=choice.ids, contains=choice.filter.contains)
    facts = facts_of(session, from_dlq=from_dlq, exactly=True)
    depth, count, unread = facts.depth, 0, Counter[str]()
    with ExportFile(file, session.name_of, is_continued=False) as export_file:
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
    missing = list(_missing(look, unread))
    for sentence in missing:
        session.terminal.warn(sentence)
    session.terminal.result({"file": str(file), "count": count, "is_complete": not missing})
    return Exit.PARTLY if missing else Exit.DONE


def _missing(look: Look, unread: Counter[str]) -> Iterator[str]:
    """Why the file is not complete; nothing where it is."""
    if unread:
        yield f"{letters(unread.total())} could not be read: the file is not complete."
    if look.is_cut_short:
        yield "There were too many for one look: the file is not complete."
    elif look.is_cut:
        yield f"{CUT} The file is not complete."


def act(session: Session, given: Mapping[str, Any]) -> Exit:
    """As declared. The command has a file instead of ids: it takes all that its filters let through."""
    now = session.clock()
    is_typed = "file" in given
    choice = Choice(filter=filter_of(given, now)) if is_typed else choice_of(given, now)
    file = given["file"] if is_typed else session.new_file("exported")
    return export(session, file, choice, from_dlq=given["from_dlq"])
