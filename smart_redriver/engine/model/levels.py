"""How long letters have been waiting for no known moment, and how many wait for their last chance. Pure.

What a pass does not see it goes on counting from what is remembered: hidden letters are received by nobody.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from smart_redriver.engine.model.circuit import Circuit, HeldSuspects
from smart_redriver.engine.triage.decision import Hold, HoldReason

#: Letters held for these are released at once, and nobody knows when they go.
NO_KNOWN_MOMENT = frozenset(
    {
        HoldReason.NO_PERMIT,
        HoldReason.AWAITING_VERDICT,
        HoldReason.CONTROL,
        HoldReason.GROUP,
        HoldReason.BLOCKED,
    }
)

#: Groups of hidden suspects that are remembered, by the minute in which they are seen again.
GROUPS_KEPT = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """What one pass saw of letters that wait for no known moment.

    Attributes:
        letters: how many are left in the DLQ, visible to anybody.
        since: since when the one has lain there that has for longest, where the pass saw all of them.

    """

    letters: int
    since: datetime | None = None


def remember_waiting(circuit: Circuit, waiting: Waiting, now: datetime) -> Circuit:
    """The circuit that knows since when letters wait; nothing is known of the time before it first saw any."""
    if not waiting.letters:
        return replace(circuit, waiting_since=None)
    remembered = circuit.waiting_since or now
    return replace(circuit, waiting_since=max(remembered, waiting.since or remembered))


def remember_suspects(circuit: Circuit, holds: Iterable[Hold], now: datetime) -> Circuit:
    """The circuit that knows of the suspects that this pass hides, and forgets those that are visible again."""
    groups = {one.until: one.letters for one in circuit.held_suspects if one.until > now}
    for hold in holds:
        until = hold.until.replace(second=0, microsecond=0)
        groups[until] = groups.get(until, 0) + 1
    kept = sorted(groups.items())[-GROUPS_KEPT:]
    return replace(
        circuit, held_suspects=tuple(HeldSuspects(until=at, letters=n) for at, n in kept)
    )


def suspects_waiting(circuit: Circuit, now: datetime) -> int:
    """Letters that wait for their last chance now."""
    return sum(one.letters for one in circuit.held_suspects if one.until > now)


def waiting_seconds(circuit: Circuit, now: datetime) -> int:
    """How long letters have been waiting for no known moment; 0 without any."""
    return int((now - circuit.waiting_since).total_seconds()) if circuit.waiting_since else 0
