"""Over how long an alarm looks: arithmetic within CloudWatch's limits, in seconds.

The function is invoked every minute and looks at a queue about every minute while there is work,
but at an idle one only every ``schedule_minutes``. So nothing here depends on the schedule: what
counts invocations or faults looks at minutes, and what looks at a level of the function's own
keeps its state between two looks (``Missing.IGNORE``).
"""

import math
from dataclasses import dataclass

from redrive.settings import Settings

#: Between two invocations of the function.
TICK = 60
#: An alarm that reaches back for longer is evaluated once an hour, others every minute.
#: CloudWatch User Guide, "Alarm evaluation".
LONGEST_REACH = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """``breaching`` of the last ``periods`` periods of so many ``seconds`` make an alarm."""

    seconds: int
    periods: int = 1
    breaching: int = 1


#: A level that SQS reports. Periods slide: what lasts for less than seven minutes is not in three of them.
LEVEL = Evaluation(seconds=300, periods=3, breaching=3)
#: A level that the function reports: the newest look decides. Longer periods would mix it with older ones.
NEWEST_LOOK = Evaluation(seconds=TICK)


def minutes(breaching: int, *, of: int) -> Evaluation:
    """So many minutes of the last few."""
    return Evaluation(seconds=TICK, periods=of, breaching=breaching)


def longer_than(seconds: int, *, period: int) -> Evaluation:
    """A condition that holds for longer than so many seconds, or for as long as can be looked at.

    In one period of them it may be out of sight.
    """
    periods = min(seconds // period + 2, LONGEST_REACH // period)
    return Evaluation(seconds=period, periods=periods, breaching=periods - 1)


def outage_before_paging(settings: Settings, cool_downs: int) -> int:
    """From the first opening to the end of so many cool-downs, each but the last with its canary.

    A pass comes only with a tick, so every wait is rounded up to one.
    """
    waits = [
        min(settings.cool_down_seconds * 2**n, settings.max_cool_down_seconds)
        for n in range(cool_downs)
    ]
    # A canary goes without delay, and is judged when it had the time to fail.
    canary = settings.verdict_grace_seconds
    canary += settings.source_visibility_timeout_seconds * settings.max_receive_count
    waits += [canary] * (cool_downs - 1)
    return sum(math.ceil(seconds / TICK) * TICK for seconds in waits)
