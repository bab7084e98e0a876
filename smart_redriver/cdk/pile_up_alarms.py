"""The alarms behind the page that letters pile up: many, growing, old, or held by an open circuit."""

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch

from redrive.aws import metrics as own
from redrive.settings import Settings
from smart_redriver.cdk.alarms import Advice, AlarmMaker, Comparison, Missing, numbered
from smart_redriver.cdk.evaluation import (
    LEVEL,
    NEWEST_LOOK,
    Evaluation,
    longer_than,
    outage_before_paging,
)
from smart_redriver.cdk.monitoring_settings import MonitoringSettings
from smart_redriver.cdk.queue_metrics import VISIBLE, QueueMetrics, math

_FIVE_MINUTES = cdk.Duration.minutes(5)
#: A burst is remembered until its letters are many, or too old: else it would page twice.
_BURST = Evaluation(seconds=300, periods=3, breaching=1)
#: A canary that is the only letter leaves the DLQ empty for a quarter of an hour: one such period at most.
_TRIAL_SECONDS = 600


class PileUpAlarms:
    """Makes ``alarms``, none of which tells anybody; a circuit's for each source queue."""

    def __init__(
        self,
        make: AlarmMaker,
        metrics: Sequence[QueueMetrics],
        *,
        settings: Settings,
        monitoring: MonitoringSettings,
    ) -> None:
        self._make = make
        self._metrics = metrics[0]
        self._settings = settings
        self._monitoring = monitoring
        self.alarms = [self._many(), self._growing(), self._old()]
        self.alarms += [self._circuit_open(one, number) for number, one in enumerate(metrics, 1)]

    def _many(self) -> cloudwatch.Alarm:
        limit = self._monitoring.alarm_dead_letters_paging
        return self._make.alarm(
            "DeadLettersMany",
            self._metrics.dead_letters(VISIBLE, "Maximum", cdk.Duration.seconds(LEVEL.seconds)),
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
            self._metrics.own(
                own.OLDEST_WAITING_AGE, "Maximum", cdk.Duration.seconds(NEWEST_LOOK.seconds)
            ),
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
        period = cdk.Duration.seconds(evaluation.seconds)
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
