"""`redrive letters`: a peek at the DLQ, a few receives and everything released at once."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from redrive.passes.rounds import Examined

from redrive.core.triage import count_redrives
from smart_redriver.oncall.letters.choice import Filter
from smart_redriver.oncall.letters.jsonlines import attributes_to_json
from smart_redriver.oncall.letters.look import Look
from smart_redriver.oncall.letters.presentation import entry_to_json, shown_body
from smart_redriver.oncall.letters.shapes import cause_of
from smart_redriver.oncall.stack.session import Session
from smart_redriver.oncall.terminal.exits import Exit
from smart_redriver.oncall.terminal.table import table
from smart_redriver.oncall.terminal.words import ago, letters, stamp


def peek(session: Session, wanted: Filter, *, limit: int, with_body: bool) -> Exit:
    """Show at most `limit` letters, grouped by cause. Raises CallFailed and Refused."""
    depth = session.queues.dead_letter_queue().depth
    found: list[Examined] = []
    look = Look(session=session, queues=session.queues, limit=min(limit, depth))
    with look:
        found = [one for one in look if wanted.lets_through(one)]
    session.terminal.result(
        {
            "queue": session.place.queue,
            "depth": depth,
            "seen": look.seen,
            "receives": look.receives,
            "letters": [_to_json(one, with_body=with_body) for one in found],
        }
    )
    say = session.terminal.say
    if not depth:
        say("The DLQ is empty.")
        return Exit.DONE
    say(f"{letters(depth)} in the DLQ, {look.seen:,} looked at, {len(found):,} shown:")
    _tell(session, found, with_body=with_body)
    say()
    say(look.cost())
    return Exit.DONE


def _tell(session: Session, found: list[Examined], *, with_body: bool) -> None:
    say, now = session.terminal.say, session.clock()
    groups: defaultdict[str, list[Examined]] = defaultdict(list)
    for one in found:
        groups[cause_of(one.letter)].append(one)
    for cause, some in sorted(groups.items(), key=lambda pair: -len(pair[1])):
        say()
        say(f"{letters(len(some))}: {cause}")
        rows = []
        for one in some:
            letter, entry = one.letter, one.entry
            rows.append(
                (
                    letter.original_id,
                    ago(entry.first_seen if entry else letter.sent_at, now),
                    str(count_redrives(letter, entry)),
                    str(entry.strikes if entry else 0),
                    _last_return(one),
                    f"{letter.size:,}",
                    ", ".join(letter.attributes) or "-",
                )
            )
        titles = ("ID", "FIRST SEEN", "REDRIVES", "STRIKES", "LAST RETURN", "BYTES", "ATTRIBUTES")
        say(table(titles, rows, right={2, 3, 5}))
        if with_body:
            for one in some:
                say(f"--- {one.letter.original_id}")
                say(shown_body(one.letter))


def _last_return(one: Examined) -> str:
    notes = one.entry.history if one.entry else ()
    return next((note.split(" ")[0] for note in reversed(notes) if " returned" in note), "-")


def _to_json(one: Examined, *, with_body: bool) -> dict[str, Any]:
    letter = one.letter
    return {
        "message_id": letter.message_id,
        "original_id": letter.original_id,
        "cause": cause_of(letter),
        "sent_at": stamp(letter.sent_at),
        "redrive_count": count_redrives(letter, one.entry),
        "strikes": one.entry.strikes if one.entry else 0,
        "bytes": letter.size,
        "attributes": attributes_to_json(letter.attributes),
        "ledger": entry_to_json(one.entry) if one.entry else None,
        **({"body": letter.body} if with_body else {}),
    }
