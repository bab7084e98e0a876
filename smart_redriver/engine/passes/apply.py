"""Carries out the decisions about the letters of one round, and reports what was done. It decides nothing.

The order of effects is send, ledger, delete, so that a crash anywhere may repeat a letter and never loses one. Letters
that leave for good go before letters that are redriven: in a FIFO group, a letter may go once the one before it has
left.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.messages.outgoing import ENTRIES_PER_CALL, Outgoing
from smart_redriver.engine.model.batch import Batch
from smart_redriver.engine.passes.executor import (
    D,
    Decided,
    Destination,
    Effects,
    Sending,
    count_holds,
    count_redrives,
    count_renewals,
    marked_returns,
    only,
)
from smart_redriver.engine.passes.ports import (
    DeadLetters,
    Ledger,
    ParkingLot,
    Renews,
    Source,
    TakesMany,
    renewing,
)
from smart_redriver.engine.passes.send_back import Forwarded, Leaving, delete, forward
from smart_redriver.engine.reports.outcomes import error_of
from smart_redriver.engine.triage.case import Case, metadata_after
from smart_redriver.engine.triage.decision import (
    Discard,
    Hold,
    Park,
    ParkReason,
    Redrive,
    Renew,
)
from smart_redriver.engine.triage.ledger import Entry, Status

#: How long a renewed letter is delayed: the pass that renewed it does not receive it again, but the next pass can.
RENEWED_FOR = timedelta(minutes=1)
#: The sweep that renews parked letters goes on until it finds no more of them, or its pass ends.
PARKED_FOR = timedelta(minutes=5)


class LiveExecutor:
    """Sends, records, deletes and hides.

    `name_of` returns the source queue that a letter belongs to; `is_over` says whether the pass has to stop.
    `room_to_hide` is how many letters may stay hidden after the pass. The limits are the bytes that a message of either
    queue may have.
    """

    def __init__(
        self,
        dead_letters: DeadLetters,
        parking_lot: ParkingLot,
        ledger: Ledger,
        *,
        letter_limit: int,
        parking_lot_limit: int,
        name_of: Callable[[Case], str],
        is_over: Callable[[], bool],
        room_to_hide: int,
    ) -> None:
        self._dead_letters = dead_letters
        self._is_over = is_over
        self._ledger = ledger
        self._letter_limit = letter_limit
        self._name_of = name_of
        self._parking = Parking(
            dead_letters, parking_lot, ledger, limit=parking_lot_limit, name_of=name_of
        )
        self._holding = Holding(dead_letters, ledger, name_of, room_to_hide=room_to_hide)

    def carry_out(
        self,
        decided: Decided,
        destinations: Mapping[str, Destination],
        now: datetime,
        *,
        version_to_mark: int | None,
        is_one_of_many: bool = False,
    ) -> Effects:
        """Carry out the decisions about the letters of one round; the answer includes a refused call that they need.

        Args:
            destinations: by ARN.
            version_to_mark: the circuit's version, to mark returns that stay; None if they are already marked.
            is_one_of_many: several rounds are under way, so a ledger write waits until it is full.

        """
        effects = self.discard(only(decided, Discard))
        effects.add(self.park(only(decided, Park), now))
        if not effects.failure:
            effects.add(self._save(only(decided, Renew), version_to_mark, now))
        if effects.failure:
            return effects
        redrives = self._not_behind(only(decided, Redrive), decided, effects)
        for arn in dict.fromkeys(one.destination for _, one in redrives):
            some = [(case, one) for case, one in redrives if one.destination == arn]
            to = destinations[arn]
            effects.add(self._redrive(some, to, now, version_to_mark, is_one_of_many))
            if effects.failure:
                return effects
        effects.add(self._holding.hold(only(decided, Hold), version_to_mark, now))
        return effects

    def _not_behind(
        self, redrives: list[tuple[Case, Redrive]], decided: Decided, effects: Effects
    ) -> list[tuple[Case, Redrive]]:
        """The letters that may go. In a FIFO queue, none overtakes a letter of its group that failed to leave.

        If it did, the other letter could follow it later: a parking lot may refuse a letter that a person then
        redrives.
        """
        if not self._dead_letters.is_fifo:
            return redrives
        left = {fault.key for fault in effects.faults}
        stopped = {case.letter.group_id for case, _ in decided if case.message_id in left}
        return [one for one in redrives if one[0].letter.group_id not in stopped]

    def discard(self, discards: Sequence[tuple[Case, Discard]]) -> Effects:
        """Delete copies that an accepted send has replaced already."""
        effects = Effects()
        for case, decision in discards:
            effects.tell("letter.discarded", case, decision.reason)
        effects.counts["discarded"] += len(discards)
        deleted = delete([case.letter for case, _ in discards], self._dead_letters)
        effects.add(deleted.as_effects())
        if deleted.not_deleted and self._dead_letters.is_fifo:
            # A hidden copy would cut its group off: the letters before it could be taken for the whole group.
            left = {fault.key for fault in deleted.not_deleted}
            effects.add(self.release([case for case, _ in discards if case.message_id in left]))
        return effects

    def park(self, parks: Sequence[tuple[Case, Park]], now: datetime) -> Effects:
        """Send letters to the parking lot."""
        return self._parking.park(parks, now)

    def renew(self, parked: Sequence[tuple[Case, Renew]], now: datetime) -> Effects:
        """Send parked letters to the parking lot again, for a new clock."""
        return self._parking.renew(parked, now)

    def _save(
        self, expiring: Sequence[tuple[Case, Renew]], version_to_mark: int | None, now: datetime
    ) -> Effects:
        """Send letters to the DLQ once more, for a new clock, and park those that it does not accept."""
        queue = renewing(self._dead_letters)
        if queue is None or not expiring:
            return self._park_expiring(expiring, now)
        cases = [case for case, _ in expiring]
        if version_to_mark is not None:
            cases = marked_returns(cases, version_to_mark, now, self._name_of)
        forwarded = self._renew_in_dlq(cases, queue, now)
        effects = forwarded.as_effects()
        effects.removed = 0  # they are where they were
        in_trouble = {fault.key for fault in forwarded.not_sent}
        troubled = [case.letter.sent_at for case in cases if case.message_id in in_trouble]
        effects.not_renewed = min(troubled, default=None)
        count_renewals(effects, _those(expiring, forwarded.sent))
        if not effects.failure:
            stay = forwarded.sent | in_trouble
            left = [one for one in expiring if one[0].message_id not in stay]
            effects.add(self._park_expiring(left, now))
        return effects

    def _renew_in_dlq(self, cases: Sequence[Case], queue: Renews, now: datetime) -> Forwarded:
        """Send letters to the DLQ once more. Those that it does not accept are no faults: they will be parked."""
        # SQS forgets which queue a renewed letter belongs to. If the letter can't carry that, only its entry has it.
        leaving = [self._renewed(case, now) for case in cases]
        forwarded = forward(
            [one for one in leaving if one.outgoing.carries_metadata],
            queue.renew,
            out_of=self._dead_letters,
            ledger=self._ledger,
            now=now,
        )
        # If AWS failed for a moment, the next pass has time to try again; parking takes care of the rest.
        forwarded.healed += [fault for fault in forwarded.not_sent if not fault.is_transient]
        forwarded.not_sent = [fault for fault in forwarded.not_sent if fault.is_transient]
        return forwarded

    def _park_expiring(self, expiring: Sequence[tuple[Case, Renew]], now: datetime) -> Effects:
        reason = ParkReason.EXPIRING
        parks = [(case, Park(reason=reason, strikes=one.strikes)) for case, one in expiring]
        return self.park(parks, now)

    def _renewed(self, case: Case, now: datetime) -> Leaving:
        queue = self._name_of(case)
        entry = case.known(queue)
        if case.entry is not None:
            # Unchanged: if the record of a redrive was lost, it is repaired once the return is charged.
            entry = replace(case.entry, source_arn=case.source_arn)
        outgoing = Outgoing(
            letter=case.letter,
            metadata=case.letter.metadata or metadata_after(entry, queue, None),
            size_limit=self._letter_limit,
            delay=RENEWED_FOR,
        )

        def record(new_id: str) -> Entry:
            return entry.renewed(replaced_id=case.message_id, new_id=new_id, now=now)

        return Leaving(outgoing, record)

    def mark_returns(self, cases: Sequence[Case], version: int, now: datetime) -> list[Case]:
        """Note in the ledger which letters are back, and since which version of the circuit. Raises CallFailed."""
        return self._holding.mark_returns(cases, version, now)

    def release(self, cases: Sequence[Case]) -> Effects:
        """Make letters visible again at once. Only after the last round, which would otherwise receive them again."""
        return self._holding.release(cases)

    def _redrive(
        self,
        redrives: Sequence[tuple[Case, Redrive]],
        to: Destination,
        now: datetime,
        version_to_mark: int | None,
        is_one_of_many: bool,
    ) -> Effects:
        assert to.batch is not None, "a batch is registered before anything is sent"  # noqa: S101
        name = to.source.name
        try:
            redrives = self._announced(redrives, name, now)
        except CallFailed as failed:
            return Effects(failure=failed)
        forwarded = forward(
            [self._redriven(case, decision, to, to.batch, now) for case, decision in redrives],
            to.source.deliver,
            out_of=self._dead_letters,
            ledger=self._ledger,
            now=now,
            waits_for_full_writes=is_one_of_many,
            keeps=self._dead_letters.is_fifo,
            is_over=self._is_over,
            entries=_letters_a_call(to.source, is_one_of_many),
        )
        effects = forwarded.as_effects()
        count_redrives(
            effects,
            name,
            _those(redrives, forwarded.sent),
            settles_at_once=to.source.settles_at_once,
        )
        bounced = _those(redrives, forwarded.bounced)
        effects.add(self._bounced(bounced, forwarded.bounced, to, to.batch, now))
        refusal = forwarded.refusal
        if refusal is not None:
            effects.refusals[name] = refusal
        if not effects.failure:
            effects.add(self.park(_unfit(redrives, forwarded), now))
        if not effects.failure:
            effects.add(self._save(_left_expiring(redrives, forwarded), version_to_mark, now))
        return effects

    def _redriven(
        self, case: Case, decision: Redrive, to: Destination, batch: Batch, now: datetime
    ) -> Leaving:
        entry = case.known(to.source.name)

        def record(new_id: str) -> Entry:
            redriven = _redriven_entry(
                entry, case, decision, batch, now, new_id, keeps=self._dead_letters.is_fifo
            )
            return redriven.accepted(now) if to.source.settles_at_once else redriven

        outgoing = Outgoing(
            letter=case.letter,
            metadata=metadata_after(entry, to.source.name, batch),
            size_limit=to.facts.max_message_size,
            delay=decision.delay,
            salt=entry.salt,
            may_carry_metadata=to.source.carries_metadata,
            may_return=not to.source.settles_at_once,
        )
        return Leaving(outgoing, record)

    def _bounced(
        self,
        redrives: Sequence[tuple[Case, Redrive]],
        answers: Mapping[str, str],
        to: Destination,
        batch: Batch,
        now: datetime,
    ) -> Effects:
        """Note letters that stay because their target took them and failed: each is back from its batch.

        They are marked with the version that has the batch; the next version counts them, see `counts_as_evidence`.
        """
        entries = [
            _redriven_entry(
                case.known(to.source.name), case, one, batch, now, case.message_id, keeps=True
            ).bounced(answer=answers[case.message_id], version=to.version, now=now)
            for case, one in redrives
        ]
        effects = Effects(bounced=[case for case, _ in redrives])
        for case, one in redrives:
            effects.counts["redriven"] += 1
            effects.counts["bounced"] += 1
            effects.sendings.append(
                Sending(
                    to.source.name,
                    one.delay,
                    one.is_suspect,
                    has_succeeded=False,
                    cause=answers[case.message_id],
                )
            )
            effects.tell("letter.bounced", case, answers[case.message_id])
        try:
            if entries:
                self._ledger.write_ledger(entries, [], now)
        except CallFailed as failed:
            effects.failure = failed
        return effects

    def _announced(
        self, redrives: Sequence[tuple[Case, Redrive]], name: str, now: datetime
    ) -> list[tuple[Case, Redrive]]:
        """The letters; in a FIFO queue, each has an entry that was written before its send. Raises CallFailed.

        A FIFO queue drops a send whose id it had within five minutes. If the id were made from the letter alone, a
        ledger that lost the first copy's outcome would wait for a second copy that SQS dropped.
        """
        if not self._dead_letters.is_fifo:
            return list(redrives)
        new = {
            case.message_id: replace(case.known(name), salt=int(now.timestamp()))
            for case, _ in redrives
            if case.entry is None or _has_no_salt(case.entry)
        }
        if new:
            self._ledger.write_ledger(list(new.values()), [], now)
        return [
            (replace(case, entry=new.get(case.message_id, case.entry)), decision)
            for case, decision in redrives
        ]


def _letters_a_call(source: Source, is_one_of_many: bool) -> int:
    return (
        source.letters_a_call
        if is_one_of_many and isinstance(source, TakesMany)
        else ENTRIES_PER_CALL
    )


def _those(decided: Sequence[tuple[Case, D]], message_ids: Container[str]) -> list[tuple[Case, D]]:
    return [one for one in decided if one[0].message_id in message_ids]


def _has_no_salt(entry: Entry) -> bool:
    """Whether its consumer reported the letter before a pass saw it: nothing has been sent with its ids yet."""
    return entry.status is Status.FAILED and not entry.salt


def _redriven_entry(
    entry: Entry,
    case: Case,
    decision: Redrive,
    batch: Batch,
    now: datetime,
    new_id: str,
    *,
    keeps: bool,
) -> Entry:
    return entry.redriven(
        replaced_id=case.message_id,
        new_id=new_id,
        batch=batch.id,
        generation=batch.generation,
        strikes=decision.strikes,
        is_doubtful=decision.is_doubtful,
        delay=decision.delay,
        now=now,
        note=f"redriven in batch {batch.id}",
        keeps=keeps,
    )


def _unfit(
    redrives: Sequence[tuple[Case, Redrive]], forwarded: Forwarded
) -> list[tuple[Case, Park]]:
    """Letters that were not accepted because of their content."""
    content = {fault.key for fault in forwarded.not_sent if fault.is_of_content}
    return [
        (case, Park(reason=ParkReason.UNDELIVERABLE, strikes=one.strikes))
        for case, one in redrives
        if case.message_id in content
    ]


def _left_expiring(
    redrives: Sequence[tuple[Case, Redrive]], forwarded: Forwarded
) -> list[tuple[Case, Renew]]:
    """Letters that were not accepted and have no time to wait until they are."""
    content = {fault.key for fault in forwarded.not_sent if fault.is_of_content}
    left = forwarded.sent | forwarded.bounced.keys() | content
    return [
        (case, Renew(strikes=one.strikes))
        for case, one in redrives
        if one.is_expiring and case.message_id not in left
    ]


class Parking:
    """Moves letters of one queue to the parking lot; to renew letters, `letters_in` is the parking lot itself.

    Args:
        limit: bytes that a message of the parking lot may have.
        name_of: returns the source queue that a letter belongs to.

    """

    def __init__(
        self,
        letters_in: DeadLetters,
        parking_lot: ParkingLot,
        ledger: Ledger,
        *,
        limit: int,
        name_of: Callable[[Case], str],
    ) -> None:
        self._letters_in = letters_in
        self._parking_lot = parking_lot
        self._ledger = ledger
        self._limit = limit
        self._name_of = name_of

    def park(self, parks: Sequence[tuple[Case, Park]], now: datetime) -> Effects:
        """Send letters to the parking lot."""
        forwarded = self._to_parking_lot([self._parked(case, one, now) for case, one in parks], now)
        effects = forwarded.as_effects()
        refused = {one.key: one.code for one in forwarded.not_sent if one.is_of_content}
        for case, decision in parks:
            if case.message_id in forwarded.sent:
                effects.parked[decision.reason.value] += 1
                effects.tell("letter.parked", case, decision.reason.value)
            elif code := refused.get(case.message_id):
                effects.stuck.append(case.without_content())
                effects.tell("letter.stuck", case, decision.reason.value, code=code)
        return effects

    def renew(self, parked: Sequence[tuple[Case, Renew]], now: datetime) -> Effects:
        """Send parked letters to the parking lot again, for a new clock."""
        forwarded = self._to_parking_lot(
            [self._renewed(case, one, now) for case, one in parked], now
        )
        effects = forwarded.as_effects()
        effects.removed = 0  # they are where they were
        count_renewals(effects, [one for one in parked if one[0].message_id in forwarded.sent])
        return effects

    def _to_parking_lot(self, leaving: Sequence[Leaving], now: datetime) -> Forwarded:
        return forward(
            leaving, self._parking_lot.park, out_of=self._letters_in, ledger=self._ledger, now=now
        )

    def _parked(self, case: Case, decision: Park, now: datetime) -> Leaving:
        entry = case.known(self._name_of(case))
        record = partial(_parked_entry, entry, case, decision, now)
        return Leaving(self._outgoing(case, entry), record)

    def _renewed(self, case: Case, decision: Renew, now: datetime) -> Leaving:
        entry = case.known(self._name_of(case))
        record = partial(_renewed_entry, entry, case, decision, now)
        return Leaving(self._outgoing(case, entry, delay=PARKED_FOR), record)

    def _outgoing(self, case: Case, entry: Entry, *, delay: timedelta = timedelta()) -> Outgoing:
        metadata = metadata_after(entry, self._name_of(case), None)
        return Outgoing(letter=case.letter, metadata=metadata, size_limit=self._limit, delay=delay)


def _parked_entry(entry: Entry, case: Case, decision: Park, now: datetime, new_id: str) -> Entry:
    return entry.parked(
        replaced_id=case.message_id,
        new_id=new_id,
        reason=decision.reason.value,
        strikes=decision.strikes,
        error=error_of(case.letter.attributes),
        now=now,
    )


def _renewed_entry(entry: Entry, case: Case, decision: Renew, now: datetime, new_id: str) -> Entry:
    if entry.status is Status.PARKED:
        return entry.renewed(replaced_id=case.message_id, new_id=new_id, now=now)
    # The ledger does not know that it was parked: a person or its consumer did it, or the record was lost.
    park = Park(reason=ParkReason.EXPIRING, strikes=decision.strikes)
    return _parked_entry(entry, case, park, now, new_id)


class Holding:
    """Keeps letters of one queue where they are. `name_of` returns the source queue that a letter belongs to.

    `room_to_hide` letters may be hidden until their time. The others are visible again soon after the pass: the ledger
    has their time, and the next pass that receives them leaves them alone.
    """

    def __init__(
        self,
        letters_in: DeadLetters,
        ledger: Ledger,
        name_of: Callable[[Case], str],
        *,
        room_to_hide: int,
    ) -> None:
        self._letters_in = letters_in
        self._ledger = ledger
        self._name_of = name_of
        self._room_to_hide = room_to_hide

    def release(self, cases: Sequence[Case]) -> Effects:
        """Make letters visible again at once. Only after the last round, which would otherwise receive them again."""
        return self._hide([(case, timedelta()) for case in cases])

    def mark_returns(self, cases: Sequence[Case], version: int, now: datetime) -> list[Case]:
        """Note in the ledger which letters are back, and since which version of the circuit. Raises CallFailed.

        Written before the circuit is: see `Entry.counts_as_evidence`.
        """
        marked = marked_returns(cases, version, now, self._name_of)
        fresh = [new.entry for new, old in zip(marked, cases, strict=True) if new is not old]
        if fresh:
            self._ledger.write_ledger([entry for entry in fresh if entry], [], now)
        return marked

    def hold(
        self, holds: Sequence[tuple[Case, Hold]], version_to_mark: int | None, now: datetime
    ) -> Effects:
        """Leave letters in the DLQ, hidden until their time if that is later than now."""
        effects = Effects()
        try:
            holds = self._noted(holds, version_to_mark, now)
        except CallFailed as failed:
            effects.failure = failed
            return effects
        count_holds(effects, holds)
        later = [(case, hold.until - now) for case, hold in holds if hold.until > now]
        # Rounds run side by side: if two of them take the same room, a few hundred more letters are hidden.
        room = self._room_to_hide
        self._room_to_hide = max(0, room - len(later))
        effects.add(self._hide(later[:room]))
        return effects

    def _noted(
        self, holds: Sequence[tuple[Case, Hold]], version_to_mark: int | None, now: datetime
    ) -> Sequence[tuple[Case, Hold]]:
        """Record in the ledger until when letters stay, and that they are back. Raises CallFailed."""
        if version_to_mark is not None:
            # A redrive or a parking writes the entry anyway, a hold does not.
            held = self.mark_returns([case for case, _ in holds], version_to_mark, now)
            holds = [(case, hold) for case, (_, hold) in zip(held, holds, strict=True)]
        deferred = [self._deferred(case, hold, now) for case, hold in holds if _is_new(case, hold)]
        if deferred:
            self._ledger.write_ledger(deferred, [], now)
        return holds

    def _deferred(self, case: Case, hold: Hold, now: datetime) -> Entry:
        assert hold.not_before is not None  # noqa: S101 - see _is_new
        return case.known(self._name_of(case)).deferred(
            not_before=hold.not_before, strikes=hold.strikes, batch=case.batch, now=now
        )

    def _hide(self, letters: Sequence[tuple[Case, timedelta]]) -> Effects:
        faults = (
            self._letters_in.hide((case.letter, time) for case, time in letters) if letters else []
        )
        effects = Effects()
        effects.saw(faults)
        return effects


def _is_new(case: Case, hold: Hold) -> bool:
    """Whether the hold's time is worth recording: the ledger does not have it already."""
    return hold.not_before is not None and (
        case.entry is None or case.entry.not_before != hold.not_before
    )
