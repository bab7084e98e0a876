"""Circuits by cause: letters that fail for one cause while others succeed are held together. Pure.

    strikes of one cause ──► HELD: one canary of the cause per cool-down, the others wait and earn no strikes
                               │  a letter of the cause succeeds          │  canaries failed beyond the last chance
                               ▼                                         ▼
                             the group flows                           the group is parked

A cause is the class of the error that consumers report; without reports nothing happens here. The circuits are kept
with their queue's own circuit, so that one read and one conditional write cover them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

#: Circuits by cause that one queue keeps. Letters of further causes are judged one by one.
MOST_CAUSES = 20

#: This many letters must fail for one cause while others succeed before the cause is held: fewer are judged one by one.
#: This share of its tried letters must have failed, too: bad luck hits half of them, but a dependency that is down hits
#: all.
FEWEST_OF_A_CAUSE = 3
MOSTLY = 0.8

#: How long the outcomes of a cause's letters count without news: a past outage says nothing about the next.
COUNTED_FOR = timedelta(minutes=10)

#: A canary is given up when nothing is heard or seen of it for this long beyond its time to fail.
PATIENCE = timedelta(minutes=5)

#: If no letter of a held cause was seen for this long, there is none.
FORGOTTEN_AFTER = timedelta(days=1)

#: While a canary is out, the others are looked at again after this.
LOOK_AGAIN = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseCircuit:
    """The memory of the letters of one cause.

    Attributes:
        failed, succeeded: letters that failed for it while others succeeded, and letters that succeeded after failing
            for it, up to `counted_at`.
        held_since: when its letters began to be held together; None while they flow.
        cools_until: when the next canary may go. `canaries_failed`: how many failed in a row.
        canary_id: original id of the letter that is out as a canary. `canary_batch`, `canary_sent_at`: its batch and
            time.
        convicted_at: when the last canary was sent that failed after enough others. Letters for which that was late
            enough are parked.
        letters: how many the last pass that saw some, at `seen_at`, left in the DLQ; while most are hidden until the
            next canary, the most that a pass left. `is_empty`: that pass parked the last of them.

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
        """Whether any letters may be held."""
        return self.is_held and not self.is_empty

    def after_pass(self, *, stayed: int, left: int, now: datetime) -> CauseCircuit:
        """The circuit after a pass that saw its letters in the DLQ: `stayed` of them stay there, `left` are parked."""
        # While the cause cools, its letters are hidden: a pass finds only new ones and the canary.
        is_cool = self.cools_until is None or now >= self.cools_until
        letters = stayed if is_cool else max(stayed, self.letters - left)
        return replace(self, letters=letters, seen_at=now, is_empty=not letters)

    def awaits_canary(self, now: datetime, time_to_fail: timedelta) -> bool:
        """Whether a canary is out whose outcome may still become known."""
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
            convicts_after: a canary sent this long after the letters were first held was their last chance.
            fewest: how many canaries must have failed by then.

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
    """The circuits after letters that had failed before succeeded; `recovered` says by cause when each did.

    A success since its cause is held ends the hold: what the letters need is up again.
    """
    known = {one.cause: one for one in causes}
    for cause, times in recovered.items():
        before = _counted(known, cause, now)
        if before.held_since is not None and max(times) >= before.held_since:
            before = CauseCircuit(cause=cause)
        known[cause] = replace(before, succeeded=before.succeeded + len(times), counted_at=now)
    return kept(known.values(), now)


def with_failures(
    causes: Sequence[CauseCircuit], failed: Mapping[str, int], cools_for: timedelta, now: datetime
) -> tuple[CauseCircuit, ...]:
    """The circuits after letters failed while others succeeded, counted by cause.

    If a cause's letters mostly fail, they are held from now on; the first canary goes after `cools_for`.
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
    """Return the circuits that still matter, up to `MOST_CAUSES`: first those that hold letters."""
    known = [one for one in circuits if not _is_forgotten(one, now)]
    return tuple(sorted(known, key=lambda one: not one.is_held)[:MOST_CAUSES])
