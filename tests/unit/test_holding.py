"""Letters that stay for now: for how long, and what waiting may never cost them."""

from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.messages.outgoing import MAX_SQS_DELAY, MAX_VISIBILITY
from smart_redriver.engine.model.batch import Verdict
from smart_redriver.engine.triage.decision import Hold, HoldReason, ParkReason, Redrive
from smart_redriver.engine.triage.triage import SOONER, hold_unless_expiring
from tests.unit.examples import NOW, a_circuit, a_judged, a_returned_letter
from tests.unit.situations import (
    BETWEEN_TRIES,
    EXPIRING,
    JUST_FAILED,
    RETENTION,
    SETTINGS,
    TERMS,
    TIME_TO_FAIL,
    Situation,
    a_case,
    a_return,
    park,
    redrive,
)

LAST_CHANCE = timedelta(seconds=SETTINGS.last_chance_seconds)
ONE_SHORT = SETTINGS.max_attempts - 1


def test_a_due_letter_without_a_permit_is_released_at_once_and_keeps_its_strikes() -> None:
    released = Hold(reason=HoldReason.NO_PERMIT, until=NOW, strikes=2)

    assert hold_unless_expiring(a_case(), 2, HoldReason.NO_PERMIT, TERMS, NOW) == released


def test_an_expiring_letter_without_a_permit_is_parked_whatever_the_circuit_says() -> None:
    case = a_case(sent_at=EXPIRING)

    without_permit = hold_unless_expiring(case, 1, HoldReason.NO_PERMIT, TERMS, NOW)

    assert without_permit == park(ParkReason.EXPIRING, strikes=1)


@given(
    left=st.timedeltas(timedelta(), RETENTION),
    margin=st.timedeltas(timedelta(seconds=1), RETENTION / 2),
    until=st.timedeltas(-timedelta(hours=1), timedelta(days=20)),
)
def test_no_hold_hides_a_letter_beyond_its_margin_nor_longer_than_sqs_can(
    left: timedelta, margin: timedelta, until: timedelta
) -> None:
    case = a_case(sent_at=NOW - RETENTION + left)
    terms = replace(TERMS, margin=margin)

    kept = hold_unless_expiring(case, 0, HoldReason.BACKOFF, terms, NOW, until=NOW + until)

    if left < margin:
        assert kept == park(ParkReason.EXPIRING)
    else:
        assert isinstance(kept, Hold)
        assert kept.until <= case.letter.sent_at + RETENTION - margin
        assert kept.until <= NOW + min(until, MAX_VISIBILITY)


@given(
    failed=st.timedeltas(timedelta(), timedelta(days=2)),
    strikes=st.integers(0, SETTINGS.max_attempts - 2),
    roll=st.floats(0, 1, exclude_max=True),
)
def test_no_letter_goes_before_its_backoff_is_over_nor_waits_beyond_the_longest(
    failed: timedelta, strikes: int, roll: float
) -> None:
    case = a_return(strikes=strikes, last_redrive=JUST_FAILED - failed)

    decision = Situation(case=case, roll=roll).triage()

    assert isinstance(decision, Redrive)
    longest = timedelta(seconds=SETTINGS.max_delay_seconds)
    base = timedelta(seconds=SETTINGS.base_delay_seconds)
    assert timedelta() <= decision.delay <= max(longest - failed, timedelta())
    assert failed + decision.delay >= base / 2


def test_a_letter_that_a_slow_consumer_still_had_in_hand_is_never_taken_to_fail_in_the_future() -> (
    None
):
    early = a_return(last_redrive=NOW - TIME_TO_FAIL / 2)

    assert Situation(case=early).triage() == redrive(30)


def test_a_strikes_clock_that_no_version_wrote_starts_now() -> None:
    """A suspect of the first edition gets its whole six hours."""
    long_ago = JUST_FAILED - LAST_CHANCE
    struck_out = a_return(strikes=SETTINGS.max_attempts, first_strike=None, last_redrive=long_ago)

    assert isinstance(Situation(case=struck_out).triage(), Redrive)


@given(st.timedeltas(timedelta(), LAST_CHANCE))
def test_until_its_last_chance_a_letter_of_many_strikes_is_tried_now_and_then(
    since_strike: timedelta,
) -> None:
    """An outage of what it needs may be over before the six hours are; it never waits beyond them."""
    first_strike = NOW - since_strike
    case = a_return(strikes=ONE_SHORT, first_strike=first_strike)

    decision = Situation(case=case).triage()

    next_try = decision.not_before if isinstance(decision, Hold) else None
    chance = first_strike + LAST_CHANCE
    is_near = chance < NOW + 1.5 * BETWEEN_TRIES  # a try before it would only put it off
    assert next_try in (None, chance if is_near else NOW + BETWEEN_TRIES)
    assert isinstance(decision, Hold) or since_strike > LAST_CHANCE - MAX_SQS_DELAY


@given(st.integers(1, 100_000))
def test_the_pauses_after_tries_alone_differ_so_that_no_outage_that_recurs_meets_all_of_them(
    batch: int,
) -> None:
    """Letters of one batch wait equally long: they are tried beside each other."""
    pauses = [_pause_alone(batch), _pause_alone(batch), _pause_alone(batch + 1)]

    assert pauses[0] == pauses[1] != pauses[2]
    assert all((1 - SOONER) * BETWEEN_TRIES <= pause <= BETWEEN_TRIES for pause in pauses)


def _pause_alone(batch: int) -> timedelta:
    alone = a_judged(id=batch, is_strike=False, was_alone=True, verdict=Verdict.NO_EVIDENCE)
    letter = a_returned_letter(batch=batch)
    case = a_return(letter=letter, strikes=ONE_SHORT, first_strike=NOW, batch=batch)
    decision = Situation(case=case, circuit=a_circuit(judged=(alone,))).triage()
    assert isinstance(decision, Hold)
    assert decision.not_before is not None
    return decision.not_before - NOW


def test_with_no_last_chance_set_only_the_backoff_is_waited_for() -> None:
    at_once = Settings(last_chance_seconds=0)
    case = a_return(strikes=ONE_SHORT, first_strike=NOW)

    struck_out = a_return(strikes=SETTINGS.max_attempts, first_strike=NOW)

    assert isinstance(Situation(case=case, settings=at_once).triage(), Redrive)
    assert Situation(case=struck_out, settings=at_once).triage() == park(
        ParkReason.MAX_ATTEMPTS, strikes=SETTINGS.max_attempts
    )
