"""Whatever the settings, the alarms stay within what CloudWatch accepts."""

import pytest

from bench.alarm_states import period_of, queries_of
from bench.synthesized import of_cloudwatch

#: https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html
DAY = 86_400
LONGEST_REACH = {False: DAY, True: 7 * DAY}  # by whether a period has an hour or more
MOST_METRICS = 10


@pytest.mark.parametrize(
    "context",
    [
        {},
        {"schedule_minutes": "1"},
        {"schedule_minutes": "7"},
        {"schedule_minutes": "59", "alarm_silent_periods": "5"},
        {"schedule_minutes": "61"},
        {"schedule_minutes": "1440", "alarm_silent_periods": "5", "alarm_open_cool_downs": "10"},
        {"cool_down_seconds": "86400", "max_cool_down_seconds": "86400"},
        {"schedule_minutes": "1", "alarm_open_cool_downs": "10", "max_cool_down_seconds": "86400"},
    ],
    ids=str,
)
def test_periods_and_reach_are_within_the_limits(synth, context) -> None:
    for name, resource in of_cloudwatch(synth(**context)).items():
        if resource["Type"] != "AWS::CloudWatch::Alarm":
            continue
        alarm = resource["Properties"]
        period, periods = period_of(alarm), alarm["EvaluationPeriods"]
        assert period % 60 == 0, name
        assert 60 <= period <= DAY, name
        assert 1 <= alarm["DatapointsToAlarm"] <= periods, name
        assert period * periods <= LONGEST_REACH[period >= 3600], name
        assert len(queries_of(alarm)) <= MOST_METRICS, name


@pytest.mark.parametrize("minutes", ["1", "5", "60", "1440"])
def test_the_page_for_silence_is_not_kept_quiet_as_never_having_run(synth, minutes) -> None:
    resources = of_cloudwatch(synth(schedule_minutes=minutes, alarm_silent_periods="5"))
    reach = {
        name.partition("Monitoring")[2][:-8]: one["Properties"]["EvaluationPeriods"]
        * one["Properties"]["Period"]
        for name, one in resources.items()
        if "RedriverSilent" in name or "RedriverNeverRan" in name
    }

    assert reach["RedriverNeverRan"] > reach["RedriverSilent"]
