"""The ledger's entry for one letter, and how it changes. Pure: a pass decides it, and the state store keeps it.

An entry is keyed by the letter's original id and outlives every copy. It answers three questions that SQS can't: how
often was this letter redriven, and how many of its returns speak against it; has an accepted send already replaced the
copy in hand; was this return already counted as evidence.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from functools import lru_cache
from typing import Any

from smart_redriver.engine.config.targets import is_fifo

#: Enough for every copy that can still be around; each is one id of 36 characters.
REPLACED_IDS_KEPT = 5
#: Every try of a message that is kept at its place leaves a copy, which may be out of reach until its group is done.
COPIES_KEPT = 150
#: Keeps an entry of a letter that came back often below two write units of 1 KB.
HISTORY_KEPT = 12


class Status(str, Enum):
    """The place where the letter was last put."""

    REDRIVEN = "REDRIVEN"
    RETURNED = "RETURNED"
    PARKED = "PARKED"
    REPLAYED = "REPLAYED"  # a person sent it back to its source queue
    DELETED = "DELETED"  # a person deleted it, after writing it to a file
    FAILED = "FAILED"  # its consumer reported the last failure of its first visit: it is on its way to the DLQ
    SUCCEEDED = "SUCCEEDED"  # its consumer reported that it is done with it


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What the ledger knows about one letter.

    Attributes:
        current_id: the MessageId of the copy that was sent last.
        kept_id: the id of the message that stays at its place in the DLQ, at the head of its group, until its copy's
            outcome is known: a FIFO queue has no other way back to that place.
        salt: part of its deduplication ids. It is made with the entry, so an entry made after a lost table has a new
            one.
        left_id: the id of the copy that its consumer says it has parked: if that comes back, it is still the letter.
        replaced_ids: ids of copies that an accepted send has replaced, newest last.
        redrive_count: every redrive. `strikes`: the returns that speak against the letter.
        batch: the batch of the last redrive. `counted_batch`: the last batch whose verdict is in `strikes`.
        seen_in_version: version of the circuit when the return was first seen (see `counts_as_evidence`).
        not_before: when a returned letter may be redriven at the earliest.
        source_arn: the queue that the letter belongs to; SQS forgets it when the letter is sent anywhere.
        error: the consumer's error, on one line, from a report or an attribute.
        cause: the class of the error that the consumer reported last.
        is_permanent: the consumer reported that no retry can heal it.
        is_settled: the consumer has reported how the copy that was sent last ended: done, or failed at its last
            receive.
        failed_tries: deliveries of that copy that the consumer reported as failed.
        heard_in_version: version of the circuit when a report on that copy was last processed (see `uncounted`).
        tries_counted: how many of its failed tries the circuit of that version has counted.
        last_redrive: when the copy that was sent last could be received at the earliest, its delay included.
        first_redrive: its first redrive; the time to giving up starts here. `first_strike`: its first strike; the time
            to its last chance starts here. A person's replay resets both.
        is_doubtful: it has no strike, but came back with hardly any letters but suspects.

    """

    original_id: str
    queue: str
    first_seen: datetime
    status: Status
    current_id: str
    kept_id: str | None = None
    salt: int = 0
    left_id: str | None = None
    replaced_ids: tuple[str, ...] = ()
    redrive_count: int = 0
    strikes: int = 0
    batch: int | None = None
    counted_batch: int | None = None
    generation: int = 0
    first_redrive: datetime | None = None
    last_redrive: datetime | None = None
    first_strike: datetime | None = None
    not_before: datetime | None = None
    seen_in_version: int | None = None
    source_arn: str | None = None
    park_reason: str | None = None
    parked_at: datetime | None = None
    error: str | None = None
    cause: str | None = None
    is_permanent: bool = False
    is_settled: bool = False
    is_doubtful: bool = False
    failed_tries: int = 0
    heard_in_version: int | None = None
    tries_counted: int = 0
    history: tuple[str, ...] = ()

    @property
    def is_suspect(self) -> bool:
        """Whether the letter is expected to come back."""
        return self.strikes > 0 or self.is_doubtful

    def has_replaced(self, message_id: str) -> bool:
        """Whether a copy with this id was sent on already, so that it may only be deleted."""
        return message_id in self.replaced_ids

    def with_copies_replaced(self) -> Entry:
        """Return the entry of a letter that is about to be sent from a file, without the copies that may be there."""
        copies = [one for one in (self.kept_id, self.left_id, self.current_id) if one]
        return replace(self, replaced_ids=(*self.replaced_ids, *copies))

    def counts_as_evidence(self, circuit_version: int) -> bool:
        """Whether this return still has to be charged to the circuit, exactly once whatever crashes.

            mark entry (version v) ──► write circuit (v+1)
                              crash here: the circuit is still at v, so the mark counts again

        A mark below the circuit's version was charged by the write that raised it.
        """
        return self.seen_in_version is None or self.seen_in_version >= circuit_version

    def redriven(
        self,
        *,
        replaced_id: str,
        new_id: str,
        batch: int,
        generation: int,
        strikes: int,
        delay: timedelta,
        now: datetime,
        note: str,
        is_doubtful: bool = False,
        keeps: bool = False,
    ) -> Entry:
        """Return the entry after a send to the source queue was accepted, to be tried no earlier than in `delay`.

        With `keeps`, the letter stays where it is, and only the previous copy is replaced.
        """
        return replace(
            self,
            **self._sent_on(replaced_id, new_id, now, note, keeps=keeps),
            status=Status.REDRIVEN,
            redrive_count=self.redrive_count + 1,
            strikes=strikes,
            first_strike=self._first_strike(strikes, now),
            is_doubtful=is_doubtful,
            counted_batch=self.batch,
            batch=batch,
            generation=generation,
            first_redrive=self.first_redrive or now,
            last_redrive=now + delay,
            not_before=None,
            seen_in_version=None,
        )

    def returned(self, *, message_id: str, version: int, now: datetime) -> Entry:
        """Return the entry of a letter that is seen in the DLQ again.

        A letter that was reported as succeeded was not deleted: that is the consumer's fault, and no strike.
        """
        back = f"returned from batch {self.batch}" if self.batch else "returned after a replay"
        return replace(
            self,
            status=Status.RETURNED,
            current_id=message_id,
            seen_in_version=version,
            counted_batch=self.batch if self.status is Status.SUCCEEDED else self.counted_batch,
            history=_noted(self.history, now, back),
        )

    def bounced(self, *, answer: str, version: int, now: datetime) -> Entry:
        """Return the entry after a target took the letter and failed: it never left the DLQ, so it is back at once."""
        return replace(
            self,
            status=Status.RETURNED,
            seen_in_version=version,
            cause=answer,
            error=answer,
            history=_noted(self.history, now, f"failed at its target: {answer}"),
        )

    def deferred(
        self, *, not_before: datetime, strikes: int, batch: int | None, now: datetime
    ) -> Entry:
        """Return the entry with an attempt that is put off for longer than SQS can delay it.

        `batch` is the batch that the letter returns from, which may be missing here after a lost write.
        """
        return replace(
            self,
            not_before=not_before,
            strikes=strikes,
            first_strike=self._first_strike(strikes, now),
            batch=batch,
            counted_batch=batch,
        )

    def parked(
        self,
        *,
        replaced_id: str,
        new_id: str,
        reason: str,
        strikes: int,
        now: datetime,
        error: str | None = None,
        note: str = "",
    ) -> Entry:
        """Return the entry after a send to the parking lot was accepted; the history has `note` or the reason.

        A row that was deleted is put back with the id that it had, and is the letter again.
        """
        sent = self._sent_on(replaced_id, new_id, now, note or f"parked {reason}")
        sent["replaced_ids"] = tuple(one for one in sent["replaced_ids"] if one != new_id)
        return replace(
            self,
            **sent,
            status=Status.PARKED,
            strikes=strikes,
            counted_batch=self.batch,
            park_reason=reason,
            parked_at=now,
            error=self.error if self.cause else error,
            seen_in_version=None,
        )

    def renewed(self, *, replaced_id: str, new_id: str, now: datetime) -> Entry:
        """Return the entry after the letter was sent once more to the queue that it is in; all else is unchanged.

        The pass that decides next still has to charge a return, or contradict a reported success.
        """
        copy = self._sent_on(replaced_id, new_id, now, "renewed")
        ids = ("current_id", "kept_id", "left_id", "replaced_ids", "history")
        is_known = self.status in (Status.PARKED, Status.SUCCEEDED)
        status = self.status if is_known else Status.RETURNED
        return replace(self, status=status, **{name: copy[name] for name in ids})

    def replayed(
        self, *, replaced_id: str, new_id: str, redrive_count: int, now: datetime, note: str
    ) -> Entry:
        """Return the entry after a person's send to the source queue was accepted: no strikes, a fresh start.

        It belongs to no batch, since its return says nothing about one.
        """
        return replace(
            self,
            **self._sent_on(replaced_id, new_id, now, note),
            status=Status.REPLAYED,
            redrive_count=redrive_count,
            strikes=0,
            first_strike=None,
            is_doubtful=False,
            first_redrive=None,
            batch=None,
            counted_batch=None,
            last_redrive=now,
            not_before=None,
            seen_in_version=None,
            cause=None,
            is_permanent=False,
        )

    def succeeded(self, now: datetime) -> Entry:
        """Return the entry after the consumer reported that the copy that was sent last succeeded."""
        return self._settled(now, "reported as succeeded")

    def accepted(self, now: datetime) -> Entry:
        """Return the entry after a send to a target from which nothing comes back: its answer is the outcome."""
        return self._settled(now, "accepted")

    def _settled(self, now: datetime, note: str) -> Entry:
        return replace(
            self,
            status=Status.SUCCEEDED,
            is_settled=True,
            history=_noted(self.history, now, note),
        )

    def failed(
        self, *, tries: int, is_last: bool, cause: str | None, error: str | None, permanent: bool
    ) -> Entry:
        """Return the entry after the consumer reported that a delivery of the copy that was sent last has failed.

        Args:
            tries: deliveries of it that failed, as far as is known.
            is_last: SQS moves it to the DLQ now.

        """
        return replace(
            self,
            failed_tries=tries,
            is_settled=is_last,
            cause=cause,
            error=error,
            is_permanent=permanent,
        )

    def heard(self, before: Entry, version: int) -> Entry:
        """Return the entry after a report that the circuit of this version does not count yet; it counts `before`."""
        if self.heard_in_version is not None and self.heard_in_version >= version:
            return self
        return replace(self, heard_in_version=version, tries_counted=before.failed_tries)

    def uncounted(self, circuit_version: int) -> Entry:
        """The entry as the circuit of this version counts it, so that a report can be processed again after a crash.

        Reports are deleted once the circuit is written, and the mark works as in `counts_as_evidence`. A letter that
        has moved on since is left unchanged.
        """
        if self.heard_in_version is None or self.heard_in_version < circuit_version:
            return self
        if self.status is Status.REDRIVEN:
            return replace(self, is_settled=False, failed_tries=self.tries_counted)
        is_parked_by_consumer = self.status is Status.PARKED and self.left_id is not None
        if self.status is not Status.SUCCEEDED and not is_parked_by_consumer:
            return self
        return replace(
            self,
            status=Status.REDRIVEN,
            current_id=self.left_id or self.current_id,
            left_id=None,
            park_reason=None,
            parked_at=None,
            is_settled=False,
            failed_tries=self.tries_counted,
            history=self.history[:-1],
        )

    def told_to_wait(self, *, until: datetime) -> Entry:
        """Return the entry after the consumer's error named a time to try again: the letter rests until then,
        and its return is no strike.
        """
        return replace(self, not_before=until, counted_batch=self.batch)

    def parked_by_consumer(self, *, parked_id: str, reason: str, now: datetime) -> Entry:
        """Return the entry after the consumer reported that it parked the copy that was sent last.

        This is a claim: the copy does not count as replaced, so it is still a letter if it comes back.
        """
        return replace(
            self,
            current_id=parked_id,
            left_id=self.current_id,
            status=Status.PARKED,
            park_reason=reason,
            parked_at=now,
            is_settled=True,
            history=_noted(self.history, now, f"parked {reason} by its consumer"),
        )

    def deleted(self, *, message_id: str, now: datetime, note: str) -> Entry:
        """Return the entry before a person's delete: if the delete fails, the copy that is left must be discarded."""
        changes = self._sent_on(message_id, message_id, now, note)
        return replace(self, **changes, status=Status.DELETED)

    def _first_strike(self, strikes: int, now: datetime) -> datetime | None:
        return (self.first_strike or now) if strikes else None

    def _sent_on(
        self, replaced_id: str, new_id: str, now: datetime, note: str, *, keeps: bool = False
    ) -> dict[str, Any]:
        """The fields that any send changes; not a new entry, because making one takes a while."""
        replaced = self.replaced_ids if keeps else (*self.replaced_ids, replaced_id)
        if self.kept_id == replaced_id != self.current_id:
            replaced = (*replaced, self.current_id)
        most = COPIES_KEPT if is_fifo(self.queue) else REPLACED_IDS_KEPT
        return {
            "current_id": new_id,
            "kept_id": replaced_id if keeps else None,
            "left_id": None,
            "replaced_ids": replaced[-most:],
            "is_settled": False,
            "failed_tries": 0,
            "heard_in_version": None,
            "tries_counted": 0,
            "history": _noted(self.history, now, note),
        }


def _noted(history: tuple[str, ...], now: datetime, note: str) -> tuple[str, ...]:
    return (*history, f"{_stamp(now)} {note}")[-HISTORY_KEPT:]


@lru_cache(maxsize=16)  # all letters of a round share one moment
def _stamp(now: datetime) -> str:
    return f"{now:%Y-%m-%dT%H:%M:%SZ}"
