"""The example consumer of the source queue, for the demo and for end-to-end tests."""

from dataclasses import replace
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda_event_sources as event_sources
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from smart_redriver.cdk.key_use import DECRYPT, KEEP_ITEMS, KeyUse
from smart_redriver.cdk.python_function import python_function
from smart_redriver.cdk.safeguards import Safeguards

_ROOT = Path(__file__).resolve().parents[1]
#: The example is this repository's own: who installs the construct has consumers already.
_CONSUMER = _ROOT / "lambdas" / "consumer"
#: The kit, as others install it with `smart-redriver-consumer`.
KIT = {"smart_redriver/consumer": _ROOT / "smart_redriver" / "consumer"}

#: AWS advises a visibility timeout of six times the function's timeout, so that a throttled batch
#: is tried again before it becomes visible.
#: https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
_VISIBILITY_PER_TIMEOUT = 6
#: The longest that Lambda lets a function run.
_MAX_TIMEOUT_SECONDS = 900


class SampleConsumer(Construct):
    """``function``, its ``idempotency_table``, and the ``control_table`` by which it is told to fail.

    Nothing here outlives the stack.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        source_queue: sqs.IQueue,
        visibility_timeout: cdk.Duration,
        safeguards: Safeguards,
    ) -> None:
        super().__init__(scope, construct_id)
        key = safeguards.key(self)
        self.idempotency_table = self._table("Idempotency", "id", ttl="expiration", key=key)
        self.control_table = self._table("Control", "PK", ttl=None, key=key)
        self.function = python_function(
            self,
            package=_CONSUMER,
            handler="consumer.handler",
            beside=KIT,
            description="Example consumer, may be told to fail",
            memory_mib=256,
            timeout=_timeout(visibility_timeout),
            environment={
                "IDEMPOTENCY_TABLE_NAME": self.idempotency_table.table_name,
                "CONTROL_TABLE_NAME": self.control_table.table_name,
            },
            removal_policy=cdk.RemovalPolicy.DESTROY,
            # An event source mapping begins with five at once; with fewer reserved, messages are throttled into the
            # DLQ.
            safeguards=replace(safeguards, reserved_concurrency=0),
        )
        if key:
            for use in (
                KeyUse(key=key, service="dynamodb", actions=KEEP_ITEMS),
                KeyUse(key=key, service="lambda", actions=DECRYPT),
            ):
                self.function.add_to_role_policy(use.statement(self))
        self.control_table.grant(self.function, "dynamodb:GetItem")
        self.idempotency_table.grant(
            self.function,
            "dynamodb:GetItem",
            "dynamodb:PutItem",
            "dynamodb:UpdateItem",
            "dynamodb:DeleteItem",
        )
        self.function.add_event_source(
            event_sources.SqsEventSource(source_queue, report_batch_item_failures=True)
        )

    def _table(
        self, construct_id: str, partition_key: str, *, ttl: str | None, key: kms.IKey | None
    ) -> dynamodb.TableV2:
        return dynamodb.TableV2(
            self,
            construct_id,
            partition_key=dynamodb.Attribute(
                name=partition_key, type=dynamodb.AttributeType.STRING
            ),
            time_to_live_attribute=ttl,
            billing=dynamodb.Billing.on_demand(),
            encryption=dynamodb.TableEncryptionV2.customer_managed_key(key) if key else None,
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )


def _timeout(visibility_timeout: cdk.Duration) -> cdk.Duration:
    sixth = int(visibility_timeout.to_seconds()) // _VISIBILITY_PER_TIMEOUT
    return cdk.Duration.seconds(min(_MAX_TIMEOUT_SECONDS, max(1, sixth)))
