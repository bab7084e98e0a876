"""The alarms that wake somebody: letters pile up, letters are about to be lost, the re-driver is unwell."""

from collections.abc import Sequence
from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sns as sns

from redrive.aws import metrics as own
from redrive.settings import Settings
from smart_redriver.cdk.alarms import Advice, AlarmMaker, Comparison, Missing
from smart_redriver.cdk.evaluation import (
    NEWEST_LOOK,
    Evaluation,
    longer_than,
    minutes,
    outage_before_paging,
)
from smart_redriver.cdk.monitoring_settings import MonitoringSettings
from smart_redriver.cdk.queue_metrics import VISIBLE, QueueMetrics, math

_FIVE_MINUTES = cdk.Duration.minutes(5)
#: The periods slide: what lasts for less than seven minutes is not in three of them.
LEVEL = Evaluation(seconds=300, periods=3, breaching=3)
#: What is rarely looked at is remembered for a day.
_DAILY_LOOK = Evaluation(seconds=3600, periods=24, breaching=1)
#: A burst is remembered until its letters are many, or too old: else it would page twice.
_BURST = Evaluation(seconds=300, periods=3, breaching=1)
#: A canary that is the only letter leaves the DLQ empty for a quarter of an hour: one such period at most.
_TRIAL_SECONDS = 600
#: Of a first deployment until its first ticks are on record; then its silence pages like any other.
_WARM_UP_MINUTES = 60

#: The function's own metrics that alarms look at here, and so all that it emits where nothing else looks.
OWN = (
    own.CIRCUIT_STATE,
    own.DEAD_LETTERS,
    own.LEAST_TIME_TO_EXPIRY,
    own.OLDEST_WAITING_AGE,
    own.PASSES_FAILED,
)


class PagingAlarms:
    """Makes them: two composites and, alone because it must never be lost among them, the expiry.

    ``metrics`` are those of each source queue that shares the DLQ, the first one first.
    """

    def __init__(
        self,
        make: AlarmMaker,
        metrics: Sequence[QueueMetrics],
        *,
        settings: Settings,
        monitoring: MonitoringSettings,
        topic: sns.ITopic,
    ) -> None:
        self._make = make
        self._metrics = metrics[0]
        self._settings = settings
        self._monitoring = monitoring
        circuits = [self._circuit_open(one, number) for number, one in enumerate(metrics, 1)]
        make.composite(
            "LettersPileUp",
            [self._many(), self._growing(), self._old(), *circuits],
            Advice(
                meaning="Dead letters pile up faster than they can go back.",
                first="see which of its alarms fired, then whether the consumer is down.",
                section="letters-pile-up",
            ),
            topic=topic,
        )
        make.composite(
            "RedriverUnwell",
            [self._errors(), self._throttles(), self._failed_passes(), self._silent()],
            Advice(
                meaning="The re-driver fails or does not run; dead letters stay where they are.",
                first="run `redrive doctor`, then read the function's log.",
                section="redriver-unwell",
            ),
            topic=topic,
        )
        self._near_expiry(topic)

    def _many(self) -> cloudwatch.Alarm:
        limit = self._monitoring.alarm_dead_letters_paging
        return self._make.alarm(
            "DeadLettersMany",
            self._metrics.dead_letters(VISIBLE, "Maximum", _period(LEVEL)),
            Comparison.GREATER_THAN_THRESHOLD,
            limit,
            LEVEL,
            Advice(
                meaning=f"More than {limit} dead letters wait.",
                first="look at the circuit with `redrive status`.",
                section="dead-letters-many",
            ),
        )

    def _growing(self) -> cloudwatch.Alarm:
        limit = self._monitoring.alarm_dead_letters_growth
        return self._make.alarm(
            "DeadLettersGrowing",
            math(
                "DIFF(visible + hidden)",
                _FIVE_MINUTES,
                label="New dead letters in 5 minutes",
                **self._metrics.depth(_FIVE_MINUTES),
            ),
            Comparison.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            limit,
            _BURST,
            Advice(
                meaning=f"{limit} or more dead letters came within five minutes.",
                first="look for a deployment or an outage of the consumer in the last minutes.",
                section="dead-letters-growing",
            ),
        )

    def _old(self) -> cloudwatch.Alarm:
        """By our own figure: SQS's leaves out letters that were received three times.

        Nor does SQS know which of them wait for a moment that is known.
        """
        limit = self._monitoring.alarm_dead_letters_age_seconds
        return self._make.alarm(
            "DeadLettersOld",
            self._metrics.own(own.OLDEST_WAITING_AGE, "Maximum", _period(NEWEST_LOOK)),
            Comparison.GREATER_THAN_THRESHOLD,
            limit,
            NEWEST_LOOK,
            Advice(
                meaning=f"A dead letter has waited for more than {limit} seconds.",
                first="ask `redrive letters` why the oldest are held.",
                section="dead-letters-old",
            ),
            missing=Missing.IGNORE,
        )

    def _circuit_open(self, metrics: QueueMetrics, number: int) -> cloudwatch.Alarm:
        """Never CLOSED while letters wait, again and again: an outage flips OPEN and HALF_OPEN.

        Over an empty DLQ the circuit stays OPEN for ever, and that is nobody's concern.
        """
        cool_downs = self._monitoring.alarm_open_cool_downs
        evaluation = longer_than(
            outage_before_paging(self._settings, cool_downs), period=_TRIAL_SECONDS
        )
        period = _period(evaluation)
        return self._make.alarm(
            numbered("CircuitOpen", number),
            math(
                "IF(letters > 0, circuit, 0)",
                period,
                label="Circuit while letters wait: 0 CLOSED, 1 OPEN",
                circuit=metrics.own(own.CIRCUIT_STATE, "Minimum", period),
                letters=self._metrics.own(own.DEAD_LETTERS, "Maximum", period),
            ),
            Comparison.GREATER_THAN_THRESHOLD,
            own.STATE_VALUES["CLOSED"],
            evaluation,
            Advice(
                meaning=f"The circuit has not closed for longer than cool-down {cool_downs}.",
                first="find out why the consumer fails; the re-driver tries by itself meanwhile.",
                section="circuit-open",
            ),
            missing=Missing.IGNORE,
            queue_name=metrics.queue_name,
        )

    def _errors(self) -> cloudwatch.Alarm:
        """At once, and remembered for a quarter of an hour: no tick should ever crash."""
        return self._function_fault(
            "RedriverErrors",
            "Errors",
            minutes(1, of=15),
            Advice(
                meaning="The re-driver crashed or ran out of time.",
                first="read the traceback or the refused settings at the end of its log.",
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
                first="see which function of the account takes it all.",
                section="redriver-throttled",
            ),
        )

    def _function_fault(
        self, construct_id: str, name: str, evaluation: Evaluation, advice: Advice
    ) -> cloudwatch.Alarm:
        return self._make.alarm(
            construct_id,
            self._metrics.redriver(name, "Sum", _period(evaluation)),
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
            self._metrics.own(own.PASSES_FAILED, "Sum", _period(evaluation)),
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
            self._metrics.redriver("Invocations", "Sum", _period(evaluation)),
            Comparison.LESS_THAN_THRESHOLD,
            1,
            evaluation,
            Advice(
                meaning=f"The function has not been invoked for {silent} minutes.",
                first="see whether the schedule is enabled and may invoke the function.",
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

    def _near_expiry(self, topic: sns.ITopic) -> None:
        hours = self._monitoring.alarm_expiry_hours
        self._make.alarm(
            "LettersNearExpiry",
            self._metrics.own(own.LEAST_TIME_TO_EXPIRY, "Minimum", _period(_DAILY_LOOK)),
            Comparison.LESS_THAN_THRESHOLD,
            hours * 3600,
            _DAILY_LOOK,
            Advice(
                meaning=f"SQS deletes a dead letter for good in less than {hours} hours.",
                first="see that it got to the parking lot with `redrive parked`.",
                section="letters-near-expiry",
            ),
            topic=topic,
        )


def numbered(construct_id: str, number: int) -> str:
    """The id of an alarm that there is for each source queue: the first one's has no number."""
    return construct_id if number == 1 else f"{construct_id}{number}"


def _period(evaluation: Evaluation) -> cdk.Duration:
    return cdk.Duration.seconds(evaluation.seconds)
