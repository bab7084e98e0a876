"""The rate that a consumer is given: what it grows by, what stops it, and what it goes on with."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_redriver.engine.messages.queue_facts import QueueFacts
from smart_redriver.engine.model.rate import (
    AHEAD_OF_SCHEDULE,
    BY_ITSELF,
    CHEAP,
    CLEARED,
    CREEP,
    CREEP_NEAR,
    FIRST,
    FIRST_BESIDE_FEW,
    GROWTH,
    LEAST,
    PATIENCE,
    REMEMBERED,
    SHARE_OF_BORNE,
    SURPLUS_MESSAGES,
    Look,
    Rate,
    ahead_at_once,
    ahead_of_schedule,
    felt,
    owed_since,
    used_up_until,
)

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
#: Three messages a second.
LIVE = (180, 180, 180, 180, 180)
A_RATE = Rate(per_second=1.0, looked_at=NOW, live=3.0)


def holding(waiting: int = 0, in_flight: int = 0, dying: int | None = None) -> QueueFacts:
    return QueueFacts(
        arn="arn:aws:sqs:eu-west-1:111122223333:orders",
        visible=waiting,
        in_flight=in_flight,
        delayed=0,
        visibility_timeout=timedelta(seconds=30),
        retention=timedelta(days=4),
        max_message_size=262_144,
        dying=dying,
    )


def after(
    rate: Rate | None,
    facts: QueueFacts,
    *,
    live: tuple[int, ...] = LIVE,
    used: timedelta = MINUTE,
    is_closed: bool = True,
    are_out: bool = False,
    may_be_too_many: bool = False,
    flaps: bool = False,
    unheard: float | None = None,
    later: timedelta = MINUTE,
    outcomes: tuple[tuple[int, int], ...] = (),
    sent: timedelta = timedelta(seconds=5),
) -> Rate | None:
    """The rate after a look; `outcomes` are failed and tried of batches `sent` so long before it."""
    now = rate.looked_at + later if rate else NOW
    look = Look(
        at=now,
        facts=facts,
        live=live,
        used=used,
        is_closed=is_closed,
        are_out=are_out,
        may_be_too_many=may_be_too_many,
        flaps=flaps,
        unheard=unheard,
        outcomes=[(now - sent, failed, tried) for failed, tried in outcomes],
    )
    return felt(rate, look)


def known(rate: Rate | None) -> Rate:
    assert rate is not None
    return rate


@pytest.mark.parametrize("live", [(), (0, 60, 60), (1,), (5_000,), (0, 60, 5_000)])
def test_where_hardly_a_message_could_suffer_there_is_no_rate(live: tuple[int, ...]) -> None:
    assert after(None, holding(waiting=1_000), live=live) is None


@pytest.mark.parametrize("live", [(), (0, 0, 0, 0, 0)])
def test_where_counts_are_of_this_moment_there_is_a_rate_from_the_first_letter(
    live: tuple[int, ...],
) -> None:
    assert known(after(None, holding(dying=0), live=live)).per_second == FIRST


def test_what_went_before_the_circuit_opened_may_have_been_too_much() -> None:
    grown = replace(A_RATE, before=4.0, per_second=9.0, marked_at=NOW)

    opened = known(after(grown, holding(dying=0), is_closed=False, later=SECOND, used=SECOND))

    assert opened.borne == 6
    assert opened.per_second == pytest.approx(6 * SHARE_OF_BORNE)


@pytest.mark.parametrize(("dying", "is_learned"), [(0, True), (None, False)])
def test_where_counts_are_of_this_moment_that_is_learned_of_a_consumer_that_reports_too(
    dying: int | None, is_learned: bool
) -> None:
    grown = replace(A_RATE, live=0.1, before=4.0, per_second=9.0, marked_at=NOW)

    opened = after(
        grown,
        holding(dying=dying),
        live=QUIET,
        used=SECOND,
        is_closed=False,
        are_out=True,
        unheard=0.0,
        later=SECOND,
    )

    assert (opened is not None and opened.borne == 6) is is_learned


@pytest.mark.parametrize(
    ("rate", "dying"),
    [
        (replace(A_RATE, before=0.0, per_second=9.0), 0),
        (replace(A_RATE, before=4.0, per_second=9.0), None),
    ],
    ids=["down from the first letter", "counts that are old"],
)
def test_an_outage_that_tells_nothing_of_the_rate_does_not_slow_it(
    rate: Rate, dying: int | None
) -> None:
    opened = known(after(rate, holding(dying=dying), is_closed=False, later=SECOND, used=SECOND))

    assert (opened.borne, opened.per_second) == (None, 9)


@pytest.mark.parametrize(("later", "is_owed"), [(0.5, True), (10, True), (10.5, False)])
def test_what_can_not_be_delayed_is_owed_the_seconds_since_a_recent_look(
    later: float, is_owed: bool
) -> None:
    since = owed_since(A_RATE, A_RATE.looked_at + timedelta(seconds=later))

    assert since == (A_RATE.looked_at if is_owed else None)


def test_before_the_first_look_no_seconds_are_owed() -> None:
    assert owed_since(None, NOW) is None


def test_beside_live_messages_nothing_goes_ahead_of_its_second() -> None:
    assert ahead_at_once(A_RATE, NOW, paced_until=None, handful=50) == timedelta()


def test_on_a_quiet_topic_a_handful_goes_together_after_a_pause() -> None:
    quiet = replace(A_RATE, live=1.0, per_second=2.0)

    def ahead(
        paced_until: datetime | None, handful: int = 5, now: datetime = NOW + SECOND
    ) -> float:
        since = owed_since(quiet, now) or now
        told = ahead_at_once(quiet, since, paced_until=paced_until, handful=handful)
        return told.total_seconds()

    times = [None, NOW, NOW + SECOND, NOW + 2 * SECOND]
    assert [ahead(one) for one in times] == [2.5, 2.5, 0, 0]
    assert ahead(None, handful=1) == 0.5
    a_minute_later = NOW + timedelta(minutes=1)
    assert ahead(NOW + SECOND, now=a_minute_later) == 2.5
    assert ahead(a_minute_later + SECOND, now=a_minute_later) == 0


def test_once_some_rate_was_too_high_no_handful_goes_together() -> None:
    quiet = replace(A_RATE, live=1.0, per_second=2.0, borne=1.5, borne_at=NOW)

    assert ahead_at_once(quiet, NOW, paced_until=None, handful=5) == timedelta()


@pytest.mark.parametrize(
    ("per_second", "seconds"), [(1.0, 200), (4.0, 50), (0.5, 200)], ids=["same", "grown", "fallen"]
)
def test_letters_that_went_together_use_up_less_time_of_a_rate_that_has_grown(
    per_second: float, seconds: int
) -> None:
    until = NOW + timedelta(seconds=200)
    rate = replace(A_RATE, per_second=per_second)

    assert used_up_until(until, A_RATE, rate, NOW) == NOW + timedelta(seconds=seconds)
    assert used_up_until(NOW - SECOND, A_RATE, rate, NOW) == NOW - SECOND
    assert used_up_until(None, A_RATE, rate, NOW) is None


@pytest.mark.parametrize(("dying", "goes_on"), [(0, 2.0), (None, 9.0)])
def test_if_a_consumer_falls_within_seconds_the_growth_before_is_taken_back(
    dying: int | None, goes_on: float
) -> None:
    """A topic's consumer fell over within seconds, got letters a little faster each time, and fell 149 times."""
    grown = replace(A_RATE, live=0.0, before=0.0, marked=2.0, marked_at=NOW, per_second=9.0)
    held = holding(dying=dying)

    opened = known(after(grown, held, live=QUIET, is_closed=False, later=SECOND))
    later = known(after(opened, held, live=QUIET, is_closed=False))

    assert (opened.borne, opened.per_second, later.per_second) == (None, goes_on, goes_on)


def test_two_busy_minutes_are_live_traffic() -> None:
    assert known(after(None, holding(), live=(0, 61, 61))).per_second == FIRST


#: No minute of it has more than one message a second, but for what died, sent all at once.
QUIET = (0, 60, 5_000, 6, 6)


@pytest.mark.parametrize("live", [(), QUIET])
def test_letters_that_may_be_too_many_at_once_are_given_a_rate_although_no_live_message_suffers(
    live: tuple[int, ...],
) -> None:
    rate = known(after(None, holding(), live=live, may_be_too_many=True))
    grown = known(after(rate, holding(), live=live))

    begins = FIRST_BESIDE_FEW if live else FIRST
    assert (rate.per_second, grown.per_second) == (begins, begins * GROWTH)


@pytest.mark.parametrize(
    ("live", "flaps", "begins"),
    [
        ((), False, FIRST),
        ((0, 0, 0), False, FIRST),
        ((0, 1, 1), False, FIRST_BESIDE_FEW),
        (QUIET, False, FIRST_BESIDE_FEW),
        (QUIET, True, FIRST),
        ((0, 61, 61), False, FIRST),
        ((0, 61, 61), True, FIRST),
    ],
)
def test_a_rate_begins_faster_beside_a_few_live_messages_if_the_consumer_stays_up(
    live: tuple[int, ...], flaps: bool, begins: float
) -> None:
    """Twenty seconds longer was too long for 3,000 letters. Letters alone may fell a consumer that flaps."""
    assert known(after(None, holding(dying=0), live=live, flaps=flaps)).per_second == begins


def test_that_rate_is_forgotten_long_after_the_last_letter_if_all_was_borne() -> None:
    rate = known(after(None, holding(), live=QUIET, may_be_too_many=True))
    less = replace(rate, borne=FIRST, borne_at=NOW)

    assert after(rate, holding(), live=QUIET, used=-CLEARED) is None
    assert after(rate, holding(), live=QUIET, used=SECOND - CLEARED) is not None
    assert after(less, holding(), live=QUIET, used=-CLEARED) is not None
    assert after(rate, holding(), live=QUIET, used=-CLEARED, is_closed=False) is not None


@pytest.mark.parametrize("live", [QUIET, LIVE])
@pytest.mark.parametrize("is_closed", [False, True])
def test_a_consumer_that_is_known_to_flap_has_a_rate(
    live: tuple[int, ...], is_closed: bool
) -> None:
    """It may go down because of the letters: of 3,000 letters, 2,800 were tried at once again and again."""
    rate = known(after(None, holding(), live=live, flaps=True, is_closed=is_closed))

    assert known(after(rate, holding(), live=live, flaps=True, used=-CLEARED)).per_second >= FIRST


@pytest.mark.parametrize("flaps", [False, True])
def test_a_consumer_that_reports_and_goes_down_after_each_trial_may_go_down_of_the_rate(
    flaps: bool,
) -> None:
    """Each batch of five was too many at once, for 30 hours. Where looks are seconds apart, a rate costs seconds."""
    rate = after(None, holding(), live=QUIET, are_out=True, flaps=flaps, unheard=0.0)

    assert (rate is not None) is flaps


@pytest.mark.parametrize(
    ("per_second", "is_by_itself"), [(FIRST, True), (BY_ITSELF, True), (BY_ITSELF + 0.1, False)]
)
def test_a_consumer_that_goes_down_at_a_low_rate_does_so_by_itself(
    per_second: float, is_by_itself: bool
) -> None:
    before = replace(A_RATE, before=FIRST, borne=9.0, borne_at=NOW, spent=60.0, live=0.1)
    rate = replace(before, per_second=per_second)

    congested = known(after(rate, holding(in_flight=500), live=QUIET, flaps=True))

    assert congested.is_congested
    assert (congested.borne is None, congested.spent == 0.0) == (is_by_itself, is_by_itself)


def test_a_consumer_that_is_still_down_does_not_make_forget_what_it_bore() -> None:
    """It fell at 23 a second, failed all that went on at less and less, and at last fell at 23 a second again."""
    rate = replace(A_RATE, per_second=BY_ITSELF, live=0.1, borne=9.0, borne_at=NOW, before=0.0)

    congested = known(after(rate, holding(in_flight=500), live=QUIET, flaps=True))

    assert congested.is_congested
    assert congested.borne == 9.0


@pytest.mark.parametrize(("live", "waiting"), [(1.0, 65), (1.01, 20)])
def test_beside_hardly_any_live_message_all_letters_that_are_dealt_out_may_wait(
    live: float, waiting: int
) -> None:
    """Fifteen seconds of them: a consumer that polled every ten was met with less and less."""
    rate = replace(A_RATE, live=live, per_second=4.0)

    assert not known(after(rate, holding(waiting), live=())).is_congested
    assert known(after(rate, holding(waiting + 1), live=())).is_congested


def test_it_never_falls_below_the_first_where_letters_alone_may_fail() -> None:
    quiet = replace(A_RATE, live=1.0, borne=FIRST, congested_since=NOW)
    beside_live = replace(quiet, live=1.01)

    assert known(after(quiet, holding(), live=(), used=-MINUTE)).per_second == FIRST
    assert known(after(beside_live, holding(), live=(), used=-MINUTE)).per_second == pytest.approx(
        SHARE_OF_BORNE
    )


def test_what_the_queue_holds_at_first_is_usual_unless_letters_are_out() -> None:
    assert known(after(None, holding(7, 3))).without_ours == 10
    assert known(after(None, holding(7, 3, dying=2))).without_ours == 12
    assert known(after(None, holding(7, 3), are_out=True)).without_ours == 0


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


@pytest.mark.parametrize(
    ("outcomes", "grows"),
    [((0, 10), True), ((0, 9), False), ((1, 60), False)],
    ids=["all succeeded", "too few", "one failed"],
)
def test_while_the_circuit_is_not_closed_it_grows_with_a_batch_that_succeeded(
    outcomes: tuple[int, int], grows: bool
) -> None:
    """With 60 letters in each of a consumer's few minutes up, more died in between than went back."""
    rate = after(A_RATE, holding(), live=QUIET, is_closed=False, flaps=True, outcomes=(outcomes,))

    assert known(rate).per_second == (GROWTH if grows else 1.0)


def test_looks_that_follow_each_other_make_it_grow_no_faster_than_the_counts_are_old() -> None:
    rate = known(after(None, holding()))

    for _ in range(6):
        rate = known(
            after(rate, holding(), later=timedelta(seconds=10), used=timedelta(seconds=10))
        )

    assert rate.per_second == pytest.approx(1.25**6)


@pytest.mark.parametrize("seconds", [1, 2, 5])
def test_looks_seconds_apart_make_it_grow_as_one_of_ten_seconds(seconds: int) -> None:
    rate = known(after(None, holding()))
    apart = timedelta(seconds=seconds)

    for _ in range(10 // seconds):
        rate = known(after(rate, holding(), later=apart, used=apart))
    unused = known(after(rate, holding(), later=apart, used=0.4 * apart))

    assert rate.per_second == unused.per_second == pytest.approx(1.25)


@pytest.mark.parametrize("facts", [holding(waiting=60), holding(in_flight=60), holding(dying=2)])
def test_nothing_goes_while_messages_wait_or_their_failed_tries_hide_them(
    facts: QueueFacts,
) -> None:
    rate = known(after(None, holding()))

    congested = known(after(rate, facts))

    assert congested.is_congested
    assert known(after(congested, facts, used=-MINUTE)).is_congested
    assert not known(after(congested, holding(), used=-MINUTE)).is_congested


@pytest.mark.parametrize(
    ("rate", "used", "waiting", "in_flight"),
    [
        # Of four that arrive a second, three are producers'; three seconds' waiting and one in flight are too much.
        (A_RATE, MINUTE, 5 + 4 * 3, 5 + 4 * 1),
        (A_RATE, timedelta(), 5 + 3 * 3, 5 + 3 * 1),
        (replace(A_RATE, usual_wait=1.0, usual_in_flight=2.0), MINUTE, 5 + 4 * 5, 5 + 4 * 5),
        (replace(A_RATE, without_ours=2), MINUTE, 5 + 4 + 4 * 3, 5 + 4 + 4 * 1),
    ],
    ids=["used", "not used", "as usual", "without ours"],
)
def test_the_consumer_has_too_much_from_one_message_on_beyond_these(
    rate: Rate, used: timedelta, waiting: int, in_flight: int
) -> None:
    assert not known(after(rate, holding(waiting, in_flight), used=used)).is_congested
    assert known(after(rate, holding(waiting + 1, in_flight), used=used)).is_congested
    assert known(after(rate, holding(waiting, in_flight + 1), used=used)).is_congested


@pytest.mark.parametrize(("without_ours", "borne"), [(0, 1), (3, 7)])
def test_producers_messages_that_die_are_too_much_from_one_on_beyond_chance_and_the_usual(
    without_ours: int, borne: int
) -> None:
    rate = replace(A_RATE, without_ours=without_ours)

    assert not known(after(rate, holding(dying=borne))).is_congested
    assert known(after(rate, holding(dying=borne + 1))).is_congested


def test_what_is_usual_is_learned_by_halves_while_few_letters_go() -> None:
    learned = known(after(A_RATE, holding(waiting=8, in_flight=4)))
    faster = replace(A_RATE, per_second=2.0)

    assert (learned.usual_wait, learned.usual_in_flight) == (1.0, 0.5)
    assert known(after(faster, holding(waiting=8))).usual_wait == 0


def test_what_the_queue_holds_long_after_the_last_letter_is_not_ours() -> None:
    rate = replace(A_RATE, without_ours=4)

    cleared = known(after(rate, holding(6, 2), used=-CLEARED))
    hardly = known(after(rate, holding(6, 2), used=-CLEARED + timedelta(seconds=1)))

    assert (cleared.without_ours, hardly.without_ours) == (6, 4)


def test_it_is_not_looked_at_twice_in_a_second() -> None:
    full = holding(waiting=500)

    assert after(A_RATE, full, later=timedelta(milliseconds=999)) == A_RATE
    assert known(after(A_RATE, full, later=timedelta(seconds=1))).is_congested


def test_where_nothing_is_known_of_live_messages_they_come_as_before() -> None:
    assert known(after(A_RATE, holding(), live=())).live == 3.0
    assert known(after(A_RATE, holding(), live=(60, 120, 360))).live == 2.0
    assert known(after(A_RATE, holding(), live=(120, 120, 0, 0, 0))).live == 2.0


def test_what_was_borne_is_the_rate_of_half_a_minute_ago() -> None:
    first = known(after(A_RATE, holding(), later=timedelta(seconds=10)))
    steps = [first]
    for _ in range(6):
        steps.append(known(after(steps[-1], holding(), later=timedelta(seconds=10))))

    assert [one.before for one in steps] == [0, 0, 0, 1, 1, 1, steps[3].marked]
    assert steps[3].marked == pytest.approx(1.25**3)


@pytest.mark.parametrize(
    ("used", "is_closed", "borne"),
    [(MINUTE, True, SHARE_OF_BORNE), (MINUTE, False, SHARE_OF_BORNE), (timedelta(), True, None)],
)
def test_what_was_borne_is_learned_only_while_letters_go(
    used: timedelta, is_closed: bool, borne: float | None
) -> None:
    """A canary may be a whole batch. It went at the rate that felled the consumer, each time."""
    congested = known(after(A_RATE, holding(waiting=500), used=used, is_closed=is_closed))

    assert congested.is_congested
    assert congested.borne == borne
    assert (congested.borne_at is None) == (borne is None)


@pytest.mark.parametrize(
    ("used", "is_blamed"), [(SECOND - CLEARED, True), (-CLEARED, False), (timedelta(), True)]
)
def test_a_rate_that_was_used_is_to_blame_although_nothing_goes_any_more(
    used: timedelta, is_blamed: bool
) -> None:
    """What is too much shows a while later; the window is full by then, and nothing goes."""
    grown = replace(A_RATE, before=4.0, marked=8.0, marked_at=NOW, per_second=9.0)

    congested = known(after(grown, holding(in_flight=500), used=used))

    assert congested.borne == (6.0 if is_blamed else None)


def test_after_a_congestion_it_begins_to_learn_anew() -> None:
    marked = replace(A_RATE, before=0.5, marked=0.7, marked_at=NOW, congested_since=NOW)

    gone_on = known(after(marked, holding(), used=-MINUTE))
    slow = known(after(replace(marked, borne=LEAST), holding(), used=-MINUTE))

    assert (gone_on.before, gone_on.marked, gone_on.marked_at) == (0, 0, None)
    assert (gone_on.per_second, slow.per_second) == (A_RATE.per_second, LEAST)


def congested_for(rate: Rate, lasts: timedelta) -> Rate:
    """The rate after it was too high for so long."""
    too_high = replace(
        rate, per_second=2 * BY_ITSELF, before=2 * BY_ITSELF, marked_at=rate.looked_at
    )
    congested = known(after(too_high, holding(in_flight=500)))
    return known(after(congested, holding(), used=-lasts, later=lasts))


@pytest.mark.parametrize(
    ("lasted", "times", "slowness", "remembered"),
    [
        (CHEAP, 5, 1.0, REMEMBERED),
        (PATIENCE, 1, 1.0, REMEMBERED),
        (PATIENCE, 2, 8.0, 1.8 * REMEMBERED),
        (3 * PATIENCE, 2, 8.0, 1.8 * REMEMBERED),
    ],
)
def test_what_was_costly_twice_is_come_near_to_more_slowly_and_remembered_for_longer(
    lasted: timedelta, times: int, slowness: float, remembered: timedelta
) -> None:
    """A consumer fell over for ten minutes each time that the rate had crept up: 17 times in seven hours."""
    rate = A_RATE
    for _ in range(times):
        rate = congested_for(rate, lasted)

    assert (rate.slowness, rate.remembered) == (slowness, remembered)
    assert rate.borne is not None
    near = replace(rate, per_second=rate.borne - 0.1)
    crept = known(after(near, holding()))
    assert crept.per_second == pytest.approx(near.per_second * CREEP_NEAR ** (6 / slowness))


@pytest.mark.parametrize(("after_that", "is_known"), [(-SECOND, True), (SECOND, False)])
def test_a_congestion_is_forgotten_with_what_it_cost(after_that: timedelta, is_known: bool) -> None:
    rate = congested_for(congested_for(A_RATE, PATIENCE), PATIENCE)
    assert rate.borne_at is not None
    later = rate.borne_at + rate.remembered + after_that - rate.looked_at

    rate = known(after(rate, holding(), used=timedelta(), later=later))

    assert (rate.borne is not None, rate.spent > 0) == (is_known, is_known)


def test_what_goes_after_a_congestion_that_became_an_outage_goes_at_a_share_of_what_was_borne() -> (
    None
):
    """A canary that was a whole batch went at the rate that had been too high, and the consumer fell 263 times."""
    too_high = replace(A_RATE, per_second=9.0, before=9.0, marked_at=NOW)
    congested = known(after(too_high, holding(in_flight=500)))

    opened = known(after(congested, holding(), used=timedelta(), is_closed=False))

    assert not opened.is_congested
    assert opened.per_second == pytest.approx(9 * SHARE_OF_BORNE)


@pytest.mark.parametrize(
    ("up", "ahead"),
    [
        (timedelta(), AHEAD_OF_SCHEDULE),
        (AHEAD_OF_SCHEDULE, AHEAD_OF_SCHEDULE),
        (4 * MINUTE, 1.6 * MINUTE),
        (timedelta(hours=8), 2 * AHEAD_OF_SCHEDULE),
    ],
)
def test_a_batch_for_a_consumer_that_goes_up_and_down_is_sent_while_it_is_up(
    up: timedelta, ahead: timedelta
) -> None:
    assert ahead_of_schedule(up) == ahead


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

    crept = known(after(gone_on, holding()))
    assert crept.per_second == pytest.approx(gone_on.per_second * CREEP**6)


@pytest.mark.parametrize(("seconds", "steps"), [(15, 1.5), (30, 3), (60, 6), (120, 6)])
@pytest.mark.parametrize(
    ("live", "borne", "creep"),
    [
        (3.0, 20.0, CREEP),
        (3.0, 12.0, CREEP_NEAR),
        (3.0, 10.0, CREEP),
        (1.0, 20.0, GROWTH),
        (1.0, 12.0, CREEP_NEAR),
        (1.0, 10.0, CREEP),
    ],
    ids=[
        "far from it",
        "near it",
        "beyond it",
        "alone, far from it",
        "alone, near it",
        "alone, beyond it",
    ],
)
def test_what_was_too_much_once_is_come_near_to_slowly(
    live: float, borne: float, creep: float, seconds: float, steps: float
) -> None:
    """At the limit, messages fail by chance; beyond it, it was no limit."""
    rate = replace(A_RATE, per_second=10.0, live=live, borne=borne, borne_at=NOW)

    later = known(after(rate, holding(), live=(), later=timedelta(seconds=seconds)))

    assert later.per_second <= 10 * GROWTH
    if creep < GROWTH:
        assert later.per_second == pytest.approx(10 * creep**steps)


@pytest.mark.parametrize(
    ("unheard", "grown"), [(None, 1.25), (6.0, 1.25), (4.0, 1.5)], ids=["silent", "late", "heard"]
)
def test_it_grows_faster_while_the_consumer_has_reported_of_all_that_came(
    unheard: float | None, grown: float
) -> None:
    rate, later = replace(A_RATE, per_second=10.0), timedelta(seconds=10)

    told = after(rate, holding(), used=later, are_out=True, unheard=unheard, later=later)

    assert known(told).per_second == pytest.approx(10 * grown)


def test_a_congestion_is_over_when_half_of_the_surplus_is_gone() -> None:
    congested = replace(A_RATE, congested_since=NOW)

    assert known(after(congested, holding(in_flight=5), used=-MINUTE)).is_congested
    assert not known(after(congested, holding(in_flight=4), used=-MINUTE)).is_congested


def test_what_was_too_much_twice_is_met_with_less() -> None:
    rate = replace(known(after(None, holding())), per_second=10.0)

    first = known(after(rate, holding(in_flight=500)))
    gone_on = known(after(first, holding(), used=-MINUTE))
    again = known(after(gone_on, holding(in_flight=500)))

    assert again.per_second < gone_on.per_second < rate.per_second


@pytest.mark.parametrize(
    ("live", "per_second", "goes_on"), [(3.0, 1.5, 0.65 * 1.5), (1.0, 1.52, FIRST)]
)
def test_a_consumer_that_bore_nothing_since_is_met_with_less_though_it_may_bear_as_much(
    live: float, per_second: float, goes_on: float
) -> None:
    """Down, it is full at any rate: what it bore before it went down is still the best guess."""
    rate = replace(A_RATE, per_second=per_second, live=live, borne=17.0, borne_at=NOW)

    again = known(after(rate, holding(in_flight=500), live=()))

    assert again.is_congested
    assert again.borne == 17.0
    assert again.per_second == pytest.approx(goes_on)


def test_what_was_too_much_is_forgotten() -> None:
    rate = replace(known(after(None, holding())), borne=4.0, borne_at=NOW)

    assert known(after(rate, holding(), later=REMEMBERED)).borne == 4.0
    assert known(after(rate, holding(), later=REMEMBERED + MINUTE)).borne is None


@pytest.mark.parametrize(
    ("used", "is_closed", "begins"),
    [(MINUTE, False, True), (-CLEARED, True, True), (MINUTE, True, False)],
    ids=["an outage", "no letter goes", "letters go at it"],
)
def test_a_rate_that_was_too_high_is_not_kept_once_it_is_forgotten_by_how_much(
    used: timedelta, is_closed: bool, begins: bool
) -> None:
    felled = replace(A_RATE, per_second=9.0, borne=6.0, borne_at=NOW)

    later = after(felled, holding(), used=used, is_closed=is_closed, later=REMEMBERED + MINUTE)

    assert known(later).borne is None
    assert (known(later).per_second == FIRST) == begins


def test_a_queue_that_stays_full_without_our_letters_stops_them_no_longer() -> None:
    rate = known(after(known(after(None, holding())), holding(in_flight=500)))

    waited = known(after(rate, holding(in_flight=500), later=PATIENCE, used=-PATIENCE))

    assert not waited.is_congested
    assert waited.without_ours == 500
    assert not known(after(waited, holding(in_flight=500))).is_congested


def test_what_an_outage_left_in_the_queue_is_not_usual_once_it_is_gone() -> None:
    """Half of the live messages died beside letters: a queue of thousands had been usual while the consumer was off."""
    full = known(after(None, holding(waiting=9_000)))

    empty = known(after(full, holding(waiting=3)))
    crowded = known(after(empty, holding(waiting=500)))

    assert (full.without_ours, empty.without_ours) == (9_000, 3)
    assert crowded.is_congested


@pytest.mark.parametrize(("before", "begins"), [(LEAST, LEAST), (FIRST, FIRST), (9.0, FIRST)])
def test_letters_that_go_again_beside_a_full_queue_begin_no_faster_than_before(
    before: float, begins: float
) -> None:
    """Nor faster than where nothing is known, and that it is full is not theirs."""
    full = replace(known(after(None, holding())), per_second=before, congested_since=NOW)

    waited = known(after(full, holding(in_flight=500), later=PATIENCE, used=-PATIENCE))

    assert not waited.is_congested
    assert waited.per_second == begins


def test_a_consumer_that_takes_long_is_not_taken_for_one_that_fails() -> None:
    """Ten seconds for a message: thirty of three a second are always in flight, and forty of four."""
    rate = known(after(None, holding(in_flight=30)))

    for _ in range(4):
        in_flight = round(10 * (3 + rate.per_second))
        rate = known(after(rate, holding(in_flight=in_flight)))
        assert not rate.is_congested

    assert rate.per_second == pytest.approx(FIRST * GROWTH**4)


FEW_FAIL = known(after(A_RATE, holding(), outcomes=((0, 20),)))


@pytest.mark.parametrize(
    ("outcomes", "is_congested"),
    [(((10, 20),), True), (((3, 20),), False), (((2, 2),), False), ((), False)],
    ids=["half of them", "no more than by chance", "too few to tell", "none is told"],
)
def test_the_consumer_has_too_much_where_more_letters_fail_than_at_a_lower_rate(
    outcomes: tuple[tuple[int, int], ...], is_congested: bool
) -> None:
    """No queue shows it where a consumer goes on past what fails: good letters became poison of it."""
    assert known(after(FEW_FAIL, holding(), outcomes=outcomes)).is_congested is is_congested


def test_poison_fails_at_any_rate() -> None:
    rate = known(after(A_RATE, holding(), outcomes=((12, 20),)))
    for _ in range(20):
        rate = known(after(rate, holding(), outcomes=((12, 20),), later=10 * SECOND))

    assert not rate.is_congested
    assert rate.per_second > A_RATE.per_second


def test_an_outcome_tells_only_of_the_rate_at_which_its_letters_went() -> None:
    late = known(after(FEW_FAIL, holding(), outcomes=((20, 20),), sent=31 * SECOND))
    open_circuit = known(after(FEW_FAIL, holding(), outcomes=((20, 20),), is_closed=False))

    assert not late.is_congested
    assert not open_circuit.is_congested


def test_after_it_had_too_much_what_fails_is_learned_anew_of_letters_that_go_then() -> None:
    congested = known(after(FEW_FAIL, holding(), outcomes=((20, 20),)))

    gone_on = known(after(congested, holding(), later=SECOND, outcomes=((20, 20),)))
    again = known(after(gone_on, holding(), later=SECOND, outcomes=((20, 20),)))

    assert (gone_on.is_congested, again.is_congested) == (False, False)
    assert (gone_on.tried, again.usual_failing) == (0.0, None)
    assert gone_on.per_second < FEW_FAIL.per_second


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
        if waiting + in_flight <= SURPLUS_MESSAGES and is_closed:
            assert not rate.is_congested
