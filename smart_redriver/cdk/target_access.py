"""The permissions of a re-driver's function and its consumers on each resource: only the calls that they make."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from smart_redriver.cdk.key_use import DECRYPT, ENCRYPT, KEEP_ITEMS, KeyUse, together
from smart_redriver.cdk.origin_config import OriginConfig
from smart_redriver.cdk.owners import tell_owners
from smart_redriver.cdk.state_table import KEEP_STATE
from smart_redriver.engine.config.deployment import Deployment
from smart_redriver.engine.config.targets import Origin, Target, TargetKind

#: The one call that sends a letter to each kind. A queue's URL is asked for before. Anybody can call a web target.
_DELIVER: Mapping[TargetKind, tuple[str, ...]] = {
    TargetKind.QUEUE: ("sqs:GetQueueUrl", "sqs:SendMessage"),
    TargetKind.FUNCTION: ("lambda:InvokeFunction",),
    TargetKind.DELIVERY_STREAM: ("firehose:PutRecord",),
    TargetKind.STATE_MACHINE: ("states:StartExecution",),
    TargetKind.TOPIC: ("sns:Publish",),
    TargetKind.WEB: (),
}
#: To learn how long a function takes to fail, which verdicts wait for: its timeout, and how often Lambda tries.
_TIMING = ("lambda:GetFunctionConfiguration", "lambda:GetFunctionEventInvokeConfig")

#: To learn whether a queue's own failed messages go to the DLQ that has its letters.
_ASK_QUEUE = ("sqs:GetQueueAttributes",)

#: Kinds of targets with a key that a sender has to use, and the service that uses it on the sender's behalf.
_KEY_SERVICES = {TargetKind.QUEUE: "sqs", TargetKind.TOPIC: "sns"}

#: Calls that show what fills a DLQ: a subscription, or a target's rule. They can't be restricted to a resource.
_ASK_ORIGIN = {
    Origin.SNS: ("sns:GetSubscriptionAttributes",),
    Origin.EVENTBRIDGE: ("events:ListRuleNamesByTarget", "events:ListTargetsByRule"),
}
#: Calls that show people a target. They do not include a function's configuration, which has its environment.
_ASK_TARGET = {
    TargetKind.QUEUE: _ASK_QUEUE,
    TargetKind.FUNCTION: ("lambda:GetFunctionEventInvokeConfig",),
}

#: Actions, and the ARNs that they apply to.
_Calls = tuple[Sequence[str], list[str]]


def target_calls(
    origin_config: OriginConfig, region: str, account: str
) -> Iterator[tuple[Target, tuple[str, ...]]]:
    """Yield each target with the actions that the function may use. Targets that need no permission are left out.

    Region and account are the DLQ's, because SQS moves messages to a DLQ only within them.
    """
    for target in origin_config.targets:
        calls = _DELIVER[target.kind]
        if origin_config.origin is Origin.LAMBDA:
            calls += _TIMING
        if target.kind is TargetKind.QUEUE and _may_be_in(target, region, account):
            calls += _ASK_QUEUE
        if calls:
            yield target, calls


def _may_be_in(target: Target, region: str, account: str) -> bool:
    """Whether the target may be in this Region and account. Values that only a deployment knows count as equal."""
    pairs = zip(target.place.split(":")[3:5], (region, account), strict=True)
    return all(cdk.Token.is_unresolved(home) or one == home for one, home in pairs)


def target_key_uses(
    origin_config: OriginConfig, keys: Sequence[kms.IKey | None], home: str
) -> Iterator[KeyUse]:
    """The uses of the keys of target queues and topics, in their order.

    `home` is the Region of the stack.
    """
    locked = [one for one in origin_config.targets if one.kind in _KEY_SERVICES]
    for target, key in zip(locked, keys, strict=True):
        if key is None:
            continue
        region = target.place.split(":")[3]
        yield KeyUse(
            key=key,
            service=_KEY_SERVICES[target.kind],
            actions=ENCRYPT,
            region=None if region == home else region,
        )


def delivered_to_targets(origin_configs: Iterable[OriginConfig]) -> Iterator[_Calls]:
    """The calls that send letters to targets, for people who send them back by hand."""
    targets = [target for origin_config in origin_configs for target in origin_config.targets]
    for kind, calls in _DELIVER.items():
        if calls and (places := [one.place for one in targets if one.kind is kind]):
            yield calls, _once(places)


def asked_of_targets(origin_configs: Iterable[OriginConfig]) -> Iterator[_Calls]:
    """The calls of `redrive doctor` about targets, and to the service that failed to deliver."""
    origin_configs = list(origin_configs)
    origins = {one.origin for one in origin_configs}
    anywhere = [
        call for origin, calls in _ASK_ORIGIN.items() if origin in origins for call in calls
    ]
    if anywhere:
        yield anywhere, ["*"]
    for kind, calls in _ASK_TARGET.items():
        targets = (target for one in origin_configs for target in one.targets)
        if places := [one.place for one in targets if one.kind is kind]:
            yield calls, _once(places)


def _once(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))


_SEND = ("sqs:SendMessage", "sqs:GetQueueAttributes")
_EMPTY = (
    "sqs:ReceiveMessage",
    "sqs:DeleteMessage",
    "sqs:ChangeMessageVisibility",
    "sqs:GetQueueAttributes",
    # The re-driver pauses while a native redrive is running.
    "sqs:ListMessageMoveTasks",
)
#: A letter near its expiry is renewed: received, sent again, deleted. Not in a FIFO queue, where it would fall behind.
_EMPTY_AND_RENEW = (*_EMPTY, "sqs:SendMessage")
_PARK = (*_SEND, "sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility")
#: The visibility change releases reports that a pass can't process, or that a dry run has looked at.
_HEAR = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility")
#: A consumer's actions on the outcome queue and, for messages that can never succeed, on the parking lot.
_REPORT = ("sqs:SendMessage",)


@dataclass(frozen=True, kw_only=True)
class UsedResources:
    """Queues, targets and table.

    ``target_keys`` belong to the queues and topics among the targets. ``function_key`` encrypts the function's
    environment.
    """

    sources: Sequence[sqs.IQueue]
    dead_letter_queue: sqs.IQueue
    parking_lot: sqs.IQueue
    outcome_queue: sqs.IQueue
    origin_config: OriginConfig
    target_keys: Sequence[kms.IKey | None]
    table: dynamodb.ITableV2
    function_key: kms.IKey | None

    def deployment(self, queue_name: str) -> Deployment:
        """The places of all resources, for the function and the widget."""
        source_urls = [queue.queue_url for queue in self.sources]
        return Deployment(
            queue_name=queue_name,
            table_name=self.table.table_name,
            dlq_url=self.dead_letter_queue.queue_url,
            source_queue_url=source_urls[0] if source_urls else "",
            parking_lot_url=self.parking_lot.queue_url,
            further_source_urls=tuple(source_urls[1:]),
            outcome_queue_url=self.outcome_queue.queue_url,
            origin=self.origin_config.origin,
            targets=self.origin_config.targets,
            private_hosts=self.origin_config.private_hosts,
        )

    def grant(self, function: lambda_.IFunction, scope: Construct) -> None:
        """Give the function its permissions, and tell owners of resources outside ``scope`` what they have to allow."""
        queues, keys = list(self._queue_actions()), list(together(self._key_uses()))
        for queue, actions in queues:
            queue.grant(function, *actions)
        home = self.dead_letter_queue.env
        calls = list(target_calls(self.origin_config, home.region, home.account))
        for target, actions in calls:
            allowed = iam.PolicyStatement(actions=list(actions), resources=[target.place])
            function.add_to_role_policy(allowed)
        for use in keys:
            function.add_to_role_policy(use.statement(scope))
        self.table.grant(function, *KEEP_STATE)
        # CloudWatch has no permissions by resource, and no condition that would narrow this one.
        function.add_to_role_policy(
            iam.PolicyStatement(actions=["cloudwatch:GetMetricData"], resources=["*"])
        )
        tell_owners(scope, queues, keys, calls)

    def grant_report(self, consumer: iam.IGrantable, scope: Construct) -> None:
        """Let a consumer report outcomes, and park messages that can never succeed."""
        queues = (self.outcome_queue, self.parking_lot)
        for queue in queues:
            queue.grant(consumer, *_REPORT)
        uses = [_use(queue, ENCRYPT) for queue in queues]
        for use in together(one for one in uses if one):
            consumer.grant_principal.add_to_principal_policy(use.statement(scope))

    def target_key_uses(self) -> Iterator[KeyUse]:
        """The uses of the targets' keys by a sender of letters."""
        home = self.dead_letter_queue.env.region
        return target_key_uses(self.origin_config, self.target_keys, home)

    def _queue_actions(self) -> Iterator[tuple[sqs.IQueue, Sequence[str]]]:
        for queue in self.sources:
            yield queue, _SEND
        yield self.dead_letter_queue, _EMPTY if self.dead_letter_queue.fifo else _EMPTY_AND_RENEW
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
    """The use of a queue's key; None for a queue without a customer-managed key."""
    key = queue.encryption_master_key
    return KeyUse(key=key, service="sqs", actions=actions) if key else None
