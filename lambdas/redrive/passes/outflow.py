"""Lets letters through as the permit allows: the half of a pass that sends.

The engine runs the rounds side by side; what they share (the room, the batch, the tally) is touched only between
their errands, by the thread of the pass.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import datetime
from functools import partial

from redrive.core import breaker
from redrive.core.circuit import Batch, Circuit
from redrive.core.pacing import MAX_SQS_DELAY
from redrive.core.report import Outcome
from redrive.core.triage import Hold, Redrive
from redrive.errors import RedriverError
from redrive.passes.assess import Returns, count_returns
from redrive.passes.circuit_keeper import CircuitKeeper
from redrive.passes.decider import Decider
from redrive.passes.parallel import Engine, Round
from redrive.passes.rounds import ROUND_SIZE, Examined, Rounds, Tally
from redrive.passes.tools import Workplace


class Outflow:
    """The letters that one pass redrives, parks and holds, and the batch that the redriven ones form."""

    def __init__(self, place: Workplace, keeper: CircuitKeeper, rounds: Rounds) -> None:
        now = place.tools.clock()
        self._place = place
        self._keeper = keeper
        self._rounds = rounds
        self._permit = breaker.allow(keeper.circuit, place.settings, now)
        self._decider = Decider(
            place.terms,
            place.settings,
            room=self._permit.limit,
            rate=_rate(keeper.circuit, place.settings.max_rate, now),
            rng=place.tools.rng,
        )
        self._tally = Tally()
        self._batch: Batch | None = None
        self._late_returns: Returns = Counter()
        self._released: list[Examined] = []
        self._asked = 0
        self._in_hand: set[str] = set()
        self._is_dlq_empty = False
        self._engine = Engine(self._width())
        self._is_large = self._engine.width > 1

    def run(self, looked: list[Examined]) -> None:
        """First the letters in hand, then round by round. Raises CallFailed and LostRace."""
        looked = self._one_of_each(looked)
        first = [self._carried_out(looked, are_returns_marked=True)] if looked else []
        self._engine.run(lambda: first.pop() if first else self._next_round())

    def settled(self, circuit: Circuit, now: datetime) -> Circuit:
        """The circuit with the batch completed, late returns charged and a refusal counted."""
        if self._batch is not None and circuit.pending_batch(self._batch.id):
            circuit = self._completed(circuit, self._batch, now)
        circuit = breaker.charge(circuit, self._late_returns)
        if self._tally.refused is not None:
            self._place.report.outcome = Outcome.REFUSED
            self._place.report.reason = f"the source queue refused letters: {self._tally.refused}"
            reason = self._place.report.reason
            circuit = breaker.refuse(circuit, reason, self._place.settings, now)
        return circuit

    def release(self) -> None:
        """Make visible what was not due. After the last round, which would else receive it again."""
        self._rounds.release(self._released)

    def _width(self) -> int:
        """Rounds at once: no more than what is waiting fills, since each that finds nothing costs a call."""
        waiting = min(self._decider.room, self._place.dlq.visible)
        return max(1, min(self._place.tools.workers, -(-waiting // ROUND_SIZE)))

    def _next_round(self) -> Round | None:
        """One more round, while the permit has room that no round under way has asked for."""
        limit = min(self._decider.room - self._asked, ROUND_SIZE)
        if limit <= 0 or self._is_dlq_empty or self._tally.refused is not None:
            return None
        return self._round(limit)

    def _round(self, limit: int) -> Round:
        """Receive at most `limit` letters, and carry out what is decided about them."""
        part = self._apart()
        self._asked += limit
        try:
            examined = yield partial(part.gather, limit, hidden_for=self._place.hidden_for())
        finally:
            self._asked -= limit
            self._rounds.absorb(part)
        if len(examined) < limit:
            self._engine.width = 1  # the end of the DLQ is near: several would all look for it
            self._is_dlq_empty |= not examined
        if self._engine.failure is not None:
            return
        examined = self._one_of_each(examined)
        self._late_returns += count_returns(self._place, examined, self._keeper.version)
        yield from self._carried_out(examined, are_returns_marked=False)

    def _apart(self) -> Rounds:
        # Recording each send call at once costs a sixth more calls; where hundreds of letters go, that is money.
        return self._rounds.apart(is_one_of_many=self._is_large)

    def _carried_out(self, examined: list[Examined], *, are_returns_marked: bool) -> Round:
        """Decide about letters, and carry it out."""
        place, now = self._place, self._place.tools.clock()
        if now >= place.deadline:
            place.report.outcome = Outcome.OUT_OF_TIME
            self._decider.room = 0
            return  # the lease may be another's by now, and the letters are visible again soon
        for one in examined:
            place.report.saw_letter(one.letter.sent_at, place.dlq.retention, now)
        decided = self._decider.decide(examined, self._keeper.circuit, now)
        is_any_redriven = any(isinstance(what, Redrive) for _, what in decided)
        try:
            batch = self._registered_batch(now) if is_any_redriven else None
        except RedriverError:
            self._released += examined
            raise
        self._released += [
            one for one, what in decided if isinstance(what, Hold) and what.until <= now
        ]
        part, tally = self._apart(), Tally()
        ids = {one.letter.original_id for one in examined}
        self._in_hand |= ids
        marking = None if are_returns_marked else self._keeper.version
        try:
            yield partial(part.carry_out, decided, batch, tally, now, version_to_mark=marking)
        finally:
            self._in_hand -= ids
            self._rounds.absorb(part)
            self._tally.absorb(tally)

    def _one_of_each(self, examined: list[Examined]) -> list[Examined]:
        """Letters without the further copies of any, which the next pass will meet: the ledger has one entry for all.

        SQS may hand a letter out twice, and a crash may leave two copies; the other may be in another round's hands.
        """
        first = {one.letter.original_id: one for one in reversed(examined)}
        return [one for original_id, one in first.items() if original_id not in self._in_hand]

    def _registered_batch(self, now: datetime) -> Batch:
        """The batch of this pass, announced in the circuit before its first letter is sent."""
        if self._batch is None:
            latest = self._place.deadline + MAX_SQS_DELAY + self._place.time_to_fail()
            circuit, batch = breaker.register_batch(
                self._keeper.circuit, self._permit, now, due_at=latest
            )
            self._keeper.save(circuit)
            self._batch = batch
        return self._batch

    def _completed(self, circuit: Circuit, batch: Batch, now: datetime) -> Circuit:
        tally = self._tally
        if not tally.size:
            return circuit.without_batch(batch.id)
        return circuit.with_batch(
            replace(
                batch,
                size=tally.size,
                suspects=tally.suspects,
                first_try_at=batch.sent_at + tally.shortest_delay,
                due_at=now + tally.longest_delay + self._place.time_to_fail(),
                is_complete=True,
            )
        )


def _rate(circuit: Circuit, max_rate: float, now: datetime) -> float:
    """Letters a second: the setting, or more while a person's drain is on; 0 is without limit."""
    if max_rate and circuit.orders.drains(now):
        return max(max_rate, circuit.orders.drain_rate or max_rate)
    return max_rate
