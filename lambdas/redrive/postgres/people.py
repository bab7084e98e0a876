"""The tables of letters as people have them: payloads shown or whole.

Only `remove` deletes, and only a file puts rows back: whatever else people do is what a pass does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from redrive.core.letter import Letter
from redrive.core.outgoing import Outgoing, Sent
from redrive.core.queue_facts import QueueFacts
from redrive.errors import CallFailed, EntryFault
from redrive.postgres.database import Database
from redrive.postgres.dead_letters import DeadLetters
from redrive.postgres.halves import by_halves
from redrive.postgres.letters import Handle, job_id
from redrive.postgres.pages import Pages
from redrive.postgres.parking_lot import ParkingLot
from redrive.postgres.restoring import ROW, Rows, content_of

#: What a person agrees to is counted, and not estimated.
_COUNTED = 1 << 40


class PeoplesLetters(DeadLetters):
    """The DLQ. `whole`: with whole payloads, and not just as far as anybody reads; `among`: these rows alone, held or not."""

    def __init__(
        self,
        database: Database,
        clock: Callable[[], datetime],
        *,
        whole: bool = False,
        among: Sequence[int] | None = None,
    ) -> None:
        self._whole = whole
        self._among = among
        self._rows = Rows(database)
        super().__init__(database, clock)

    def exact_facts(self) -> QueueFacts:
        """How many letters there are, all of them counted: seconds, for ten millions. Raises CallFailed."""
        return self.facts(counted=_COUNTED)

    def receive(self, limit: int, *, hidden_for: timedelta) -> list[Letter]:
        """Letters that are known by the numbers of their rows, too. Raises CallFailed."""
        return [_by_row(one) for one in super().receive(limit, hidden_for=hidden_for)]

    def keep(self, letters: Iterable[Letter]) -> tuple[list[Letter], list[EntryFault]]:
        """Letters with their whole rows, for a file, those alone that are there; and those that can't be read."""
        return by_halves(list(letters), self._with_rows)

    def remove(self, letters: Iterable[Letter]) -> list[EntryFault]:
        """Delete letters that are as they were kept; what comes back is still there."""
        gone, refused = by_halves(list(letters), self._remove)
        left = {fault.key: fault for fault in self.delete(gone)}
        changed = self._changed([one for one in gone if one.message_id in left])
        return refused + [changed.get(key, fault) for key, fault in left.items()]

    def _with_rows(self, letters: Sequence[Letter]) -> list[Letter]:
        by_row = {Handle.of(one).row: one for one in letters}
        kept = self._rows.keep(list(by_row), is_parked=self._is_parked)
        return [_with_row(by_row[row], content) for row, content in kept.items()]

    def _remove(self, letters: Sequence[Letter]) -> list[Letter]:
        contents = {Handle.of(one).row: content_of(one) or "" for one in letters}
        self._rows.delete(contents, is_parked=self._is_parked)
        return list(letters)

    def _changed(self, letters: Sequence[Letter]) -> dict[str, EntryFault]:
        """By id, those that are there and not as they were kept."""
        kept = {one.message_id: content_of(one) for one in letters}
        as_it_is, _ = self.keep(letters) if letters else ([], [])
        return {
            one.message_id: EntryFault(
                call="DeleteLetters",
                key=one.message_id,
                code="ChangedMeanwhile",
                detail="somebody has changed its row since it was read; it is left as it is now",
            )
            for one in as_it_is
            if content_of(one) != kept[one.message_id]
        }

    def _make_pages(self) -> Pages:
        known, table = self._database.statements, "parked" if self._is_parked else "dead"
        if self._among is None:
            verb = "take" if self._whole else "look"
        else:
            verb = "pick" if self._whole else "find"
        read = getattr(known, f"{verb}_{table}")
        is_parked = self._is_parked
        return Pages(self._database, read, is_parked=is_parked, size=None, among=self._among)


class PeoplesLot(PeoplesLetters, ParkingLot):
    """The parking lot. Letters of a file are put into it as their rows were."""

    def park(self, outgoing: Sequence[Outgoing]) -> Sent:
        """Move letters here out of the DLQ, or put them back out of a file. Nothing is raised."""
        of_file = [one for one in outgoing if not one.letter.receipt_handle]
        sent = super().park([one for one in outgoing if one.letter.receipt_handle])
        for one in of_file:
            try:
                row = self._rows.restore(one, self._clock())
            except CallFailed as failed:
                sent.faults.append(EntryFault.of(failed, one.letter.message_id))
            else:
                sent.new_ids[one.letter.message_id] = f"parked-{row}"
        return sent


def _by_row(letter: Letter) -> Letter:
    """The letter; one that goes by its job is known by its row, too, which is what people see in the table."""
    row = f"dlq-{Handle.of(letter).row}"
    is_job = (job := Handle.of(letter).job) is not None and letter.message_id == job_id(job)
    return replace(letter, request_id=row) if is_job else letter


def _with_row(letter: Letter, content: str) -> Letter:
    row = {"DataType": "String", "StringValue": content}
    return replace(letter, attributes={**letter.attributes, ROW: row})
