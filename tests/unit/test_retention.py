"""When a letter is near expiry, and when a queue has to be looked through for such letters."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_redriver.engine.triage.retention import (
    BETWEEN_SWEEPS,
    CALM_MARGIN,
    MEETINGS_PER_MARGIN,
    SWEEP_LIMIT,
    SWEEPS_PER_MARGIN,
    URGENT_MARGIN,
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
from tests.unit.examples import NOW, a_letter, ago, ahead

FORTNIGHT = timedelta(days=14)
SECOND = timedelta(seconds=1)
MARGINS = (calm_margin, urgent_margin)
RETENTIONS = st.timedeltas(timedelta(minutes=1), FORTNIGHT)

Margin = Callable[[timedelta], timedelta]


@pytest.mark.parametrize(
    ("retention", "calm", "urgent"),
    [
        (FORTNIGHT, CALM_MARGIN, URGENT_MARGIN),
        (4 * CALM_MARGIN, CALM_MARGIN, URGENT_MARGIN),
        (timedelta(days=4), timedelta(days=1), URGENT_MARGIN),
        (timedelta(minutes=1), timedelta(seconds=15), timedelta(seconds=7.5)),
    ],
    ids=str,
)
def test_the_margin_of_a_short_retention_is_a_share_of_it(
    retention: timedelta, calm: timedelta, urgent: timedelta
) -> None:
    assert calm_margin(retention) == calm
    assert urgent_margin(retention) == urgent


@given(RETENTIONS)
def test_a_letter_may_wait_longer_while_letters_flow_than_while_nothing_does(
    retention: timedelta,
) -> None:
    assert timedelta() < urgent_margin(retention) < calm_margin(retention) < retention


@pytest.mark.parametrize("margin_of", MARGINS)
def test_a_fresh_letter_is_never_near_expiry_however_short_the_retention(
    margin_of: Margin,
) -> None:
    retention = timedelta(minutes=1)

    assert not is_expiring(a_letter(sent_at=NOW), retention, margin_of(retention), NOW)


@pytest.mark.parametrize("margin_of", MARGINS)
def test_a_letter_is_near_expiry_within_the_margin_and_not_before(margin_of: Margin) -> None:
    margin = margin_of(FORTNIGHT)
    at_the_margin = ago(days=14) + margin

    assert not is_expiring(a_letter(sent_at=at_the_margin), FORTNIGHT, margin, NOW)
    assert is_expiring(a_letter(sent_at=at_the_margin - SECOND), FORTNIGHT, margin, NOW)


def test_a_parked_letter_is_worth_renewing_from_half_its_time_on() -> None:
    assert not is_worth_renewing(a_letter(sent_at=ago(days=6)), FORTNIGHT, NOW)
    assert is_worth_renewing(a_letter(sent_at=ago(days=7)), FORTNIGHT, NOW)


def test_a_queue_of_which_nothing_is_known_is_looked_through_at_once() -> None:
    assert is_due(None, NOW)
    assert is_due(NOW, NOW)
    assert not is_due(ahead(seconds=1), NOW)


def test_the_dlq_is_looked_through_again_when_its_oldest_letter_comes_near_expiry() -> None:
    due = next_sweep(ago(days=4), FORTNIGHT, timedelta(days=1), CALM_MARGIN, NOW)

    assert due == ago(days=4) + FORTNIGHT - CALM_MARGIN


def test_a_newcomer_that_aged_in_the_source_queue_brings_the_look_forward() -> None:
    """SQS's move to the DLQ keeps a standard message's first send: it may have ten days behind it already."""
    due = next_sweep(NOW, FORTNIGHT, timedelta(days=10), CALM_MARGIN, NOW)

    assert due == ahead(days=4) - CALM_MARGIN


@given(
    age=st.none() | st.timedeltas(timedelta(), timedelta(days=13)),
    retention=RETENTIONS,
    source=RETENTIONS,
    margin_of=st.sampled_from(MARGINS),
)
def test_looks_are_never_closer_than_half_a_margin_nor_too_late_for_a_letter_in_time(
    age: timedelta | None, retention: timedelta, source: timedelta, margin_of: Margin
) -> None:
    oldest = NOW - age if age is not None else None
    margin = margin_of(retention)

    due = next_sweep(oldest, retention, source, margin, NOW)

    assert due >= NOW + margin / SWEEPS_PER_MARGIN
    if oldest is not None and oldest + retention - NOW >= margin:
        assert due <= oldest + retention - margin / SWEEPS_PER_MARGIN


def test_the_parking_lot_is_looked_through_when_its_oldest_letter_comes_near_expiry() -> None:
    assert next_lot_sweep(NOW, FORTNIGHT) == NOW + FORTNIGHT - CALM_MARGIN


@given(RETENTIONS)
def test_hidden_letters_are_looked_for_before_the_last_of_them_can_expire(
    retention: timedelta,
) -> None:
    """They are held until an urgent margin before their expiry."""
    again = while_some_are_hidden(NOW + FORTNIGHT, retention, NOW)

    assert NOW < again < NOW + urgent_margin(retention)
    assert while_some_are_hidden(NOW, retention, NOW) == NOW


def test_what_is_kept_for_ever_is_not_looked_through_for_what_is_hidden() -> None:
    """A table shows what it holds back as hidden, and nothing in it expires."""
    later = ahead(days=3_650)

    assert while_some_are_hidden(later, timedelta(days=36_500), NOW) == later


@given(depth=st.integers(SWEEP_LIMIT, 10_000_000), retention=RETENTIONS)
def test_each_letter_of_a_deep_dlq_is_likely_to_be_met_several_times_within_the_margin(
    depth: int, retention: timedelta
) -> None:
    late = NOW + FORTNIGHT

    between = until_all_are_met(late, retention, SWEEP_LIMIT, depth, NOW) - NOW

    sweeps = calm_margin(retention) / between
    assert between == BETWEEN_SWEEPS or sweeps * SWEEP_LIMIT >= MEETINGS_PER_MARGIN * depth * 0.999


@pytest.mark.parametrize("met", [0, 1])
def test_where_hardly_a_letter_was_met_as_many_sweeps_are_needed_as_there_are_letters(
    met: int,
) -> None:
    between = until_all_are_met(NOW + FORTNIGHT, FORTNIGHT, met, 40, NOW) - NOW

    assert between == calm_margin(FORTNIGHT) / (MEETINGS_PER_MARGIN * 40)


@pytest.mark.parametrize(("depth", "sweeps"), [(10_000, 1), (20_000, 2), (40_000, 4)])
def test_a_dlq_twice_as_deep_is_looked_through_twice_as_often(depth: int, sweeps: int) -> None:
    """More often would be sweeps that nobody needs."""
    between = until_all_are_met(NOW + FORTNIGHT, FORTNIGHT, SWEEP_LIMIT, depth, NOW) - NOW

    assert between == calm_margin(FORTNIGHT) / (MEETINGS_PER_MARGIN * sweeps)


def test_a_sweep_that_is_due_sooner_stays_as_it_is() -> None:
    assert until_all_are_met(NOW, FORTNIGHT, SWEEP_LIMIT, 10**6, NOW) == NOW
