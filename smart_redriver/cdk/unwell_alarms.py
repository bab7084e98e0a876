"""The alarms behind the page that the re-driver is unwell: it crashes, is throttled, fails or is silent."""

from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch

from smart_redriver.cdk.alarms import (
    TICK,
    Advice,
    AlarmMaker,
    Comparison,
    Evaluation,
    Missing,
    minutes,
)
from smart_redriver.cdk.monitoring_settings import MonitoringSettings
from smart_redriver.cdk.queue_metrics import QueueMetrics
from smart_redriver.engine.aws import metrics as own

_MINUTE = cdk.Duration.seconds(TICK)
#: Of a first deployment until its first ticks are on record; then its silence pages like any other.
_WARM_UP_MINUTES = 60


class UnwellAlarms:
    """Makes ``alarms``, none of which tells anybody."""

    def __init__(
        self, make: AlarmMaker, metrics: QueueMetrics, *, monitoring: MonitoringSettings
    ) -> None:
        self._make = make
        self._metrics = metrics
        self._monitoring = monitoring
        self.alarms = [self._errors(), self._throttles(), self._failed_passes(), self._silent()]

    def _errors(self) -> cloudwatch.Alarm:
        """Not for one crash: the next tick looks again, and there is nothing for a person to do."""
        return self._function_fault(
            "RedriverErrors",
            "Errors",
            minutes(2, of=15),
            Advice(
                meaning="The re-driver crashed or ran out of time, 2 times in 15 minutes.",
                first="read the traceback or the refused settings at the end of `redrive logs`.",
                section="redriver-errors",
            ),
        )

    def _throttles(self) -> cloudwatch.Alarm:
        """Not for one: the next tick is a minute away."""
        return self._function_fault(
            "RedriverThrottled",
            "Throttles",
            minutes(3, of=15),
            Advice(
                meaning="Lambda refuses to start passes: the account's concurrency is used up.",
                first="see in CloudWatch's ConcurrentExecutions which function takes it all, and limit that.",
                section="redriver-throttled",
            ),
        )

    def _function_fault(
        self, construct_id: str, name: str, evaluation: Evaluation, advice: Advice
    ) -> cloudwatch.Alarm:
        return self._make.alarm(
            construct_id,
            self._metrics.redriver(name, "Sum", _MINUTE),
            Comparison.GREATER_THAN_THRESHOLD,
            0,
            evaluation,
            advice,
        )

    def _failed_passes(self) -> cloudwatch.Alarm:
        """What AWS refuses once or twice, the next ticks try again: after a failure each one looks."""
        evaluation = minutes(3, of=15)
        return self._make.alarm(
            "PassesFailed",
            self._metrics.own(own.PASSES_FAILED, "Sum", _MINUTE),
            Comparison.GREATER_THAN_THRESHOLD,
            0,
            evaluation,
            Advice(
                meaning="AWS refused a call that passes can't do without, 3 times in 15 minutes.",
                first="run `redrive doctor`, which tries each call and names the remedy.",
                section="passes-failed",
            ),
        )

    def _silent(self) -> cloudwatch.Alarm:
        silent = self._monitoring.alarm_silent_minutes
        evaluation = minutes(silent, of=silent)
        alarm = self._make.alarm(
            "RedriverSilent",
            self._metrics.redriver("Invocations", "Sum", _MINUTE),
            Comparison.LESS_THAN_THRESHOLD,
            1,
            evaluation,
            Advice(
                meaning=f"The function has not been invoked for {silent} minutes.",
                first="run `redrive doctor`, which says whether the schedule is enabled and may invoke the function.",
                section="redriver-silent",
            ),
            missing=Missing.BREACHING,
        )
        # The L2 does not know it yet.
        of_cloudformation = cast("cloudwatch.CfnAlarm", alarm.node.default_child)
        of_cloudformation.warm_up_configuration = cloudwatch.CfnAlarm.WarmUpConfigurationProperty(
            warm_up_period_duration_in_minutes=_WARM_UP_MINUTES,
            only_start_evaluating_after_warm_up_period_ends=False,
        )
        return alarm
