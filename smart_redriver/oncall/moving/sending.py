"""Sends letters back to their source queues for a person, by the same send, record, delete as a pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

from redrive.passes.rounds import Examined

from redrive.aws.sqs import Outgoing, Queues
from redrive.core.ledger import Entry
from redrive.core.letter import Letter, Trail
from redrive.core.report import Report
from redrive.passes.send_back import Forwarder, Going
from smart_redriver.oncall.letters.known import entry_of, next_trail
from smart_redriver.oncall.letters.look import silent
from smart_redriver.oncall.moving.work import Acted
from smart_redriver.oncall.stack.session import Session

#: What is wrong with a letter's body, or None. May take its time.
Validate = Callable[[Letter], str | None]


class SendBack:
    """An `Act`: sends letters from `origin` to their source queue, as they are or as `edit` makes them.

    `note` is what the ledger's history says of it. `validate` may keep a letter where it is.
    """

    def __init__(
        self,
        session: Session,
        origin: Queues,
        *,
        note: str,
        validate: Validate | None = None,
        edit: Callable[[Letter], Letter] | None = None,
    ) -> None:
        self._session = session
        self._origin = origin
        self._note = note
        self._validate = validate
        self._edit = edit
        self._sources = session.queues.source_queues()

    def __call__(self, few: Sequence[Examined], *, until: datetime) -> Acted:
        """Send a few back. Raises CallFailed when the ledger could not be written."""
        acted = Acted()
        good = [one for one in few if not self._is_held_back(one, acted)]
        if self._validate is not None and self._session.clock() >= until:
            return Acted(postponed=list(few))  # validating took the rest of the shift
        if good:
            self._send(good, acted)
        return acted

    def _is_held_back(self, one: Examined, acted: Acted) -> bool:
        fault: str | None = None
        home = self._entry(one).source_arn
        if home is not None and home not in self._sources.arns:
            fault = f"it belongs to another queue, {home.rpartition(':')[2]}"
        elif self._validate:
            fault = self._validate(one.letter)
        if fault:
            acted.skipped.append((one, fault))
        return fault is not None

    def _send(self, few: Sequence[Examined], acted: Acted) -> None:
        now, queue = self._session.clock(), self._session.place.queue
        report = Report(queue=queue, mode="oncall")
        forwarder = Forwarder(
            self._origin, self._session.store, report, silent, waits_for_full_writes=False
        )
        going = [self._going(one, acted, now) for one in few]
        acted.faults += forwarder.forward(going, self._session.queues.redrive, now)
        left = sum(count for fault, count in report.faults.items() if fault.startswith("Delete"))
        if left:
            self._session.terminal.warn(
                f"{left} were sent, but their old copies could not be deleted. Whoever meets them discards them."
            )

    def _going(self, one: Examined, acted: Acted, now: datetime) -> Going:
        entry = self._entry(one)
        trail = next_trail(one, entry, self._session.queues, is_redriven=True)
        limits = self._sources.size_limits
        outgoing = Outgoing(
            letter=self._edit(one.letter) if self._edit else one.letter,
            trail=trail,
            size_limit=limits[entry.source_arn or self._sources.default_arn],
        )
        return Going(outgoing, partial(self._sent, one, entry, trail, acted, now))

    def _sent(
        self, one: Examined, entry: Entry, trail: Trail, acted: Acted, now: datetime, new_id: str
    ) -> Entry:
        acted.done.append(one)
        return entry.replayed(
            replaced_id=one.letter.message_id,
            new_id=new_id,
            redrive_count=trail.redrive_count,
            now=now,
            note=self._note,
        )

    def _entry(self, one: Examined) -> Entry:
        return entry_of(one, self._session.place.queue)
