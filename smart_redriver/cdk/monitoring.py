"""What watches one protected queue: its alarms, its dashboard, and no metric that nobody looks at."""

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from redrive.aws.metrics import KEPT_VARIABLE
from redrive.settings import Settings
from smart_redriver.cdk.alarms import AlarmMaker
from smart_redriver.cdk.dashboard import QueueDashboard
from smart_redriver.cdk.evaluation import schedule_period
from smart_redriver.cdk.monitoring_settings import Alarms, MonitoringSettings
from smart_redriver.cdk.paging_alarms import PagingAlarms
from smart_redriver.cdk.queue_metrics import QueueMetrics
from smart_redriver.cdk.topics import Topics
from smart_redriver.cdk.warning_alarms import WarningAlarms

#: A graph of twelve hours needs no finer points.
_SHORTEST_PERIOD_SECONDS = 300


class QueueMonitoring(Construct):
    """``alarms`` of one queue pair, and its dashboard.

    With ``alarms=paging`` there are only those that page and the metrics that they look at.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        source_queue: sqs.IQueue,
        dead_letter_queue: sqs.IQueue,
        parking_lot: sqs.IQueue,
        function: lambda_.Function,
        settings: Settings,
        monitoring: MonitoringSettings,
        topics: Topics,
    ) -> None:
        super().__init__(scope, construct_id)
        metrics = QueueMetrics(
            source_queue=source_queue,
            dead_letter_queue=dead_letter_queue,
            parking_lot=parking_lot,
            function=function,
        )
        queue_name, runbook_url = source_queue.queue_name, monitoring.runbook_url
        make = AlarmMaker(self, queue_name=queue_name, runbook_url=runbook_url)
        self.alarms = make.made
        PagingAlarms(make, metrics, settings=settings, monitoring=monitoring, topic=topics.paging)
        if monitoring.alarms is Alarms.PAGING:
            function.add_environment(KEPT_VARIABLE, ",".join(sorted(metrics.asked_for)))
            return
        WarningAlarms(make, metrics, settings=settings, monitoring=monitoring, topic=topics.warning)
        QueueDashboard(
            self,
            "Dashboard",
            metrics=metrics,
            alarms=self.alarms,
            queue_name=queue_name,
            period=cdk.Duration.seconds(max(_SHORTEST_PERIOD_SECONDS, schedule_period(settings))),
            runbook_url=runbook_url,
        )
