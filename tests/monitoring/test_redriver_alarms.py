"""The alarms about the re-driver itself: its circuit, its function, its schedule."""

import pytest

from redrive.core.report import Outcome

HOUR = 60
DAY = 24 * HOUR

OPEN = {"circuit_states": ["OPEN"], "depth": 9}
TRIAL = {"circuit_states": ["OPEN", "HALF_OPEN"], "depth": 9}
CLOSED = {"circuit_states": ["CLOSED"], "depth": 9}


# -- circuit -------------------------------------------------------------------------------------


def test_an_open_circuit_pages_only_after_its_third_cool_down(given) -> None:
    # At five-minute ticks three cool-downs and the canaries between them take 25 minutes.
    given.passes(*[CLOSED] * 6, *[OPEN, TRIAL] * 6)

    [first, *_] = given.alarms().minutes_in_alarm("CircuitOpen")

    assert 30 + 25 <= first <= 30 + 45


def test_a_circuit_that_closes_before_its_third_cool_down_is_over_pages_nobody(given) -> None:
    given.passes(*[CLOSED] * 6, *[OPEN, TRIAL] * 2, OPEN, *[CLOSED] * 12)

    assert not given.alarms().fired("CircuitOpen")


def test_the_page_ends_when_the_circuit_closes(given) -> None:
    given.passes(*[OPEN, TRIAL] * 8, *[CLOSED] * 12)

    alarms = given.alarms()

    assert alarms.fired("CircuitOpen")
    assert not alarms.is_in_alarm("CircuitOpen")


def test_an_open_circuit_over_an_empty_dlq_concerns_nobody(given) -> None:
    given.passes(*[{"circuit_states": ["OPEN"], "depth": 0}] * 24)

    assert not given.alarms().fired("CircuitOpen")


def test_the_only_letter_may_be_out_on_trial_for_a_quarter_of_an_hour(given) -> None:
    empty = {"circuit_states": ["HALF_OPEN"], "depth": 0}
    # By then the backoff has grown to 900 s, and the cool-down to 960 s.
    given.passes(*[OPEN, OPEN, OPEN, OPEN, TRIAL, empty, empty, empty] * 8)

    minutes = given.alarms().minutes_in_alarm("CircuitOpen")

    # Once it has fired it does not flicker.
    assert minutes == list(range(minutes[0], minutes[-1] + 1))
    assert len(minutes) > 2 * HOUR


def test_a_re_driver_that_has_gone_silent_leaves_the_circuits_alarm_as_it_was(given) -> None:
    given.passes(*[OPEN, TRIAL] * 8)
    given.until(6 * HOUR)

    assert given.alarms().is_in_alarm("CircuitOpen")


@pytest.mark.parametrize("minutes", [1, 15, 60, 720, 1440])
def test_an_outage_pages_on_every_schedule(given_with, minutes) -> None:
    given = given_with(schedule_minutes=str(minutes))
    given.passes(*[OPEN] * max(12, 60 // minutes), every=minutes)

    assert given.alarms().fired("CircuitOpen")


# -- errors --------------------------------------------------------------------------------------


def test_one_crash_pages_within_a_tick(given) -> None:
    given.passes(*[{}] * 6)
    given.invocation(30, errors=1)
    given.passes(*[{}] * 12, since=35)

    alarms = given.alarms()

    assert min(alarms.minutes_in_alarm("RedriverErrors")) == 35
    assert not alarms.is_in_alarm("RedriverErrors")


def test_one_throttle_pages(given) -> None:
    given.passes(*[{}] * 6)
    given.throttle(30)
    given.passes(*[{}] * 6, since=35)

    assert given.alarms().fired("RedriverThrottled")


@pytest.mark.parametrize(
    ("outcomes", "fires"),
    [
        ([Outcome.FAILED, Outcome.IDLE, Outcome.IDLE, Outcome.FAILED], False),
        ([Outcome.FAILED, Outcome.IDLE, Outcome.FAILED], True),
        ([Outcome.FAILED, Outcome.FAILED], True),
        ([Outcome.LEASE_HELD, Outcome.LOST_RACE, Outcome.MOVE_TASK_RUNNING], False),
    ],
)
def test_the_second_failed_pass_of_three_pages(given, outcomes, fires) -> None:
    given.passes({}, {}, {}, *[{"outcome": outcome} for outcome in outcomes], *[{}] * 6)

    assert given.alarms().fired("PassesFailed") is fires


def test_a_pass_that_fails_every_day_pages_on_a_daily_schedule(given_with) -> None:
    given = given_with(schedule_minutes="1440")
    given.passes(*[{"outcome": Outcome.FAILED}] * 4, every=DAY)

    assert given.alarms().fired("PassesFailed")


# -- silence -------------------------------------------------------------------------------------


def test_no_pass_for_three_schedule_periods_and_what_cloudwatch_adds_pages(given) -> None:
    given.passes(*[{}] * 36)
    given.until(4 * HOUR)

    silent = given.alarms().minutes_in_alarm("RedriverSilent")

    # The last pass was in minute 175. CloudWatch looks at up to five periods before it gives up.
    assert 175 + 15 <= min(one for one in silent if one > 5) <= 175 + 30


def test_a_schedule_that_runs_a_little_late_is_not_silent(given) -> None:
    for tick in range(24):
        given.one_pass(5 * tick + tick % 3)

    assert all(minute < 5 for minute in given.alarms().minutes_in_alarm("RedriverSilent"))


def test_a_first_deployment_pages_nobody_before_its_first_tick(given) -> None:
    given.until(2 * HOUR)

    assert given.alarms().told == []


def test_a_first_deployment_that_runs_pages_nobody(given) -> None:
    given.passes(*[{}] * 36, since=4)

    assert given.alarms().pages == []


def test_a_re_driver_that_ran_for_a_day_and_stopped_pages_once_until_it_runs_again(given) -> None:
    given.passes(*[{}] * (DAY // 5))
    given.passes(*[{}] * 36, since=30 * HOUR)

    assert given.alarms().pages == [("RedriverUnwell", "ALARM"), ("RedriverUnwell", "OK")]


def test_a_first_pass_that_crashes_pages(given) -> None:
    for tick in range(36):
        given.invocation(5 * tick, errors=1)

    assert given.alarms().pages == [("RedriverUnwell", "ALARM")]


# -- nothing to say ------------------------------------------------------------------------------


def test_a_quiet_day_tells_nobody_anything(given) -> None:
    minutes = 30 * HOUR
    given.passes(*[{}] * (minutes // 5))
    given.dead_letters(visible=[0] * minutes, hidden=[0] * minutes, age=[0] * minutes)
    given.source(
        visible=[0] * minutes, delayed=[0] * minutes, age=[0] * minutes, received=[0] * minutes
    )
    given.parking_lot(visible=[0] * minutes)

    assert given.alarms().told == []


def test_a_busy_day_without_failures_tells_nobody_anything(given) -> None:
    minutes = 6 * HOUR
    given.passes(*[{}] * (minutes // 5))
    given.dead_letters(visible=[0] * minutes, hidden=[0] * minutes, age=[0] * minutes)
    given.source(
        visible=[40] * minutes, delayed=[0] * minutes, age=[20] * minutes, received=[900] * minutes
    )

    assert given.alarms().told == []


def test_no_data_at_all_tells_nobody_anything(given) -> None:
    given.until(12 * HOUR)

    assert given.alarms().told == []
