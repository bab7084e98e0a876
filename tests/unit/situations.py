"""A letter in a situation, ready for triage: what a test does not say is ordinary."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.model.batch import Judged, Verdict
from smart_redriver.engine.model.circuit import Circuit
from smart_redriver.engine.triage.case import Case
from smart_redriver.engine.triage.decision import Decision, Park, ParkReason, Redrive
from smart_redriver.engine.triage.retention import calm_margin
from smart_redriver.engine.triage.triage import (
    TRIES_BEFORE_LAST_CHANCE,
    Terms,
    triage,
)
from tests.unit.examples import (
    NOW,
    SOURCE_ARN,
    a_circuit,
    a_judged,
    a_letter,
    a_returned_letter,
    ago,
    an_entry,
)

SETTINGS = Settings()
RETENTION = timedelta(days=14)
MARGIN = calm_margin(RETENTION)
TIME_TO_FAIL = timedelta(seconds=90)
OTHER_ARN = SOURCE_ARN.replace("orders", "invoices")

#: When a letter was first received, or redriven, that has failed for good just now.
JUST_FAILED = NOW - TIME_TO_FAIL

#: The first send of a letter that is near its expiry, and of one that just is not.
EXPIRING = ago(days=14) + MARGIN - timedelta(minutes=1)
JUST_IN_TIME = ago(days=14) + MARGIN

TERMS = Terms(
    destinations={SOURCE_ARN: 1_000},
    home=SOURCE_ARN,
    retention=RETENTION,
    margin=MARGIN,
    time_to_fail=TIME_TO_FAIL,
)


def a_case(**changes: Any) -> Case:
    """A letter on its first visit, whose last try failed just now."""
    return Case(letter=a_letter(**{"first_received_at": JUST_FAILED} | changes))


#: A suspect that was not alone is tried again after this.
BETWEEN_TRIES = timedelta(seconds=SETTINGS.last_chance_seconds) / TRIES_BEFORE_LAST_CHANCE


def a_return(*, letter: Any = None, **entry: Any) -> Case:
    """A letter that was redriven in batch 7, and has just failed again."""
    known = {"last_redrive": JUST_FAILED, "first_redrive": JUST_FAILED} | entry
    return Case(letter=letter or a_returned_letter(), entry=an_entry(**known))


def of_batch(
    *, is_strike: bool, was_alone: bool = False, verdict: Verdict | None = None
) -> Circuit:
    """A circuit that has judged batch 7."""
    judged: Judged = a_judged(
        id=7,
        is_strike=is_strike,
        was_alone=was_alone,
        verdict=verdict or (Verdict.SUCCESS if is_strike else Verdict.FAILURE),
    )
    return a_circuit(judged=(judged,))


STRIKING = of_batch(is_strike=True)
ACQUITTING = of_batch(is_strike=False)
ALONE = of_batch(is_strike=False, was_alone=True, verdict=Verdict.NO_EVIDENCE)


@dataclass(frozen=True, kw_only=True)
class Situation:
    """What triage is asked about."""

    case: Case = field(default_factory=a_case)
    circuit: Circuit = field(default_factory=a_circuit)
    terms: Terms = TERMS
    settings: Settings = SETTINGS
    roll: float = 0.0

    def triage(self, now: datetime = NOW) -> Decision:
        return triage(self.case, self.circuit, self.terms, self.settings, now, self.roll)

    def with_circuit(self, **changes: Any) -> Situation:
        return replace(self, circuit=replace(self.circuit, **changes))


def redrive(seconds: float = 30, strikes: int = 0) -> Redrive:
    return Redrive(destination=SOURCE_ARN, delay=timedelta(seconds=seconds), strikes=strikes)


def park(reason: ParkReason, strikes: int = 0) -> Park:
    return Park(reason=reason, strikes=strikes)
