"""What every alarm has: a sentence, a first step, a runbook section, explicit missing data, and a topic.

Alarms that belong to one incident go to nobody by themselves; a composite of them does.
"""

import string
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from constructs import Construct

from smart_redriver.cdk.evaluation import Evaluation

A = TypeVar("A", cloudwatch.Alarm, cloudwatch.CompositeAlarm)

Comparison = cloudwatch.ComparisonOperator
Missing = cloudwatch.TreatMissingData


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What a person who was paged reads first: what it means, what to do, and where more is said."""

    meaning: str
    first: str
    section: str


class AlarmMaker:
    """Makes the alarms of one queue in ``scope``, and keeps them in the order they were made.

    Their names are what a person reads in a page at night: ``orders CircuitOpen``. No other alarm of the account has
    them, since a queue has one re-driver; and nothing but the name itself has an alarm replaced, so that a fixed one
    stands in no deployment's way. ``known_as`` is what people call the queue.
    """

    def __init__(
        self, scope: Construct, *, queue_name: str, known_as: str, runbook_url: str
    ) -> None:
        self.made: list[cloudwatch.IAlarm] = []
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
        """One alarm; without a topic it is part of a composite.

        ``queue_name`` is that of another source queue than the first, if the alarm is about it.
        """
        alarm = cloudwatch.Alarm(
            self._scope,
            construct_id,
            alarm_name=self._name(construct_id, queue_name),
            metric=metric,
            comparison_operator=comparison,
            threshold=threshold,
            evaluation_periods=evaluation.periods,
            datapoints_to_alarm=evaluation.breaching,
            treat_missing_data=missing,
            alarm_description=self._text(advice, queue_name or self._queue_name),
        )
        return self._with_topic(alarm, topic)

    def composite(
        self,
        construct_id: str,
        children: Sequence[cloudwatch.IAlarm],
        advice: Advice,
        *,
        topic: sns.ITopic,
    ) -> cloudwatch.CompositeAlarm:
        """One page for whichever of the children fires first, and no second while any of them lasts."""
        composite = cloudwatch.CompositeAlarm(
            self._scope,
            construct_id,
            composite_alarm_name=self._name(construct_id, None),
            alarm_rule=cloudwatch.AlarmRule.any_of(*children),
            alarm_description=self._text(advice, self._queue_name),
        )
        return self._with_topic(composite, topic)

    def _name(self, construct_id: str, queue_name: str | None) -> str:
        """Of an alarm about another source queue it has that queue's name, and no number."""
        if queue_name is None or queue_name == self._queue_name:
            return f"{self._known_as} {construct_id}"
        return f"{queue_name} {construct_id.rstrip(string.digits)}"

    def _with_topic(self, alarm: A, topic: sns.ITopic | None) -> A:
        if topic is not None:
            action = actions.SnsAction(topic)
            alarm.add_alarm_action(action)
            alarm.add_ok_action(action)
        self.made.append(alarm)
        return alarm

    def _text(self, advice: Advice, queue_name: str) -> str:
        runbook = f"{self._runbook_url}#{advice.section}"
        return f"{advice.meaning} First: {advice.first} Queue: {queue_name}. Runbook: {runbook}"


def numbered(construct_id: str, number: int) -> str:
    """The id of an alarm that there is for each source queue: the first one's has no number."""
    return construct_id if number == 1 else f"{construct_id}{number}"
