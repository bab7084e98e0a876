"""The alarms that wake somebody: letters pile up, letters are about to be lost, the re-driver is unwell."""

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_sns as sns

from redrive.aws import metrics as own
from redrive.settings import Settings
from smart_redriver.cdk.alarms import Advice, AlarmMaker, Comparison
from smart_redriver.cdk.evaluation import Evaluation
from smart_redriver.cdk.monitoring_settings import MonitoringSettings
from smart_redriver.cdk.pile_up_alarms import PileUpAlarms
from smart_redriver.cdk.queue_metrics import QueueMetrics
from smart_redriver.cdk.unwell_alarms import UnwellAlarms

#: What is rarely looked at is remembered for a day.
_DAILY_LOOK = Evaluation(seconds=3600, periods=24, breaching=1)

#: The function's own metrics that these alarms look at, and so all that it emits where nothing else looks.
OWN = (
    own.CIRCUIT_STATE,
    own.DEAD_LETTERS,
    own.LEAST_TIME_TO_EXPIRY,
    own.OLDEST_WAITING_AGE,
    own.PASSES_FAILED,
)


def make_paging_alarms(
    make: AlarmMaker,
    metrics: Sequence[QueueMetrics],
    *,
    settings: Settings,
    monitoring: MonitoringSettings,
    topic: sns.ITopic,
) -> None:
    """Two composites and, alone because it must never be lost among them, the expiry.

    ``metrics`` are those of each source queue that shares the DLQ, the first one first.
    """
    make.composite(
        "LettersPileUp",
        PileUpAlarms(make, metrics, settings=settings, monitoring=monitoring).alarms,
        Advice(
            meaning="Dead letters pile up faster than they can go back.",
            first="see which of its alarms fired, then whether the consumer is down.",
            section="letters-pile-up",
        ),
        topic=topic,
    )
    make.composite(
        "RedriverUnwell",
        UnwellAlarms(make, metrics[0], monitoring=monitoring).alarms,
        Advice(
            meaning="The re-driver fails or does not run; dead letters stay where they are.",
            first="run `redrive doctor`, then `redrive logs`.",
            section="redriver-unwell",
        ),
        topic=topic,
    )
    _near_expiry(make, metrics[0], hours=monitoring.alarm_expiry_hours, topic=topic)


def _near_expiry(make: AlarmMaker, metrics: QueueMetrics, *, hours: int, topic: sns.ITopic) -> None:
    period = cdk.Duration.seconds(_DAILY_LOOK.seconds)
    make.alarm(
        "LettersNearExpiry",
        metrics.own(own.LEAST_TIME_TO_EXPIRY, "Minimum", period),
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
