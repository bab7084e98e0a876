"""Gives letters near expiry a new clock, whatever the circuit says: looks through DLQ and parking lot when due.

Letters that a sweep leaves stay hidden until it is over, or it would receive them again; then they are released.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from smart_redriver.engine.config.targets import queue_name
from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.model.circuit import Circuit
from smart_redriver.engine.passes.apply import LiveExecutor
from smart_redriver.engine.passes.executor import Effects, Executor
from smart_redriver.engine.passes.pass_state import PassState
from smart_redriver.engine.passes.ports import DeadLetters
from smart_redriver.engine.passes.read import ROUND_BYTES, ROUND_SIZE, Read, read_letters
from smart_redriver.engine.passes.source_context import SourceContext
from smart_redriver.engine.triage.case import Case
from smart_redriver.engine.triage.decision import Discard, Park, Renew
from smart_redriver.engine.triage.retention import (
    SWEEP_LIMIT,
    calm_margin,
    is_due,
    is_expiring,
    is_worth_renewing,
    next_lot_sweep,
    next_sweep,
    until_all_are_met,
    urgent_margin,
    while_some_are_hidden,
)
from smart_redriver.engine.triage.triage import Terms, saved

#: How far back the age of the oldest letter is looked up: CloudWatch has it some minutes late.
AGE_LOOKBACK = timedelta(minutes=15)


def is_dlq_sweep_due(circuit: Circuit, now: datetime, *, is_flowing: bool) -> bool:
    """Whether a DLQ sweep is due: at once while nothing is known about the DLQ, more often while nothing flows."""
    return is_due(circuit.urgent_sweep_at if is_flowing else circuit.dlq_sweep_at, now)


def is_lot_sweep_due(circuit: Circuit, now: datetime) -> bool:
    """Whether the parking lot has to be looked through."""
    return is_due(circuit.lot_sweep_at, now)


def next_sweep_at(state: PassState) -> datetime | None:
    """Return when the next sweep of either queue is due; None if both are empty or nothing is known about them."""
    circuit = state.contexts[0].circuit
    is_flowing = all(context.is_flowing for context in state.contexts)
    letters_at = circuit.urgent_sweep_at if is_flowing else circuit.dlq_sweep_at
    return _first(
        letters_at if state.dlq.depth else None,
        circuit.lot_sweep_at if state.parking_lot.depth else None,
    )


class Guard:
    """One look through the queues that are due. The first context's circuit remembers when the next one is."""

    def __init__(self, state: PassState, executor: Executor) -> None:
        self._state = state
        self._executor = executor
        self._context = state.contexts[0]
        self._left: list[Case] = []
        self._stay_parked: list[Case] = []
        self._has_unfinished_work = False
        self._has_met_enough = False

    def sweep_dead_letters(self, *, has_seen_all: bool) -> None:
        """Save letters that could expire before the next look. Raises CallFailed.

        Args:
            has_seen_all: the pass has already decided about every letter of the DLQ.

        """
        state, now = self._state, self._state.tools.clock()
        is_flowing = all(context.is_flowing for context in state.contexts)
        if not state.dlq.depth or not is_dlq_sweep_due(
            self._context.circuit, now, is_flowing=is_flowing
        ):
            return
        oldest = state.oldest
        if not has_seen_all:
            oldest = _first(oldest, self._save_expiring())
        self._plan_next(oldest, now, is_flowing=is_flowing)

    def sweep_parking_lot(self, executor: LiveExecutor, parking_lot: DeadLetters) -> None:
        """Renew parked letters that have used up half their time. Raises CallFailed."""
        state, now = self._state, self._state.tools.clock()
        circuit = self._context.circuit
        if not state.parking_lot.depth or not is_lot_sweep_due(circuit, now):
            return
        oldest = self._renew_parked(executor, parking_lot, now)
        due = next_lot_sweep(oldest, state.parking_lot.retention) if oldest else None
        self._context.keeper.change(
            replace(self._context.circuit, lot_sweep_at=now if self._has_unfinished_work else due)
        )

    def _renew_parked(
        self, executor: LiveExecutor, parking_lot: DeadLetters, now: datetime
    ) -> datetime | None:
        """Renew parked letters, and return since when the oldest one is there. Raises CallFailed."""
        oldest: datetime | None = None
        retention = self._state.parking_lot.retention
        while cases := self._read(parking_lot).cases:
            here = self._without_replaced(cases, executor.discard)
            renewed = [one for one in here if is_worth_renewing(one.letter, retention, now)]
            stay = [one for one in here if not is_worth_renewing(one.letter, retention, now)]
            self._sent(executor.renew([(case, _renewal(case)) for case in renewed], now))
            self._stay_parked += [case.without_content() for case in stay]
            oldest = _first(oldest, _first_sent(stay), now if renewed else None)
        return oldest

    def release(self, lot_executor: LiveExecutor) -> None:
        """Release the letters that the sweeps left. If there is no time for all, the rest appear some minutes later."""
        self._state.did(self._executor.release(self._left))
        for start in range(0, len(self._stay_parked), ROUND_SIZE):
            if self._state.is_over():
                return
            self._state.did(lot_executor.release(self._stay_parked[start : start + ROUND_SIZE]))

    def _save_expiring(self) -> datetime | None:
        """Save letters near expiry, and return the first send of the oldest one that stays. Raises CallFailed."""
        state = self._state
        oldest: datetime | None = None
        left = SWEEP_LIMIT
        while left > 0 and (cases := self._read(state.tools.dead_letters).cases):
            now = state.tools.clock()
            here = self._without_replaced(cases, self._executor.discard)
            terms = {context.known_facts.arn: state.terms(context) for context in state.contexts}
            decided = [(case, self._saved(case, terms, now)) for case in here]
            for case, what in decided:
                state.saw_letter(case, what, now)
            stay = [case for case, what in decided if what is None]
            expiring = [(case, what) for case, what in decided if what is not None]
            # Unmarked: the next pass finds a letter that is back, and charges it.
            self._sent(self._executor.carry_out(expiring, {}, now, version_to_mark=None))
            left_here = cases if state.is_dry else stay
            self._left += [case.without_content() for case in left_here]
            oldest = _first(oldest, _first_sent(stay))
            left -= len(stay)
        self._has_met_enough = left <= 0
        return oldest

    def _saved(
        self, case: Case, by_source: Mapping[str, Terms], now: datetime
    ) -> Park | Renew | None:
        """The decision that saves the letter; None if it is not near its expiry."""
        context = self._state.context_of(case)
        terms = by_source[context.known_facts.arn]
        if not is_expiring(case.letter, terms.retention, terms.margin, now):
            return None
        return saved(case, case.strikes(context.circuit), terms)

    def _plan_next(self, oldest: datetime | None, now: datetime, *, is_flowing: bool) -> None:
        state = self._state
        retention = state.dlq.retention
        if self._has_met_enough:
            oldest = _first(oldest, self._oldest_of_sqs(now))
        newcomers = max(context.known_facts.retention for context in state.contexts)
        calm = next_sweep(oldest, retention, newcomers, calm_margin(retention), now)
        if is_flowing and oldest is not None:
            # A sweep while letters flow leaves letters that the next sweep must park at once if letters stop flowing.
            calm = min(calm, max(now, oldest + retention - calm_margin(retention)))
        urgent = next_sweep(oldest, retention, newcomers, urgent_margin(retention), now)
        if state.examined < state.dlq.depth:
            calm = while_some_are_hidden(calm, retention, now)
            urgent = while_some_are_hidden(urgent, retention, now)
            if self._has_met_enough:
                calm = until_all_are_met(calm, retention, SWEEP_LIMIT, state.dlq.depth, now)
        if self._has_unfinished_work or state.effects.not_renewed is not None:
            calm = urgent = now
        circuit = self._context.circuit
        self._context.keeper.change(replace(circuit, dlq_sweep_at=calm, urgent_sweep_at=urgent))

    def _oldest_of_sqs(self, now: datetime) -> datetime | None:
        """Return since when the oldest letter of the DLQ has been there, by SQS's metrics; its first send was earlier.

        A sweep that did not see all letters may have missed it. The report includes it, so that the alarm on expiry
        does, too.
        """
        state = self._state
        try:
            known = state.tools.metrics_reader.since(
                now - AGE_LOOKBACK, now, queue_name(state.dlq.arn)
            )
        except CallFailed as failed:
            state.failed(failed)
            return None
        ages = [one.oldest_age_seconds for one in known.minutes if one.oldest_age_seconds]
        if not ages:
            return None
        since = now - timedelta(seconds=ages[-1])
        state.oldest = _first(state.oldest, since)
        return since

    def _read(self, queue: DeadLetters) -> Read:
        state = self._state
        if state.tools.clock() >= state.deadline:
            self._has_unfinished_work = True
            return Read()
        return read_letters(
            queue,
            state.tools.memory,
            ROUND_SIZE,
            hidden_for=state.hidden_for(),
            max_bytes=ROUND_BYTES,
        )

    def _without_replaced(
        self,
        cases: Sequence[Case],
        discard: Callable[[Sequence[tuple[Case, Discard]]], Effects],
    ) -> list[Case]:
        replaced = [(case, Discard()) for case in cases if case.is_replaced]
        if replaced:
            self._state.did(discard(replaced))
        return [case for case in cases if not case.is_replaced]

    def _sent(self, effects: Effects) -> None:
        """Add up what was sent. Raises CallFailed if that could not be recorded."""
        self._state.did(effects)
        self._has_unfinished_work |= bool(effects.faults)
        if effects.failure is not None:
            self._has_unfinished_work = True
            raise effects.failure


def _first_sent(cases: Sequence[Case]) -> datetime | None:
    return min((case.letter.sent_at for case in cases), default=None)


def _first(*moments: datetime | None) -> datetime | None:
    return min((at for at in moments if at is not None), default=None)


def with_first_lot_sweep(context: SourceContext, state: PassState, now: datetime) -> Circuit:
    """The circuit with a sweep planned for the first letters in an empty parking lot."""
    if not state.effects.parked or context.circuit.lot_sweep_at is not None:
        return context.circuit
    return replace(context.circuit, lot_sweep_at=next_lot_sweep(now, state.parking_lot.retention))


def _renewal(case: Case) -> Renew:
    return Renew(strikes=case.entry.strikes if case.entry else 0)
