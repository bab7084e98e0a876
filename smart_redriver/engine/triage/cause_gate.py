"""Which letters of a held cause may go in this pass: one canary per cause; the others wait. Pure but for its memory."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.model.causes import LOOK_AGAIN, CauseCircuit, kept
from smart_redriver.engine.model.circuit import Circuit
from smart_redriver.engine.model.permit import cause_cool_down
from smart_redriver.engine.triage.case import Case
from smart_redriver.engine.triage.decision import (
    CAUSE_CANARY,
    Decision,
    HoldReason,
    Park,
    Redrive,
)
from smart_redriver.engine.triage.triage import Terms, failed_at, hold_unless_expiring

Due = tuple[Case, Redrive]


class CauseGate:
    """The circuits by cause of one source queue during one pass. `roll`: uniform in [0, 1), for their cool-downs."""

    def __init__(self, circuit: Circuit, settings: Settings, roll: float) -> None:
        self._circuits = circuit.causes
        self._settings = settings
        self._roll = roll
        self._seen: Counter[str] = Counter()
        self._parked: Counter[str] = Counter()
        self._chosen: dict[str, str] = {}

    def circuits(self, batch: int | None, now: datetime) -> tuple[CauseCircuit, ...]:
        """The circuits after the pass, whose canaries went in `batch`."""
        return kept((self._left(one, batch, now) for one in self._circuits), now)

    def look_at(self, cases: Sequence[Case], now: datetime) -> None:
        """Count letters in hand by cause, and note which canaries are back."""
        for case in cases:
            cause = _cause(case)
            self._meet_canary(case, cause, now)
            if cause is not None:
                self._seen[cause] += 1

    def convicted(self, case: Case, terms: Terms, now: datetime) -> bool:
        """Whether the letter must be parked with its cause: a failed canary was its last chance, too."""
        held = self._held(case)
        if held is None or held.convicted_at is None:
            return False
        first_redrive = case.entry.first_redrive if case.entry is not None else None
        failed_first = first_redrive or failed_at(case, terms, now)
        last_chance = timedelta(seconds=self._settings.last_chance_seconds)
        return failed_first + last_chance <= held.convicted_at

    def let_through(
        self, due: Sequence[Due], terms: Terms, now: datetime, *, is_trial: bool
    ) -> tuple[list[Due], list[tuple[Case, Decision]]]:
        """The letters that their causes let through, and the decisions about the others.

        A trial has to show how the consumer is: it takes a letter of a held cause only if there is no other.
        """
        free: list[Due] = []
        by_cause: defaultdict[CauseCircuit, list[Due]] = defaultdict(list)
        for one in due:
            held = self._held(one[0])
            (free if held is None else by_cause[held]).append(one)
        stay: list[tuple[Case, Decision]] = []
        is_barred = is_trial and bool(free)
        for held, some in by_cause.items():
            canary = None if is_barred else self._canary(held, some, terms, now)
            if canary is not None:
                free.append(canary)
            until = now if is_barred else max(held.cools_until or now, now + LOOK_AGAIN)
            stay += [
                (
                    case,
                    hold_unless_expiring(
                        case, what.strikes, HoldReason.CAUSE, terms, now, until=until
                    ),
                )
                for case, what in some
                if canary is None or case is not canary[0]
            ]
        return free, stay

    def decided(self, decided: Sequence[tuple[Case, Decision]]) -> None:
        """Count parked letters by cause: they no longer wait for it."""
        causes = (_cause(case) for case, what in decided if isinstance(what, Park))
        self._parked.update(cause for cause in causes if cause is not None)

    def went(self, case: Case, decision: Decision) -> None:
        """Note the decision about a letter that was let through."""
        if isinstance(decision, Redrive) and decision.reason == CAUSE_CANARY:
            self._chosen[_cause(case) or ""] = case.original_id

    def _canary(
        self, held: CauseCircuit, some: Sequence[Due], terms: Terms, now: datetime
    ) -> Due | None:
        """The letter of this cause that goes now: one of the least tried, so that no letter earns all the strikes.

        It is the one of these that failed last: its time to a last chance counts from its first redrive.
        """
        if held.cause in self._chosen or not held.may_try(now, terms.time_to_fail):
            return None
        case, decision = min(
            some, key=lambda one: (one[0].redrives, now - failed_at(one[0], terms, now))
        )
        return case, replace(decision, reason=CAUSE_CANARY)

    def _meet_canary(self, case: Case, cause: str | None, now: datetime) -> None:
        for one in self._circuits:
            if not one.is_canary(case.original_id, case.batch):
                continue
            settings = self._settings
            after = one.without_canary()
            if cause == one.cause:
                after = one.after_failed_canary(
                    cause_cool_down(one.canaries_failed + 2, settings, self._roll),
                    now,
                    convicts_after=timedelta(seconds=settings.last_chance_seconds),
                    fewest=settings.max_attempts,
                )
            self._circuits = tuple(after if each is one else each for each in self._circuits)

    def _left(self, one: CauseCircuit, batch: int | None, now: datetime) -> CauseCircuit:
        if seen := self._seen[one.cause]:
            left = self._parked[one.cause]
            one = one.after_pass(stayed=seen - left, left=left, now=now)
        if one.cause not in self._chosen or batch is None:
            return one
        canary_id = self._chosen[one.cause]
        return replace(one, canary_id=canary_id, canary_batch=batch, canary_sent_at=now)

    def _held(self, case: Case) -> CauseCircuit | None:
        cause = _cause(case)
        return next((one for one in self._circuits if one.cause == cause and one.is_held), None)


def _cause(case: Case) -> str | None:
    return case.entry.cause if case.entry is not None else None
