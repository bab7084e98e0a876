"""The alarms about letters: when each fires, and when it must not."""

from collections import Counter
from collections.abc import Callable

import pytest

from simulator.world import SOURCE
from smart_redriver.engine.report import Outcome
from tests.monitoring.given import Given

HOUR = 60
FAILED = {"outcome": Outcome.FAILED, "oldest_waiting_seconds": None, "suspects_waiting": None}


def hidden_by_passes(depth: int, *, minutes: int) -> dict[str, list[float]]:
    """A DLQ of one depth whose letters a pass hides for four minutes of each five."""
    hidden: list[float] = [0 if minute % 5 == 4 else depth for minute in range(minutes)]
    return {"hidden": hidden, "visible": [depth - count for count in hidden]}


# -- how many ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("alarm", "limit"), [("DeadLettersPresent", 10), ("DeadLettersMany", 100)])
def test_more_dead_letters_than_the_limit_fire_and_exactly_as_many_do_not(
    resources, alarm, limit
) -> None:
    above, at = Given(resources), Given(resources)
    above.dead_letters(visible=[limit + 1] * 30)
    at.dead_letters(visible=[limit] * 30)

    assert above.alarms().fired(alarm)
    assert not at.alarms().fired(alarm)


@pytest.mark.parametrize("alarm", ["DeadLettersPresent", "DeadLettersMany"])
@pytest.mark.parametrize("first", range(11, 16))
def test_letters_that_are_gone_within_a_period_wake_nobody(given, alarm, first) -> None:
    given.dead_letters(visible=[0] * first + [500] * 5 + [0] * 30)

    assert not given.alarms().fired(alarm)


@pytest.mark.parametrize("alarm", ["DeadLettersPresent", "DeadLettersMany"])
def test_letters_that_stay_fire_within_a_quarter_of_an_hour(given, alarm) -> None:
    given.dead_letters(visible=[0] * 30 + [500] * 30)

    assert min(given.alarms().minutes_in_alarm(alarm)) <= 30 + 15


def test_letters_that_a_pass_hides_for_most_of_the_time_are_still_many(given) -> None:
    given.dead_letters(**hidden_by_passes(500, minutes=30))

    assert given.alarms().is_in_alarm("DeadLettersMany")


def test_letters_held_for_a_long_backoff_are_not_many(given) -> None:
    given.dead_letters(visible=[0] * 60, hidden=[500] * 60)

    assert not given.alarms().all_that_fired() & {"DeadLettersPresent", "DeadLettersMany"}


def test_the_alarm_ends_with_the_letters(given) -> None:
    given.dead_letters(visible=[500] * 20 + [0] * 30)

    alarms = given.alarms()

    assert alarms.fired("DeadLettersMany")
    assert not alarms.is_in_alarm("DeadLettersMany")


# -- how fast ------------------------------------------------------------------------------------


@pytest.mark.parametrize("minute", range(15, 20))
def test_fifty_at_once_are_fast_whenever_in_the_period_they_come(given, minute) -> None:
    given.dead_letters(visible=[3] * minute + [53] * 20, hidden=[0] * (minute + 20))

    assert given.alarms().fired("DeadLettersGrowing")


def test_fifty_in_five_minutes_are_fast_one_by_one_too(given) -> None:
    given.dead_letters(visible=[10 * minute for minute in range(30)], hidden=[0] * 30)

    assert given.alarms().fired("DeadLettersGrowing")


def test_forty_in_five_minutes_are_not(given) -> None:
    given.dead_letters(visible=[8 * minute for minute in range(30)], hidden=[0] * 30)

    assert not given.alarms().fired("DeadLettersGrowing")


@pytest.mark.parametrize("first", range(5))
@pytest.mark.parametrize("seen", range(1, 4))
def test_letters_that_passes_hide_and_release_do_not_grow(given, first, seen) -> None:
    # Seen for some minutes of nine: now a period sees all of them, now one sees none.
    hidden = [0 if (minute + first) % 9 < seen else 500 for minute in range(90)]
    given.dead_letters(visible=[500 - count for count in hidden], hidden=hidden)

    assert not given.alarms().fired("DeadLettersGrowing")


def test_letters_are_counted_once_although_they_come_while_others_are_hidden(given) -> None:
    before, after = hidden_by_passes(500, minutes=20), hidden_by_passes(560, minutes=20)
    given.dead_letters(**{name: before[name] + after[name] for name in before})

    assert given.alarms().fired("DeadLettersGrowing")


def test_a_backlog_that_was_there_at_the_first_deployment_did_not_grow(given) -> None:
    given.dead_letters(visible=[None] * 12 + [10_000] * 30, hidden=[None] * 12 + [0] * 30)

    assert not given.alarms().fired("DeadLettersGrowing")


# -- how old -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seconds", "fires"), [(3_600, False), (3_601, True)])
def test_a_letter_is_too_old_after_an_hour_of_waiting(given, seconds, fires) -> None:
    given.one_pass(30, depth=1, oldest_waiting_seconds=seconds)

    assert given.alarms().fired("DeadLettersOld") is fires


def test_what_sqs_says_of_its_age_does_not_make_a_letter_too_old(given) -> None:
    # A suspect waits for six hours, hidden, and a returned letter for its backoff.
    given.passes(*[{"depth": 1, "suspects_waiting": 1}] * 24)
    given.dead_letters(visible=[1] * 120, hidden=[1] * 120, age=[21_000] * 120)

    assert not given.alarms().fired("DeadLettersOld")


@pytest.mark.parametrize("every", [1, 5, 60, 720])
def test_an_old_letter_stays_old_between_two_looks_and_ends_with_the_look_that_misses_it(
    given, every
) -> None:
    old = {"depth": 1, "oldest_waiting_seconds": 4_000}
    given.passes({}, old, old, old, {}, {}, every=every)

    minutes = given.alarms().minutes_in_alarm("DeadLettersOld")

    assert minutes == list(range(minutes[0], minutes[-1] + 1))
    assert (minutes[0], minutes[-1]) == (every + 1, 4 * every)


def test_a_pass_that_fails_leaves_an_old_letter_old(given) -> None:
    given.passes({"depth": 1, "oldest_waiting_seconds": 4_000}, *[FAILED] * 6)

    assert given.alarms().is_in_alarm("DeadLettersOld")


# -- suspects ------------------------------------------------------------------------------------


@pytest.mark.parametrize("every", [1, 5, 60])
def test_suspects_that_wait_for_their_last_chance_warn_and_wake_nobody(given, every) -> None:
    suspects = {"depth": 3, "suspects_waiting": 3}
    given.passes({}, *[suspects] * (6 * HOUR // every), {}, {}, every=every)
    given.dead_letters(visible=[0] * 6 * HOUR, hidden=[3] * 6 * HOUR, age=[21_600] * 6 * HOUR)

    alarms = given.alarms()

    assert alarms.told == [
        (alarms.minutes_in_alarm("SuspectsWaiting")[0], "SuspectsWaiting", "ALARM"),
        (alarms.minutes_in_alarm("SuspectsWaiting")[-1] + 1, "SuspectsWaiting", "OK"),
    ]
    assert alarms.pages == []


@pytest.mark.parametrize(("percent", "fires"), [(13.9, True), (14.1, False)])
def test_less_than_a_share_of_what_the_dlq_keeps_to_the_first_expiry_pages(
    given, percent, fires
) -> None:
    """Two days of a fortnight, half a day of SQS's default of four days: there two days are half of a letter's life."""
    given.one_pass(30, depth=3, least_percent_left=percent)
    given.until(3 * HOUR)

    assert given.alarms().fired("LettersNearExpiry") is fires


def test_a_near_expiry_that_was_seen_once_is_remembered_for_a_day(given) -> None:
    given.one_pass(30, depth=3, least_percent_left=0.3)
    given.until(30 * HOUR)

    minutes = given.alarms().minutes_in_alarm("LettersNearExpiry")

    assert 23 * HOUR <= len(minutes) <= 27 * HOUR


# -- parked --------------------------------------------------------------------------------------


def test_parking_warns_at_once_although_sqs_says_nothing_for_fifteen_minutes(given) -> None:
    given.passes(*[{}] * 4, {"parked": Counter(MAX_ATTEMPTS=1)}, *[{}] * 8)
    given.parking_lot(visible=[0] * 35 + [1] * 25)

    alarms = given.alarms()

    minutes = alarms.minutes_in_alarm("PoisonParked")
    # Parked in minute 20; no gap until SQS reports it, too.
    assert minutes == list(range(21, minutes[-1] + 1))
    assert alarms.is_in_alarm("PoisonParked")


def test_the_warning_lasts_as_long_as_a_letter_is_in_the_lot_and_ends_then(given) -> None:
    given.passes(*[{}] * 60)
    given.parking_lot(visible=[1] * 120 + [0] * 120)

    minutes = given.alarms().minutes_in_alarm("PoisonParked")

    assert set(range(10, 121)) <= set(minutes)
    assert max(minutes) <= 145


def test_an_empty_lot_warns_nobody(given) -> None:
    given.passes(*[{}] * 12)
    given.parking_lot(visible=[0] * 60)

    assert not given.alarms().fired("PoisonParked")


# -- the flow ------------------------------------------------------------------------------------


def verdicts(*, good: int, bad: int) -> list[dict[str, object]]:
    told = [{"queue": SOURCE, "verdict": "SUCCESS"}] * good + [
        {"queue": SOURCE, "verdict": "FAILURE"}
    ] * bad
    return [{"verdicts": [one]} for one in told]


@pytest.mark.parametrize(
    ("good", "bad", "fires"),
    [
        (9, 3, True),
        (10, 2, False),  # 83 %
        (8, 2, False),  # exactly 80 %
        (7, 3, True),
        (0, 9, False),  # fewer than ten say nothing
        (12, 0, False),
    ],
)
def test_redriving_does_not_work_below_eighty_percent_of_ten_verdicts(
    given, good, bad, fires
) -> None:
    given.passes(*verdicts(good=good, bad=bad))
    given.until(3 * HOUR)

    assert given.alarms().fired("RedriveNotWorking") is fires


@pytest.mark.parametrize("schedule", ["1", "60"])
def test_ten_failures_within_an_hour_warn_on_every_schedule(given_with, schedule) -> None:
    given = given_with(schedule_minutes=schedule)
    given.passes(*verdicts(good=0, bad=12), every=1)
    given.until(2 * HOUR)

    assert given.alarms().fired("RedriveNotWorking")


@pytest.mark.parametrize(
    ("received", "new_dead_letters", "fires"),
    [
        (1_000, 60, True),
        (1_000, 40, False),
        (10, 10, False),  # too few to say
        (0, 30, False),
        (None, 30, False),  # a source queue that nobody uses
    ],
)
def test_too_many_failures_are_more_than_five_percent_of_what_was_received(
    given, received, new_dead_letters, fires
) -> None:
    per_minute = None if received is None else received / 15
    given.source(received=[per_minute] * 60)
    given.dead_letters(visible=[0] * 20 + [new_dead_letters] * 40, hidden=[0] * 60)

    assert given.alarms().fired("TooManyFailures") is fires


def test_draining_a_dlq_is_no_failure(given) -> None:
    given.source(received=[100] * 60)
    given.dead_letters(visible=[6_000 - 100 * minute for minute in range(60)], hidden=[0] * 60)

    assert not given.alarms().fired("TooManyFailures")


def test_a_consumer_that_does_not_keep_up_warns_after_three_minutes(given) -> None:
    given.source(
        visible=[50] * 10, delayed=[0] * 10, age=[250, 301, 310, 0, 301, 310, 320, 0, 0, 0]
    )

    minutes = given.alarms().minutes_in_alarm("SourceQueueOld")

    assert minutes == [7]


def test_letters_that_wait_for_their_backoff_are_not_old(given) -> None:
    given.source(visible=[0] * 15 + [0, 1, 0], delayed=[5] * 18, age=[60 * m for m in range(18)])

    assert not given.alarms().fired("SourceQueueOld")


def test_live_messages_do_not_age_by_the_delayed_letters_beside_them(given) -> None:
    given.source(visible=[2] * 30, delayed=[5] * 30, age=[880] * 30)

    assert not given.alarms().fired("SourceQueueOld")


def test_what_waits_for_longer_than_any_delay_is_old_even_beside_delayed_letters(given) -> None:
    given.source(visible=[2] * 30, delayed=[5] * 30, age=[1_300] * 30)

    assert given.alarms().fired("SourceQueueOld")


# -- thresholds ----------------------------------------------------------------------------------


def test_thresholds_are_settings(given_with: Callable[..., Given]) -> None:
    given = given_with(
        alarm_dead_letters_warning="1000",
        alarm_dead_letters_paging="2000",
        alarm_dead_letters_growth="3000",
        alarm_dead_letters_age_seconds="86400",
        alarm_parked_letters="20",
        alarm_suspects="30",
        alarm_success_percent="10",
        alarm_success_verdicts="13",
        alarm_failures_percent="50",
        alarm_source_age_seconds="5000",
        alarm_expiry_percent="10",
    )
    given.dead_letters(visible=[0] * 15 + [900] * 45, hidden=[0] * 60, age=[80_000] * 60)
    given.source(visible=[9] * 60, delayed=[0] * 60, age=[4_000] * 60, received=[200] * 60)
    given.parking_lot(visible=[20] * 60)
    given.passes(*verdicts(good=2, bad=10))
    waiting = {"oldest_waiting_seconds": 80_000, "suspects_waiting": 30}
    given.one_pass(70, least_percent_left=11.0, **waiting)

    assert not given.alarms().all_that_fired()


# -- together ------------------------------------------------------------------------------------


@pytest.mark.parametrize("minute", range(15, 20))
def test_a_burst_that_stays_pages_once(given, minute) -> None:
    # Fast at once, many after ten minutes, too old after an hour; then somebody mends it.
    stays = 3 * HOUR
    letters = [0] * minute + [500] * stays + [0] * HOUR
    given.dead_letters(visible=letters, hidden=[0] * len(letters))
    given.passes(*[{}] * minute, every=1)
    waiting = [{"depth": 500, "oldest_waiting_seconds": 60 * passed} for passed in range(stays)]
    given.passes(*waiting, *[{}] * HOUR, every=1, since=minute)

    alarms = given.alarms()

    assert alarms.all_that_fired() >= {"DeadLettersGrowing", "DeadLettersMany", "DeadLettersOld"}
    assert alarms.pages == [("LettersPileUp", "ALARM"), ("LettersPileUp", "OK")]
