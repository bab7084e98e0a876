"""`redrive show`: one letter, by any id that it ever had."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from redrive.core.hearing import Told
from redrive.core.ledger import Entry, Status
from redrive.core.letter import Letter
from smart_redriver.oncall.letters.choice import Choice
from smart_redriver.oncall.letters.consumer_log import ConsumerLog, query_of, read_consumer_log
from smart_redriver.oncall.letters.failures import (
    failure_facts,
    failure_to_json,
    last_failure,
    traceback_lines,
)
from smart_redriver.oncall.letters.finding import look_for
from smart_redriver.oncall.letters.jsonlines import attributes_to_json
from smart_redriver.oncall.letters.ledger_scan import find_entry
from smart_redriver.oncall.letters.of_target import (
    given_back,
    log_group_of,
    target_lines,
    target_of,
)
from smart_redriver.oncall.letters.presentation import (
    NO_ERROR,
    entry_to_json,
    held_until,
    shown_body,
    why_parked,
)
from smart_redriver.oncall.stack.session import Session
from smart_redriver.oncall.terminal.exits import Exit, Refused
from smart_redriver.oncall.terminal.table import printable, printable_line
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

#: Of a FIFO queue.
_KEPT = "out, and at its place in the DLQ: a copy was sent to its source queue, what became of it is not known yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """How much is to be told.

    Attributes:
        look: its body is looked for among so many letters at most.
        logs: what its consumer logged about it, too. `log_group`: where, if no report says.

    """

    look: int
    logs: bool = False
    log_group: str | None = None


def show(session: Session, message_id: str, wanted: Wanted) -> Exit:
    """Tell where a letter is, its history, and its content where it can be looked at. Raises CallFailed, Refused."""
    entry = find_entry(session, message_id)
    ids = {message_id} | ({entry.original_id, entry.current_id} if entry else set())
    ids |= {entry.kept_id} if entry and entry.kept_id else set()
    found, hidden, seen = look_for(session, Choice(ids=frozenset(ids)), entry, wanted.look)
    if entry is None and found is None and session.lodging.finds_by_id:
        raise Refused(
            f"Nobody knows {message_id}: it is in neither table, nor in the ledger. An id is a row's number with dlq- or "
            "parked- before it, or a job's with job-."
        )
    if entry is None and found is None:
        raise Refused(
            f"Nobody knows {message_id}: it is not in the ledger, and not among the first {wanted.look} letters of the "
            "DLQ. --look 1000 looks further; a letter that was never redriven is in no ledger."
        )
    entry = entry or (found.entry if found else None)
    letter = found.letter if found else None
    failure = last_failure(session, entry.original_id) if entry else None
    target = target_of(session, entry, found)
    if not (wanted.log_group or failure):
        wanted = replace(wanted, log_group=log_group_of(target))
    log = _log_of(session, entry, failure, letter, wanted)
    where = _WHERE[seen] if seen else _where(session, entry, hidden)
    session.terminal.result(
        {
            "where": where,
            "target": target.place if target else None,
            "unfit": letter.unfit.value if letter and letter.unfit else None,
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
        | ({"log": _log_to_json(log)} if wanted.logs else {})
    )
    known_as = entry.original_id if entry else letter.message_id if letter else message_id
    session.terminal.say(f"{known_as} is {where}.")
    for line in target_lines(target, letter):
        session.terminal.say(f"  {line}")
    _tell(session, entry, hidden, failure, letter)
    if wanted.logs:
        _tell_log(session, log)
    return Exit.DONE


def _where(session: Session, entry: Entry | None, hidden: str | None = None) -> str:
    if entry is not None and entry.status is Status.REDRIVEN and entry.kept_id:
        return _KEPT
    target = session.place.target(entry.queue) if entry else None
    if entry and target and entry.status in (Status.REDRIVEN, Status.REPLAYED):
        return given_back(entry, target, session.place.origin)
    where = _WHERE[entry.status] if entry else "in the DLQ, on its first visit"
    return f"{where}, {hidden}" if hidden else where


def _tell(
    session: Session,
    entry: Entry | None,
    hidden: str | None,
    failure: Told | None,
    letter: Letter | None,
) -> None:
    say, now = session.terminal.say, session.clock()
    if entry:
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
    if letter is None:
        why = "it was not looked for there, or not found. --look N looks further"
        say(f"Its body is not at hand: {'it is hidden' if hidden else why}.")
        return
    _tell_content(session, letter)


def _tell_content(session: Session, letter: Letter) -> None:
    say, trace = session.terminal.say, session.lodging.stack_trace(letter)
    if letter.group_id is not None:
        say(f"  Message group: {printable(letter.group_id)}")
    say(f"  Attributes ({len(letter.attributes)}):")
    for name, attribute in attributes_to_json(letter.attributes).items():
        if trace is not None and attribute.get("StringValue") == trace:
            continue
        value = attribute.get("StringValue", attribute.get("BinaryBase64", ""))
        say(f"    {name} ({attribute['DataType']}): {printable(value)}")
    if trace is not None:
        say("  Stack trace:")
        for line in trace.splitlines():
            say(f"    {printable_line(line)}")
    say(f"  Body ({letter.size:,} bytes with attributes):")
    say(shown_body(letter) or "(nothing)")


def _tell_failure(session: Session, failure: Told) -> None:
    say = session.terminal.say
    for name, fact in failure_facts(failure, session.clock()).items():
        if fact:
            say(f"  {name + ':':<12} {printable(fact)}")
    if failure.outcome.traceback:
        say("  Traceback:")
        for line in traceback_lines(failure):
            say(f"    {line}")


def _log_of(
    session: Session,
    entry: Entry | None,
    failure: Told | None,
    letter: Letter | None,
    wanted: Wanted,
) -> ConsumerLog | None:
    if not wanted.logs:
        return None
    known = [(letter.original_id, letter.message_id, letter.sent_at)] if letter else []
    known += [(letter.request_id,) * 2 + (letter.sent_at,)] if letter and letter.request_id else []
    known += [(entry.original_id, entry.current_id, entry.first_seen)] if entry else []
    ids = {one for original, current, _ in known for one in (original, current)}
    since = min(seen for _, _, seen in known)
    now = session.clock()
    query = query_of(ids, failure, group=wanted.log_group, since=since, now=now)
    return read_consumer_log(session, query) if query else None


def _log_to_json(log: ConsumerLog | None) -> dict[str, Any] | None:
    if log is None:
        return None
    lines = log.found.lines if log.found else ()
    return {
        "command": log.query.command(),
        "refused": log.refused or None,
        "left_off": bool(log.found and log.found.left_off),
        "lines": [{"at": stamp(one.at), "text": one.text} for one in lines],
    }


def _tell_log(session: Session, log: ConsumerLog | None) -> None:
    say, warn = session.terminal.say, session.terminal.warn
    if log is None:
        warn("No report says where its consumer logs: --log-group NAME searches that log for it.")
        return
    if log.found is None:
        warn(f"Its consumer's log could not be read ({log.refused}). The same by hand:")
    elif not log.found.lines:
        say("  Its consumer logged nothing with one of its ids. The query was:")
    else:
        say("  What its consumer logged" + (", the end of it:" if log.found.left_off else ":"))
        for line in log.found.lines:
            for part in line.text.splitlines():
                say(f"    {stamp(line.at)}  {printable_line(part)}")
        say("  The query was:")
    say(f"    {printable(log.query.command())}")
