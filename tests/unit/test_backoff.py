"""When a letter may be tried again: the backoff of one, and the pacing of many."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import combinations_with_replacement, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.messages.outgoing import MAX_SQS_DELAY
from smart_redriver.engine.triage.admission import Pacer
from smart_redriver.engine.triage.triage import backoff

NOW = datetime(2026, 1, 1, tzinfo=UTC)
COUNTS = st.integers(0, 10_000)
ROLLS = st.floats(0, 1, exclude_max=True)
DELAYS = st.tuples(st.integers(0, 900), st.integers(0, 43_200)).map(
    lambda pair: Settings(base_delay_seconds=pair[0], max_delay_seconds=max(pair))
)


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


@given(COUNTS, ROLLS, DELAYS)
def test_a_backoff_is_between_half_and_all_of_its_doubling(
    count: int, roll: float, settings: Settings
) -> None:
    delay = backoff(count, roll, settings).total_seconds()

    full = min(settings.base_delay_seconds * 2**count, settings.max_delay_seconds)
    assert full / 2 - 0.5 <= delay <= full


@given(COUNTS, ROLLS, DELAYS)
def test_a_backoff_never_exceeds_the_maximum(count: int, roll: float, settings: Settings) -> None:
    assert backoff(count, roll, settings) <= seconds(settings.max_delay_seconds)


@given(COUNTS, ROLLS, DELAYS)
def test_a_letter_with_more_strikes_never_waits_less(
    count: int, roll: float, settings: Settings
) -> None:
    assert backoff(count, roll, settings) <= backoff(count + 1, roll, settings)


@given(COUNTS, ROLLS, ROLLS, DELAYS)
def test_a_higher_roll_never_waits_less(
    count: int, one: float, other: float, settings: Settings
) -> None:
    low, high = sorted((one, other))

    assert backoff(count, low, settings) <= backoff(count, high, settings)


@pytest.mark.parametrize(
    ("count", "roll", "expected"),
    [(0, 0, 30), (0, 0.999, 60), (1, 0, 60), (3, 0, 240), (4, 0, 450), (400, 0.5, 675)],
)
def test_the_default_backoff_doubles_from_a_minute_to_a_quarter_of_an_hour(
    count: int, roll: float, expected: int
) -> None:
    assert backoff(count, roll, Settings()) == seconds(expected)


@given(st.lists(st.integers(0, 950), max_size=60), st.floats(0.05, 20))
def test_in_no_span_of_seconds_do_more_letters_fall_than_the_rate_allows(
    wanted: list[int], rate: float
) -> None:
    pacer = Pacer(rate)

    slots = [pacer.slot(seconds(second), NOW) for second in wanted]

    taken = Counter(int(slot.total_seconds()) for slot in slots if slot is not None)
    for start, end in combinations_with_replacement(sorted(taken), 2):
        in_span = sum(count for second, count in taken.items() if start <= second <= end)
        assert in_span < (end - start + 1) * rate + 1


@given(st.lists(st.integers(0, 950), max_size=60), st.integers(1, 20))
def test_a_whole_rate_holds_in_every_single_second(wanted: list[int], rate: int) -> None:
    pacer = Pacer(rate)

    slots = [pacer.slot(seconds(second), NOW) for second in wanted]

    taken = Counter(slot for slot in slots if slot is not None)
    assert max(taken.values(), default=0) <= rate


@given(st.lists(st.floats(0, 950), max_size=60), st.floats(0.05, 20))
def test_a_slot_is_a_whole_second_that_sqs_can_delay_and_never_before_the_wanted_one(
    wanted: list[float], rate: float
) -> None:
    pacer = Pacer(rate)

    for second in wanted:
        slot = pacer.slot(seconds(second), NOW)

        assert slot is None or seconds(second) <= slot <= MAX_SQS_DELAY
        assert slot is None or slot.total_seconds().is_integer()


def test_a_full_second_passes_the_letter_on_to_the_next() -> None:
    pacer = Pacer(2)

    slots = [pacer.slot(seconds(60), NOW) for _ in range(5)]

    assert slots == [seconds(n) for n in (60, 60, 61, 61, 62)]


def test_no_limit_gives_every_letter_the_second_that_it_wants() -> None:
    pacer = Pacer(0)

    assert {pacer.slot(seconds(30), NOW) for _ in range(5_000)} == {seconds(30)}


def test_a_rate_below_one_a_second_leaves_seconds_empty() -> None:
    pacer = Pacer(0.25)

    slots = [pacer.slot(timedelta(), NOW) for _ in range(4)]

    assert [b - a for a, b in pairwise(slots) if a is not None and b is not None] == [
        seconds(4)
    ] * 3


def test_a_letter_that_finds_no_second_within_sqs_longest_delay_gets_none() -> None:
    pacer = Pacer(1)

    slots = [pacer.slot(seconds(899), NOW) for _ in range(3)]

    assert slots == [seconds(899), seconds(900), None]


@pytest.mark.parametrize("rate", [0, 5])
def test_a_wish_beyond_sqs_longest_delay_gets_no_slot(rate: float) -> None:
    assert Pacer(rate).slot(seconds(901), NOW) is None


# Where the pass before left off.


def test_a_pacer_begins_where_the_one_before_left_off() -> None:
    pacer = Pacer(2, NOW + seconds(30))

    assert [pacer.slot(seconds(0), NOW) for _ in range(3)] == [seconds(n) for n in (30, 30, 31)]


def test_a_wish_beyond_what_was_dealt_out_is_granted() -> None:
    assert Pacer(2, NOW + seconds(30)).slot(seconds(90), NOW) == seconds(90)


def test_without_a_limit_nobody_waits_for_the_pass_before() -> None:
    assert Pacer(0, NOW + seconds(30)).slot(seconds(0), NOW) == seconds(0)


def test_a_pacer_tells_up_to_when_the_rate_is_used_up_and_not_that_letters_chose_to_wait() -> None:
    pressed, patient = Pacer(2), Pacer(2)

    for _ in range(20):
        pressed.slot(seconds(0), NOW)
    patient.slot(seconds(600), NOW)

    assert pressed.until == NOW + seconds(10)
    assert patient.until is None


def test_letters_that_had_to_wait_for_a_later_second_use_the_rate_up_to_there() -> None:
    pacer = Pacer(1)

    slots = [pacer.slot(seconds(60), NOW) for _ in range(5)]

    assert slots == [seconds(60 + number) for number in range(5)]
    assert pacer.until == NOW + seconds(64)


@pytest.mark.parametrize(
    ("rate", "letters", "until"),
    [(1, 1, None), (1, 3, None), (1, 4, 63), (1, 5, 64), (2, 4, None), (2, 5, 62), (2, 7, 63)],
)
def test_a_wait_of_two_letters_time_is_chance_and_a_longer_one_uses_the_rate_up(
    rate: float, letters: int, until: int | None
) -> None:
    pacer = Pacer(rate)

    for _ in range(letters):
        pacer.slot(seconds(60), NOW)

    assert pacer.until == (NOW + seconds(until) if until else None)


def test_a_rate_that_is_used_up_to_the_end_of_sqs_delay_is_used_up_to_the_second_after_it() -> None:
    pacer = Pacer(1)

    for _ in range(901):
        pacer.slot(seconds(0), NOW)

    assert pacer.until == NOW + seconds(901)


@pytest.mark.parametrize(
    ("used_until", "letters"), [(None, 8), (-60, 8), (-2, 6), (-1, 4), (0, 2), (1, 0)]
)
def test_letters_that_go_at_once_get_the_seconds_since_the_last_look_once(
    used_until: int | None, letters: int
) -> None:
    starts_at = None if used_until is None else NOW + seconds(used_until)
    pacer = Pacer(2, starts_at, NOW - seconds(3.5))

    assert pacer.room(NOW, timedelta()) == letters


@given(st.floats(0.1, 20), st.lists(st.floats(1, 10), min_size=1, max_size=20))
def test_uneven_looks_deal_out_the_rate_and_no_second_of_it_twice(
    rate: float, gaps: list[float]
) -> None:
    now, until, last, sent = NOW, None, None, 0
    for gap in [0, *gaps]:
        now += seconds(gap)
        pacer = Pacer(rate, until, last)
        while pacer.slot(timedelta(), now, timedelta()) is not None:
            sent += 1
        until, last = pacer.until, now

    spent = int(now.timestamp()) - int(NOW.timestamp()) + 1
    assert abs(sent - rate * spent) <= 1


@given(st.floats(0.002, 1), st.integers(1, 90), st.integers(1, 3))
def test_passes_that_follow_each_other_share_a_slow_rate(
    rate: float, apart: int, letters: int
) -> None:
    until, due = None, []
    for number in range(20):
        now = NOW + seconds(number * apart)
        pacer = Pacer(rate, until)
        slots = [pacer.slot(timedelta(), now) for _ in range(letters)]
        due += [now + slot for slot in slots if slot is not None]
        until = pacer.until

    assert len(set(due)) == len(due)
    span = (max(due, default=NOW) - NOW).total_seconds() + 1
    assert len(due) < span * rate + 1


def test_a_second_that_is_too_far_ahead_is_left_to_the_next_pass() -> None:
    pacer = Pacer(0.01)
    taken = pacer.slot(timedelta(), NOW)
    assert taken is not None

    assert pacer.slot(timedelta(), NOW, taken + seconds(60)) is None
    assert Pacer(0.01, pacer.until).slot(timedelta(), NOW + taken) == seconds(100)


def test_the_end_of_the_used_up_rate_never_moves_back() -> None:
    pacer = Pacer(2, NOW + seconds(100))

    pacer.slot(seconds(0), NOW)

    assert pacer.until == NOW + seconds(100)


@pytest.mark.parametrize(
    ("first", "last", "free"),
    [(-60, -30, 0), (-60, 0, 0), (10, 10, 0), (0, 2, 2)],
    ids=["over", "just over", "all at once", "under way"],
)
def test_letters_that_are_on_their_way_take_their_seconds(first: int, last: int, free: int) -> None:
    pacer = Pacer(1)
    pacer.book(100, NOW + seconds(first), NOW + seconds(last), NOW)

    assert pacer.slot(timedelta(), NOW) == seconds(free)


@pytest.mark.parametrize(("letters", "slots"), [(0, [0, 1, 2]), (2, [0, 1, 2]), (4, [4, 5, 6])])
def test_letters_that_are_on_their_way_take_as_much_of_each_second_as_comes_in_it(
    letters: int, slots: list[int]
) -> None:
    pacer = Pacer(1)
    pacer.book(letters, NOW, NOW + seconds(4), NOW)

    assert [pacer.slot(timedelta(), NOW) for _ in range(3)] == [seconds(n) for n in slots]


def test_letters_that_are_there_by_now_leave_the_rest_of_this_second_to_others() -> None:
    now = NOW + seconds(0.5)
    pacer = Pacer(1)
    pacer.book(100, NOW - seconds(60), now, now)

    assert pacer.slot(timedelta(), now) == timedelta()


def test_without_a_limit_no_letter_on_its_way_takes_a_second() -> None:
    pacer = Pacer(0)
    pacer.book(100, NOW, NOW + seconds(60), NOW)

    assert pacer.slot(timedelta(), NOW) == timedelta()
