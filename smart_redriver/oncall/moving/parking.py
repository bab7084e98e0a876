"""Sends letters to the parking lot for a person, by the same send, record, delete as a pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from smart_redriver.engine.messages.letter import Letter
from smart_redriver.engine.messages.outgoing import Outgoing
from smart_redriver.engine.passes.ports import DeadLetters
from smart_redriver.engine.passes.send_back import Leaving
from smart_redriver.engine.reports.outcomes import error_of
from smart_redriver.engine.triage.case import Case
from smart_redriver.engine.triage.ledger import Entry
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.moving.sending import forward_for, left_behind
from smart_redriver.oncall.moving.work import Acted

#: Why a letter is parked that a person put there.
BY_HAND = "BY_HAND"


class Park:
    """An `Act`: parks letters, as they are or as `edit` makes them.

    `note` is what the ledger's history says of it. `fault_of` may keep a letter where it is. `keep` is given the
    letters as they were before the first is sent.
    """

    def __init__(
        self,
        session: Session,
        out_of: DeadLetters,
        *,
        note: str,
        fault_of: Callable[[Letter], str | None] = lambda _: None,
        edit: Callable[[Letter], Letter] = lambda letter: letter,
        keep: Callable[[Sequence[Case]], object] = lambda _: None,
    ) -> None:
        self._session = session
        self._out_of = out_of
        self._note = note
        self._fault_of = fault_of
        self._edit = edit
        self._keep = keep
        self._limit = session.parking_lot.facts().max_message_size

    def __call__(self, few: Sequence[Case], *, until: datetime) -> Acted:  # noqa: ARG002 - quick
        """Park a few. Raises CallFailed when the ledger could not be written."""
        faults = {case.message_id: self._fault_of(case.letter) for case in few}
        skipped = [(case, fault) for case in few if (fault := faults[case.message_id])]
        good = [case for case in few if not faults[case.message_id]]
        if good:
            self._keep(good)
        now = self._session.clock()
        leaving = [self._leaving(case, now) for case in good]
        park = self._session.parking_lot.park
        forwarded = forward_for(self._session, leaving, park, self._out_of, now, "parked")
        done = [case for case in good if case.message_id in forwarded.sent]
        skipped += left_behind(good, forwarded)
        return Acted(done=done, skipped=skipped, faults=forwarded.not_sent)

    def _leaving(self, case: Case, now: datetime) -> Leaving:
        name = self._session.name_of(case)
        entry, letter = case.known(name), self._edit(case.letter)

        def record(new_id: str) -> Entry:
            return entry.parked(
                replaced_id=case.message_id,
                new_id=new_id,
                reason=BY_HAND,
                strikes=entry.strikes,
                now=now,
                error=error_of(letter.attributes),
                note=self._note,
            )

        trail = case.next_trail(name, None)
        return Leaving(Outgoing(letter=letter, trail=trail, size_limit=self._limit), record)
