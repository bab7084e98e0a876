"""The queues of an application that has none yet: source queue, dead-letter queue, parking lot, and outcome queue."""

from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from smart_redriver.cdk.acknowledged import accept_outcome_queue, accept_parking_lot

#: The longest that SQS keeps a message: 14 days.
#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html
LONGEST_RETENTION = cdk.Duration.days(14)
#: How long the source queue keeps messages: SQS's own default. A dead letter's age still counts from its first send.
_MESSAGES_KEPT = cdk.Duration.days(4)
#: A report that a verdict waits for is minutes old. Days are for a re-driver that is out of order.
_REPORTS_KEPT = cdk.Duration.days(4)
#: The longest wait of a receive. With a wait of 0, a receive asks only some of SQS's servers.
_LONG_POLL = cdk.Duration.seconds(20)

#: Properties that only a FIFO queue has: high throughput, with thousands of messages a second instead of 300 calls.
#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/high-throughput-fifo.html
_IN_ORDER: dict[str, Any] = {
    "fifo": True,
    "deduplication_scope": sqs.DeduplicationScope.MESSAGE_GROUP,
    "fifo_throughput_limit": sqs.FifoThroughputLimit.PER_MESSAGE_GROUP_ID,
}


class NewQueues(Construct):
    """``source_queue``, its ``dead_letter_queue``, and the ``parking_lot`` for poison pills.

    All are encrypted by ``key`` or by SQS's own, and refuse plain HTTP. With ``fifo``, all keep message groups in
    order.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        visibility_timeout: cdk.Duration,
        max_receive_count: int,
        removal_policy: cdk.RemovalPolicy,
        key: kms.IKey | None = None,
        fifo: bool = False,
    ) -> None:
        super().__init__(scope, construct_id)
        encryption = _encryption(key)
        source_name = _name_known_beforehand(self, fifo=fifo)
        self.dead_letter_queue = sqs.Queue(
            self,
            "DeadLetter",
            encryption=encryption,
            encryption_master_key=key,
            enforce_ssl=True,
            retention_period=LONGEST_RETENTION,
            # A letter from another queue would be redriven to the wrong consumer.
            redrive_allow_policy=sqs.RedriveAllowPolicy(
                redrive_permission=sqs.RedrivePermission.BY_QUEUE,
                source_queues=[_queue_named(self, source_name)],
            ),
            removal_policy=removal_policy,
            **_kind(fifo=fifo),
        )
        self.source_queue = sqs.Queue(
            self,
            "Source",
            queue_name=source_name,
            encryption=encryption,
            encryption_master_key=key,
            enforce_ssl=True,
            receive_message_wait_time=_LONG_POLL,
            retention_period=_MESSAGES_KEPT,
            visibility_timeout=visibility_timeout,
            dead_letter_queue=sqs.DeadLetterQueue(
                queue=self.dead_letter_queue, max_receive_count=max_receive_count
            ),
            removal_policy=removal_policy,
            **_kind(fifo=fifo),
        )
        self.parking_lot = make_parking_lot(self, key=key, removal_policy=removal_policy, fifo=fifo)


def make_parking_lot(
    scope: Construct, *, key: kms.IKey | None, removal_policy: cdk.RemovalPolicy, fifo: bool
) -> sqs.Queue:
    """Create ``ParkingLot`` in ``scope``, encrypted by ``key`` or by SQS's own. It is ``fifo`` if the DLQ is."""
    queue = _last_queue(scope, "ParkingLot", LONGEST_RETENTION, key, removal_policy, fifo=fifo)
    accept_parking_lot(queue)
    return queue


def make_outcome_queue(
    scope: Construct, *, key: kms.IKey | None, removal_policy: cdk.RemovalPolicy
) -> sqs.Queue:
    """Create ``Outcomes`` in ``scope``, encrypted as well as the parking lot, because errors may quote messages.

    It is never FIFO: reports name the copy that they are about, so their order does not matter.
    """
    queue = _last_queue(scope, "Outcomes", _REPORTS_KEPT, key, removal_policy)
    accept_outcome_queue(queue)
    return queue


def _last_queue(
    scope: Construct,
    construct_id: str,
    retention: cdk.Duration,
    key: kms.IKey | None,
    removal_policy: cdk.RemovalPolicy,
    *,
    fifo: bool = False,
) -> sqs.Queue:
    """A queue without a dead-letter queue behind it."""
    return sqs.Queue(
        scope,
        construct_id,
        encryption=_encryption(key),
        encryption_master_key=key,
        enforce_ssl=True,
        retention_period=retention,
        removal_policy=removal_policy,
        **_kind(fifo=fifo),
    )


def _kind(*, fifo: bool) -> dict[str, Any]:
    return _IN_ORDER if fifo else {}


def _encryption(key: kms.IKey | None) -> sqs.QueueEncryption:
    return sqs.QueueEncryption.KMS if key else sqs.QueueEncryption.SQS_MANAGED


def _name_known_beforehand(scope: Construct, *, fifo: bool) -> str:
    """Name the source queue after the stack's own id, unique to each stack ever created.

    Source queue and dead-letter queue name each other in their policies. CloudFormation can't resolve such a circle, so
    one of the two ARNs must be known before its queue exists. With the id, the name does not have the fault of fixed
    names: a queue that was retained from a deleted stack does not block the next one.
    """
    stack_id = cdk.Fn.select(2, cdk.Fn.split("/", cdk.Stack.of(scope).stack_id))
    suffix = ".fifo" if fifo else ""
    # An SQS name has at most 80 characters, and the id takes 36 of them.
    own = cdk.Names.unique_resource_name(scope, max_length=36 - len(suffix))
    return f"{own}-Source-{stack_id}{suffix}"


def _queue_named(scope: Construct, name: str) -> sqs.IQueue:
    arn = cdk.Stack.of(scope).format_arn(service="sqs", resource=name)
    return sqs.Queue.from_queue_arn(scope, "SourceByName", arn)
