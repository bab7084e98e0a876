"""Why one letter waits, and until when at the latest: from the headline of its queue and from its ledger entry.

The ledger says what keeps one letter, and the headline what keeps all of them. What keeps it longest is reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.headline import Seen, Topic, headline
from smart_redriver.engine.model.circuit import Circuit
from smart_redriver.engine.model.rate import PATIENCE
from smart_redriver.engine.triage.ledger import Entry, Status
from smart_redriver.oncall.deployment.session import Session
from smart_redriver.oncall.status.standing import seen_by_source
from smart_redriver.oncall.terminal.words import ago, stamp

_IN_THE_DLQ = (Status.RETURNED, Status.FAILED)
#: What all letters of a queue wait for, by the topic of its headline.
_WITH_ALL = {
    Topic.UNREAD: "its source queue, which can't be read: `redrive doctor`",
    Topic.NO_PASSES: "passes, of which none runs by itself: `redrive doctor`",
    Topic.MODE: "`mode=automatic`",
    Topic.PAUSED: "the end of the pause",
    Topic.DOWN: "the next canary",
    Topic.CANARY: "the outcome of the canary that is out",
    Topic.FAILING: "one of the letters that are tried to succeed",
    Topic.SILENT: "the outcome of the letters that are out",
    Topic.CROWDED: "the consumer's queue to hold no more than usual",
}


@dataclass(frozen=True, slots=True)
class Wait:
    """What a letter waits for, and until when at the latest if that is known."""

    what: str
    until: datetime | None = None

    def in_words(self, now: datetime) -> str:
        """Say it in one line."""
        if self.until is None:
            return self.what
        if self.until <= now:
            return f"{self.what}, with the next pass"
        return f"{self.what}, until {stamp(self.until)} at the latest ({ago(self.until, now)})"

    def until_in_words(self, now: datetime) -> str:
        """Say the end for a column."""
        is_past = self.until is not None and self.until <= now
        return "the next pass" if is_past else stamp(self.until) or "-"

    def to_json(self) -> dict[str, Any]:
        return {"for": self.what, "until": stamp(self.until)}


class Waits:
    """Says what letters of a DLQ wait for at present."""

    def __init__(
        self, seen: Mapping[str, Seen], circuits: Mapping[str, Circuit | None], settings: Settings
    ) -> None:
        self._seen = seen
        self._circuits = circuits
        self._settings = settings

    @classmethod
    def of(cls, session: Session) -> Waits:
        """Read the circuit of each source queue, and the DLQ's depth. Raises CallFailed and Refused."""
        circuits = {name: session.store.of(name).load_circuit() for name in session.place.sources}
        seen = seen_by_source(session, circuits, session.dead_letters.facts())
        return cls(seen, circuits, session.settings)

    def letter(
        self, entry: Entry | None, *, queue: str | None = None, is_met: bool = False
    ) -> Wait | None:
        """The letter's wait; without an entry, the wait of a letter on its first visit. None if it waits for nothing.

        `queue`: the source queue that the letter itself names, for use without an entry. `is_met`: the letter was seen
        in the DLQ, which the ledger may not know yet.
        """
        if entry is not None and is_met:
            entry = replace(entry, status=Status.RETURNED)
        seen = self._seen_of(entry.queue if entry else queue)
        if entry is not None and not _is_there(entry):
            return _elsewhere(entry, self._circuits.get(entry.queue))
        if seen is None:
            return Wait("its turn")
        both = (_alone(entry, seen, self._settings) if entry else None, _with_all(seen))
        waits = [one for one in both if one is not None]
        return max(
            waits or [Wait("its turn", seen.drained_by)], key=lambda one: one.until or seen.at
        )

    def _seen_of(self, queue: str | None) -> Seen | None:
        """The state of the letter's queue; None if the letter may belong to any of several."""
        first, *more = self._seen.values()
        if queue is None:
            return None if more else first
        return self._seen.get(queue, first)

    def alone(self, entry: Entry) -> Wait | None:
        """What this letter alone waits for, apart from what keeps all letters; None if nothing."""
        seen = self._seen.get(entry.queue)
        return _alone(entry, seen, self._settings) if seen and _is_there(entry) else None


def _is_there(entry: Entry) -> bool:
    """Whether the letter is in the DLQ and nowhere else, as far as the ledger knows."""
    is_settled = entry.status is Status.REDRIVEN and entry.is_settled
    return is_settled or entry.status in _IN_THE_DLQ


def _elsewhere(entry: Entry, circuit: Circuit | None) -> Wait | None:
    """The wait of a letter that has left the DLQ; None if it does not come back."""
    if entry.status is Status.PARKED:
        return Wait("a person's decision: it is parked")
    if entry.status is not Status.REDRIVEN:
        return None
    batch = circuit.pending_batch(entry.batch) if circuit else None
    if batch:
        return Wait("its outcome", batch.due_at)
    is_judged = circuit is not None and circuit.judged_batch(entry.batch) is not None
    return Wait(
        f"its return, if it failed: batch {entry.batch} is judged" if is_judged else "its outcome"
    )


def _alone(entry: Entry, seen: Seen, settings: Settings) -> Wait | None:
    for kind in seen.kinds_down:
        if kind.name == entry.cause:
            return Wait("a canary of its cause", kind.next_canary_at)
    until = entry.not_before
    if until is None or until <= seen.at:
        return None
    is_last = _is_last_chance(entry, until, settings)
    return Wait("its last chance" if is_last else "its backoff", until)


def _is_last_chance(entry: Entry, until: datetime, settings: Settings) -> bool:
    if entry.first_strike is None:
        return False
    chance = entry.first_strike + timedelta(seconds=settings.last_chance_seconds)
    return entry.strikes >= settings.max_attempts - 1 and until >= chance


def _with_all(seen: Seen) -> Wait | None:
    """The wait of every letter of the queue, if there is one."""
    told = headline(seen)
    if told.lets_flow:
        return None
    until = {
        Topic.PAUSED: seen.orders.paused_until,
        Topic.DOWN: _canary_at(seen),
        Topic.CANARY: seen.out_until,
        Topic.SILENT: seen.out_until,
        Topic.CROWDED: seen.crowded_since and seen.crowded_since + PATIENCE,
    }
    what = _WITH_ALL[told.topic]
    if told.topic is Topic.DOWN and seen.heeds_live:
        what += ", or a live message that succeeds"
    return Wait(what, until.get(told.topic))


def _canary_at(seen: Seen) -> datetime | None:
    """Return the latest time of the next canary. After the cool-down, failing live messages delay it."""
    at = seen.next_canary_at
    return at if at and at > seen.at else seen.canary_at_latest or at
