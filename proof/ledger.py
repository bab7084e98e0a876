"""The real ledger in the model: the function's own code, applied to letters in hand. Cached, as it is pure.

Entries, metadata and messages are small numbers here, so that states are quick to compare. Histories are left out, and
everything happens at one moment: only judgement depends on time, and judgement is free in the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import NamedTuple

from smart_redriver.engine.aws.state_table import Known
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.messages.letter import Letter, RedriveMetadata
from smart_redriver.engine.passes.executor import marked_returns
from smart_redriver.engine.passes.read import recognise
from smart_redriver.engine.reports.outcomes import DeliveryOutcome, Result
from smart_redriver.engine.reports.processing import ReceivedOutcome, process_reports
from smart_redriver.engine.triage.case import Case
from smart_redriver.engine.triage.decision import Decision
from smart_redriver.engine.triage.ledger import Entry, Status
from smart_redriver.engine.triage.ordered import copies_among, in_order, without_copies
from smart_redriver.engine.triage.triage import Terms

NOW = datetime(2026, 1, 1, tzinfo=UTC)
QUEUE = "orders"
#: No item under this id, no metadata on this message, no new message.
NONE = -1
Table = tuple[int, ...]

_TERMS = Terms(
    destinations={},
    home="",
    retention=timedelta(days=14),
    margin=timedelta(),
    time_to_fail=timedelta(),
    is_fifo=True,
)


class Message(NamedTuple):
    """One message: which letter it is a copy of, and the metadata that it carries."""

    letter: int
    metadata: int = NONE


class Held(NamedTuple):
    """A message in hand: its metadata and entry as they were read, the decision, and the copy that was accepted.

    `is_told`: its record was refused, and the log says so.
    """

    message: int
    letter: int
    metadata: int
    entry: int
    what: str = ""
    new: int = NONE
    is_told: bool = False


class _Codes:
    def __init__(self) -> None:
        self._values: list[Entry | RedriveMetadata] = []
        self._codes: dict[Entry | RedriveMetadata, int] = {}

    def of(self, value: Entry | RedriveMetadata | None) -> int:
        if value is None:
            return NONE
        plain = replace(value, history=()) if isinstance(value, Entry) else value
        if plain not in self._codes:
            self._codes[plain] = len(self._values)
            self._values.append(plain)
        return self._codes[plain]

    def item(self, code: int) -> Entry | RedriveMetadata | None:
        return None if code == NONE else self._values[code]


_codes = _Codes()


def item(code: int) -> Entry | RedriveMetadata | None:
    """The entry or metadata with this number in a table; None if there is none."""
    return _codes.item(code)


def entry_of(code: int) -> Entry | None:
    """The entry with this number; None for redrive metadata, and if there is none."""
    found = item(code)
    return found if isinstance(found, Entry) else None


def _metadata_of(code: int) -> RedriveMetadata | None:
    found = item(code)
    return found if isinstance(found, RedriveMetadata) else None


def key_of(held: Held) -> int:
    """The message under whose id the table has the letter's entry."""
    metadata = _metadata_of(held.metadata)
    return number_of(metadata.original_id) if metadata else held.message


def id_of(message: int) -> str:
    """The MessageId of a message."""
    return f"m{message}"


def number_of(message_id: str) -> int:
    """The message with this MessageId."""
    return int(message_id[1:])


@cache
def case_of(held: Held, is_fifo: bool) -> Case:
    """The letter in hand, as triage sees it."""
    letter = _letter(held.message, Message(held.letter, held.metadata), is_fifo)
    return Case(letter=letter, entry=entry_of(held.entry))


def _letter(message: int, of: Message, is_fifo: bool) -> Letter:
    return Letter(
        message_id=id_of(message),
        receipt_handle="",
        body=f"letter {of.letter}",
        sent_at=NOW,
        group_id="group" if is_fifo else None,
        metadata=_metadata_of(of.metadata),
    )


class _Ledger:
    """A table, as `recognise` reads it."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def read_ledger(self, message_ids: Iterable[str]) -> Known:
        known = Known()
        for message_id in message_ids:
            match item(self._table[number_of(message_id)]):
                case Entry() as entry:
                    known.entries[message_id] = entry
                case RedriveMetadata() as metadata:
                    known.metadata[message_id] = metadata
        return known

    def write_ledger(self, *_: object) -> None: ...
    def write_failures(self, *_: object) -> None: ...


@cache
def recognised(
    received: tuple[tuple[int, Message], ...], table: Table, is_fifo: bool
) -> tuple[Held, ...]:
    """The received messages, as `read.recognise` knows them."""
    cases = recognise([_letter(number, one, is_fifo) for number, one in received], _Ledger(table))
    letters = {number: one.letter for number, one in received}
    return tuple(
        Held(
            number := number_of(case.message_id),
            letters[number],
            _codes.of(case.letter.metadata),
            _codes.of(case.entry),
        )
        for case in cases
    )


@cache
def with_marks(hand: tuple[Held, ...], is_fifo: bool) -> tuple[tuple[Held, ...], tuple[Held, ...]]:
    """The letters in hand with returns marked, as `Holding.mark_returns` does it; and those that this changed."""
    marked = marked_returns([case_of(one, is_fifo) for one in hand], 1, NOW, lambda _: QUEUE)
    after = tuple(
        one._replace(entry=_codes.of(case.entry)) for one, case in zip(hand, marked, strict=True)
    )
    return after, tuple(new for new, old in zip(after, hand, strict=True) if new != old)


@cache
def without_returned_copies(
    hand: tuple[Held, ...], is_fifo: bool
) -> tuple[tuple[Held, ...], tuple[Held, ...]]:
    """One of each letter in hand, and the copies to discard: `copies.discard_copies`, `Outflow._one_of_each`."""
    cases = [case_of(one, is_fifo) for one in hand]
    copies = copies_among(cases) if is_fifo else []
    first: dict[str, Case] = {}
    for case in without_copies(cases, copies):
        first.setdefault(case.original_id, case)
    here = {case.message_id: _codes.of(case.entry) for case in first.values()}
    stay = [one for one in hand if id_of(one.message) in here]
    ids = {case.message_id for case in copies}
    return (
        tuple(one._replace(entry=here[id_of(one.message)]) for one in stay),
        tuple(one._replace(what="discard") for one in hand if id_of(one.message) in ids),
    )


def in_their_order(decided: Sequence[tuple[Case, Decision]]) -> list[tuple[Case, Decision]]:
    """The decisions on letters of a FIFO queue if each letter waits for those before it: `ordered.in_order`."""
    return list(in_order(decided, _TERMS, Settings(), NOW))


def lacks_entry(held: Held) -> bool:
    """Whether `LiveExecutor._announced` writes an entry before the send."""
    entry = entry_of(held.entry)
    return entry is None or (entry.status is Status.FAILED and not entry.salt)


@cache
def announced(held: Held, salt: int) -> Held:
    """The letter with the entry that is written before its send, see `LiveExecutor._announced`."""
    return held._replace(entry=_codes.of(replace(case_of(held, True).known(QUEUE), salt=salt)))


@cache
def deduplication_key(held: Held) -> tuple[int, int, int, bool]:
    """The parts of `Outgoing.deduplication_id`: message, redrives and salt; and the destination."""
    entry, is_parked = entry_of(held.entry), held.what == "park"
    redrives = case_of(held, True).redrives + (not is_parked)
    return held.message, redrives, entry.salt if entry else 0, is_parked


@cache
def metadata_after(held: Held, new: int) -> int:
    """The metadata of the next copy: `case.metadata_after`, or `Case.replay_metadata` if a person sends it."""
    case = case_of(held, False)
    if held.what == "replay":
        return _codes.of(case.replay_metadata(QUEUE))
    metadata = case.next_metadata(QUEUE, None)
    if held.what == "renew":
        return _codes.of(case.letter.metadata or metadata)
    if held.what == "park":
        return _codes.of(metadata)
    return _codes.of(replace(metadata, redrive_count=case.redrives + 1, batch=_batch(new)))


@cache
def recorded(held: Held, *, keeps: bool, settles_at_once: bool) -> Held:
    """The letter with the entry that is written once its copy is accepted.

    Calls the methods of `Entry` as `apply._redriven_entry`, `_parked_entry`, `_renewed_entry` and `SendBack._leaving`
    do.
    """
    case = case_of(held, keeps)
    entry, me, new = case.known(QUEUE), case.message_id, id_of(held.new)
    match held.what:
        case "park" if entry.status is Status.PARKED:  # by the sweep of the parking lot
            after = entry.renewed(replaced_id=me, new_id=new, now=NOW)
        case "park":
            after = entry.parked(replaced_id=me, new_id=new, reason="EXPIRING", strikes=0, now=NOW)
        case "renew":
            after = (case.entry or entry).renewed(replaced_id=me, new_id=new, now=NOW)
        case "replay":
            count = case.redrives + 1
            after = entry.replayed(
                replaced_id=me, new_id=new, redrive_count=count, now=NOW, note=""
            )
        case "delete":
            after = entry.deleted(message_id=me, now=NOW, note="")
        case _:
            after = entry.redriven(
                replaced_id=me,
                new_id=new,
                batch=_batch(held.new),
                generation=1,
                strikes=0,
                delay=timedelta(),
                now=NOW,
                note="",
                keeps=keeps or held.what == "bounce",
            )
    if held.what == "bounce":
        after = after.bounced(answer="503", version=1, now=NOW)
    elif held.what == "redrive" and settles_at_once:
        after = after.succeeded(NOW)
    return held._replace(entry=_codes.of(after))


def _batch(new: int) -> int:
    """The number of a batch, counted from 1. Here each send is one batch."""
    return new + 1


@cache
def heard(message: int, of: Message, result: Result, table: Table) -> tuple[tuple[int, int], ...]:
    """The table's changes by a report on a message, true or forged: `processed.process_reports`."""
    metadata = _metadata_of(of.metadata)
    outcome = DeliveryOutcome(
        queue=QUEUE,
        message_id=id_of(message),
        original_id=metadata.original_id if metadata else id_of(message),
        result=result,
        batch=metadata.batch if metadata else None,
        receive_count=3,
    )
    known = _Ledger(table).read_ledger([outcome.original_id]).entries
    entries = process_reports([ReceivedOutcome(outcome=outcome, at=NOW)], known, {QUEUE: 3}).entries
    changed = ((number_of(key), _codes.of(entry)) for key, entry in entries.items())
    return tuple((key, code) for key, code in changed if table[key] != code)
