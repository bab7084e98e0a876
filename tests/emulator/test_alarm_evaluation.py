"""The tables of CloudWatch's guide on missing data, sliding periods, and the warm-up."""

from typing import Any

import pytest

from emulator.alarm_evaluation import ALARM, NO_DATA, OK, last_evaluation, next_state
from emulator.metric_math import Value

MINUTE = 60
KEPT = "kept"


def an_alarm(*, needed: int, of: int = 3, missing: str = "missing", period: int = 60) -> Any:
    return {
        "Namespace": "N",
        "MetricName": "M",
        "Statistic": "Maximum",
        "Period": period,
        "EvaluationPeriods": of,
        "DatapointsToAlarm": needed,
        "TreatMissingData": missing,
        "Threshold": 1,
        "ComparisonOperator": "GreaterThanOrEqualToThreshold",
    }


def state_after(points: str, alarm: Any, before: str = KEPT) -> str:
    """The state when these are the newest data points, one a period: X breaches, - is missing."""
    values: list[Value] = [{"X": 1.0, "0": 0.0, "-": None}[point] for point in points.split()]

    def statistic(_metric: Any, _name: str, _start: float, end: float) -> Value:
        number = int(end) // alarm["Period"] - 1
        return values[number] if number >= 0 else None

    end = len(values) * alarm["Period"]
    return next_state(alarm, statistic, end, before=before, created=0)[0]


#: Configuring how CloudWatch alarms treat missing data: for missing, ignore, breaching, notBreaching.
@pytest.mark.parametrize(
    ("needed", "points", "states"),
    [
        (3, "0 - X - X", (OK, OK, OK, OK)),
        (3, "- - - - 0", (OK, OK, OK, OK)),
        (3, "- - - - -", (NO_DATA, KEPT, ALARM, OK)),
        (3, "0 X X - X", (ALARM, ALARM, ALARM, ALARM)),
        (3, "- - X - -", (ALARM, KEPT, ALARM, OK)),
        (2, "0 - X - X", (ALARM, ALARM, ALARM, ALARM)),
        (2, "0 0 X 0 X", (ALARM, ALARM, ALARM, ALARM)),
        (2, "0 - X - -", (OK, OK, ALARM, OK)),
        (2, "- - - - 0", (OK, OK, ALARM, OK)),
        (2, "- - - X -", (ALARM, KEPT, ALARM, OK)),
    ],
)
def test_missing_data_is_treated_as_cloudwatchs_tables_say(
    needed: int, points: str, states: tuple[str, ...]
) -> None:
    found = [
        state_after(points, an_alarm(needed=needed, missing=treatment))
        for treatment in ("missing", "ignore", "breaching", "notBreaching")
    ]

    assert tuple(found) == states


def test_the_periods_slide_with_every_minute() -> None:
    alarm = an_alarm(needed=1, of=1, period=300)
    looked_at: list[tuple[float, float]] = []

    def statistic(_metric: Any, _name: str, start: float, end: float) -> Value:
        looked_at.append((start, end))
        return 0.0

    end = last_evaluation(alarm, 1000 * MINUTE + 59)
    next_state(alarm, statistic, end, before=OK, created=0)

    assert looked_at[-1] == (995 * MINUTE, 1000 * MINUTE)


@pytest.mark.parametrize(("periods", "minute"), [(24, 1013), (25, 960)])
def test_what_reaches_back_for_more_than_a_day_is_evaluated_once_an_hour(
    periods: int, minute: int
) -> None:
    alarm = an_alarm(needed=1, of=periods, period=3600)

    assert last_evaluation(alarm, 1013 * MINUTE) == minute * MINUTE


@pytest.mark.parametrize(
    ("minutes", "points", "state"),
    [
        (5, "- - -", NO_DATA),
        (5, "- X X", NO_DATA),
        (5, "X X X", ALARM),  # enough data ends it early
        (3, "- - -", ALARM),  # over
    ],
)
def test_a_new_alarm_says_nothing_while_it_warms_up(minutes: int, points: str, state: str) -> None:
    warm_up = {"WarmUpConfiguration": {"WarmUpPeriodDurationInMinutes": minutes}}
    alarm = an_alarm(needed=3, missing="breaching") | warm_up

    assert state_after(points, alarm, before=NO_DATA) == state
    # Once it is over it does not come back.
    assert state_after(points, alarm, before=OK) == ALARM
