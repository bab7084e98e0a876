"""The alarms about the re-driver itself: its circuit, its function, its schedule."""

import pytest

from smart_redriver.engine.report import Outcome
from tests.monitoring.given import circuit

HOUR = 60
DAY = 24 * HOUR

OPEN = {"circuits": [circuit("OPEN")], "depth": 9}
TRIAL = {"circuits": [circuit("OPEN", "HALF_OPEN")], "depth": 9}
CLOSED = {"circuits": [circuit("CLOSED")], "depth": 9}


# -- circuit -------------------------------------------------------------------------------------


def test_an_open_circuit_pages_only_after_its_third_cool_down(given) -> None:
    # Three cool-downs and the canaries between them take a quarter of an hour.
    given.passes(*[CLOSED] * 30, *[OPEN, TRIAL] * 30, every=1)

    [first, *_] = given.alarms().minutes_in_alarm("CircuitOpen")

    assert 30 + 15 <= first <= 30 + 30


def test_a_circuit_that_closes_before_its_third_cool_down_is_over_pages_nobody(given) -> None:
    given.passes(*[CLOSED] * 30, *[OPEN, TRIAL] * 7, *[CLOSED] * 60, every=1)

    assert not given.alarms().fired("CircuitOpen")


def test_the_page_ends_when_the_circuit_closes(given) -> None:
    given.passes(*[OPEN, TRIAL] * 30, *[CLOSED] * 30, every=1)

    alarms = given.alarms()

    assert alarms.fired("CircuitOpen")
    assert not alarms.is_in_alarm("CircuitOpen")


@pytest.mark.parametrize("schedule", [5, 60, 1440])
def test_the_page_ends_also_where_nobody_looks_for_long_after_the_circuit_closed(
    given, schedule
) -> None:
    closes = {"circuits": [circuit("HALF_OPEN", "CLOSED")], "depth": 0}
    given.passes(*[OPEN, TRIAL] * 30, closes, every=1)
    given.passes({}, {}, every=schedule, since=60 + schedule)

    minutes = given.alarms().minutes_in_alarm("CircuitOpen")

    assert minutes
    assert max(minutes) <= 60 + 30


def test_an_open_circuit_over_an_empty_dlq_concerns_nobody(given) -> None:
    given.passes(*[{"circuits": [circuit("OPEN")], "depth": 0}] * 120, every=1)

    assert not given.alarms().fired("CircuitOpen")


def test_the_only_letter_may_be_out_on_trial_for_a_quarter_of_an_hour(given) -> None:
    empty = {"circuits": [circuit("HALF_OPEN")], "depth": 0}
    # By then the cool-down has grown to 960 s.
    given.passes(*[*[OPEN] * 16, TRIAL, *[empty] * 14] * 8, every=1)

    minutes = given.alarms().minutes_in_alarm("CircuitOpen")

    # Once it has fired it does not flicker.
    assert minutes == list(range(minutes[0], minutes[-1] + 1))
    assert len(minutes) > 2 * HOUR


def test_a_re_driver_that_has_gone_silent_leaves_the_circuits_alarm_as_it_was(given) -> None:
    given.passes(*[OPEN, TRIAL] * 30, every=1)
    given.until(6 * HOUR)

    assert given.alarms().is_in_alarm("CircuitOpen")


@pytest.mark.parametrize("schedule", [1, 15, 1440])
def test_an_outage_pages_as_soon_on_every_schedule(given_with, schedule) -> None:
    given = given_with(schedule_minutes=str(schedule))
    given.passes(CLOSED, *[OPEN] * 60, every=1)

    assert min(given.alarms().minutes_in_alarm("CircuitOpen")) <= 30


# -- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("crashed", "fires"), [((30,), False), ((30, 40), True)])
def test_two_crashes_in_a_quarter_of_an_hour_page_and_one_does_not(given, crashed, fires) -> None:
    """After one the runbook has nothing to do: the next tick looks again."""
    for minute in range(90):
        given.invocation(minute, errors=int(minute in crashed))

    alarms = given.alarms()

    assert alarms.fired("RedriverErrors") is fires
    assert not alarms.is_in_alarm("RedriverErrors")


@pytest.mark.parametrize(("throttled", "fires"), [((30,), False), ((30, 35, 40), True)])
def test_three_throttled_ticks_in_a_quarter_of_an_hour_page_and_one_does_not(
    given, throttled, fires
) -> None:
    for minute in range(60):
        (given.throttle if minute in throttled else given.invocation)(minute)

    assert given.alarms().fired("RedriverThrottled") is fires


@pytest.mark.parametrize(
    ("outcomes", "fires"),
    [
        ([Outcome.FAILED, Outcome.FAILED, *[Outcome.IDLE] * 3], False),
        ([Outcome.FAILED, Outcome.IDLE, Outcome.FAILED, Outcome.FAILED], True),
        ([Outcome.LEASE_HELD, Outcome.LOST_RACE, Outcome.MOVE_TASK_RUNNING] * 3, False),
    ],
)
def test_the_third_failed_pass_in_a_quarter_of_an_hour_pages(given, outcomes, fires) -> None:
    given.passes(*[{}] * 6)
    given.passes(*[{"outcome": outcome} for outcome in outcomes], every=1, since=30)
    given.passes(*[{}] * 6, since=40)

    assert given.alarms().fired("PassesFailed") is fires


@pytest.mark.parametrize("schedule", ["1", "5", "1440"])
def test_a_re_driver_that_fails_every_minute_pages_after_three_on_every_schedule(
    given_with, schedule
) -> None:
    given = given_with(schedule_minutes=schedule)
    given.passes(*[{}] * 6)
    given.passes(*[{"outcome": Outcome.FAILED}] * 30, every=1, since=30)

    alarms = given.alarms()

    assert min(alarms.minutes_in_alarm("PassesFailed")) == 33
    assert alarms.pages == [("RedriverUnwell", "ALARM")]


# -- silence -------------------------------------------------------------------------------------


def test_no_invocation_for_ten_minutes_and_what_cloudwatch_adds_pages(given) -> None:
    given.passes(*[{}] * 36)
    given.until(4 * HOUR)

    silent = given.alarms().minutes_in_alarm("RedriverSilent")

    # The last invocation was in minute 179. CloudWatch looks at two more periods before it gives up.
    assert 180 + 10 <= min(silent) <= 180 + 12


@pytest.mark.parametrize("every", [5, 60, 1440])
def test_an_idle_queue_that_is_rarely_looked_at_is_not_silent(given, every) -> None:
    given.passes({}, {}, {}, every=every)

    assert not given.alarms().fired("RedriverSilent")


def test_a_schedule_that_runs_a_little_late_is_not_silent(given) -> None:
    for tick in range(24):
        given.invocation(5 * tick + tick % 3)

    assert not given.alarms().fired("RedriverSilent")


def test_a_first_deployment_pages_nobody_before_its_first_tick(given) -> None:
    given.passes(*[{}] * 36, since=50)

    assert given.alarms().told == []


def test_a_schedule_that_never_worked_pages_after_an_hour(given) -> None:
    given.until(2 * HOUR)

    assert given.alarms().told == [(HOUR, "RedriverUnwell", "ALARM")]


def test_a_re_driver_that_ran_for_a_day_and_stopped_pages_once_until_it_runs_again(given) -> None:
    given.passes(*[{}] * (DAY // 5))
    given.passes(*[{}] * 36, since=30 * HOUR)

    assert given.alarms().pages == [("RedriverUnwell", "ALARM"), ("RedriverUnwell", "OK")]


def test_a_first_pass_that_crashes_pages_with_the_second(given) -> None:
    for tick in range(60):
        given.invocation(tick, errors=1)

    assert given.alarms().told[0] == (2, "RedriverUnwell", "ALARM")


def test_a_first_deployment_that_is_throttled_pages_before_its_silence_does(given) -> None:
    for minute in range(30):
        given.throttle(minute)

    assert given.alarms().told == [(3, "RedriverUnwell", "ALARM")]


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


def test_no_data_at_all_tells_of_nothing_but_the_silence(given) -> None:
    given.until(12 * HOUR)

    assert [name for _, name, _ in given.alarms().told] == ["RedriverUnwell"]
