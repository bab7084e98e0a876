"""What becomes of one letter: every decision and its reason."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.messages.letter import Unfit
from smart_redriver.engine.messages.outgoing import MAX_SQS_DELAY, MAX_VISIBILITY
from smart_redriver.engine.model.circuit import Circuit, State
from smart_redriver.engine.model.permit import MIX_LASTS
from smart_redriver.engine.triage.case import Case
from smart_redriver.engine.triage.decision import (
    CAUSE_CANARY,
    Decision,
    Discard,
    Hold,
    HoldReason,
    ParkReason,
    Redrive,
    Renew,
)
from smart_redriver.engine.triage.ledger import Status
from smart_redriver.engine.triage.triage import (
    GOLDEN_RATIO,
    IN_VAIN,
    LUCK_LASTS,
    PATIENCE_IN_A_MIX,
    SOONER,
    STRIKES_THAT_CONVICT,
)
from tests.unit.examples import (
    NOW,
    a_batch,
    a_circuit,
    a_returned_letter,
    ago,
    ahead,
    an_entry,
)
from tests.unit.situations import (
    ACQUITTING,
    ALONE,
    BETWEEN_TRIES,
    EXPIRING,
    JUST_FAILED,
    JUST_IN_TIME,
    OTHER_ARN,
    SETTINGS,
    STRIKING,
    TERMS,
    Situation,
    a_case,
    a_return,
    park,
    redrive,
)

#: Hours of backoff, as no default allows.
SLOW = Settings(base_delay_seconds=900, max_delay_seconds=43_200)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
LAST_CHANCE = timedelta(seconds=SETTINGS.last_chance_seconds)
GIVE_UP = timedelta(seconds=SETTINGS.give_up_seconds)
AWAITED = a_circuit(pending=(a_batch(id=7, due_at=ahead(minutes=3)),))
OFTEN = IN_VAIN * SETTINGS.max_attempts
ONE_SHORT = SETTINGS.max_attempts - 1
LUCK = LUCK_LASTS * LAST_CHANCE

#: The latest first strike whose last chance was the try that has just failed.
LAST_CHANCE_TAKEN = JUST_FAILED - LAST_CHANCE

TWICE = JUST_FAILED - PATIENCE_IN_A_MIX * LAST_CHANCE

#: What a letter waits for because of other letters, not of itself.
ADMISSIONS = {
    HoldReason.NO_PERMIT,
    HoldReason.CONTROL,
    HoldReason.CAUSE,
    HoldReason.GROUP,
    HoldReason.BLOCKED,
}


def held(reason: HoldReason, until: timedelta, strikes: int = 0, **more: timedelta) -> Hold:
    not_before = {name: NOW + after for name, after in more.items()}
    return Hold(reason=reason, until=NOW + until, strikes=strikes, **not_before)


def convict(**changes: Any) -> Case:
    """A suspect that came back from its last chance, with no strike more than it takes where it was alone."""
    usual: dict[str, Any] = {
        "strikes": STRIKES_THAT_CONVICT,
        "redrive_count": SETTINGS.max_attempts,
        "first_strike": LAST_CHANCE_TAKEN,
    }
    return a_return(**usual | changes)


def shown_luck(at: datetime) -> Circuit:
    """A circuit that judged it alone, and has seen another suspect succeed."""
    return replace(ALONE, suspect_succeeded_at=at)


def mixed(circuit: Circuit, at: datetime) -> Circuit:
    """The circuit, which was shown a mix then."""
    return replace(circuit, mixed_at=at)


def patiently(strikes: int, pause: timedelta = BETWEEN_TRIES) -> Hold:
    """Tried now and then, its last chance being ahead of it, or behind it and no verdict against it."""
    return held(HoldReason.LAST_CHANCE, pause, strikes=strikes, not_before=pause)


#: The pause after its try in batch 7 alone.
AFTER_ALONE = BETWEEN_TRIES * (1 - 7 * GOLDEN_RATIO % 1 * SOONER)


SITUATIONS: dict[str, tuple[Situation, Decision]] = {
    # The backoff, counted from the last failure.
    "a letter that just failed waits for half the base delay": (Situation(), redrive(30)),
    "jitter stretches that to the whole": (Situation(roll=0.999), redrive(60)),
    "one that failed some time ago waits for the rest": (
        Situation(case=a_case(first_received_at=JUST_FAILED - timedelta(seconds=20))),
        redrive(10),
    ),
    "one that has waited in the DLQ for longer goes at once": (
        Situation(case=a_case(first_received_at=ago(hours=1))),
        redrive(0),
    ),
    "one that nobody has received since its send is taken to have failed from then on": (
        Situation(case=a_case(first_received_at=None, sent_at=JUST_FAILED)),
        redrive(30),
    ),
    "a return's backoff counts from its last redrive": (Situation(case=a_return()), redrive(30)),
    "no number of returns without strikes makes it longer": (
        Situation(case=a_return(redrive_count=50)),
        redrive(30),
    ),
    "a suspect's delay doubles with its strikes": (
        Situation(case=a_return(strikes=3, first_strike=ago(hours=1))),
        redrive(240, strikes=3),
    ),
    "a letter that no retry can heal, as its consumer said, is parked at once": (
        Situation(case=a_return(is_permanent=True)),
        park(ParkReason.PERMANENT),
    ),
    "a suspect that was tried in vain without a strike waits longer, too": (
        Situation(case=a_return(strikes=1, redrive_count=4)),
        redrive(240, strikes=1),
    ),
    "a backoff beyond what SQS delays is held until the rest is within it": (
        Situation(case=a_return(strikes=3), settings=SLOW),
        held(
            HoldReason.BACKOFF,
            timedelta(seconds=3_600 - 900),
            strikes=3,
            not_before=timedelta(seconds=3_600),
        ),
    ),
    "a deferred letter keeps its time, whatever the roll": (
        Situation(case=a_return(not_before=ahead(hours=1)), settings=SLOW, roll=0.9),
        held(HoldReason.BACKOFF, timedelta(minutes=45), not_before=timedelta(hours=1)),
    ),
    "a deferred letter within SQS's reach is sent with what remains": (
        Situation(case=a_return(not_before=ahead(minutes=15))),
        redrive(900),
    ),
    "a deferred letter whose time is over is sent at once": (
        Situation(case=a_return(not_before=ago(hours=1))),
        redrive(0),
    ),
    "a hold is never longer than SQS can hide a message": (
        Situation(case=a_return(not_before=ahead(days=3))),
        held(
            HoldReason.BACKOFF,
            MAX_VISIBILITY - timedelta(minutes=1),
            not_before=timedelta(days=3),
        ),
    ),
    # Strikes, and the last chance.
    "a return from a batch that says so earns a strike": (
        Situation(case=a_return(), circuit=STRIKING),
        redrive(60, strikes=1),
    ),
    "a return from a failed batch earns none": (
        Situation(case=a_return(), circuit=ACQUITTING),
        redrive(30),
    ),
    "a return from a batch that nobody remembers earns none": (
        Situation(case=a_return(batch=3)),
        redrive(30),
    ),
    "a strike that is in the ledger already is not counted again": (
        Situation(case=a_return(strikes=1, counted_batch=7), circuit=STRIKING),
        redrive(60, strikes=1),
    ),
    "one strike short of the limit, a letter is tried now and then until its last chance": (
        Situation(
            case=a_return(strikes=ONE_SHORT - 1, first_strike=ago(hours=1)), circuit=STRIKING
        ),
        patiently(ONE_SHORT),
    ),
    "and so is one with fewer strikes that was tried in vain twice as often": (
        Situation(case=a_return(strikes=1, redrive_count=OFTEN, first_strike=ago(hours=1))),
        patiently(1),
    ),
    "a letter without a strike is not, however often it was tried": (
        Situation(case=a_return(redrive_count=OFTEN)),
        redrive(30),
    ),
    "a backoff beyond the next of these tries is kept": (
        Situation(case=a_return(strikes=ONE_SHORT, first_strike=NOW), settings=SLOW),
        held(
            HoldReason.BACKOFF,
            timedelta(hours=2) - MAX_SQS_DELAY,
            strikes=ONE_SHORT,
            not_before=timedelta(hours=2),
        ),
    ),
    "a wait that ends with the next of these tries is a backoff": (
        Situation(
            case=a_return(strikes=ONE_SHORT, first_strike=NOW, not_before=NOW + BETWEEN_TRIES)
        ),
        held(
            HoldReason.BACKOFF,
            BETWEEN_TRIES - MAX_SQS_DELAY,
            strikes=ONE_SHORT,
            not_before=BETWEEN_TRIES,
        ),
    ),
    "one that ends before it gives way": (
        Situation(
            case=a_return(
                strikes=ONE_SHORT, first_strike=NOW, not_before=NOW + BETWEEN_TRIES - SECOND
            )
        ),
        patiently(ONE_SHORT),
    ),
    "what was to wait no longer than to the last chance that it took is tried now and then": (
        Situation(
            case=a_return(strikes=ONE_SHORT, first_strike=LAST_CHANCE_TAKEN, not_before=JUST_FAILED)
        ),
        patiently(ONE_SHORT),
    ),
    "a last chance within SQS's reach is sent with what remains": (
        Situation(case=a_return(strikes=ONE_SHORT, first_strike=ahead(minutes=10) - LAST_CHANCE)),
        redrive(600, strikes=ONE_SHORT),
    ),
    "no try shortly before it puts it off": (
        Situation(
            case=a_return(
                strikes=ONE_SHORT, first_strike=NOW + BETWEEN_TRIES + MINUTE - LAST_CHANCE
            )
        ),
        patiently(ONE_SHORT, BETWEEN_TRIES + MINUTE),
    ),
    "a last chance that has come waits for no more than its backoff": (
        Situation(case=a_return(strikes=ONE_SHORT, first_strike=NOW - LAST_CHANCE)),
        redrive(450, strikes=ONE_SHORT),
    ),
    "the strike of the last chance parks": (
        Situation(
            case=a_return(strikes=ONE_SHORT, first_strike=LAST_CHANCE_TAKEN), circuit=STRIKING
        ),
        park(ParkReason.MAX_ATTEMPTS, strikes=SETTINGS.max_attempts),
    ),
    "no number of strikes does before that": (
        Situation(
            case=a_return(strikes=50, first_strike=LAST_CHANCE_TAKEN + SECOND), circuit=STRIKING
        ),
        redrive(450, strikes=51),
    ),
    "nor does a last chance that came without a strike of its own": (
        Situation(
            case=a_return(strikes=ONE_SHORT, first_strike=LAST_CHANCE_TAKEN), circuit=ACQUITTING
        ),
        patiently(ONE_SHORT),
    ),
    "a suspect that keeps returning alone is parked after its last chance": (
        Situation(case=convict(), circuit=ALONE),
        park(ParkReason.MAX_ATTEMPTS, strikes=STRIKES_THAT_CONVICT),
    ),
    "not while suspects are known to succeed: it may be bad luck, and an outage since": (
        Situation(case=convict(redrive_count=OFTEN), circuit=shown_luck(JUST_FAILED - LUCK)),
        park(ParkReason.MAX_ATTEMPTS, strikes=STRIKES_THAT_CONVICT),
    ),
    "which is believed for twice the time to a last chance": (
        Situation(
            case=convict(redrive_count=OFTEN), circuit=shown_luck(JUST_FAILED - LUCK + SECOND)
        ),
        patiently(STRIKES_THAT_CONVICT, AFTER_ALONE),
    ),
    "whatever the number of its strikes": (
        Situation(
            case=convict(strikes=50, redrive_count=OFTEN),
            circuit=shown_luck(JUST_FAILED - LUCK + SECOND),
        ),
        patiently(50, AFTER_ALONE),
    ),
    "but not before that": (
        Situation(case=convict(first_strike=LAST_CHANCE_TAKEN + SECOND), circuit=ALONE),
        redrive(450, strikes=STRIKES_THAT_CONVICT),
    ),
    "nor with one strike, which can be bad luck": (
        Situation(
            case=convict(strikes=STRIKES_THAT_CONVICT - 1, redrive_count=OFTEN), circuit=ALONE
        ),
        patiently(STRIKES_THAT_CONVICT - 1, AFTER_ALONE),
    ),
    "nor after fewer redrives than it has attempts": (
        Situation(case=convict(redrive_count=ONE_SHORT), circuit=ALONE),
        redrive(240, strikes=STRIKES_THAT_CONVICT),
    ),
    "nor where its batch failed with others in it": (
        Situation(case=convict(redrive_count=OFTEN), circuit=ACQUITTING),
        patiently(STRIKES_THAT_CONVICT),
    ),
    # Where many fail beside others that succeed, the last chance comes later.
    "in a mix nobody is parked at the usual time": (
        Situation(case=convict(strikes=50), circuit=mixed(STRIKING, NOW)),
        held(
            HoldReason.LAST_CHANCE,
            BETWEEN_TRIES,
            strikes=51,
            not_before=BETWEEN_TRIES,
        ),
    ),
    "but after twice that": (
        Situation(case=convict(strikes=50, first_strike=TWICE), circuit=mixed(STRIKING, NOW)),
        park(ParkReason.MAX_ATTEMPTS, strikes=51),
    ),
    "and not a second sooner": (
        Situation(
            case=convict(strikes=50, first_strike=TWICE + SECOND), circuit=mixed(STRIKING, NOW)
        ),
        redrive(450, strikes=51),
    ),
    "a mix that was shown last a quarter of a last chance before the try is over": (
        Situation(
            case=convict(strikes=50),
            circuit=mixed(STRIKING, JUST_FAILED - MIX_LASTS * LAST_CHANCE - SECOND),
        ),
        park(ParkReason.MAX_ATTEMPTS, strikes=51),
    ),
    # Time, not a count, ends the journey of a letter that never met a working consumer.
    "after three days in vain a letter is given up": (
        Situation(case=a_return(first_redrive=NOW - GIVE_UP)),
        park(ParkReason.GAVE_UP),
    ),
    "until then it is tried, however often it was": (
        Situation(case=a_return(first_redrive=NOW - GIVE_UP + SECOND, redrive_count=1_000)),
        redrive(30),
    ),
    "a letter that nobody has redriven is never given up": (
        Situation(case=a_case(sent_at=ago(days=11))),
        redrive(30),
    ),
    "a letter that was sent to the DLQ when it had failed waits from then on": (
        Situation(case=a_case(failed_at=ago(hours=1), first_received_at=NOW)),
        redrive(0),
    ),
    "a letter that its target failed with just now waits from then on": (
        Situation(
            case=a_return(letter=a_returned_letter(failed_at=ago(hours=1)), last_redrive=NOW)
        ),
        redrive(30),
    ),
    # Where it goes.
    "a letter that does not say where it came from goes home": (
        Situation(case=a_case(source_arn=None)),
        redrive(),
    ),
    "a letter of another queue is parked": (
        Situation(case=a_case(source_arn=OTHER_ARN)),
        park(ParkReason.UNKNOWN_SOURCE),
    ),
    "a return of another queue's letter, as the ledger remembers it, is parked": (
        Situation(case=a_return(letter=a_returned_letter(source_arn=None), source_arn=OTHER_ARN)),
        park(ParkReason.UNKNOWN_SOURCE),
    ),
    "a letter of unknown origin is parked, wherever it would go": (
        Situation(case=a_case(unfit=Unfit.UNKNOWN_ORIGIN)),
        park(ParkReason.UNKNOWN_ORIGIN),
    ),
    "a letter that lacks its payload is parked": (
        Situation(case=a_case(unfit=Unfit.INCOMPLETE)),
        park(ParkReason.INCOMPLETE),
    ),
    "a letter larger than its destination takes is parked": (
        Situation(case=a_case(body="x" * 1_001)),
        park(ParkReason.UNDELIVERABLE),
    ),
    "a letter that just fits is redriven without its metadata": (
        Situation(case=a_case(body="x" * 1_000)),
        redrive(),
    ),
    "a copy that an accepted send has replaced is deleted": (
        Situation(case=replace(a_case(), entry=an_entry(replaced_ids=("zeroth", "first")))),
        Discard(),
    ),
    "such a copy is deleted even where its letter is to be parked": (
        Situation(case=replace(a_case(source_arn=OTHER_ARN), entry=an_entry())),
        Discard(),
    ),
    # Verdicts that are not in.
    "a return waits for its batch's verdict, and the next pass looks again": (
        Situation(case=a_return(), circuit=AWAITED),
        held(HoldReason.AWAITING_VERDICT, timedelta()),
    ),
    "only for that of its own batch": (
        Situation(case=a_return(batch=3, letter=a_returned_letter(batch=3)), circuit=AWAITED),
        redrive(),
    ),
    # Expiry.
    "an expiring letter that would wait for a verdict is parked": (
        Situation(case=a_return(letter=a_returned_letter(sent_at=EXPIRING)), circuit=AWAITED),
        park(ParkReason.EXPIRING),
    ),
    "where it can be renewed, it is, and waits on": (
        Situation(
            case=a_return(letter=a_returned_letter(sent_at=EXPIRING)),
            circuit=AWAITED,
            terms=replace(TERMS, can_renew=True),
        ),
        Renew(strikes=0),
    ),
    "a suspect is renewed with its strikes": (
        Situation(
            case=a_return(letter=a_returned_letter(sent_at=EXPIRING), strikes=3),
            settings=SLOW,
            terms=replace(TERMS, can_renew=True),
        ),
        Renew(strikes=3),
    ),
    "what is parked for another reason is not renewed": (
        Situation(
            case=a_return(letter=a_returned_letter(sent_at=EXPIRING, unfit=Unfit.INCOMPLETE)),
            terms=replace(TERMS, can_renew=True),
        ),
        park(ParkReason.INCOMPLETE),
    ),
    "an expiring letter is not held for its backoff": (
        Situation(
            case=a_return(letter=a_returned_letter(sent_at=EXPIRING), strikes=3), settings=SLOW
        ),
        park(ParkReason.EXPIRING, strikes=3),
    ),
    "an expiring letter is not held for its last chance": (
        Situation(
            case=a_return(
                letter=a_returned_letter(sent_at=EXPIRING), strikes=ONE_SHORT, first_strike=NOW
            )
        ),
        park(ParkReason.EXPIRING, strikes=ONE_SHORT),
    ),
    "an expiring letter that can go back does: that is a new clock, too": (
        Situation(case=a_case(sent_at=EXPIRING)),
        replace(redrive(), is_expiring=True),
    ),
    "a hold ends when the letter comes near its expiry": (
        Situation(
            case=a_return(
                letter=a_returned_letter(sent_at=JUST_IN_TIME + timedelta(minutes=5)),
                not_before=ahead(hours=9),
            )
        ),
        held(HoldReason.BACKOFF, timedelta(minutes=5), not_before=timedelta(hours=9)),
    ),
}
JUST_SITUATIONS = [situation for situation, _ in SITUATIONS.values()]


@pytest.mark.parametrize(("situation", "decision"), SITUATIONS.values(), ids=SITUATIONS.keys())
def test_a_letters_situation_decides_what_becomes_of_it(
    situation: Situation, decision: Decision
) -> None:
    assert situation.triage() == decision


@pytest.mark.parametrize("situation", JUST_SITUATIONS, ids=SITUATIONS.keys())
def test_the_same_input_gets_the_same_decision_and_stays_as_it_was(situation: Situation) -> None:
    before = replace(situation)

    assert situation.triage() == situation.triage()
    assert situation == before


@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize("situation", JUST_SITUATIONS, ids=SITUATIONS.keys())
def test_triage_leaves_the_circuits_state_to_the_permit(situation: Situation, state: State) -> None:
    assert situation.with_circuit(state=state, window=1).triage() == situation.triage()


def test_every_reason_to_park_or_hold_is_in_the_table_but_those_of_admission() -> None:
    reasons = {decision.reason for _, decision in SITUATIONS.values()}

    assert reasons == {*ParkReason, *HoldReason, "DUE", "ALREADY_SENT"} - ADMISSIONS


@pytest.mark.parametrize("status", list(Status))
def test_where_a_letter_was_last_put_decides_nothing_by_itself(status: Status) -> None:
    assert Situation(case=a_return(status=status)).triage() == redrive()


@pytest.mark.parametrize(
    ("changes", "is_suspect"),
    [
        ({}, False),
        ({"strikes": 1}, True),
        ({"is_doubtful": True}, True),
        ({"reason": CAUSE_CANARY}, True),
    ],
)
def test_of_a_suspect_nothing_is_expected_but_its_return(
    changes: dict[str, Any], is_suspect: bool
) -> None:
    usual: dict[str, Any] = {"destination": "", "delay": timedelta(), "strikes": 0}

    assert Redrive(**usual | changes).is_suspect is is_suspect
