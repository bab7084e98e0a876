"""Whatever the settings, the alarms stay within what CloudWatch accepts."""

import pytest

from bench.synthesized import of_cloudwatch
from emulator.alarm_evaluation import period_of, queries_of

#: https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html
DAY = 86_400
MOST_METRICS = 10


@pytest.mark.parametrize(
    "context",
    [
        {},
        {"schedule_minutes": "1"},
        {"schedule_minutes": "7"},
        {"schedule_minutes": "1440", "alarm_silent_minutes": "60", "alarm_open_cool_downs": "10"},
        {"cool_down_seconds": "86400", "max_cool_down_seconds": "86400"},
        {"schedule_minutes": "1", "alarm_open_cool_downs": "10", "max_cool_down_seconds": "86400"},
    ],
    ids=str,
)
def test_every_alarm_is_evaluated_every_minute_and_within_the_limits(synth, context) -> None:
    for name, resource in of_cloudwatch(synth(**context)).items():
        if resource["Type"] != "AWS::CloudWatch::Alarm":
            continue
        alarm = resource["Properties"]
        period, periods = period_of(alarm), alarm["EvaluationPeriods"]
        assert period % 60 == 0, name
        assert 60 <= period <= DAY, name
        assert 1 <= alarm["DatapointsToAlarm"] <= periods, name
        # CloudWatch would take seven days, too, but evaluate once an hour what reaches beyond one.
        assert period * periods <= DAY, name
        assert len(queries_of(alarm)) <= MOST_METRICS, name


@pytest.mark.parametrize(
    ("cool_down", "said"),
    [
        ("3600", "for longer than cool-down 3. "),
        # Three of them are a day, and canaries come between.
        ("28800", "for a day, the longest that CloudWatch looks back (cool-down 3 ends later). "),
    ],
)
def test_an_open_circuit_says_after_how_long_it_pages(synth, cool_down, said) -> None:
    context = {"cool_down_seconds": cool_down, "max_cool_down_seconds": cool_down}
    [text] = [
        one["Properties"]["AlarmDescription"]
        for name, one in of_cloudwatch(synth(**context)).items()
        if "CircuitOpen" in name and one["Type"] == "AWS::CloudWatch::Alarm"
    ]

    assert said in str(text)
    assert "run `redrive close --queue orders --reason ...`." in str(text)
