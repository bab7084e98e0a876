"""Over how long an alarm looks: arithmetic within CloudWatch's limits, in seconds."""

import math
from dataclasses import dataclass

from redrive.settings import Settings

_MINUTE = 60
_HOUR = 3600
_DAY = 86_400
#: Evaluation reaches back a day; with periods of an hour or more, seven.
#: https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html
_LONGEST_REACH = 7 * _DAY


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """``breaching`` of the last ``periods`` periods of so many ``seconds`` make an alarm."""

    seconds: int
    periods: int = 1
    breaching: int = 1


def schedule_period(settings: Settings, ticks: int = 1) -> int:
    """The time of so many ticks, at most the day that is the longest period of an alarm."""
    return min(ticks * settings.schedule_minutes * _MINUTE, _DAY)


def longer_than(seconds: int, *, period: int) -> Evaluation:
    """A condition that holds for longer than so many seconds, or for as long as can be looked at.

    In one period of them it may be out of sight.
    """
    if seconds >= _DAY:
        period = max(period, _HOUR)
    periods = min(seconds // period + 2, (_LONGEST_REACH if period >= _HOUR else _DAY) // period)
    return Evaluation(seconds=period, periods=periods, breaching=periods - 1)


def outage_before_paging(settings: Settings, cool_downs: int) -> int:
    """From the first opening to the end of so many cool-downs, each but the last with its canary.

    A pass comes only with a tick, so every wait is rounded up to one.
    """
    tick = settings.schedule_minutes * _MINUTE
    waits = [
        min(settings.cool_down_seconds * 2**n, settings.max_cool_down_seconds)
        for n in range(cool_downs)
    ]
    canary = settings.base_delay_seconds + settings.verdict_grace_seconds
    canary += settings.source_visibility_timeout_seconds * settings.max_receive_count
    waits += [canary] * (cool_downs - 1)
    return sum(math.ceil(seconds / tick) * tick for seconds in waits)
