"""Carries out what was decided about the letters of one round, and says what was done. It decides nothing.

The order of effects is send, ledger, delete, so that a crash anywhere may repeat a letter and never loses one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol, TypeVar

from redrive.core.batch import Batch
from redrive.core.case import Case, trail_after
from redrive.core.cause import error_of
from redrive.core.decision import Decision, Discard, Hold, Park, ParkReason, Redrive
from redrive.core.ledger import Entry, Status
from redrive.core.outgoing import Outgoing
from redrive.core.pacing import MAX_SQS_DELAY
from redrive.core.queue_facts import QueueFacts
from redrive.core.sight import is_out_of_sight
from redrive.errors import CallFailed
from redrive.passes.effects import Effects, Sending
from redrive.passes.ports import DeadLetters, Ledger, ParkingLot, Source
from redrive.passes.send_back import Forwarded, Leaving, delete, forward

Decided = Sequence[tuple[Case, Decision]]
D = TypeVar("D", Redrive, Park, Hold, Discard)


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """A source that letters can go back to, and the batch that they then belong to; the circuit's `version` that has it."""

    source: Source
    facts: QueueFacts
    batch: Batch | None = None
    version: int = 0


class Hands(Protocol):
    """What a pass can do to letters. A dry run has hands that do nothing and say the same."""

    def carry_out(
        self,
        decided: Decided,
        destinations: Mapping[str, Destination],
        now: datetime,
        *,
        version_to_mark: int | None,
        is_one_of_many: bool = False,
    ) -> Effects: ...
    def mark_returns(self, cases: Sequence[Case], version: int, now: datetime) -> list[Case]: ...
    def park(self, parks: Sequence[tuple[Case, Park]], now: datetime) -> Effects: ...
    def discard(self, discards: Sequence[tuple[Case, Discard]]) -> Effects: ...
    def release(self, cases: Sequence[Case]) -> Effects: ...


class RealHands:
    """Sends, records, deletes and hides. `name_of` tells the source queue that a letter belongs to."""

    def __init__(
        self,
        dead_letters: DeadLetters,
        parking_lot: ParkingLot,
        ledger: Ledger,
        *,
        parking_lot_limit: int,
        name_of: Callable[[Case], str],
    ) -> None:
        self._dead_letters = dead_letters
        self._parking_lot = parking_lot
        self._ledger = ledger
        self._parking_lot_limit = parking_lot_limit
        self._name_of = name_of

    def carry_out(
        self,
        decided: Decided,
        destinations: Mapping[str, Destination],
        now: datetime,
        *,
        version_to_mark: int | None,
        is_one_of_many: bool = False,
    ) -> Effects:
        """Do what was decided about the letters of one round; a refused call that it needs is in the answer.

        Args:
            destinations: by ARN.
            version_to_mark: the circuit's version, to note returns with that stay; None where that is done.
            is_one_of_many: several rounds are under way, and a ledger write waits until it is full.

        """
        effects = self.discard(only(decided, Discard))
        redrives = only(decided, Redrive)
        for arn in dict.fromkeys(one.destination for _, one in redrives):
            some = [(case, one) for case, one in redrives if one.destination == arn]
            effects.add(self._redrive(some, destinations[arn], now, is_one_of_many))
            if effects.failure:
                return effects
        effects.add(self.park(only(decided, Park), now))
        if not effects.failure:
            effects.add(self._hold(only(decided, Hold), version_to_mark, now))
        return effects

    def discard(self, discards: Sequence[tuple[Case, Discard]]) -> Effects:
        """Delete copies that an accepted send has replaced already."""
        effects = Effects()
        for case, decision in discards:
            effects.tell("letter.discarded", case, decision.reason)
        effects.counts["discarded"] += len(discards)
        deleted = delete([case.letter for case, _ in discards], self._dead_letters)
        effects = _with(effects, deleted)
        if deleted.not_deleted and self._dead_letters.is_fifo:
            # Hidden, one would cut its group off: what stands before it could be taken for all that there is.
            left = {fault.key for fault in deleted.not_deleted}
            effects.add(self.release([case for case, _ in discards if case.message_id in left]))
        return effects

    def park(self, parks: Sequence[tuple[Case, Park]], now: datetime) -> Effects:
        """Send letters to the parking lot."""
        forwarded = self._to_parking_lot(parks, now)
        effects = _with(Effects(), forwarded)
        for case, decision in parks:
            if case.message_id in forwarded.sent:
                effects.parked[decision.reason.value] += 1
                effects.tell("letter.parked", case, decision.reason.value)
        return effects

    def renew(self, parks: Sequence[tuple[Case, Park]], now: datetime) -> Effects:
        """Send parked letters to the parking lot again, for a new clock."""
        # Delayed, or the sweep that renews them would meet them again.
        forwarded = self._to_parking_lot(parks, now, delay=MAX_SQS_DELAY)
        effects = _with(Effects(), forwarded)
        for case, decision in parks:
            if case.message_id in forwarded.sent:
                effects.counts["renewed"] += 1
                effects.tell("letter.renewed", case, decision.reason.value)
        return effects

    def release(self, cases: Sequence[Case]) -> Effects:
        """Make letters visible again at once. Only after the last round, which would else receive them again."""
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

    def _redrive(
        self,
        redrives: Sequence[tuple[Case, Redrive]],
        to: Destination,
        now: datetime,
        is_one_of_many: bool,
    ) -> Effects:
        assert to.batch is not None, "a batch is registered before anything is sent"  # noqa: S101
        name = to.source.name
        if self._dead_letters.is_fifo:
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
        )
        effects = _with(Effects(), forwarded)
        count_redrives(
            effects,
            name,
            [one for one in redrives if one[0].message_id in forwarded.sent],
            settles_at_once=to.source.settles_at_once,
        )
        bounced = [one for one in redrives if one[0].message_id in forwarded.bounced]
        effects.add(self._bounced(bounced, forwarded.bounced, to, to.batch, now))
        refusal = next((one for one in forwarded.not_sent if one.is_refusal), None)
        if refusal:
            effects.refusals[name] = refusal.code
        unfit = _to_park(redrives, forwarded)
        if unfit and not effects.failure:
            effects.add(self.park(unfit, now))
        return effects

    def _redriven(
        self, case: Case, decision: Redrive, to: Destination, batch: Batch, now: datetime
    ) -> Leaving:
        entry = case.known(to.source.name)

        def record(new_id: str) -> Entry:
            redriven = _redriven_entry(
                entry, case, decision, batch, now, new_id, keeps=self._dead_letters.is_fifo
            )
            return redriven.succeeded(now) if to.source.settles_at_once else redriven

        outgoing = Outgoing(
            letter=case.letter,
            trail=trail_after(entry, to.source.name, batch),
            size_limit=to.facts.max_message_size,
            delay=decision.delay,
            salt=entry.salt,
            may_carry_trail=to.source.carries_trails,
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
        """Note letters that stay, since their target took them and failed: each is back from the batch that it was in.

        Marked with the version that has the batch: the circuit's next one has them counted, see `counts_as_evidence`.
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
        """The letters, each with an entry that was written before its send. Raises CallFailed.

        A FIFO queue swallows a send under an id that it had within five minutes. Were the id made of the letter alone, a ledger
        that has lost what became of the first copy would wait for a second one that was never accepted.
        """
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

    def _to_parking_lot(
        self, parks: Sequence[tuple[Case, Park]], now: datetime, *, delay: timedelta = timedelta()
    ) -> Forwarded:
        return forward(
            [self._parked(case, decision, now, delay) for case, decision in parks],
            self._parking_lot.park,
            out_of=self._dead_letters,
            ledger=self._ledger,
            now=now,
        )

    def _parked(self, case: Case, decision: Park, now: datetime, delay: timedelta) -> Leaving:
        queue = self._name_of(case)
        entry = case.known(queue)
        record = partial(_parked_entry, entry, case, decision, now)
        outgoing = Outgoing(
            letter=case.letter,
            trail=trail_after(entry, queue, None),
            size_limit=self._parking_lot_limit,
            delay=delay,
        )
        return Leaving(outgoing, record)

    def _hold(
        self, holds: Sequence[tuple[Case, Hold]], version_to_mark: int | None, now: datetime
    ) -> Effects:
        """Leave letters in the DLQ, hidden until their time where that is later than now."""
        effects = Effects()
        try:
            if version_to_mark is not None:
                # A redrive or a parking writes the entry anyway, a hold does not.
                held = self.mark_returns([case for case, _ in holds], version_to_mark, now)
                holds = [(case, hold) for case, (_, hold) in zip(held, holds, strict=True)]
            deferred = [
                self._deferred(case, hold, now) for case, hold in holds if _is_new(case, hold)
            ]
            if deferred:
                self._ledger.write_ledger(deferred, [], now)
        except CallFailed as failed:
            effects.failure = failed
            return effects
        count_holds(effects, holds)
        effects.add(
            self._hide([(case, hold.until - now) for case, hold in holds if hold.until > now])
        )
        return effects

    def _deferred(self, case: Case, hold: Hold, now: datetime) -> Entry:
        assert hold.not_before is not None  # noqa: S101 - see _is_new
        return case.known(self._name_of(case)).deferred(
            not_before=hold.not_before, strikes=hold.strikes, batch=case.batch, now=now
        )

    def _hide(self, letters: Sequence[tuple[Case, timedelta]]) -> Effects:
        faults = (
            self._dead_letters.hide((case.letter, time) for case, time in letters)
            if letters
            else []
        )
        effects = Effects()
        effects.saw(faults)
        return effects


def _has_no_salt(entry: Entry) -> bool:
    """Whether its consumer told of the letter before a pass met it: nothing was sent under its name yet."""
    return entry.status is Status.FAILED and not entry.salt


def only(decided: Decided, kind: type[D]) -> list[tuple[Case, D]]:
    """The letters of one kind of decision."""
    return [(case, what) for case, what in decided if isinstance(what, kind)]


def marked_returns(
    cases: Sequence[Case], version: int, now: datetime, name_of: Callable[[Case], str]
) -> list[Case]:
    """The letters, those that are back noted as such."""
    return [
        replace(
            case,
            entry=case.known(name_of(case)).returned(
                message_id=case.message_id, version=version, now=now
            ),
        )
        if case.is_unseen_return(version)
        else case
        for case in cases
    ]


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


def _parked_entry(entry: Entry, case: Case, decision: Park, now: datetime, new_id: str) -> Entry:
    return entry.parked(
        replaced_id=case.message_id,
        new_id=new_id,
        reason=decision.reason.value,
        strikes=decision.strikes,
        error=error_of(case.letter.attributes),
        now=now,
    )


def _is_new(case: Case, hold: Hold) -> bool:
    """Whether the hold's time is worth writing down: it is not what the ledger says already."""
    return hold.not_before is not None and (
        case.entry is None or case.entry.not_before != hold.not_before
    )


def _to_park(
    redrives: Sequence[tuple[Case, Redrive]], forwarded: Forwarded
) -> list[tuple[Case, Park]]:
    """Letters that were not taken, for their content, or with no time to wait until they are."""
    content = {fault.key for fault in forwarded.not_sent if fault.is_of_content}
    gone = forwarded.sent | forwarded.bounced.keys()
    parks: list[tuple[Case, Park]] = []
    for case, decision in redrives:
        if case.message_id in content:
            parks.append((case, Park(reason=ParkReason.UNDELIVERABLE, strikes=decision.strikes)))
        elif decision.is_expiring and case.message_id not in gone:
            parks.append((case, Park(reason=ParkReason.EXPIRING, strikes=decision.strikes)))
    return parks


def count_redrives(
    effects: Effects,
    name: str,
    redrives: Sequence[tuple[Case, Redrive]],
    *,
    settles_at_once: bool,
) -> None:
    """Count letters that were redriven to the source of this name, and tell of each."""
    has_succeeded = True if settles_at_once else None
    for case, decision in redrives:
        effects.counts["redriven"] += 1
        effects.sendings.append(
            Sending(
                source=name,
                delay=decision.delay,
                is_suspect=decision.is_suspect,
                has_succeeded=has_succeeded,
                is_unseen=is_out_of_sight(case),
            )
        )
        effects.tell("letter.redriven", case, decision.reason, delay=decision.delay.seconds)


def count_holds(effects: Effects, holds: Sequence[tuple[Case, Hold]]) -> None:
    """Count letters that stay in the DLQ, and tell of each."""
    for case, hold in holds:
        effects.held[hold.reason.value] += 1
        effects.tell("letter.held", case, hold.reason.value)


def _with(effects: Effects, forwarded: Forwarded) -> Effects:
    effects.saw(forwarded.not_sent)
    effects.healed += forwarded.healed
    effects.saw(forwarded.not_deleted)
    effects.removed += forwarded.removed
    effects.failure = forwarded.failure
    return effects
