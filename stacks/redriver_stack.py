"""The stack ``SmartRedriver``: composes the constructs and publishes where things are."""

import aws_cdk as cdk
from constructs import Construct

from redrive.settings import Settings
from stacks.monitoring import Monitoring
from stacks.nag import acknowledge_queues, acknowledge_redriver, acknowledge_sample_consumer
from stacks.queues import Queues
from stacks.redriver import Redriver
from stacks.sample_consumer import SampleConsumer
from stacks.state_table import StateTable


class RedriverStack(cdk.Stack):
    """One source queue with its re-driver; ``retain`` lets queues, table and logs outlive it."""

    def __init__(
        self, scope: Construct, construct_id: str, *, settings: Settings, retain: bool = True
    ) -> None:
        super().__init__(
            scope, construct_id, description="Redrives SQS dead letters with a circuit breaker"
        )
        removal_policy = cdk.RemovalPolicy.RETAIN if retain else cdk.RemovalPolicy.DESTROY
        visibility_timeout = cdk.Duration.seconds(settings.source_visibility_timeout_seconds)
        queues = Queues(
            self,
            "Queues",
            visibility_timeout=visibility_timeout,
            max_receive_count=settings.max_receive_count,
            removal_policy=removal_policy,
        )
        acknowledge_queues(queues)
        state = StateTable(self, "State", removal_policy=removal_policy)
        redriver = Redriver(
            self,
            "Redriver",
            source_queue=queues.source_queue,
            dead_letter_queue=queues.dead_letter_queue,
            parking_lot=queues.parking_lot,
            table=state.table,
            settings=settings,
            removal_policy=removal_policy,
        )
        acknowledge_redriver(redriver)
        monitoring = Monitoring(self, "Monitoring")
        self._publish(
            SourceQueueUrl=queues.source_queue.queue_url,
            DeadLetterQueueUrl=queues.dead_letter_queue.queue_url,
            ParkingLotQueueUrl=queues.parking_lot.queue_url,
            StateTableName=state.table.table_name,
            RedriveFunctionName=redriver.function.function_name,
            WarningTopicArn=monitoring.warning_topic.topic_arn,
            PagingTopicArn=monitoring.paging_topic.topic_arn,
        )
        if settings.with_sample_consumer:
            consumer = SampleConsumer(
                self,
                "SampleConsumer",
                source_queue=queues.source_queue,
                visibility_timeout=visibility_timeout,
            )
            acknowledge_sample_consumer(consumer)
            self._publish(
                SampleConsumerFunctionName=consumer.function.function_name,
                SampleControlTableName=consumer.control_table.table_name,
                SampleIdempotencyTableName=consumer.idempotency_table.table_name,
            )

    def _publish(self, **outputs: str) -> None:
        for name, value in outputs.items():
            cdk.CfnOutput(self, name, value=value)
