"""`redrive import`: letters back from a file of JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from enum import Enum
from itertools import islice
from pathlib import Path

from redrive.passes.rounds import Examined

from redrive.aws.sqs import ENTRIES_PER_CALL, Outgoing, Sent
from redrive.core.ledger import Entry, Status
from redrive.core.letter import Letter
from smart_redriver.oncall.letters.choice import Choice
from smart_redriver.oncall.letters.jsonlines import letter_from_json
from smart_redriver.oncall.letters.known import entry_of, next_trail
from smart_redriver.oncall.moving.outcome import finish, tally_in_words
from smart_redriver.oncall.moving.shift import shift
from smart_redriver.oncall.moving.work import Tally
from smart_redriver.oncall.stack.recording import recorded
from smart_redriver.oncall.stack.session import Session
from smart_redriver.oncall.terminal.exits import Exit, Refused
from smart_redriver.oncall.terminal.words import letters


class Destination(str, Enum):
    """Where imported letters go."""

    PARKING_LOT = "parking-lot"
    SOURCE = "source"


def import_letters(session: Session, file: Path, destination: Destination, reason: str) -> Exit:
    """Send the letters of `file`; those that are still about are skipped. Raises CallFailed and Refused."""
    total = sum(1 for _ in _read(file))  # the whole file is checked before the first letter is sent
    where = "the parking lot" if destination is Destination.PARKING_LOT else session.place.queue
    session.terminal.plan(
        f"Plan: send {letters(total)} of {file} to {where}, but for those still about."
    )
    session.terminal.confirm("Import them?")
    importing = _Import(session, destination, reason)
    with (
        recorded(session, f"import {file} to {destination.value}", reason) as ended,
        session.terminal.progress("Importing", total) as advance,
    ):
        reading = _read(file)
        while few := list(islice(reading, ENTRIES_PER_CALL)):
            with shift(session, f"oncall-import-{session.who}"):
                importing.send(few)
            advance(len(few))
        ended.extend(tally_in_words(importing.tally, "imported"))
    return finish(session, importing.tally, Choice(), "imported")


class _Import:
    def __init__(self, session: Session, destination: Destination, reason: str) -> None:
        self.tally = Tally()
        self._session = session
        self._to_source = destination is Destination.SOURCE
        self._sources = session.queues.source_queues()
        self._lot_limit = session.queues.parking_lot().max_message_size
        self._note = f"imported by {session.who}" + (f": {reason}" if reason else "")

    def send(self, few: Sequence[tuple[Letter, str | None]]) -> None:
        """Send a few, then write the ledger."""
        queues, store, now = self._session.queues, self._session.store, self._session.clock()
        known = store.read_ledger(letter.original_id for letter, _ in few).entries
        reasons: dict[str, str | None] = {}
        absent: list[Examined] = []
        for letter, why in few:
            entry = known.get(letter.original_id)
            if (entry is not None and entry.status is not Status.DELETED) or (
                letter.message_id in reasons
            ):
                self.tally.skipped["the ledger says it is still about"] += 1
                continue
            reasons[letter.message_id] = why
            absent.append(Examined(letter=letter, entry=entry))
        outgoing = [
            Outgoing(
                letter=one.letter,
                trail=next_trail(
                    one,
                    entry_of(one, self._session.place.queue),
                    queues,
                    is_redriven=self._to_source,
                ),
                size_limit=self._limit_of(one.letter),
            )
            for one in absent
        ]
        sent = queues.redrive(outgoing) if self._to_source else queues.park(outgoing)
        accepted = [
            (one, out)
            for one, out in zip(absent, outgoing, strict=True)
            if one.letter.message_id in sent.new_ids
        ]
        entries = [
            self._entry(one, out, sent, reasons[one.letter.message_id], now)
            for one, out in accepted
        ]
        kept = [
            (sent.new_ids[one.letter.message_id], out.trail)
            for one, out in accepted
            if not out.carries_trail
        ]
        store.write_ledger(entries, kept, now)
        self.tally.done += len(accepted)
        self.tally.failed.update(f"{fault.call}: {fault.code}" for fault in sent.faults)

    def _limit_of(self, letter: Letter) -> int:
        if not self._to_source:
            return self._lot_limit
        arn = letter.source_arn or self._sources.default_arn
        return self._sources.size_limits.get(arn, self._lot_limit)

    def _entry(
        self, one: Examined, out: Outgoing, sent: Sent, reason: str | None, now: datetime
    ) -> Entry:
        old_id = one.letter.message_id
        entry, new_id = entry_of(one, self._session.place.queue), sent.new_ids[old_id]
        if self._to_source:
            return entry.replayed(
                replaced_id=old_id,
                new_id=new_id,
                redrive_count=out.trail.redrive_count,
                now=now,
                note=self._note,
            )
        parked = entry.parked(
            replaced_id=old_id,
            new_id=new_id,
            reason=reason or "IMPORTED",
            strikes=entry.strikes,
            now=now,
            error=entry.error,
        )
        return replace(
            parked, history=(*parked.history[:-1], f"{now:%Y-%m-%dT%H:%M:%SZ} {self._note}")
        )


def _read(file: Path) -> Iterator[tuple[Letter, str | None]]:
    """The letters of a file, one at a time. Raises Refused naming the line that is wrong."""
    try:
        with file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if not line.strip():
                    continue
                try:
                    yield letter_from_json(json.loads(line))
                except ValueError as fault:
                    raise Refused(
                        f"{file}, line {number}: {fault}. Nothing was imported."
                    ) from fault
    except (OSError, UnicodeDecodeError) as fault:
        raise Refused(f"{file} can't be read: {fault}.") from fault
