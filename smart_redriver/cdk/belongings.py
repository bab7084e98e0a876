"""What belongs to one re-driver, where it is, and what its function and its consumers may do with each: their work, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from redrive.deployment import Deployment
from smart_redriver.cdk.filling import Filling
from smart_redriver.cdk.key_use import DECRYPT, ENCRYPT, KEEP_ITEMS, KeyUse, together
from smart_redriver.cdk.owners import tell_owners
from smart_redriver.cdk.state_table import KEEP_STATE
from smart_redriver.cdk.target_access import target_calls, target_key_uses

_SEND = ("sqs:SendMessage", "sqs:GetQueueAttributes")
_EMPTY = (
    "sqs:ReceiveMessage",
    "sqs:DeleteMessage",
    "sqs:ChangeMessageVisibility",
    "sqs:GetQueueAttributes",
    # The re-driver stands aside while a native redrive is running.
    "sqs:ListMessageMoveTasks",
)
#: A parked letter near its expiry is renewed: received, sent again, deleted.
_PARK = (*_SEND, "sqs:ReceiveMessage", "sqs:DeleteMessage")
#: Reports that a pass can't take in, or a dry run has looked at, are let go.
_HEAR = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility")
#: What a consumer does to the outcome queue and, with what can never succeed, to the parking lot.
_REPORT = ("sqs:SendMessage",)


@dataclass(frozen=True, kw_only=True)
class Belongings:
    """Queues, targets and table. ``function_key`` encrypts the function's environment."""

    sources: Sequence[sqs.IQueue]
    dead_letter_queue: sqs.IQueue
    parking_lot: sqs.IQueue
    outcome_queue: sqs.IQueue
    filling: Filling
    target_keys: Sequence[kms.IKey]
    table: dynamodb.ITableV2
    function_key: kms.IKey | None

    def deployment(self, queue_name: str) -> Deployment:
        """What function and widget are told of where things are."""
        source_urls = [queue.queue_url for queue in self.sources]
        return Deployment(
            queue_name=queue_name,
            table_name=self.table.table_name,
            dlq_url=self.dead_letter_queue.queue_url,
            source_queue_url=source_urls[0] if source_urls else "",
            parking_lot_url=self.parking_lot.queue_url,
            further_source_urls=tuple(source_urls[1:]),
            outcome_queue_url=self.outcome_queue.queue_url,
            origin=self.filling.origin,
            targets=self.filling.targets,
            private_hosts=self.filling.private_hosts,
        )

    def grant(self, function: lambda_.IFunction, scope: Construct) -> None:
        """Let the function work, and tell those who own what ``scope`` does not."""
        queues, keys = list(self._queue_actions()), list(together(self._key_uses()))
        for queue, actions in queues:
            queue.grant(function, *actions)
        home = self.dead_letter_queue.env
        calls = list(target_calls(self.filling, home.region, home.account))
        for target, actions in calls:
            allowed = iam.PolicyStatement(actions=list(actions), resources=[target.place])
            function.add_to_role_policy(allowed)
        for use in keys:
            function.add_to_role_policy(use.statement(scope))
        self.table.grant(function, *KEEP_STATE)
        # CloudWatch has no permissions by resource, nor a condition that would narrow this one.
        function.add_to_role_policy(
            iam.PolicyStatement(actions=["cloudwatch:GetMetricData"], resources=["*"])
        )
        tell_owners(scope, queues, keys, calls)

    def grant_report(self, consumer: iam.IGrantable, scope: Construct) -> None:
        """Let a consumer report outcomes, and park what can never succeed."""
        queues = (self.outcome_queue, self.parking_lot)
        for queue in queues:
            queue.grant(consumer, *_REPORT)
        uses = [_use(queue, ENCRYPT) for queue in queues]
        for use in together(one for one in uses if one):
            consumer.grant_principal.add_to_principal_policy(use.statement(scope))

    def target_key_uses(self) -> Iterator[KeyUse]:
        """What whoever gives letters to targets does with their keys."""
        home = self.dead_letter_queue.env.region
        return target_key_uses(self.filling, self.target_keys, home)

    def _queue_actions(self) -> Iterator[tuple[sqs.IQueue, Sequence[str]]]:
        for queue in self.sources:
            yield queue, _SEND
        yield self.dead_letter_queue, _EMPTY
        yield self.parking_lot, _PARK
        yield self.outcome_queue, _HEAR

    def _key_uses(self) -> Iterator[KeyUse]:
        for queue, done in self._queue_actions():
            if use := _use(queue, ENCRYPT if "sqs:SendMessage" in done else DECRYPT):
                yield use
        yield from self.target_key_uses()
        if key := self.table.encryption_key:
            yield KeyUse(key=key, service="dynamodb", actions=KEEP_ITEMS)
        if key := self.function_key:
            yield KeyUse(key=key, service="lambda", actions=DECRYPT)


def _use(queue: sqs.IQueue, actions: tuple[str, ...]) -> KeyUse | None:
    """What is done with a queue's key; None for a queue without one that its owner manages."""
    key = queue.encryption_master_key
    return KeyUse(key=key, service="sqs", actions=actions) if key else None
