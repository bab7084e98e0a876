"""The monitoring of one protected queue: its alarms and its dashboard."""

from collections.abc import Iterator, Sequence

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from smart_redriver.cdk.alarms import AlarmMaker
from smart_redriver.cdk.dashboard import QueueDashboard
from smart_redriver.cdk.monitoring_settings import Alarms, MonitoringSettings
from smart_redriver.cdk.paging_alarms import OWN, make_paging_alarms
from smart_redriver.cdk.queue_metrics import QueueMetrics, Watched
from smart_redriver.cdk.topics import Topics
from smart_redriver.cdk.warning_alarms import WarningAlarms
from smart_redriver.engine.aws.metrics import KEPT_VARIABLE
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.errors import Fault

MONITORING_ID = "Monitoring"

#: Of a graph of twelve hours: finer points are not needed, with coarser ones work is not seen.
_GRAPH_PERIOD_MINUTES = (5, 60)


def crowded(scope: Construct) -> Iterator[Fault]:
    """A fault where ``scope`` has the monitoring of another queue.

    A name for the second would hang on which came first: swapped, each alarm would stand in the other's way.
    """
    if scope.node.try_find_child(MONITORING_ID):
        accepted = 'one for each re-driver, such as `Construct(scope, "Orders")`'
        yield Fault(setting="monitoring_scope", seen=scope.node.path, accepted=accepted)


class QueueMonitoring(Construct):
    """``alarms`` of one DLQ and what its letters go back to, and its dashboard, the ``widget`` on it if one is given.

    With ``alarms=paging`` there are only those that page and the metrics that they look at.
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
        WarningAlarms(make, every, settings=settings, monitoring=monitoring, topic=topics.warning)
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
