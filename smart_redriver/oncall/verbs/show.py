"""`redrive show`: one letter, by any id that it ever had."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from typing import Any, NamedTuple

from smart_redriver.engine.config.targets import Origin, Target, TargetKind
from smart_redriver.engine.counts import letters
from smart_redriver.engine.messages.letter import Letter
from smart_redriver.engine.messages.queue_facts import QueueFacts
from smart_redriver.engine.reports.processing import ReceivedOutcome
from smart_redriver.engine.triage.case import Case
from smart_redriver.engine.triage.ledger import Entry, Status
from smart_redriver.oncall.deployment.message_store import KINDS, UNFIT
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.letters.choice import Choice
from smart_redriver.oncall.letters.export_file import attributes_to_json
from smart_redriver.oncall.letters.failures import (
    ConsumerLog,
    failure_facts,
    failure_to_json,
    last_failure,
    log_command,
    query_of,
    read_consumer_log,
    traceback_lines,
)
from smart_redriver.oncall.letters.ledger_scan import find_entry
from smart_redriver.oncall.letters.look import find, full_ids
from smart_redriver.oncall.letters.presentation import (
    Room,
    belongs,
    entry_to_json,
    hidden_in_words,
    label,
    shown_body,
    why_parked,
)
from smart_redriver.oncall.status.waiting import Wait, Waits
from smart_redriver.oncall.terminal.exits import Exit, Refused
from smart_redriver.oncall.terminal.table import folded_command, printable, printable_line
from smart_redriver.oncall.terminal.terminal import Verbatim
from smart_redriver.oncall.terminal.words import ago, stamp

#: Nobody looks for these: they are in no queue.
_GONE = (Status.SUCCEEDED, Status.DELETED)


class Looked(NamedTuple):
    """The result of looking for a letter.

    Attributes:
        found: the letter itself.
        missed: why a look through all visible letters of its queue missed it.
        surely: PARKED or RETURNED, if the look proved that it is in the parking lot or in the DLQ.
        why_no_body: why the letter itself can't be shown, and what helps, if anything does.
        is_nowhere: the ledger shows it as waiting, but its row is in no table.

    """

    found: Case | None = None
    missed: str | None = None
    surely: Status | None = None
    why_no_body: str = ""
    is_nowhere: bool = False


def look_for(session: Session, choice: Choice, entry: Entry | None, limit: int) -> Looked:
    """Look for a letter in the DLQ or the parking lot: never in a source queue, whose consumer would miss it.

    Raises CallFailed and Refused.
    """
    in_lot = entry is not None and entry.status is Status.PARKED
    if session.letter_store.finds_by_id:
        return _find(session, choice, entry, in_lot=in_lot)
    if entry is not None and not _may_be_here(session, entry):
        return Looked(why_no_body="it has left for good, as far as is known")
    out_of = session.letters_in(dlq=not in_lot)
    facts = out_of.facts()
    where = "parking lot" if in_lot else "DLQ"
    if not limit:
        return Looked(why_no_body=f"--look N looks for it in the {where}")
    if not facts.depth:
        return _missed(session, entry, facts, f"the {where} is empty")
    found, look = find(session, out_of, choice.takes, min(limit, facts.depth))
    session.terminal.say(look.cost())
    session.terminal.say()
    if found is not None:
        return Looked(found, surely=_surely(found, entry, in_lot=in_lot))
    if look.seen >= limit:
        short = f"a look at {letters(look.seen)} of the {where} did not find it"
        return Looked(why_no_body=f"{short}. --look N looks further")
    unmet = f"it is not among the letters of the {where} that can be seen now"
    if look.is_cut_short or look.is_cut:
        return Looked(why_no_body=unmet)
    return _missed(session, entry, facts, unmet)


def _may_be_here(session: Session, entry: Entry) -> bool:
    """Whether the letter may be in the DLQ or the parking lot. A replayed letter comes back if it fails again."""
    if entry.status is Status.REPLAYED and session.place.target(entry.queue):
        return session.place.origin is Origin.LAMBDA
    return entry.status not in _GONE


def _surely(found: Case, entry: Entry | None, *, in_lot: bool) -> Status | None:
    """The place of a letter that was found; None if its copy may be elsewhere."""
    if entry is None or found.is_replaced or found.is_kept:
        return None
    return Status.PARKED if in_lot else Status.RETURNED


#: SQS tells nobody about either.
_MISSING = "but was not met there: it may have expired, or another tool may have removed it"


def _missed(session: Session, entry: Entry | None, facts: QueueFacts, unmet: str) -> Looked:
    """Why a look through a queue missed the letter, if the ledger says for sure that it is there."""
    if entry is None or not belongs(entry, to_dlq=entry.status is not Status.PARKED):
        return Looked(why_no_body=unmet)
    wait = Waits.of(session).alone(entry)
    hidden = hidden_in_words(wait.until if wait else None, facts, session.clock())
    missing = None if entry.status is Status.FAILED else _MISSING  # that may still be on its way
    return Looked(missed=hidden or missing, why_no_body="it is hidden" if hidden else unmet)


def _find(session: Session, choice: Choice, entry: Entry | None, *, in_lot: bool) -> Looked:
    """Find the letter by its id, first in the queue where it most likely is."""
    for is_parked in (in_lot, not in_lot):
        out_of = session.letters_in(dlq=not is_parked, ids=choice.ids, whole=False)
        found, _ = find(session, out_of, choice.takes, sys.maxsize)
        if found is not None:
            # A topic keeps the record of a finished letter until it also drops the records before it.
            is_done = entry is not None and entry.status is Status.SUCCEEDED and found.is_kept
            there = Status.PARKED if is_parked else Status.RETURNED
            return Looked(found, surely=None if is_done else there)
    is_nowhere = entry is not None and bool(session.letter_store.nowhere([entry]))
    unmet = "it is neither in the DLQ nor in the parking lot"
    return Looked(why_no_body=unmet, is_nowhere=is_nowhere)


def target_of(session: Session, entry: Entry | None, found: Case | None) -> Target | None:
    """The target that a letter belongs to, by the letter or else the ledger; None for a letter of a source queue."""
    place = found.source_arn if found else entry.source_arn if entry else None
    for target in session.place.deployment.targets:
        if target.place == place:
            return target
    is_told = entry is not None and not (found and found.letter.unfit)
    return session.place.target(entry.queue) if entry and is_told else None


def target_lines(target: Target | None, letter: Letter | None) -> Iterator[str]:
    """Lines about a letter's target, or why no target takes it."""
    if target:
        yield f"{'Target:':<12} {printable(target.place)}, {KINDS[target.kind]}"
    if letter and letter.unfit:
        yield f"{'Unfit:':<12} {UNFIT[letter.unfit]}"


def _wait_lines(wait: Wait | None, now: datetime) -> Iterator[str]:
    if wait:
        yield f"Waits for:   {printable(wait.in_words(now))}"


def given_back(entry: Entry, target: Target) -> str:
    """Say where a letter is after it went back to a target."""
    if entry.status is Status.SUCCEEDED:
        return f"given back to {target.name}, which accepted it: it does not come back here"
    by = " by a person" if entry.status is Status.REPLAYED else ""
    return (
        f"given back to {target.name}{by}: processed, waiting there to be tried, or on its way back"
    )


def log_group_of(target: Target | None) -> str | None:
    """The default log group of a function; None for other targets.

    https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-loggroups.html
    """
    if target is None or target.kind is not TargetKind.FUNCTION:
        return None
    return f"/aws/lambda/{target.place.split(':')[6]}"


_WHERE = {
    Status.PARKED: "in the parking lot",
    Status.RETURNED: "in the DLQ",
    Status.REDRIVEN: "sent back to its source queue: processed, waiting there, or on its way back",
    Status.REPLAYED: "sent back to its source queue by a person: processed, waiting there, or on its way back",
    Status.FAILED: "in the DLQ, or on its way there: its consumer reported its last failure",
    Status.SUCCEEDED: "done, as its consumer reported",
    Status.DELETED: "deleted by a person, who kept a file of it",
}

#: The most characters of a log line on a screen.
_LONGEST_LINE = 400

#: The place of a letter that somebody deleted or moved past the re-driver.
_NOWHERE = "gone: its row has left the tables, and not by the re-driver"

#: The place of a letter in a FIFO queue while its copy is out.
_KEPT = "out, and at its place in the DLQ: a copy was sent to its source queue, and its outcome is not known yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The parts of the answer to show.

    Attributes:
        look: the most letters to look through for its body.
        logs: show what its consumer logged about it, too. `log_group`: where, if no report names it.
        whole: show all of body, attributes and traceback, not only their beginnings.

    """

    look: int
    logs: bool = False
    log_group: str | None = None
    whole: bool = False


def show(session: Session, message_id: str, wanted: Wanted) -> Exit:
    """Show where a letter is, its history, and its content if that can be read. Raises CallFailed and Refused."""
    known, looked = _known_and_looked(session, message_id, wanted.look)
    found = looked.found
    if known is None and found is None:
        raise Refused(session.letter_store.unknown(message_id, wanted.look))
    entry, letter = (known or found.entry, found.letter) if found else (known, None)
    failure = last_failure(session, entry.original_id) if entry else None
    target = target_of(session, entry, found)
    wanted = _with_log_group(wanted, failure, target)
    log = _log_of(session, entry, failure, letter, wanted)
    where, wait = _whereabouts(session, entry, looked)
    told = {"where": where, **_to_json(target, entry, failure, letter, wait)}
    session.terminal.result(told | ({"log": _log_to_json(log)} if wanted.logs else {}))
    session.terminal.say(f"{_known_as(message_id, entry, letter)} is {where}.")
    for line in (*target_lines(target, letter), *_wait_lines(wait, session.clock())):
        session.terminal.say(f"  {line}")
    room = Room() if wanted.whole else Room.on(session.terminal)
    _tell(session, entry, failure, letter, room, why_no_body=looked.why_no_body)
    if wanted.logs:
        _tell_log(session, log, room)
    return Exit.DONE


def _known_and_looked(session: Session, message_id: str, limit: int) -> tuple[Entry | None, Looked]:
    """A letter's entry and the look for it, by one of its ids, or else by the own id of its row or job."""
    for one in chain((message_id,), session.letter_store.called(message_id)):
        known = find_entry(session, one)
        looked = look_for(session, _by_any_id(one, known), known, limit)
        if known or looked.found:
            break
    return known, looked


def _by_any_id(message_id: str, entry: Entry | None) -> Choice:
    known = {entry.original_id, entry.current_id, entry.kept_id} if entry else set()
    return Choice(ids=frozenset({message_id, *filter(None, known)}))


def _known_as(message_id: str, entry: Entry | None, letter: Letter | None) -> str:
    if entry:
        return entry.original_id
    return letter.message_id if letter else message_id


def _with_log_group(
    wanted: Wanted, failure: ReceivedOutcome | None, target: Target | None
) -> Wanted:
    """Use a target's own log group if neither a person nor a report names one."""
    if wanted.log_group or failure:
        return wanted
    return replace(wanted, log_group=log_group_of(target))


def _to_json(
    target: Target | None,
    entry: Entry | None,
    failure: ReceivedOutcome | None,
    letter: Letter | None,
    wait: Wait | None,
) -> dict[str, Any]:
    return {
        "target": target.place if target else None,
        "unfit": letter.unfit.value if letter and letter.unfit else None,
        "ledger": entry_to_json(entry) if entry else None,
        "failure": failure_to_json(failure),
        "message": _message_to_json(letter) if letter else None,
        "waits": wait.to_json() if wait else None,
    }


def _message_to_json(letter: Letter) -> dict[str, Any]:
    return {
        "message_id": letter.message_id,
        "sent_at": stamp(letter.sent_at),
        "attributes": attributes_to_json(letter.attributes),
        "group_id": letter.group_id,
        "body": letter.body,
    }


def _whereabouts(session: Session, entry: Entry | None, looked: Looked) -> tuple[str, Wait | None]:
    """Where a letter is in words, and what it waits for there."""
    if looked.is_nowhere:
        return _NOWHERE, None
    found, seen = looked.found, looked.surely
    where = _WHERE[seen] if seen else _where(session, entry, looked.missed)
    queue = session.name_of(found) if found else None
    return where, Waits.of(session).letter(entry, queue=queue, is_met=seen is Status.RETURNED)


def _where(session: Session, entry: Entry | None, missed: str | None = None) -> str:
    where = "in the DLQ, on its first visit"
    if entry is not None:
        is_sent = entry.status in (Status.REDRIVEN, Status.REPLAYED)
        target = session.place.target(entry.queue)
        if entry.status is Status.SUCCEEDED and target:
            return given_back(entry, target)
        if is_sent and (out := _out(session, entry)):
            return out
        where = _WHERE[Status.FAILED if is_sent and entry.is_settled else entry.status]
    return f"{where}, {missed}" if missed else where


def _out(session: Session, entry: Entry) -> str | None:
    """Where a letter is that was sent back and keeps its place in the DLQ, or belongs to a target; else None."""
    if entry.is_settled:
        return None
    if entry.status is Status.REDRIVEN and entry.kept_id:
        return _KEPT
    target = session.place.target(entry.queue)
    return given_back(entry, target) if target else None


def _facts(
    entry: Entry, failure: ReceivedOutcome | None, now: datetime
) -> Iterator[tuple[str, str]]:
    """The ledger's facts about a letter, by name."""
    yield "Current id", entry.current_id
    yield "First seen", f"{stamp(entry.first_seen)} ({ago(entry.first_seen, now)})"
    yield "Redrives", str(entry.redrive_count)
    yield "Strikes", str(entry.strikes)
    if entry.parked_at:
        why = f"{entry.park_reason} ({ago(entry.parked_at, now)})"
        yield "Parked", f"{why}, {entry.error or label(entry)[1]}"
        yield "Why", f"it {why_parked(entry.park_reason or '')}"
    elif entry.error and not failure:
        yield "Error", entry.error


def _tell(
    session: Session,
    entry: Entry | None,
    failure: ReceivedOutcome | None,
    letter: Letter | None,
    room: Room,
    *,
    why_no_body: str,
) -> None:
    say = session.terminal.say
    if entry:
        for name, fact in _facts(entry, failure, session.clock()):
            say(f"  {name + ':':<12} {printable(fact)}")
        if failure is not None:
            _tell_failure(session, failure)
        say("  History:")
        for note in entry.history:
            say(f"    {printable(note)}")
    if letter is None:
        say(f"Its body is not available: {why_no_body}.")
    else:
        _tell_content(session, letter, room)
    if failure is not None and failure.outcome.traceback:
        say("  Traceback:")
        for line in room.end_of(list(traceback_lines(failure))):
            say(Verbatim(f"    {line}"))


def _cut(line: str) -> str:
    """Cut a line to the length that people read: a consumer's JSON lines can have thousands of characters."""
    more = len(line) - _LONGEST_LINE
    return f"{line[:_LONGEST_LINE]}... {more:,} more characters: --whole" if more > 0 else line


def _tell_content(session: Session, letter: Letter, room: Room) -> None:
    say, trace = session.terminal.say, session.letter_store.stack_trace(letter)
    if letter.group_id is not None:
        say(f"  Message group: {printable(letter.group_id)}")
    say(f"  Attributes ({len(letter.attributes)}):")
    for name, attribute in attributes_to_json(letter.attributes).items():
        if trace is not None and attribute.get("StringValue") == trace:
            continue
        value = attribute.get("StringValue", attribute.get("BinaryBase64", ""))
        say(f"    {name} ({attribute['DataType']}): {room.beginning_of(printable(value))}")
    if trace is not None:
        say("  Stack trace:")
        for line in room.beginning_of(trace).splitlines():
            say(Verbatim(f"    {printable_line(line)}"))
    say(f"  Body ({letter.size:,} bytes with attributes):")
    say(Verbatim(shown_body(room.beginning_of(letter.body)) or "(nothing)"))


def _tell_failure(session: Session, failure: ReceivedOutcome) -> None:
    say = session.terminal.say
    for name, fact in failure_facts(failure, session.clock()).items():
        if fact:
            say(f"  {name + ':':<12} {printable(fact)}")
    if command := log_command(failure.outcome.consumer):
        lead = f"  {'Log:':<12} "
        lines = folded_command(command, session.terminal.columns, " " * len(lead))
        say(Verbatim(lead + lines[len(lead) :]))


def _log_of(
    session: Session,
    entry: Entry | None,
    failure: ReceivedOutcome | None,
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


def _tell_log(session: Session, log: ConsumerLog | None, room: Room) -> None:
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
        told = [
            f"{stamp(line.at)}  {printable_line(part)}"
            for line in log.found.lines
            for part in line.text.splitlines()
        ]
        for part in room.end_of(told):
            say(Verbatim(f"    {part if room.rows is None else _cut(part)}"))
        say("  The query was:")
    command = printable(log.query.command())
    say(Verbatim(folded_command(command, session.terminal.columns, "    ")))


def act(session: Session, given: Mapping[str, Any]) -> Exit:
    """Carry out `show`."""
    log_group = given.get("log_group")
    logs = given["logs"] or log_group is not None
    whole = given["whole"]
    wanted = Wanted(look=given["look"], logs=logs, log_group=log_group, whole=whole)
    (message_id,) = full_ids(session, [given["message_id"]])
    return show(session, message_id, wanted)
