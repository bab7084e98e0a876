"""The re-driver of one source queue: function, schedule, and no permission beyond its work."""

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_scheduler_targets as targets
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from redrive.settings import Deployment, Settings
from stacks.python_function import python_function

#: Enough for a pass of thousands of letters, and well under the 15 minutes that Lambda allows.
_LONGEST_PASS_SECONDS = 240
#: What a pass leaves free before the next tick.
_GAP_SECONDS = 10


class Redriver(Construct):
    """``function`` makes one pass on each tick of its schedule. The queues may be anyone's."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        source_queue: sqs.IQueue,
        dead_letter_queue: sqs.IQueue,
        parking_lot: sqs.IQueue,
        table: dynamodb.ITableV2,
        settings: Settings,
        removal_policy: cdk.RemovalPolicy,
    ) -> None:
        super().__init__(scope, construct_id)
        deployment = Deployment(
            queue_name=source_queue.queue_name,
            table_name=table.table_name,
            dlq_url=dead_letter_queue.queue_url,
            source_queue_url=source_queue.queue_url,
            parking_lot_url=parking_lot.queue_url,
        )
        self.function = python_function(
            self,
            package="redrive",
            description="Redrives dead letters, and learns from those that return",
            memory_mib=512,
            timeout=longest_pass(settings),
            environment=deployment.to_env() | settings.to_env(),
            removal_policy=removal_policy,
        )
        self._grant_queues(source_queue, dead_letter_queue, parking_lot)
        self._grant_state(table)
        self._start_passes(every=cdk.Duration.minutes(settings.schedule_minutes))

    def _grant_queues(
        self, source_queue: sqs.IQueue, dead_letter_queue: sqs.IQueue, parking_lot: sqs.IQueue
    ) -> None:
        source_queue.grant(self.function, "sqs:SendMessage", "sqs:GetQueueAttributes")
        dead_letter_queue.grant(
            self.function,
            "sqs:ReceiveMessage",
            "sqs:DeleteMessage",
            "sqs:ChangeMessageVisibility",
            "sqs:GetQueueAttributes",
            # The re-driver stands aside while a native redrive is running.
            "sqs:ListMessageMoveTasks",
        )
        parking_lot.grant(
            self.function,
            "sqs:SendMessage",
            "sqs:GetQueueAttributes",
            # A parked letter near its expiry is renewed: received, sent again, deleted.
            "sqs:ReceiveMessage",
            "sqs:DeleteMessage",
        )

    def _grant_state(self, table: dynamodb.ITableV2) -> None:
        table.grant(
            self.function,
            "dynamodb:GetItem",
            "dynamodb:PutItem",
            "dynamodb:UpdateItem",
            "dynamodb:DeleteItem",
            "dynamodb:BatchGetItem",
            "dynamodb:BatchWriteItem",
        )
        # CloudWatch has no permissions by resource, nor a condition that would narrow this one.
        self.function.add_to_role_policy(
            iam.PolicyStatement(actions=["cloudwatch:GetMetricData"], resources=["*"])
        )

    def _start_passes(self, *, every: cdk.Duration) -> None:
        # A tick that could not be delivered is late by now; by default it would be tried for a day.
        target = targets.LambdaInvoke(
            self.function, retry_attempts=0, max_event_age=cdk.Duration.seconds(60)
        )
        scheduler.Schedule(
            self,
            "Schedule",
            description="One pass of the smart re-driver",
            schedule=scheduler.ScheduleExpression.rate(every),
            target=target,
        )


def longest_pass(settings: Settings) -> cdk.Duration:
    """The function's timeout: a pass, and so its lease, is over before the next tick."""
    between_ticks = settings.schedule_minutes * 60
    return cdk.Duration.seconds(min(_LONGEST_PASS_SECONDS, between_ticks - _GAP_SECONDS))
