"""The alarms that wake somebody: letters pile up, letters are about to be lost, the re-driver is unwell."""

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sns as sns

from redrive.aws import metrics as own
from redrive.settings import Settings
from smart_redriver.cdk.alarms import Advice, AlarmMaker, Comparison, Missing
from smart_redriver.cdk.evaluation import (
    Evaluation,
    longer_than,
    outage_before_paging,
    schedule_period,
)
from smart_redriver.cdk.monitoring_settings import MonitoringSettings
from smart_redriver.cdk.queue_metrics import AGE, VISIBLE, QueueMetrics, math

_FIVE_MINUTES = cdk.Duration.minutes(5)
#: A pass hides letters for less than this: a maximum over it shows them all the same.
_LEVEL = Evaluation(seconds=300, periods=3, breaching=2)
#: What is rarely looked at is remembered for a day.
_DAILY_LOOK = Evaluation(seconds=3600, periods=24, breaching=1)
#: A burst is remembered until its letters are many, or too old: else it would page twice.
_BURST = Evaluation(seconds=300, periods=3, breaching=1)
#: A canary that is the only letter leaves the DLQ empty for a quarter of an hour: one such period at most.
_TRIAL_SECONDS = 600
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
            [self._errors(), self._throttles(), self._failed_passes(), self._silent()],
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
        """Never CLOSED while letters wait, again and again: an outage flips OPEN and HALF_OPEN.

        Over an empty DLQ the circuit stays OPEN for ever, and that is nobody's concern.
        """
        cool_downs = self._monitoring.alarm_open_cool_downs
        evaluation = longer_than(
            outage_before_paging(self._settings, cool_downs),
            period=max(_TRIAL_SECONDS, schedule_period(self._settings, ticks=2)),
        )
        period = _period(evaluation)
        return self._make.alarm(
            "CircuitOpen",
            math(
                "IF(letters > 0, circuit, 0)",
                period,
                label="Circuit while letters wait: 0 CLOSED, 1 OPEN",
                circuit=self._metrics.own(own.CIRCUIT_STATE, "Minimum", period),
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
        )

    def _errors(self) -> cloudwatch.Alarm:
        return self._function_fault(
            "RedriverErrors",
            "Errors",
            Advice(
                meaning="The re-driver crashed or ran out of time.",
                first="read the traceback or the refused settings at the end of its log.",
                section="redriver-errors",
            ),
        )

    def _throttles(self) -> cloudwatch.Alarm:
        return self._function_fault(
            "RedriverThrottled",
            "Throttles",
            Advice(
                meaning="Lambda refused to start a pass: the account's concurrency is used up.",
                first="see which function of the account takes it all.",
                section="redriver-throttled",
            ),
        )

    def _function_fault(self, construct_id: str, name: str, advice: Advice) -> cloudwatch.Alarm:
        """At once, and remembered for three ticks."""
        evaluation = self._three_ticks(breaching=1)
        return self._make.alarm(
            construct_id,
            self._metrics.redriver(name, "Sum", _period(evaluation)),
            Comparison.GREATER_THAN_THRESHOLD,
            0,
            evaluation,
            advice,
        )

    def _failed_passes(self) -> cloudwatch.Alarm:
        """The second of three: what AWS refuses once, the next tick tries again."""
        evaluation = self._three_ticks(breaching=2)
        return self._make.alarm(
            "PassesFailed",
            self._metrics.own(own.PASSES_FAILED, "Sum", _period(evaluation)),
            Comparison.GREATER_THAN_THRESHOLD,
            0,
            evaluation,
            Advice(
                meaning="AWS refused a call that passes can't do without, twice in three ticks.",
                first="run `redrive doctor`, which tries each call and names the remedy.",
                section="passes-failed",
            ),
        )

    def _three_ticks(self, *, breaching: int) -> Evaluation:
        tick = schedule_period(self._settings)
        return Evaluation(seconds=tick, periods=3, breaching=breaching)

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
