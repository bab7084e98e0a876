"""What becomes of one letter: every decision and its reason."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest

from redrive.core.circuit import Batch, Circuit, Judged, State, Verdict
from redrive.core.ledger import Entry, Status
from redrive.core.letter import Letter
from redrive.core.retention import expiry_margin
from redrive.core.triage import (
    Decision,
    Discard,
    Hold,
    HoldReason,
    Park,
    ParkReason,
    Queues,
    Redrive,
    batch_of,
    count_redrives,
    count_strikes,
    hard_cap,
    hold_for_permit,
    is_unseen_return,
    triage,
)
from redrive.settings import Settings
from tests.unit.examples import (
    NOW,
    SOURCE_ARN,
    a_batch,
    a_circuit,
    a_letter,
    a_returned_letter,
    a_trail,
    ago,
    ahead,
    an_entry,
)

SETTINGS = Settings()
RETENTION = timedelta(days=14)
OTHER_ARN = SOURCE_ARN.replace("orders", "invoices")
QUEUES = Queues(
    destinations={SOURCE_ARN: 1_000}, default_destination=SOURCE_ARN, retention=RETENTION
)
#: Hours of backoff, as no default allows: 2 h for the first redrive.
SLOW = Settings(base_delay_seconds=900, max_delay_seconds=43_200)


def judged(batch: int = 7, *, is_strike: bool, verdict: Verdict = Verdict.SUCCESS) -> Judged:
    return Judged(id=batch, generation=2, verdict=verdict, is_strike=is_strike)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A letter in a situation; what is not said is ordinary."""

    letter: Letter = field(default_factory=a_letter)
    entry: Entry | None = None
    circuit: Circuit = field(default_factory=a_circuit)
    queues: Queues = QUEUES
    settings: Settings = SETTINGS
    roll: float = 0.0

    def triage(self, now: datetime = NOW) -> Decision:
        return triage(
            self.letter, self.entry, self.circuit, self.queues, self.settings, now, self.roll
        )


AWAITED = a_circuit(pending=(a_batch(id=7, due_at=ahead(minutes=3)),))
OVERDUE = a_circuit(pending=(a_batch(id=7, due_at=ago(minutes=3)),))
STRIKING = a_circuit(judged=(judged(is_strike=True),))
ACQUITTING = a_circuit(judged=(judged(is_strike=False, verdict=Verdict.FAILURE),))
EXPIRING = ago(days=14) + expiry_margin(RETENTION) - timedelta(minutes=1)


def redrive(seconds: float = 30, strikes: int = 0) -> Redrive:
    return Redrive(destination=SOURCE_ARN, delay=timedelta(seconds=seconds), strikes=strikes)


def park(reason: ParkReason, strikes: int = 0) -> Park:
    return Park(reason=reason, strikes=strikes)


CASES = {
    "a first visit is redriven after half the base delay": (Case(), redrive(30)),
    "jitter stretches the delay to the whole": (Case(roll=0.999), redrive(60)),
    "a letter that does not say where it came from goes to the one source queue": (
        Case(letter=a_letter(source_arn=None)),
        redrive(),
    ),
    "a return's delay doubles": (
        Case(letter=a_returned_letter(), entry=an_entry()),
        redrive(60),
    ),
    "the trail's count holds where the ledger has lost the entry": (
        Case(letter=a_returned_letter(trail=a_trail(redrive_count=3))),
        redrive(240),
    ),
    "the ledger's count holds where the trail was stripped and the id kept": (
        Case(entry=an_entry(redrive_count=3, replaced_ids=())),
        redrive(240),
    ),
    "a return from a batch that says so earns a strike": (
        Case(letter=a_returned_letter(), entry=an_entry(), circuit=STRIKING),
        redrive(60, strikes=1),
    ),
    "a return from a failed batch earns none": (
        Case(letter=a_returned_letter(), entry=an_entry(), circuit=ACQUITTING),
        redrive(60),
    ),
    "a return from a batch that nobody remembers earns none": (
        Case(letter=a_returned_letter(), entry=an_entry()),
        redrive(60),
    ),
    "a strike that is in the ledger already is not counted again": (
        Case(
            letter=a_returned_letter(),
            entry=an_entry(strikes=1, settled_batch=7),
            circuit=STRIKING,
        ),
        redrive(60, strikes=1),
    ),
    "the last strike parks": (
        Case(letter=a_returned_letter(), entry=an_entry(strikes=4), circuit=STRIKING),
        park(ParkReason.MAX_ATTEMPTS, strikes=5),
    ),
    "the strike before the last does not": (
        Case(letter=a_returned_letter(), entry=an_entry(strikes=3), circuit=STRIKING),
        redrive(60, strikes=4),
    ),
    "three times the limit of redrives parks whatever the strikes": (
        Case(letter=a_returned_letter(), entry=an_entry(redrive_count=15)),
        park(ParkReason.MAX_ATTEMPTS),
    ),
    "one redrive below the hard cap does not": (
        Case(letter=a_returned_letter(), entry=an_entry(redrive_count=14)),
        redrive(450),
    ),
    "the hard cap holds on the trail's word alone": (
        Case(letter=a_returned_letter(trail=a_trail(redrive_count=15))),
        park(ParkReason.MAX_ATTEMPTS),
    ),
    "a copy that an accepted send has replaced is deleted": (
        Case(entry=an_entry(replaced_ids=("zeroth", "first"))),
        Discard(),
    ),
    "such a copy is deleted even where its letter is to be parked": (
        Case(letter=a_letter(source_arn=OTHER_ARN), entry=an_entry(status=Status.PARKED)),
        Discard(),
    ),
    "a letter of another queue is parked": (
        Case(letter=a_letter(source_arn=OTHER_ARN)),
        park(ParkReason.UNKNOWN_SOURCE),
    ),
    "a return of another queue's letter, as the ledger remembers it, is parked": (
        Case(letter=a_returned_letter(source_arn=None), entry=an_entry(source_arn=OTHER_ARN)),
        park(ParkReason.UNKNOWN_SOURCE),
    ),
    "a letter larger than its destination takes is parked": (
        Case(letter=a_letter(body="x" * 1_001)),
        park(ParkReason.UNDELIVERABLE),
    ),
    "a letter that just fits is redriven without its trail": (
        Case(letter=a_letter(body="x" * 1_000)),
        redrive(),
    ),
    "a return waits for its batch's verdict": (
        Case(letter=a_returned_letter(), entry=an_entry(), circuit=AWAITED),
        Hold(reason=HoldReason.AWAITING_VERDICT, until=ahead(minutes=3), strikes=0),
    ),
    "a return whose verdict is overdue is looked at again soon": (
        Case(letter=a_returned_letter(), entry=an_entry(), circuit=OVERDUE),
        Hold(reason=HoldReason.AWAITING_VERDICT, until=ahead(seconds=1), strikes=0),
    ),
    "a return waits for its verdict before the hard cap is asked": (
        Case(letter=a_returned_letter(), entry=an_entry(redrive_count=15), circuit=AWAITED),
        Hold(reason=HoldReason.AWAITING_VERDICT, until=ahead(minutes=3), strikes=0),
    ),
    "an expiring letter that would wait for a verdict is parked": (
        Case(
            letter=a_returned_letter(sent_at=EXPIRING),
            entry=an_entry(),
            circuit=AWAITED,
        ),
        park(ParkReason.EXPIRING),
    ),
    "an expiring letter that can go back at once does: that is a new clock, too": (
        Case(letter=a_letter(sent_at=EXPIRING)),
        redrive(),
    ),
    "a backoff beyond what SQS delays is held until the rest is within it": (
        Case(letter=a_returned_letter(), entry=an_entry(redrive_count=3), settings=SLOW),
        Hold(
            reason=HoldReason.BACKOFF,
            until=ahead(seconds=3_600 - 900),
            strikes=0,
            not_before=ahead(seconds=3_600),
        ),
    ),
    "an expiring letter is not held for its backoff": (
        Case(
            letter=a_returned_letter(sent_at=EXPIRING),
            entry=an_entry(redrive_count=3),
            settings=SLOW,
        ),
        park(ParkReason.EXPIRING),
    ),
    "a deferred letter keeps its time, whatever the roll": (
        Case(
            letter=a_returned_letter(),
            entry=an_entry(not_before=ahead(hours=1)),
            settings=SLOW,
            roll=0.9,
        ),
        Hold(
            reason=HoldReason.BACKOFF,
            until=ahead(minutes=45),
            strikes=0,
            not_before=ahead(hours=1),
        ),
    ),
    "a deferred letter within SQS's reach is sent with what remains": (
        Case(letter=a_returned_letter(), entry=an_entry(not_before=ahead(minutes=15))),
        redrive(900),
    ),
    "a deferred letter whose time is over is sent at once": (
        Case(letter=a_returned_letter(), entry=an_entry(not_before=ago(hours=1))),
        redrive(0),
    ),
    "a hold is never longer than SQS can hide a message": (
        Case(letter=a_returned_letter(), entry=an_entry(not_before=ahead(days=3))),
        Hold(
            reason=HoldReason.BACKOFF,
            until=ahead(hours=12, minutes=-1),
            strikes=0,
            not_before=ahead(days=3),
        ),
    ),
}


@pytest.mark.parametrize(("case", "decision"), CASES.values(), ids=CASES.keys())
def test_a_letters_situation_decides_what_becomes_of_it(case: Case, decision: Decision) -> None:
    assert case.triage() == decision


@pytest.mark.parametrize("case", [case for case, _ in CASES.values()], ids=CASES.keys())
def test_the_same_input_gets_the_same_decision_and_stays_as_it_was(case: Case) -> None:
    before = replace(case)

    assert case.triage() == case.triage()
    assert case == before


@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize("case", [case for case, _ in CASES.values()], ids=CASES.keys())
def test_triage_leaves_the_circuits_state_to_the_permit(case: Case, state: State) -> None:
    moved = replace(case, circuit=replace(case.circuit, state=state, window=1))

    assert moved.triage() == case.triage()


def test_every_reason_to_park_or_hold_is_in_the_table_but_the_permits() -> None:
    reasons = {decision.reason for _, decision in CASES.values()}

    assert reasons == {
        *ParkReason,
        *HoldReason,
        "DUE",
        "ALREADY_SENT",
    } - {HoldReason.NO_PERMIT}


def test_a_due_letter_without_a_permit_is_released_at_once_and_keeps_its_strikes() -> None:
    held = hold_for_permit(redrive(strikes=2), a_letter(), QUEUES, NOW)

    assert held == Hold(reason=HoldReason.NO_PERMIT, until=NOW, strikes=2)


def test_an_expiring_letter_without_a_permit_is_parked_whatever_the_circuit_says() -> None:
    letter = a_letter(sent_at=EXPIRING)

    assert hold_for_permit(redrive(), letter, QUEUES, NOW) == park(ParkReason.EXPIRING)


def test_the_expiry_margin_is_counted_from_the_first_send() -> None:
    just_in_time = a_letter(sent_at=ago(days=14) + expiry_margin(RETENTION))

    held = hold_for_permit(redrive(), just_in_time, QUEUES, NOW)

    assert isinstance(held, Hold)


@pytest.mark.parametrize("max_attempts", [1, 5, 100])
def test_the_hard_cap_is_three_times_the_strikes_limit(max_attempts: int) -> None:
    assert hard_cap(Settings(max_attempts=max_attempts)) == 3 * max_attempts


def test_the_higher_of_trail_and_ledger_counts_the_redrives() -> None:
    letter = a_returned_letter(trail=a_trail(redrive_count=4))

    assert count_redrives(letter, None) == 4
    assert count_redrives(letter, an_entry(redrive_count=2)) == 4
    assert count_redrives(letter, an_entry(redrive_count=6)) == 6
    assert count_redrives(a_letter(), None) == 0


def test_the_trail_names_the_batch_before_the_ledger_does() -> None:
    assert batch_of(a_returned_letter(batch=8), an_entry(batch=7)) == 8
    assert batch_of(a_letter(), an_entry(batch=7)) == 7
    assert batch_of(a_letter(), None) is None


def test_a_strike_needs_a_batch_that_says_so() -> None:
    letter = a_returned_letter(batch=7)

    assert count_strikes(letter, None, STRIKING) == 1
    assert count_strikes(letter, None, ACQUITTING) == 0
    assert count_strikes(letter, an_entry(strikes=2), STRIKING) == 3
    assert count_strikes(letter, an_entry(strikes=2), ACQUITTING) == 2
    assert count_strikes(a_letter(), None, STRIKING) == 0


RETURNED = an_entry(status=Status.RETURNED)


@pytest.mark.parametrize(
    ("letter", "entry", "is_unseen"),
    [
        (a_letter(), None, False),
        (a_returned_letter(trail=a_trail(redrive_count=0, batch=0)), None, False),
        (a_returned_letter(), None, True),
        (a_returned_letter(), an_entry(status=Status.REDRIVEN), True),
        (a_returned_letter(), an_entry(status=Status.PARKED), True),
        (a_returned_letter(), replace(RETURNED, seen_in_version=20), True),
        (a_returned_letter(), replace(RETURNED, seen_in_version=19), False),
    ],
    ids=[
        "a first visit is no return",
        "nor is a letter that was parked on its first visit and put back",
        "the trail alone shows it",
        "the ledger knows of the redrive",
        "a person put a parked letter back",
        "marked by a pass that died before it wrote the circuit",
        "marked and charged",
    ],
)
def test_a_return_is_charged_to_the_circuit_once(
    letter: Letter, entry: Entry | None, is_unseen: bool
) -> None:
    assert is_unseen_return(letter, entry, 20) is is_unseen


def test_a_strike_that_is_known_by_the_trail_alone_is_counted_once_across_a_deferral() -> None:
    """The write of the last redrive was lost, so the entry names an older batch than the trail."""
    stale = an_entry(batch=5, settled_batch=5)
    letter = a_returned_letter(batch=7)
    strikes = count_strikes(letter, stale, STRIKING)

    deferred = stale.deferred(not_before=ahead(hours=1), strikes=strikes, batch=7)

    assert strikes == 1
    assert count_strikes(letter, deferred, STRIKING) == 1


def test_a_batch_is_awaited_by_the_letters_of_that_batch_only() -> None:
    other: tuple[Batch, ...] = (a_batch(id=8, due_at=ahead(minutes=3)),)

    case = Case(
        letter=a_returned_letter(batch=7), entry=an_entry(), circuit=a_circuit(pending=other)
    )

    assert isinstance(case.triage(), Redrive)
