"""The rate that a consumer is given: what it grows by, what stops it, and what it goes on with."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_redriver.engine.messages.queue_facts import QueueFacts
from smart_redriver.engine.model.rate import (
    CREEP,
    FIRST,
    GROWTH,
    LEAST,
    PATIENCE,
    REMEMBERED,
    SHARE_OF_BORNE,
    SURPLUS_MESSAGES,
    Rate,
    felt,
)

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
#: Three messages a second.
LIVE = (180, 180, 180, 180, 180)


def holding(waiting: int = 0, in_flight: int = 0) -> QueueFacts:
    return QueueFacts(
        arn="arn:aws:sqs:eu-west-1:111122223333:orders",
        visible=waiting,
        in_flight=in_flight,
        delayed=0,
        visibility_timeout=timedelta(seconds=30),
        retention=timedelta(days=4),
        max_message_size=262_144,
    )


def after(
    rate: Rate | None,
    facts: QueueFacts,
    *,
    live: tuple[int, ...] = LIVE,
    used: timedelta = MINUTE,
    is_closed: bool = True,
    later: timedelta = MINUTE,
) -> Rate | None:
    at = rate.looked_at + later if rate else NOW
    return felt(rate, facts, at, live=live, used=used, is_closed=is_closed)


def known(rate: Rate | None) -> Rate:
    assert rate is not None
    return rate


@pytest.mark.parametrize("live", [(), (0, 60, 60), (1,), (0, 0, 5_000)])
def test_where_hardly_a_message_could_suffer_there_is_no_rate(live: tuple[int, ...]) -> None:
    assert after(None, holding(waiting=1_000), live=live) is None


def test_it_begins_with_one_a_second_or_a_tenth_of_live_traffic() -> None:
    assert known(after(None, holding())).per_second == FIRST
    assert known(after(None, holding(), live=(6_000, 6_000))).per_second == 10


def test_one_minute_with_many_messages_is_not_taken_for_live_traffic() -> None:
    rate = known(after(None, holding(), live=(120, 12_000, 120, 120, 120)))

    assert (rate.live, rate.per_second) == (2, FIRST)


def test_it_grows_while_it_is_used_and_nothing_waits() -> None:
    rate = known(after(None, holding()))

    grown = known(after(rate, holding()))
    idle = known(after(rate, holding(), used=timedelta(seconds=5)))

    assert (grown.per_second, idle.per_second) == (FIRST * GROWTH, FIRST)


def test_looks_that_follow_each_other_make_it_grow_no_faster_than_the_counts_are_old() -> None:
    rate = known(after(None, holding()))

    for _ in range(6):
        rate = known(
            after(rate, holding(), later=timedelta(seconds=10), used=timedelta(seconds=10))
        )

    assert rate.per_second == pytest.approx(1.25**6)


@pytest.mark.parametrize("facts", [holding(waiting=60), holding(in_flight=60)])
def test_nothing_goes_while_messages_wait_or_their_failed_tries_hide_them(
    facts: QueueFacts,
) -> None:
    rate = known(after(None, holding()))

    congested = known(after(rate, facts))

    assert congested.is_congested
    assert known(after(congested, facts, used=-MINUTE)).is_congested
    assert not known(after(congested, holding(), used=-MINUTE)).is_congested


def test_it_goes_on_below_what_was_too_much_and_creeps_there() -> None:
    rate = known(after(None, holding()))
    for _ in range(4):
        rate = known(after(rate, holding()))
    too_much, before = rate.per_second, rate.before

    congested = known(after(rate, holding(in_flight=500)))
    gone_on = known(after(congested, holding(), used=-MINUTE))
    assert congested.borne is not None
    assert before < congested.borne < too_much
    assert gone_on.per_second == pytest.approx(SHARE_OF_BORNE * congested.borne)

    steps = [gone_on]
    for _ in range(6):
        steps.append(known(after(steps[-1], holding())))
    at_most = [
        max(congested.borne, GROWTH * one.per_second)
        if one.per_second < congested.borne
        else CREEP * one.per_second
        for one in steps
    ]
    assert all(
        later.per_second <= most + 1e-9 for later, most in zip(steps[1:], at_most[:-1], strict=True)
    )
    assert steps[-1].per_second > congested.borne


def test_what_was_too_much_twice_is_met_with_less() -> None:
    rate = replace(known(after(None, holding())), per_second=10.0)

    first = known(after(rate, holding(in_flight=500)))
    again = known(after(known(after(first, holding(), used=-MINUTE)), holding(in_flight=500)))

    assert first.borne is not None
    assert again.borne is not None
    assert again.borne < first.borne


def test_what_was_too_much_is_forgotten() -> None:
    rate = replace(known(after(None, holding())), borne=4.0, borne_at=NOW)

    assert known(after(rate, holding(), later=REMEMBERED)).borne == 4.0
    assert known(after(rate, holding(), later=REMEMBERED + MINUTE)).borne is None


def test_a_queue_that_stays_full_without_our_letters_stops_them_no_longer() -> None:
    rate = known(after(known(after(None, holding())), holding(in_flight=500)))

    waited = known(after(rate, holding(in_flight=500), later=PATIENCE, used=-PATIENCE))

    assert not waited.is_congested
    assert waited.without_ours == 500
    assert not known(after(waited, holding(in_flight=500))).is_congested


def test_a_consumer_that_takes_long_is_not_taken_for_one_that_fails() -> None:
    """Ten seconds for a message: thirty of three a second are always in flight, and forty of four."""
    rate = known(after(None, holding(in_flight=30)))

    for _ in range(4):
        in_flight = round(10 * (3 + rate.per_second))
        rate = known(after(rate, holding(in_flight=in_flight)))
        assert not rate.is_congested

    assert rate.per_second == pytest.approx(FIRST * GROWTH**4)


def test_an_open_circuit_does_not_make_it_grow() -> None:
    rate = replace(known(after(None, holding())), per_second=8.0)

    assert known(after(rate, holding(), is_closed=False)).per_second == 8.0


@given(
    looks=st.lists(
        st.tuples(
            st.integers(0, 5_000),
            st.integers(0, 5_000),
            st.integers(-120, 60),
            st.booleans(),
            st.integers(1, 600),
        ),
        max_size=40,
    )
)
def test_whatever_is_seen_it_stays_a_rate(
    looks: list[tuple[int, int, int, bool, int]],
) -> None:
    rate = known(after(None, holding()))
    for waiting, in_flight, used, is_closed, later in looks:
        before = rate.per_second
        rate = known(
            after(
                rate,
                holding(waiting, in_flight),
                used=timedelta(seconds=used),
                is_closed=is_closed,
                later=timedelta(seconds=later),
            )
        )
        assert LEAST <= rate.per_second <= before * GROWTH + 1e-9
        if waiting + in_flight <= SURPLUS_MESSAGES:
            assert not rate.is_congested
