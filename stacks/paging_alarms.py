"""The alarms that wake somebody: letters pile up, letters are about to be lost, the re-driver is unwell."""

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sns as sns

from redrive import metrics as own
from redrive.settings import Settings
from stacks.alarms import Advice, AlarmMaker, Comparison, Missing
from stacks.evaluation import (
    Evaluation,
    longer_than,
    outage_before_paging,
    schedule_period,
)
from stacks.monitoring_settings import MonitoringSettings
from stacks.queue_metrics import AGE, IN_FLIGHT, VISIBLE, QueueMetrics, math

#: A pass hides letters for less than this: a maximum over it shows them all the same.
_LEVEL = Evaluation(seconds=300, periods=3, breaching=2)
#: What is rarely looked at is remembered for a day.
_DAILY_LOOK = Evaluation(seconds=3600, periods=24, breaching=1)
_WEEK = Evaluation(seconds=86_400, periods=7, breaching=7)


class PagingAlarms:
    """Makes them: two composites and, alone because it must never be lost among them, the expiry."""

    def __init__(
        self,
        make: AlarmMaker,
        metrics: QueueMetrics,
        *,
        settings: Settings,
        monitoring: MonitoringSettings,
        topic: sns.ITopic,
    ) -> None:
        self._make = make
        self._metrics = metrics
        self._settings = settings
        self._monitoring = monitoring
        make.composite(
            "LettersPileUp",
            [self._many(), self._growing(), self._old(), self._circuit_open()],
            Advice(
                meaning="Dead letters pile up faster than they can go back.",
                first="see which of the four alarms fired, then whether the consumer is down.",
                section="letters-pile-up",
            ),
            topic=topic,
        )
        make.composite(
            "RedriverUnwell",
            [self._errors(), self._silent()],
            Advice(
                meaning="The re-driver fails or does not run; dead letters stay where they are.",
                first="run `redrive doctor`, then read the function's log.",
                section="redriver-unwell",
            ),
            topic=topic,
            suppressor=self._never_ran(),
        )
        self._near_expiry(topic)

    def _many(self) -> cloudwatch.Alarm:
        limit = self._monitoring.alarm_dead_letters_paging
        return self._make.alarm(
            "DeadLettersMany",
            self._metrics.dead_letters(VISIBLE, "Maximum", _period(_LEVEL)),
            Comparison.GREATER_THAN_THRESHOLD,
            limit,
            _LEVEL,
            Advice(
                meaning=f"More than {limit} dead letters wait.",
                first="look at the circuit with `redrive status`.",
                section="dead-letters-many",
            ),
        )

    def _growing(self) -> cloudwatch.Alarm:
        """Averages, as only they add up: a letter that a pass hides leaves one and enters the other."""
        five_minutes = cdk.Duration.minutes(5)
        limit = self._monitoring.alarm_dead_letters_growth
        return self._make.alarm(
            "DeadLettersGrowing",
            math(
                "DIFF(visible + hidden)",
                five_minutes,
                label="New dead letters in 5 minutes",
                visible=self._metrics.dead_letters(VISIBLE, "Average", five_minutes),
                hidden=self._metrics.dead_letters(IN_FLIGHT, "Average", five_minutes),
            ),
            Comparison.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            limit,
            Evaluation(seconds=300),
            Advice(
                meaning=f"{limit} or more dead letters came within five minutes.",
                first="look for a deployment or an outage of the consumer in the last minutes.",
                section="dead-letters-growing",
            ),
        )

    def _old(self) -> cloudwatch.Alarm:
        limit = self._monitoring.alarm_dead_letters_age_seconds
        return self._make.alarm(
            "DeadLettersOld",
            self._metrics.dead_letters(AGE, "Maximum", _period(_LEVEL)),
            Comparison.GREATER_THAN_THRESHOLD,
            limit,
            _LEVEL,
            Advice(
                meaning=f"A dead letter has waited for more than {limit} seconds.",
                first="ask `redrive letters` why the oldest are held.",
                section="dead-letters-old",
            ),
        )

    def _circuit_open(self) -> cloudwatch.Alarm:
        """Never CLOSED in two ticks' time, again and again: an outage flips OPEN and HALF_OPEN."""
        cool_downs = self._monitoring.alarm_open_cool_downs
        evaluation = longer_than(
            outage_before_paging(self._settings, cool_downs),
            period=schedule_period(self._settings, ticks=2),
        )
        return self._make.alarm(
            "CircuitOpen",
            self._metrics.own(own.CIRCUIT_STATE, "Minimum", _period(evaluation)),
            Comparison.GREATER_THAN_THRESHOLD,
            own.STATE_VALUES["CLOSED"],
            evaluation,
            Advice(
                meaning=f"The circuit has not closed for longer than cool-down {cool_downs}.",
                first="find out why the consumer fails; the re-driver tries by itself meanwhile.",
                section="circuit-open",
            ),
            missing=Missing.IGNORE,
        )

    def _errors(self) -> cloudwatch.Alarm:
        """A crash or a throttle at once; of passes that AWS refused, the second within three ticks."""
        seconds = schedule_period(self._settings, ticks=3)
        period = cdk.Duration.seconds(seconds)
        return self._make.alarm(
            "RedriverErrors",
            math(
                "FILL(errors, 0) + FILL(throttles, 0) + IF(FILL(failed, 0) > 1, 1, 0)",
                period,
                label="Errors, throttles, failed passes",
                errors=self._metrics.redriver("Errors", "Sum", period),
                throttles=self._metrics.redriver("Throttles", "Sum", period),
                failed=self._metrics.own(own.PASSES_FAILED, "Sum", period),
            ),
            Comparison.GREATER_THAN_THRESHOLD,
            0,
            Evaluation(seconds=seconds),
            Advice(
                meaning="The re-driver crashed, was throttled, or failed in two passes.",
                first="read the last `pass.finished` and `call.failed` of its log.",
                section="redriver-errors",
            ),
        )

    def _silent(self) -> cloudwatch.Alarm:
        periods = self._monitoring.alarm_silent_periods
        seconds = schedule_period(self._settings)
        return self._make.alarm(
            "RedriverSilent",
            self._metrics.redriver("Invocations", "Sum", cdk.Duration.seconds(seconds)),
            Comparison.LESS_THAN_THRESHOLD,
            1,
            Evaluation(seconds=seconds, periods=periods, breaching=periods),
            Advice(
                meaning=f"No pass has started for {periods} schedule periods.",
                first="see whether the schedule is enabled and may invoke the function.",
                section="redriver-silent",
            ),
            missing=Missing.BREACHING,
        )

    def _never_ran(self) -> cloudwatch.Alarm:
        """In ALARM from the first deployment to the first tick: silence is no news until then."""
        return self._make.alarm(
            "RedriverNeverRan",
            self._metrics.redriver("Invocations", "Sum", _period(_WEEK)),
            Comparison.LESS_THAN_THRESHOLD,
            1,
            _WEEK,
            Advice(
                meaning="The re-driver has not run this week, or has just been deployed.",
                first="nothing: this one tells nobody, it only keeps a first deployment quiet.",
                section="redriver-never-ran",
            ),
            missing=Missing.BREACHING,
        )

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


def _period(evaluation: Evaluation) -> cdk.Duration:
    return cdk.Duration.seconds(evaluation.seconds)
