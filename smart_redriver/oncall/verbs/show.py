"""`redrive show`: one letter, by any id that it ever had."""

from __future__ import annotations

from redrive.core.case import Case
from redrive.core.hearing import Told
from redrive.core.ledger import Entry, Status
from redrive.core.letter import Letter
from smart_redriver.oncall.letters.choice import Choice
from smart_redriver.oncall.letters.failures import (
    failure_facts,
    failure_to_json,
    last_failure,
    traceback_lines,
)
from smart_redriver.oncall.letters.jsonlines import attributes_to_json
from smart_redriver.oncall.letters.ledger_scan import find_entry
from smart_redriver.oncall.letters.look import find
from smart_redriver.oncall.letters.presentation import (
    NO_ERROR,
    entry_to_json,
    held_until,
    shown_body,
    why_parked,
)
from smart_redriver.oncall.stack.session import Session
from smart_redriver.oncall.terminal.exits import Exit, Refused
from smart_redriver.oncall.terminal.table import printable
from smart_redriver.oncall.terminal.words import ago, stamp

_WHERE = {
    Status.PARKED: "in the parking lot",
    Status.RETURNED: "in the DLQ",
    Status.REDRIVEN: "sent back to its source queue: processed, waiting there, or on its way back",
    Status.REPLAYED: "sent back to its source queue by a person: processed, waiting there, or on its way back",
    Status.FAILED: "in the DLQ, or on its way there: its consumer reported its last failure",
    Status.SUCCEEDED: "done, as its consumer reported",
    Status.DELETED: "deleted by a person, who kept a file of it",
}

_LOOKED_FOR = (Status.PARKED, Status.RETURNED, Status.REDRIVEN, Status.FAILED)


def show(session: Session, message_id: str, *, limit: int) -> Exit:
    """Tell where a letter is, its history, and its content where it can be looked at. Raises CallFailed, Refused."""
    entry = find_entry(session, message_id)
    ids = {message_id} | ({entry.original_id, entry.current_id} if entry else set())
    found = _look_for(session, Choice(ids=frozenset(ids)), entry, limit)
    if entry is None and found is None:
        raise Refused(
            f"Nobody knows {message_id}: it is not in the ledger, and not among the first {limit} letters of the "
            "DLQ. --look 1000 looks further; a letter that was never redriven is in no ledger."
        )
    entry = entry or (found.entry if found else None)
    letter = found.letter if found else None
    failure = last_failure(session, entry.original_id) if entry else None
    session.terminal.result(
        {
            "where": _where(entry),
            "ledger": entry_to_json(entry) if entry else None,
            "failure": failure_to_json(failure),
            "message": {
                "message_id": letter.message_id,
                "sent_at": stamp(letter.sent_at),
                "attributes": attributes_to_json(letter.attributes),
                "group_id": letter.group_id,
                "body": letter.body,
            }
            if letter
            else None,
        }
    )
    _tell(session, entry, failure, letter)
    return Exit.DONE


def _look_for(session: Session, choice: Choice, entry: Entry | None, limit: int) -> Case | None:
    """The letter itself, where looking harms nobody: never in a source queue, whose consumer would miss it."""
    if entry is not None and entry.status not in _LOOKED_FOR:
        return None
    in_lot = entry is not None and entry.status is Status.PARKED
    out_of = session.letters_in(dlq=not in_lot)
    depth = out_of.facts().depth
    if not depth or not limit:
        return None
    found, look = find(session, out_of, choice.takes, min(limit, depth))
    session.terminal.say(look.cost())
    session.terminal.say()
    return found


def _where(entry: Entry | None) -> str:
    return _WHERE[entry.status] if entry else "in the DLQ, on its first visit"


def _tell(
    session: Session, entry: Entry | None, failure: Told | None, letter: Letter | None
) -> None:
    say, now = session.terminal.say, session.clock()
    if entry:
        say(f"{entry.original_id} is {_where(entry)}.")
        until = held_until(entry)
        facts = {
            "Current id": entry.current_id,
            "First seen": f"{stamp(entry.first_seen)} ({ago(entry.first_seen, now)})",
            "Redrives": str(entry.redrive_count),
            "Strikes": str(entry.strikes),
            "Held": until and until > now and f"until {stamp(until)} ({ago(until, now)})",
            "Parked": entry.parked_at
            and f"{entry.park_reason} ({ago(entry.parked_at, now)}), {entry.error or NO_ERROR}",
            "Why": entry.parked_at and f"it {why_parked(entry.park_reason or '')}",
            "Error": not (entry.parked_at or failure) and entry.error,
        }
        for name, fact in facts.items():
            if fact:
                say(f"  {name + ':':<12} {printable(fact)}")
        if failure is not None:
            _tell_failure(session, failure)
        say("  History:")
        for note in entry.history:
            say(f"    {printable(note)}")
    elif letter:
        say(f"{letter.message_id} is {_where(None)}.")
    if letter is None:
        say(
            "Its body is not at hand: it was not looked for there, or not found. --look N looks further."
        )
        return
    say(f"  Attributes ({len(letter.attributes)}):")
    for name, attribute in attributes_to_json(letter.attributes).items():
        value = attribute.get("StringValue", attribute.get("BinaryBase64", ""))
        say(f"    {name} ({attribute['DataType']}): {printable(value)}")
    say(f"  Body ({letter.size:,} bytes with attributes):")
    say(shown_body(letter))


def _tell_failure(session: Session, failure: Told) -> None:
    say = session.terminal.say
    for name, fact in failure_facts(failure, session.clock()).items():
        if fact:
            say(f"  {name + ':':<12} {printable(fact)}")
    if failure.outcome.traceback:
        say("  Traceback:")
        for line in traceback_lines(failure):
            say(f"    {line}")
