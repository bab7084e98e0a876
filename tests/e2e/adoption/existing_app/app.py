"""Somebody's application: three dead-letter queues with their sources and consumers, and no re-driver.

`Orders` is encrypted with a key of its own, `Refunds` and `Returns` share a dead-letter queue, and to
`Mails` all messages come with ten attributes.
"""

import sys
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sqs as sqs

sys.path.insert(0, str(Path(__file__).resolve().parents[4]))

from smart_redriver.cdk import Safeguards
from stacks.sample_consumer import SampleConsumer

VISIBILITY_TIMEOUT = cdk.Duration.seconds(30)
MAX_RECEIVES = 3


class Shop(cdk.Stack):
    """Queues and consumers, and where they are."""

    def __init__(self, scope: cdk.App) -> None:
        super().__init__(scope, "Shop")
        key = kms.Key(self, "Key", removal_policy=cdk.RemovalPolicy.DESTROY)
        cdk.CfnOutput(self, "KeyArn", value=key.key_arn)
        self._serve("Orders", self._dead_letters("Orders", key), key)
        shared = self._dead_letters("Refunds")
        self._serve("Refunds", shared)
        self._serve("Returns", shared)
        self._serve("Mails", self._dead_letters("Mails"))

    def _dead_letters(self, name: str, key: kms.IKey | None = None) -> sqs.Queue:
        queue = sqs.Queue(
            self,
            f"{name}DeadLetters",
            retention_period=cdk.Duration.days(14),
            encryption_master_key=key,
        )
        cdk.CfnOutput(self, f"{name}DeadLetterArn", value=queue.queue_arn)
        return queue

    def _serve(self, name: str, dead_letters: sqs.Queue, key: kms.IKey | None = None) -> None:
        source = sqs.Queue(
            self,
            name,
            visibility_timeout=VISIBILITY_TIMEOUT,
            dead_letter_queue=sqs.DeadLetterQueue(
                queue=dead_letters, max_receive_count=MAX_RECEIVES
            ),
            encryption_master_key=key,
        )
        consumer = SampleConsumer(
            self,
            f"{name}Consumer",
            source_queue=source,
            visibility_timeout=VISIBILITY_TIMEOUT,
            safeguards=Safeguards(),
        )
        for output, value in {
            "SourceArn": source.queue_arn,
            "SourceQueueUrl": source.queue_url,
            "SampleConsumerFunctionName": consumer.function.function_name,
            "SampleControlTableName": consumer.control_table.table_name,
            "SampleIdempotencyTableName": consumer.idempotency_table.table_name,
        }.items():
            cdk.CfnOutput(self, f"{name}{output}", value=value)


app = cdk.App()
Shop(app)
app.synth()
