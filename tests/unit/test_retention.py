"""When a letter is near expiry, and when a queue has to be looked through for such letters."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.core.circuit import State
from redrive.core.retention import (
    EXPIRY_MARGIN,
    SWEEPS_PER_MARGIN,
    expiry_margin,
    is_dlq_sweep_due,
    is_expiring,
    is_lot_sweep_due,
    is_worth_renewing,
    next_dlq_sweep,
    next_lot_sweep,
)
from tests.unit.examples import NOW, a_circuit, a_letter, ago, ahead

FORTNIGHT = timedelta(days=14)


@pytest.mark.parametrize(
    ("retention", "margin"),
    [
        (FORTNIGHT, EXPIRY_MARGIN),
        (timedelta(days=8), EXPIRY_MARGIN),
        (timedelta(days=4), timedelta(days=1)),
        (timedelta(minutes=1), timedelta(seconds=15)),
    ],
    ids=str,
)
def test_the_margin_is_two_days_or_a_quarter_of_a_short_retention(
    retention: timedelta, margin: timedelta
) -> None:
    assert expiry_margin(retention) == margin


def test_a_fresh_letter_is_never_near_expiry_however_short_the_retention() -> None:
    assert not is_expiring(a_letter(sent_at=NOW), timedelta(minutes=1), NOW)


def test_a_letter_is_near_expiry_within_the_margin_and_not_before() -> None:
    at_the_margin = ago(days=14) + EXPIRY_MARGIN

    assert not is_expiring(a_letter(sent_at=at_the_margin), FORTNIGHT, NOW)
    assert is_expiring(a_letter(sent_at=at_the_margin - timedelta(seconds=1)), FORTNIGHT, NOW)


def test_a_parked_letter_is_worth_renewing_from_half_its_time_on() -> None:
    assert not is_worth_renewing(a_letter(sent_at=ago(days=6)), FORTNIGHT, NOW)
    assert is_worth_renewing(a_letter(sent_at=ago(days=7)), FORTNIGHT, NOW)


@pytest.mark.parametrize(
    ("state", "is_due"), [(State.CLOSED, False), (State.OPEN, True), (State.HALF_OPEN, True)]
)
def test_only_a_dlq_whose_letters_do_not_flow_has_to_be_looked_through(
    state: State, is_due: bool
) -> None:
    unknown = a_circuit(state=state)

    assert is_dlq_sweep_due(unknown, NOW) is is_due
    assert is_dlq_sweep_due(replace(unknown, dlq_sweep_at=NOW), NOW) is is_due
    assert not is_dlq_sweep_due(replace(unknown, dlq_sweep_at=ahead(seconds=1)), NOW)


@pytest.mark.parametrize("state", list(State))
def test_the_parking_lot_is_looked_through_whatever_the_circuit_says(state: State) -> None:
    unknown = a_circuit(state=state)

    assert is_lot_sweep_due(unknown, NOW)
    assert is_lot_sweep_due(replace(unknown, lot_sweep_at=NOW), NOW)
    assert not is_lot_sweep_due(replace(unknown, lot_sweep_at=ahead(seconds=1)), NOW)


def test_the_dlq_is_looked_through_again_when_its_oldest_letter_comes_near_expiry() -> None:
    due = next_dlq_sweep(ago(days=4), FORTNIGHT, timedelta(days=1), NOW)

    assert due == ago(days=4) + FORTNIGHT - EXPIRY_MARGIN


def test_a_newcomer_that_aged_in_the_source_queue_brings_the_look_forward() -> None:
    """SQS's move to the DLQ keeps a standard message's first send: it may have ten days behind it already."""
    due = next_dlq_sweep(NOW, FORTNIGHT, timedelta(days=10), NOW)

    assert due == ahead(days=4) - EXPIRY_MARGIN


@given(
    age=st.none() | st.timedeltas(timedelta(), timedelta(days=13)),
    retention=st.timedeltas(timedelta(minutes=1), FORTNIGHT),
    source=st.timedeltas(timedelta(minutes=1), FORTNIGHT),
)
def test_looks_are_never_closer_than_half_a_margin_nor_too_late_for_a_letter_in_time(
    age: timedelta | None, retention: timedelta, source: timedelta
) -> None:
    oldest = NOW - age if age is not None else None

    due = next_dlq_sweep(oldest, retention, source, NOW)

    margin = expiry_margin(retention)
    assert due >= NOW + margin / SWEEPS_PER_MARGIN
    if oldest is not None and oldest + retention - NOW >= margin:
        assert due <= oldest + retention - margin / SWEEPS_PER_MARGIN


def test_the_parking_lot_is_looked_through_when_its_oldest_letter_comes_near_expiry() -> None:
    assert next_lot_sweep(NOW, FORTNIGHT) == NOW + FORTNIGHT - EXPIRY_MARGIN
