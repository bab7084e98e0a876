"""The parts of an alarm: a sentence, a first step, a runbook section, explicit missing data, a topic, and its timing.

Alarms that belong to one incident notify nobody by themselves; their composite does. The function is invoked every
minute. It looks at a queue about every minute while there is work, but at an idle one only every ``schedule_minutes``.
So no alarm depends on the schedule: an alarm on invocations or faults looks at minutes, and an alarm on one of the
function's own gauges keeps its state between two looks (``Missing.IGNORE``).
"""

import math
import string
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from constructs import Construct

from smart_redriver.engine.config.settings import Settings

#: Seconds between two invocations of the function.
TICK = 60
#: An alarm that reaches back further is evaluated once an hour, others every minute.
#: CloudWatch User Guide, "Alarm evaluation".
LONGEST_REACH = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """An alarm goes off if ``breaching`` of the last ``periods`` periods breach; each has this many ``seconds``."""

    seconds: int
    periods: int = 1
    breaching: int = 1


#: For a gauge that SQS reports. Periods slide: a peak of less than seven minutes is not in three of them.
LEVEL = Evaluation(seconds=300, periods=3, breaching=3)
#: For a gauge that the function reports: the newest look decides. Longer periods would mix it with older ones.
NEWEST_LOOK = Evaluation(seconds=TICK)


def minutes(breaching: int, *, of: int) -> Evaluation:
    """``breaching`` of the last few minutes."""
    return Evaluation(seconds=TICK, periods=of, breaching=breaching)


def longer_than(seconds: int, *, period: int) -> Evaluation:
    """A condition that holds for longer than so many seconds, or for as long as an alarm can look back.

    It may be out of sight in one of the periods.
    """
    periods = min(seconds // period + 2, LONGEST_REACH // period)
    return Evaluation(seconds=period, periods=periods, breaching=periods - 1)


def outage_before_paging(settings: Settings, cool_downs: int, time_to_fail: int | None) -> int:
    """Return the seconds from the first opening to the end of so many cool-downs, each but the last with its canary.

    Passes come only with ticks, so every wait is rounded up to a tick. `time_to_fail` is what the app knows of the
    queue, in seconds. Otherwise the settings say it.
    """
    waits = [
        min(settings.cool_down_seconds * 2**n, settings.max_cool_down_seconds)
        for n in range(cool_downs)
    ]
    # A canary goes without delay, and is judged once it has had time to fail.
    canary = settings.verdict_grace_seconds
    canary += time_to_fail or (
        settings.source_visibility_timeout_seconds * settings.max_receive_count
    )
    waits += [canary] * (cool_downs - 1)
    return sum(math.ceil(seconds / TICK) * TICK for seconds in waits)


Comparison = cloudwatch.ComparisonOperator
Missing = cloudwatch.TreatMissingData

#: Characters. https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html
_LONGEST_NAME = 255
#: How many of these say where the alarm is. A longer place is cut, but keeps its hash.
_LONGEST_PLACE = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """The text that a person on call reads first: what the alarm means, what to do, and where to read more."""

    meaning: str
    first: str
    section: str

    def text(self, runbook_url: str, queue: str) -> str:
        """The description of an alarm about a queue."""
        runbook = f"{runbook_url}#{self.section}"
        return f"{self.meaning} First: {self.first} Queue: {queue}. Runbook: {runbook}"


class AlarmMaker:
    """Makes the alarms of one queue in ``scope``, and keeps them in the order in which they were made.

    A person reads their names in a page at night: ``orders CircuitOpen SmartRedriver-...``. First comes the queue's
    name for people (``known_as``), then the alarm, then its place: stack and construct, as in a logical id.
    CloudFormation creates before it deletes, so without the place a queue that is renamed or moved to another stack
    would be refused.
    """

    def __init__(
        self, scope: Construct, *, queue_name: str, known_as: str, runbook_url: str
    ) -> None:
        self.made: list[cloudwatch.Alarm] = []
        #: The alarms' names by their ids: from CloudFormation they are known only after the deployment.
        self.names: dict[str, str] = {}
        self._scope = scope
        self._queue_name = queue_name
        self._known_as = known_as
        self._runbook_url = runbook_url

    def alarm(
        self,
        construct_id: str,
        metric: cloudwatch.IMetric,
        comparison: Comparison,
        threshold: float,
        evaluation: Evaluation,
        advice: Advice,
        *,
        missing: Missing = Missing.NOT_BREACHING,
        topic: sns.ITopic | None = None,
        queue_name: str | None = None,
    ) -> cloudwatch.Alarm:
        """Make one alarm. Without a topic, it is part of a composite.

        ``queue_name`` is the name of a source queue other than the first, if the alarm is about that.
        """
        self.names[construct_id] = name = self._name(construct_id, queue_name)
        alarm = cloudwatch.Alarm(
            self._scope,
            construct_id,
            alarm_name=name,
            metric=metric,
            comparison_operator=comparison,
            threshold=threshold,
            evaluation_periods=evaluation.periods,
            datapoints_to_alarm=evaluation.breaching,
            treat_missing_data=missing,
            alarm_description=advice.text(self._runbook_url, queue_name or self._queue_name),
        )
        if topic is not None:
            tell(alarm, topic)
        self.made.append(alarm)
        return alarm

    def _name(self, construct_id: str, queue_name: str | None) -> str:
        """The alarm's name. It begins with the name of another source queue, whose number is part of the place."""
        is_first = queue_name is None or queue_name == self._queue_name
        kind = construct_id.rstrip(string.digits)
        number = construct_id.removeprefix(kind)
        says = f"{self._known_as if is_first else queue_name} {kind} "
        return says + place_of(self._scope, says, f"-{number}" if number else "")


def place_of(scope: Construct, says: str, ends: str = "") -> str:
    """Stack and construct, as the end of an alarm's name that begins with ``says``."""
    room = _LONGEST_NAME - len(says) - len(ends)
    place = cdk.Names.unique_resource_name(
        scope,
        separator="-",
        allowed_special_characters="-",
        max_length=min(room, _LONGEST_PLACE),
    )
    return place + ends


def tell(alarm: cloudwatch.AlarmBase, topic: sns.ITopic) -> None:
    """Make an alarm notify a topic when it goes off, and when it ends."""
    action = actions.SnsAction(topic)
    alarm.add_alarm_action(action)
    alarm.add_ok_action(action)


def numbered(construct_id: str, number: int) -> str:
    """The id of an alarm that each source queue has: the first one's has no number."""
    return construct_id if number == 1 else f"{construct_id}{number}"
