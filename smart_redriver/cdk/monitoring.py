"""The monitoring of one protected queue: its alarms and its dashboard."""

from collections.abc import Iterator, Sequence

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from smart_redriver.cdk.alarms import (
    LEVEL,
    NEWEST_LOOK,
    Advice,
    AlarmMaker,
    Comparison,
    Evaluation,
    Missing,
    numbered,
)
from smart_redriver.cdk.dashboard import QueueDashboard
from smart_redriver.cdk.monitoring_settings import Alarms, MonitoringSettings
from smart_redriver.cdk.paging_alarms import OWN, make_paging_alarms
from smart_redriver.cdk.queue_metrics import AGE, DELAYED, VISIBLE, QueueMetrics, Watched, math
from smart_redriver.cdk.topics import Topics
from smart_redriver.engine.aws import metrics as own
from smart_redriver.engine.aws.metrics import KEPT_VARIABLE
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.errors import Fault
from smart_redriver.engine.messages.outgoing import MAX_SQS_DELAY

_FIVE_MINUTES = cdk.Duration.minutes(5)
#: The longest delay of a message in SQS, in seconds.
_LONGEST_DELAY = int(MAX_SQS_DELAY.total_seconds())
#: How many source queues one alarm can add up: it may have ten metrics, and the DLQ's depth takes two.
_MOST_SOURCES_IN_SUM = 8


class WarningAlarms:
    """Makes the warning alarms, each with the warning topic.

    ``metrics`` belong to the source queues that share the DLQ, in their order.
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
        self._topic = topic
        self._present()
        self._suspects()
        self._parked()
        self._too_many_failures(metrics[:_MOST_SOURCES_IN_SUM])
        self._reports_unread()
        for number, one in enumerate(metrics, 1):
            self._not_working(one, number)
            if one.watched.is_queue:
                self._source_old(one, number)

    def _present(self) -> None:
        limit = self._monitoring.alarm_dead_letters_warning
        self._make.alarm(
            "DeadLettersPresent",
            self._metrics.dead_letters(VISIBLE, "Maximum", _FIVE_MINUTES),
            Comparison.GREATER_THAN_THRESHOLD,
            limit,
            LEVEL,
            Advice(
                meaning=f"More than {limit} dead letters wait.",
                first="`redrive status` says whether they go back, or what they wait for.",
                section="dead-letters-present",
            ),
            topic=self._topic,
        )

    def _suspects(self) -> None:
        """Warn about suspects separately: SQS's own counts don't show them, and they are old by intent."""
        limit = self._monitoring.alarm_suspects
        self._make.alarm(
            "SuspectsWaiting",
            self._metrics.own(own.SUSPECTS_WAITING, "Maximum", cdk.Duration.minutes(1)),
            Comparison.GREATER_THAN_THRESHOLD,
            limit,
            NEWEST_LOOK,
            Advice(
                meaning="Letters that failed while others succeeded wait for their last chance, "
                "or their cause's canary.",
                first="`redrive causes` says why, `redrive letters --held` what each of them waits for and until when.",
                section="suspects-waiting",
            ),
            missing=Missing.IGNORE,
            topic=self._topic,
        )

    def _parked(self) -> None:
        """Use both counts: ours shows parked letters at once; SQS's is up to 15 minutes late, but stays as they do."""
        limit = self._monitoring.alarm_parked_letters
        self._make.alarm(
            "PoisonParked",
            math(
                "FILL(waiting, 0) + FILL(parked, 0)",
                _FIVE_MINUTES,
                label="Parked letters",
                waiting=self._metrics.parking_lot(VISIBLE, "Maximum", _FIVE_MINUTES),
                parked=self._metrics.own(own.LETTERS_PARKED, "Sum", _FIVE_MINUTES),
            ),
            Comparison.GREATER_THAN_THRESHOLD,
            limit,
            Evaluation(seconds=300, periods=4, breaching=1),
            Advice(
                meaning="Letters that keep failing wait in the parking lot for a decision.",
                first="`redrive parked` groups them by cause; then `redrive replay`, `edit` or `delete`.",
                section="poison-parked",
            ),
            topic=self._topic,
        )

    def _not_working(self, metrics: QueueMetrics, number: int) -> None:
        percent = self._monitoring.alarm_success_percent
        enough = self._monitoring.alarm_success_verdicts
        period = cdk.Duration.hours(1)
        self._make.alarm(
            numbered("RedriveNotWorking", number),
            math(
                f"IF(good + bad >= {enough}, 100 * good / (good + bad), 100)",
                period,
                label="Verdicts that are successes, percent",
                good=metrics.own(own.VERDICTS_SUCCESS, "Sum", period),
                bad=metrics.own(own.VERDICTS_FAILURE, "Sum", period),
            ),
            Comparison.LESS_THAN_THRESHOLD,
            percent,
            Evaluation(seconds=3600),
            Advice(
                meaning=f"Fewer than {percent:g} % of the redriven batches succeed.",
                first="`redrive causes` says what the consumer reported of those that came back.",
                section="redrive-not-working",
            ),
            topic=self._topic,
            queue_name=metrics.queue_name,
        )

    def _too_many_failures(self, sources: Sequence[QueueMetrics]) -> None:
        """Use net growth for arrivals, because SQS does not count messages that it moves to a DLQ.

        Letters that the re-driver sends back meanwhile are not in it, so failures that heal by themselves warn nobody.
        For a shared DLQ, growth does not show a letter's source, so receives of all sources count. For a target, nobody
        counts deliveries and failures together, so there is no such alarm.
        """
        percent = self._monitoring.alarm_failures_percent
        enough = self._monitoring.alarm_failures_received
        period = cdk.Duration.minutes(15)
        tried = {one.watched.function or one.queue_name: one.tried(period) for one in sources}
        received = {
            f"received{number}": metric
            for number, metric in enumerate(filter(None, tried.values()), 1)
        }
        if not received:
            return
        # AWS reports nothing for a queue or function that is not used.
        total = " + ".join(f"FILL({name}, 0)" for name in received)
        self._make.alarm(
            "TooManyFailures",
            math(
                f"IF({total} >= {enough}, 100 * DIFF(visible + hidden) / ({total}), 0)",
                period,
                label="Receives that end in the DLQ, percent",
                **received,
                **self._metrics.depth(period),
            ),
            Comparison.GREATER_THAN_THRESHOLD,
            percent,
            Evaluation(seconds=900),
            Advice(
                meaning=f"More than {percent:g} % of what the consumer receives ends in the DLQ.",
                first="look at the consumer's errors; `redrive causes` has those that it reported.",
                section="too-many-failures",
            ),
            topic=self._topic,
        )

    def _reports_unread(self) -> None:
        """Warn about unread reports: at an idle queue, they wait up to ``schedule_minutes`` for the next look."""
        two_looks = 2 * 60 * self._settings.schedule_minutes
        limit = max(self._monitoring.alarm_unread_reports_seconds, two_looks)
        self._make.alarm(
            "ReportsUnread",
            self._metrics.reports(AGE, "Maximum", _FIVE_MINUTES),
            Comparison.GREATER_THAN_THRESHOLD,
            limit,
            LEVEL,
            Advice(
                meaning=f"Consumers' reports have not been read for more than {limit} seconds.",
                first="`redrive status` shows the last pass, `redrive doctor` what keeps them from running.",
                section="reports-unread",
            ),
            topic=self._topic,
        )

    def _source_old(self, metrics: QueueMetrics, number: int) -> None:
        """Warn about old messages at the source. SQS gives the age of "the oldest non-deleted message", delayed or not.

        So age counts only while something is visible, and beyond the longest delay while letters are delayed.
        """
        limit = self._monitoring.alarm_source_age_seconds
        minute = cdk.Duration.minutes(1)
        self._make.alarm(
            numbered("SourceQueueOld", number),
            math(
                f"IF(visible > 0, IF(delayed > 0, age - {_LONGEST_DELAY}, age), 0)",
                minute,
                label="Age of the oldest message that waits, seconds",
                age=metrics.source(AGE, "Maximum", minute),
                visible=metrics.source(VISIBLE, "Maximum", minute),
                delayed=metrics.source(DELAYED, "Maximum", minute),
            ),
            Comparison.GREATER_THAN_THRESHOLD,
            limit,
            Evaluation(seconds=60, periods=3, breaching=3),
            Advice(
                meaning=f"The source queue's oldest message has waited for more than {limit} s.",
                first="see whether the consumer runs and keeps up; `redrive status` shows how many messages wait.",
                section="source-queue-old",
            ),
            topic=self._topic,
            queue_name=metrics.queue_name,
        )


MONITORING_ID = "Monitoring"

#: Minutes between points in a graph of twelve hours. Finer points are not needed, and coarser ones do not show work.
_GRAPH_PERIOD_MINUTES = (5, 60)


def crowded(scope: Construct) -> Iterator[Fault]:
    """Yield a fault if ``scope`` already has the monitoring of another queue.

    The second one's ids would depend on the order: if it changed, the alarms would clash with each other.
    """
    if scope.node.try_find_child(MONITORING_ID):
        accepted = 'one for each re-driver, such as `Construct(scope, "Orders")`'
        yield Fault(setting="monitoring_scope", seen=scope.node.path, accepted=accepted)


class QueueMonitoring(Construct):
    """``alarms`` of one DLQ and of where its letters go back to, and its dashboard, with ``widget`` if one is given.

    With ``alarms=paging``, there are only the alarms that page and the metrics that they use.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        watched: Sequence[Watched],
        dead_letter_queue: sqs.IQueue,
        parking_lot: sqs.IQueue,
        outcome_queue: sqs.IQueue,
        function: lambda_.Function,
        settings: Settings,
        monitoring: MonitoringSettings,
        topics: Topics,
        known_as: str,
        widget: cloudwatch.IWidget | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        first, *further = watched
        metrics = QueueMetrics(
            watched=first,
            dead_letter_queue=dead_letter_queue,
            parking_lot=parking_lot,
            outcome_queue=outcome_queue,
            function=function,
        )
        every = [metrics, *(metrics.of(one) for one in further)]
        queue_name, runbook_url = metrics.queue_name, monitoring.runbook_url
        make = AlarmMaker(self, queue_name=queue_name, known_as=known_as, runbook_url=runbook_url)
        self.alarms = make.made
        make_paging_alarms(
            make, every, settings=settings, monitoring=monitoring, topic=topics.paging
        )
        if monitoring.alarms is Alarms.PAGING:
            function.add_environment(KEPT_VARIABLE, ",".join(sorted(one.name for one in OWN)))
            return
        WarningAlarms(
            make,
            every,
            settings=settings,
            monitoring=monitoring,
            topic=topics.expect_warnings(),
        )
        finest, coarsest = _GRAPH_PERIOD_MINUTES
        QueueDashboard(
            self,
            "Dashboard",
            metrics=every,
            alarms=self.alarms,
            period=cdk.Duration.minutes(min(max(finest, settings.schedule_minutes), coarsest)),
            runbook_url=runbook_url,
            custom=widget,
        )
