"""CloudWatch alarms that look at what AWS looks at.

MiniStack evaluates an alarm only when someone calls PutMetricData, over data of all dimensions, and without M of N,
missing data or metric math. Here every alarm is evaluated once in each minute of virtual time that is seen, by
`emulator.alarm_evaluation`. A state change is also sent as an event.
"""

import json
import logging
import time
from bisect import bisect_left
from collections.abc import Callable
from typing import Any

from ministack.core import responses
from ministack.services import cloudwatch, eventbridge

from emulator.alarm_evaluation import last_evaluation, next_state
from emulator.metric_math import Value

from .patching import wrap

logger = logging.getLogger("overlay.alarms")

_Alarm = dict[str, Any]

#: When each alarm was last evaluated.
_evaluated: dict[tuple[str, str, str], float] = {}


def evaluate_alarms(now: float) -> None:
    """Evaluate each alarm that is due again."""
    for key, alarm in list(cloudwatch._alarms.all_items()):
        account, region, _name = key
        responses.set_request_account_id(account)
        responses.set_request_region(region)
        try:
            end = last_evaluation(alarm, now)
            if _evaluated.get(key) != end:
                _evaluated[key] = end
                _evaluate(alarm, end)
        except Exception:  # one faulty alarm must not blind the others
            logger.exception("alarm %s could not be evaluated", alarm["AlarmName"])


def _evaluate(alarm: _Alarm, end: float) -> None:
    old = alarm["StateValue"]
    created = float(alarm["AlarmConfigurationUpdatedTimestamp"])
    new, values = next_state(alarm, _statistic, end, before=old, created=created)
    if new == old:
        return
    reason = (
        f"Threshold Crossed: {values} {alarm['ComparisonOperator']} {alarm.get('Threshold')} "
        f"({alarm.get('TreatMissingData', 'missing')} if missing)"
    )
    alarm.update(StateValue=new, StateReason=reason, StateUpdatedTimestamp=int(time.time()))
    cloudwatch._record_history(alarm["AlarmName"], old, new, reason)
    cloudwatch._dispatch_alarm_actions(alarm, old, new, reason)
    cloudwatch._evaluate_parent_alarms(alarm)


def _statistic(metric: dict[str, Any], name: str, start: float, end: float) -> Value:
    dimensions = cloudwatch._dims_from_list(metric.get("Dimensions") or [])
    key = (metric["Namespace"], metric["MetricName"], cloudwatch._dims_key(dimensions))
    # In the order in which they came; none comes late here.
    points = list(cloudwatch._metrics.get(key) or ())
    first, last = (bisect_left(points, moment, key=_timestamp) for moment in (start, end))
    bucket = points[first:last]
    if not bucket:
        return None
    value: Value = cloudwatch._stat_value(cloudwatch._calc_stats(bucket), name, bucket)
    return value


def _timestamp(point: dict[str, Any]) -> float:
    return float(point["Timestamp"])


def _tell_of_change(alarm: _Alarm, old: str, new: str) -> None:
    """Put the change on the default bus, as CloudWatch does for every alarm, whatever its actions.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch-and-eventbridge.html
    """
    detail = {
        "alarmName": alarm["AlarmName"],
        "state": {"value": new},
        "previousState": {"value": old},
    }
    entry = {
        "Source": "aws.cloudwatch",
        "DetailType": "CloudWatch Alarm State Change",
        "Resources": [alarm["AlarmArn"]],
        "Detail": json.dumps(detail),
    }
    eventbridge._put_events({"Entries": [entry]}, allow_aws_source=True)


def install() -> None:
    @wrap(cloudwatch, "_dispatch_alarm_actions")
    def act_and_tell(act: Callable[..., None], alarm: _Alarm, old: str, new: str, why: str) -> None:
        act(alarm, old, new, why)
        if new != old:
            _tell_of_change(alarm, old, new)

    cloudwatch._evaluate_alarm = lambda _alarm: None  # evaluated by the turn, not by PutMetricData
