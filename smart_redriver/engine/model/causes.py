"""Circuits by cause: letters that fail for one cause while others succeed are held together. Pure.

    strikes of one cause ──► HELD: one canary of the cause per cool-down, the others wait and earn no strikes
                               │  a letter of the cause succeeds          │  canaries failed beyond the last chance
                               ▼                                         ▼
                             the group flows                           the group is parked

A cause is what consumers report: the class of the error. Without reports nothing here happens. The circuits are kept
with their queue's own, so that one read and one conditional write hold for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

#: Circuits by cause of one queue. What is beyond has its letters judged one by one.
MOST_CAUSES = 20

#: Letters that make a cause of theirs by failing while others succeed: fewer are judged one by one. And of those that
#: were tried, such a share has to have failed: bad luck comes to half of them, what they need being down to all.
FEWEST_OF_A_CAUSE = 3
MOSTLY = 0.8

#: Outcomes of a cause's letters are counted for so long without news: an outage that is over says nothing of the next.
COUNTED_FOR = timedelta(minutes=10)

#: A canary of which nothing is heard nor seen for so long beyond the time that it takes to fail is given up on.
PATIENCE = timedelta(minutes=5)

#: Where no letter of a held cause was seen for so long, there is none.
FORGOTTEN_AFTER = timedelta(days=1)

#: While a canary is out, the others are looked at again after this.
LOOK_AGAIN = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseCircuit:
    """The memory of the letters of one cause.

    Attributes:
        failed, succeeded: letters that failed of it while others succeeded, and that succeeded after they had failed of
            it, up to `counted_at`.
        held_since: since when its letters are held together; None while they flow.
        cools_until: when the next canary may go. `canaries_failed`: in a row.
        canary_id: original id of the letter that is out as a canary. `canary_batch`, `canary_sent_at`: likewise.
        convicted_at: when the last canary was sent that failed after enough others: those letters are parked for whom
            that was late enough.
        letters: how many of them were left in the DLQ by the pass that saw some last, at `seen_at`; while most of them
            are hidden until the next canary, the most that a pass left. `is_empty`: it parked the last of them.

    """

    cause: str
    failed: int = 0
    succeeded: int = 0
    counted_at: datetime | None = None
    held_since: datetime | None = None
    cools_until: datetime | None = None
    canaries_failed: int = 0
    canary_id: str | None = None
    canary_batch: int | None = None
    canary_sent_at: datetime | None = None
    convicted_at: datetime | None = None
    letters: int = 0
    seen_at: datetime | None = None
    is_empty: bool = False

    @property
    def is_held(self) -> bool:
        """Whether its letters are held together."""
        return self.held_since is not None

    @property
    def holds_letters(self) -> bool:
        """Whether there may be some that are."""
        return self.is_held and not self.is_empty

    def after_pass(self, *, stayed: int, left: int, now: datetime) -> CauseCircuit:
        """After a pass that saw some of its letters in the DLQ: those that stayed there, and those that are parked."""
        # While it cools they are hidden, and a pass meets the new ones and its canary alone.
        is_cool = self.cools_until is None or now >= self.cools_until
        letters = stayed if is_cool else max(stayed, self.letters - left)
        return replace(self, letters=letters, seen_at=now, is_empty=not letters)

    def awaits_canary(self, now: datetime, time_to_fail: timedelta) -> bool:
        """Whether a canary is out of which something may yet be known."""
        sent_at = self.canary_sent_at
        return sent_at is not None and now < sent_at + time_to_fail + PATIENCE

    def may_try(self, now: datetime, time_to_fail: timedelta) -> bool:
        """Whether a canary may go."""
        is_cool = self.cools_until is None or now >= self.cools_until
        return is_cool and not self.awaits_canary(now, time_to_fail)

    def is_canary(self, original_id: str, batch: int | None) -> bool:
        """Whether this letter went out in this batch as a canary."""
        return original_id == self.canary_id and batch == self.canary_batch

    def without_canary(self) -> CauseCircuit:
        """Return the circuit once the outcome of its canary is known."""
        return replace(self, canary_id=None, canary_batch=None, canary_sent_at=None)

    def after_failed_canary(
        self, cools_for: timedelta, now: datetime, *, convicts_after: timedelta, fewest: int
    ) -> CauseCircuit:
        """Return the circuit after a canary failed for the same cause.

        Args:
            convicts_after: a canary that was sent so long after the letters were first held was their last chance.
            fewest: canaries that have to have failed by then.

        """
        failed = self.canaries_failed + 1
        after = replace(self.without_canary(), canaries_failed=failed, cools_until=now + cools_for)
        since, sent_at = self.held_since, self.canary_sent_at
        if since is None or sent_at is None or failed < fewest or sent_at < since + convicts_after:
            return after
        return replace(after, convicted_at=sent_at)


def with_successes(
    causes: Sequence[CauseCircuit], recovered: Mapping[str, Sequence[datetime]], now: datetime
) -> tuple[CauseCircuit, ...]:
    """The circuits after letters succeeded that had failed before: by cause, when each of them was sent.

    One that was sent after its kind was held ends that: what they need is up again.
    """
    known = {one.cause: one for one in causes}
    for cause, sent in recovered.items():
        before = _counted(known, cause, now)
        if before.held_since is not None and max(sent) >= before.held_since:
            before = CauseCircuit(cause=cause)
        known[cause] = replace(before, succeeded=before.succeeded + len(sent), counted_at=now)
    return kept(known.values(), now)


def with_failures(
    causes: Sequence[CauseCircuit], failed: Mapping[str, int], cools_for: timedelta, now: datetime
) -> tuple[CauseCircuit, ...]:
    """The circuits after letters failed while others succeeded, counted by cause.

    Those of a cause that mostly fail are held from now on, for `cools_for` before the first canary.
    """
    known = {one.cause: one for one in causes}
    for cause, letters in failed.items():
        after = _counted(known, cause, now)
        after = replace(after, failed=after.failed + letters, counted_at=now)
        mostly_fails = after.failed >= MOSTLY * (after.failed + after.succeeded)
        if not after.is_held and after.failed >= FEWEST_OF_A_CAUSE and mostly_fails:
            after = replace(after, held_since=now, cools_until=now + cools_for, seen_at=now)
        known[cause] = after
    return kept(known.values(), now)


def _counted(known: Mapping[str, CauseCircuit], cause: str, now: datetime) -> CauseCircuit:
    """Return the memory of a cause, without counts that are old."""
    circuit = known.get(cause, CauseCircuit(cause=cause))
    if circuit.counted_at is not None and now > circuit.counted_at + COUNTED_FOR:
        return replace(circuit, failed=0, succeeded=0)
    return circuit


def _is_forgotten(circuit: CauseCircuit, now: datetime) -> bool:
    if circuit.is_held:
        return circuit.seen_at is not None and now > circuit.seen_at + FORGOTTEN_AFTER
    return circuit.counted_at is None or now > circuit.counted_at + COUNTED_FOR


def kept(circuits: Iterable[CauseCircuit], now: datetime) -> tuple[CauseCircuit, ...]:
    """Return those that still matter, up to the number kept: first those that hold letters."""
    known = [one for one in circuits if not _is_forgotten(one, now)]
    return tuple(sorted(known, key=lambda one: not one.is_held)[:MOST_CAUSES])
