"""`redrive letters`: a peek at the DLQ, with few receives and all released at once; or held letters, by the ledger."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from smart_redriver.engine.counts import letters
from smart_redriver.engine.messages.queue_facts import QueueFacts
from smart_redriver.engine.triage.case import Case
from smart_redriver.engine.triage.ledger import Entry
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.letters.choice import Filter, cause_in_hand, filter_of
from smart_redriver.oncall.letters.export_file import attributes_to_json
from smart_redriver.oncall.letters.ledger_scan import stuck_entries
from smart_redriver.oncall.letters.look import SHORT_LOOK_LETTERS, Look
from smart_redriver.oncall.letters.presentation import TRY_AGAIN, Room, entry_to_json, shown_body
from smart_redriver.oncall.status.waiting import Wait, Waits
from smart_redriver.oncall.terminal.exits import Exit, Misused
from smart_redriver.oncall.terminal.terminal import Verbatim
from smart_redriver.oncall.terminal.words import ago, stamp


def peek(session: Session, wanted: Filter, *, limit: int, with_body: bool) -> Exit:
    """Show at most `limit` letters, grouped by cause. Raises CallFailed and Refused."""
    facts = session.letter_store.facts(dlq=True, exactly=limit > SHORT_LOOK_LETTERS)
    depth = facts.depth
    found: list[Case] = []
    known = Waits.of(session)
    look = Look(session=session, out_of=session.dead_letters, limit=min(limit, depth))
    with look:
        # In a FIFO queue, the last receive may return up to nine letters too many.
        found = [case for case in look if wanted.lets_through(case)][:limit]
    waits = {case.message_id: _wait(session, case, known) for case in found}
    session.terminal.result(
        {
            "queue": session.place.queue,
            "depth": depth,
            "seen": look.seen,
            "receives": look.receives,
            "letters": [
                _to_json(case, waits[case.message_id], with_body=with_body) for case in found
            ],
        }
    )
    say = session.terminal.say
    if not depth:
        say("The DLQ is empty.")
        return Exit.DONE
    hidden = _hidden(session, facts)
    of_these = f" ({hidden:,} hidden: `redrive letters --held`)" if hidden else ""
    say(f"{letters(depth)} in the DLQ{of_these}, {look.seen:,} looked at, {len(found):,} shown:")
    _tell(session, found, waits, with_body=with_body)
    say()
    say(look.cost())
    return Exit.DONE


def held(session: Session, wanted: Filter) -> Exit:
    """List the letters that are hidden in the DLQ until their time, by the ledger alone.

    Raises CallFailed, Refused, and Misused for a filter that only a body can answer.
    """
    if wanted.needs_body:
        raise Misused(
            "--held lists from the ledger, which keeps no bodies: leave --contains and --where out."
        )
    now = session.clock()
    waiting = _held_entries(session, wanted, Waits.of(session))
    waiting.sort(key=lambda pair: (pair[1].until or now, pair[0].first_seen))
    session.terminal.result(
        {
            "queue": session.place.queue,
            "count": len(waiting),
            "letters": [entry_to_json(one) | {"waits": wait.to_json()} for one, wait in waiting],
        }
    )
    say = session.terminal.say
    if not waiting:
        say("No letter is held for a time or a cause of its own.")
        if hidden := _hidden(session, session.dead_letters.facts()):
            is_hidden = "letter is" if hidden == 1 else "letters are"
            say(f"{hidden:,} {is_hidden} hidden: a pass or a person is at work; {TRY_AGAIN}.")
        return Exit.DONE
    say(f"{letters(len(waiting))} held in the DLQ, as the ledger has it (nothing was received):")
    say()
    rows = [
        (
            one.original_id,
            ago(one.first_seen, now),
            str(one.redrive_count),
            str(one.strikes),
            wait.until_in_words(now),
            one.cause or "-",
            wait.what,
        )
        for one, wait in waiting
    ]
    titles = ("ID", "FIRST SEEN", "REDRIVES", "STRIKES", "UNTIL", "CAUSE", "WAITS FOR")
    session.terminal.table(titles, rows, right={2, 3})
    return Exit.DONE


def _held_entries(session: Session, wanted: Filter, waits: Waits) -> list[tuple[Entry, Wait]]:
    """The entries of letters that wait for a time or a cause of their own."""
    return [
        (one, wait)
        for one in stuck_entries(session)
        if (wait := waits.alone(one))
        and wanted.lets_entry_through(one)
        and not wanted.needs_body_of(one)
    ]


def _hidden(session: Session, facts: QueueFacts) -> int:
    """Count letters that a look can't see. Where letters are rows, even those that wait can be seen."""
    return 0 if session.letter_store.finds_by_id else facts.hidden


def _tell(
    session: Session, found: list[Case], waits: Mapping[str, Wait | None], *, with_body: bool
) -> None:
    say, now = session.terminal.say, session.clock()
    groups: defaultdict[str, list[Case]] = defaultdict(list)
    for case in found:
        groups[cause_in_hand(case)].append(case)
    for cause, some in sorted(groups.items(), key=lambda pair: -len(pair[1])):
        say()
        say(f"{letters(len(some))}: {cause}")
        rows = [_row(case, waits[case.message_id], now) for case in some]
        titles = ("ID", "FIRST SEEN", "REDRIVES", "STRIKES", "BYTES", "WAITS FOR", "UNTIL")
        session.terminal.table(titles, rows, right={2, 3, 4})
        if with_body:
            for case in some:
                room = Room.on(session.terminal, f"redrive show {case.original_id} --whole")
                say(f"--- {case.original_id}")
                say(Verbatim(shown_body(room.beginning_of(case.letter.body))))


def _wait(session: Session, case: Case, waits: Waits) -> Wait | None:
    is_met = not (case.is_replaced or case.is_kept)
    return waits.letter(case.entry, queue=session.name_of(case), is_met=is_met)


def _row(case: Case, known: Wait | None, now: datetime) -> tuple[str, ...]:
    letter, entry = case.letter, case.entry
    wait = known or Wait("-")
    return (
        case.original_id,
        ago(entry.first_seen if entry else letter.sent_at, now),
        str(case.redrives),
        str(entry.strikes if entry else 0),
        f"{letter.size:,}",
        wait.what,
        wait.until_in_words(now),
    )


def _to_json(case: Case, wait: Wait | None, *, with_body: bool) -> dict[str, Any]:
    letter = case.letter
    return {
        "message_id": case.message_id,
        "original_id": case.original_id,
        "cause": cause_in_hand(case),
        "sent_at": stamp(letter.sent_at),
        "redrive_count": case.redrives,
        "strikes": case.entry.strikes if case.entry else 0,
        "bytes": letter.size,
        "attributes": attributes_to_json(letter.attributes),
        "ledger": entry_to_json(case.entry) if case.entry else None,
        "waits": wait.to_json() if wait else None,
        **({"body": letter.body} if with_body else {}),
    }


def act(session: Session, given: Mapping[str, Any]) -> Exit:
    """Carry out `letters`."""
    wanted = filter_of(given, session.clock())
    if given["held"]:
        return held(session, wanted)
    return peek(session, wanted, limit=given["limit"], with_body=given["body"])
