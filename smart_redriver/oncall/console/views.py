"""The page's views of queues and letters, from the same verbs as the command's `--json`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.headline import worst
from smart_redriver.engine.triage.ledger import Entry
from smart_redriver.oncall.console.cache import (
    LOGIN_HELPS,
    LedgerCache,
    Notepad,
    Read,
    moment_of,
    place_in_line,
)
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.letters.choice import read_filter
from smart_redriver.oncall.letters.edit_form import fingerprint_of_json
from smart_redriver.oncall.letters.failures import log_place
from smart_redriver.oncall.letters.look import full_ids
from smart_redriver.oncall.letters.presentation import entry_to_json, why_held, why_parked
from smart_redriver.oncall.status.gathering import AT_ONCE, log_link, take_snapshot
from smart_redriver.oncall.status.page import facts_of
from smart_redriver.oncall.status.standing import headlines_of
from smart_redriver.oncall.status.waiting import Waits
from smart_redriver.oncall.terminal.exits import Misused
from smart_redriver.oncall.terminal.words import cut, stamp
from smart_redriver.oncall.verbs.audit import history
from smart_redriver.oncall.verbs.causes import page_of
from smart_redriver.oncall.verbs.declarations import DLQ_FILTERS, FILTERS, verb
from smart_redriver.oncall.verbs.doctor import doctor
from smart_redriver.oncall.verbs.letters import peek
from smart_redriver.oncall.verbs.options import Kind, Option
from smart_redriver.oncall.verbs.parked import group, matching
from smart_redriver.oncall.verbs.show import Wanted, show

MOST_LETTERS = 1_000
MOST_PEEKED = 200
#: The most characters of a line in a consumer's log: 50 lines of a megabyte each would help nobody.
_LONGEST_LINE = 4_000
_TREND = timedelta(hours=6)
_TREND_PARTS = 24
#: How the names of files begin that `delete`, `edit`, `undo` and `export` write.
_KEPT = ("deleted", "edited", "undone", "exported")

LETTERS_OPTIONS = (
    Option(name="place", about="`parked` (the default), or `dlq`: what the ledger knows there."),
    Option(name="id", about="Text within the letter's first or current id."),
    *FILTERS,
    Option(name="limit", about="So many at most.", kind=Kind.WHOLE, least=1, most=MOST_LETTERS),
    Option(name="after", about="The `next` of the page before."),
)
PEEK_OPTIONS = (replace(verb("letters").option("limit"), most=MOST_PEEKED), *DLQ_FILTERS)
LOOK_OPTIONS = (replace(verb("show").option("look"), most=10_000),)
LOG_OPTIONS = (verb("show").option("log_group"),)
DAYS_OPTIONS = (verb("history").option("days"),)


def status(session: Session) -> dict[str, Any]:
    """One queue at a glance, as in `redrive status --json` and on its screen. Raises CallFailed and Refused."""
    snapshot = take_snapshot(session)
    for fault in snapshot.unknown.values():
        call, _, code = fault.partition(": ")
        if code in LOGIN_HELPS:  # a page of unread values would hide that a login is enough
            raise CallFailed(call, code)
    facts = [
        {"name": one.name, "text": session.terminal.spare(one.text), "tone": _tone(one.tone)}
        for one in facts_of(snapshot, with_full_names=False)
    ]
    return snapshot.to_json() | {"spoken": name_of(session), "facts": facts}


def name_of(session: Session) -> str:
    """The queue's name for people: without hashes, or that in the list if several targets share its DLQ."""
    return session.terminal.spare(session.place.name)


def headline(session: Session) -> dict[str, Any]:
    """The headline of a queue, from two kinds of reads. Raises CallFailed and Refused."""
    circuits = {name: session.store.of(name).load_circuit() for name in session.place.sources}
    told = headlines_of(
        session, circuits, session.dead_letters.facts(), session.parking_lot.facts()
    )
    return worst(told).to_json(session.clock())


def _tone(tone: Any) -> str | None:
    return tone.name.lower() if tone else None


def causes(session: Session, cache: LedgerCache) -> dict[str, Any]:
    """Return the causes of stuck letters, each with its number of letters in the last hours."""
    read = cache.of(session)
    told = page_of(session, read.entries).to_json()
    trends = _trends(read)
    for one in told["groups"]:
        one["trend"] = trends.get((one["queue"] if one["cause"] else None, one["cause"]))
    return told | {"read_at": stamp(read.at), "trend_seconds": int(_TREND.total_seconds())}


def _trends(read: Read) -> Mapping[tuple[str | None, str | None], list[int]]:
    """Count letters by the part of the last hours in which they got stuck, the oldest part first."""
    found: defaultdict[tuple[str | None, str | None], list[int]] = defaultdict(
        lambda: [0] * _TREND_PARTS
    )
    for entry in read.entries:
        parts_ago = int((read.at - moment_of(entry)) / (_TREND / _TREND_PARTS))
        key = (entry.queue if entry.cause else None, entry.cause)
        counts = found[key]
        if 0 <= parts_ago < _TREND_PARTS:
            counts[_TREND_PARTS - 1 - parts_ago] += 1
    return found


def letters(session: Session, cache: LedgerCache, given: Mapping[str, Any]) -> dict[str, Any]:
    """A page of letters from the ledger, the newest first. A search in bodies looks at the letters."""
    place = given.get("place", "parked")
    if place not in ("parked", "dlq"):
        raise Misused(f"place {place!r} is neither parked nor dlq.")
    read = cache.of(session)
    found = _found(session, cache, read, given, is_parked=place == "parked")
    found = _named(found, given.get("id", "").strip())
    left = _behind(found, _read_cursor(given["after"])) if "after" in given else found
    limit = given.get("limit", 100)
    shown = left[:limit]
    waits = Waits.of(session) if place == "dlq" and shown else None
    return {
        "queue": session.place.queue,
        "read_at": stamp(read.at),
        "count": len(found),
        "groups": [one.to_json() for one in group(found)],
        "letters": [_letter_to_json(one, waits) for one in shown],
        "next": _cursor(shown[-1]) if len(left) > len(shown) else None,
        "warnings": _notepad(session).warnings,
    }


def _found(
    session: Session, cache: LedgerCache, read: Read, given: Mapping[str, Any], *, is_parked: bool
) -> list[Entry]:
    texts = {one.name: given.get(one.name) for one in FILTERS}
    wanted = read_filter(session.clock(), **texts)
    entries = read.parked() if is_parked else read.dead()
    if not wanted.needs_body:
        return [
            one
            for one in entries
            if wanted.lets_entry_through(one) and not wanted.needs_body_of(one)
        ]
    if not is_parked:
        raise Misused(
            "The ledger keeps no bodies: peek at the DLQ to search them, or search the parking lot."
        )

    def find() -> list[Entry]:
        return sorted(matching(session, entries, wanted), key=place_in_line, reverse=True)

    return cache.search(session.place.queue, tuple(texts.values()), find)


def _named(found: list[Entry], part: str) -> list[Entry]:
    """Return entries with this text in their original or current id."""
    return [one for one in found if part in one.original_id or part in one.current_id]


def _behind(found: list[Entry], cursor: tuple[datetime, str]) -> list[Entry]:
    return [one for one in found if place_in_line(one) < cursor]


def _letter_to_json(entry: Entry, waits: Waits | None) -> dict[str, Any]:
    told = entry_to_json(entry)
    del told["history"]  # the letter's own page has it
    wait = waits.letter(entry) if waits else None
    return told | {"queue": entry.queue, "waits": wait.to_json() if wait else None}


def _cursor(entry: Entry) -> str:
    return f"{moment_of(entry).isoformat()}~{entry.original_id}"


def _read_cursor(text: str) -> tuple[datetime, str]:
    moment, _, original_id = text.partition("~")
    try:
        at = datetime.fromisoformat(moment)
    except ValueError:
        raise Misused("after is not the `next` of a page.") from None
    if at.tzinfo is None:
        raise Misused("after is not the `next` of a page.")
    return at, original_id


def peeked(session: Session, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return some letters of the DLQ, received and released."""
    filters = {name: value for name, value in given.items() if name != "limit"}
    wanted = read_filter(session.clock(), **filters)
    told = _told(
        session, lambda: peek(session, wanted, limit=given.get("limit", 20), with_body=True)
    )
    return {**told, "cost": _notepad(session).said[-1:]}


def letter(session: Session, message_id: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """One letter: its history, its last failure, its content."""
    told = _shown(session, message_id, Wanted(look=given.get("look", 100)))
    ledger, failure, message = told["ledger"], told["failure"], told["message"]
    if ledger:
        held, parked = ledger["held_until"], ledger["parked_at"]
        told["why"] = why_parked(ledger["reason"] or "") if parked else held and why_held("BACKOFF")
    if failure:
        consumer = failure["consumer"]
        if place := log_place(consumer["log_group"], consumer["log_stream"]):
            failure["log_link"] = log_link(session.place, *place)
    if message:
        message["fingerprint"] = fingerprint_of_json(message)
    return told | {"at": stamp(session.clock())}


def consumer_log(session: Session, message_id: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The consumer's log about a letter, as in `redrive show --logs`. Receives no letter if the id is complete."""
    wanted = Wanted(look=0, logs=True, log_group=given.get("log_group"))
    told = _shown(session, message_id, wanted)
    if log := told["log"]:
        for line in log["lines"]:
            line["text"] = cut(line["text"], _LONGEST_LINE)
    return {"log": told["log"], "warnings": told["warnings"]}


def _shown(session: Session, message_id: str, wanted: Wanted) -> dict[str, Any]:
    """What `redrive show` tells of a letter, by an id that may be incomplete."""
    (full,) = full_ids(session, [message_id])
    return _told(session, lambda: show(session, full, wanted))


def changes(session: Session, given: Mapping[str, Any]) -> dict[str, Any]:
    """The changes, and who made them."""
    return _told(session, lambda: history(session, days=given.get("days", 30)))


def findings(session: Session) -> dict[str, Any]:
    """The findings of `redrive doctor` about one queue."""
    told = _told(session, lambda: doctor(session))
    found: dict[str, Any] = told["queues"][0]
    return found


def files() -> list[dict[str, Any]]:
    """The files of letters that this console wrote, or the command in the same folder."""
    kept: dict[str, int] = {}
    for one in (one for kind in _KEPT for one in Path().glob(f"{kind}-*.jsonl")):
        with suppress(FileNotFoundError):  # removed meanwhile, or a link that leads nowhere
            kept[one.name] = one.stat().st_size
    return [
        {"name": name, "bytes": kept[name]}
        for name in sorted(kept, key=lambda name: name.partition("-")[2], reverse=True)
    ]


def _told(session: Session, look: Any) -> dict[str, Any]:
    look()
    notepad = _notepad(session)
    told: dict[str, Any] = dict(notepad.value)
    return told | {"warnings": notepad.warnings}


def _notepad(session: Session) -> Notepad:
    assert isinstance(session.terminal, Notepad), "a look is told to a notepad"  # noqa: S101 - a mistake of ours
    return session.terminal


def each(sessions: Sequence[Session]) -> list[dict[str, Any]]:
    """The status of each queue, some in parallel. Raises CallFailed and Refused."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(status, sessions))
