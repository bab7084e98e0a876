"""What the people who run `redrive` may do: one policy to look, one to change, and no action more than that."""

from collections.abc import Iterator, Sequence

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from smart_redriver.cdk.key_use import DECRYPT, ENCRYPT, KEEP_ITEMS, together, via_service
from smart_redriver.cdk.redriver import SmartRedriver
from smart_redriver.cdk.target_access import (
    asked_of_targets,
    delivered_to_targets,
)

#: A managed policy has 6,144 characters at most, and a queue's four ARNs can have 117 each.
#: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
_QUEUES_PER_POLICY = 3
_TARGETS_PER_QUEUE = 3

_MEASURE = ("sqs:GetQueueAttributes",)
#: Looking at a letter is receiving it and letting it go; so is what a dry run does to consumers' reports.
_LOOK = (*_MEASURE, "sqs:ReceiveMessage", "sqs:ChangeMessageVisibility")
_READ_TABLE = ("dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Scan")
_CHECK_TABLE = ("dynamodb:DescribeTable", "dynamodb:DescribeTimeToLive")
_WRITE_TABLE = (
    "dynamodb:PutItem",
    "dynamodb:UpdateItem",
    "dynamodb:DeleteItem",
    "dynamodb:BatchWriteItem",
)
#: Calls that AWS can't restrict to a resource, or that ask where a resource is.
_ASK_AROUND = (
    "cloudwatch:DescribeAlarms",
    "cloudwatch:GetMetricData",
    "lambda:ListEventSourceMappings",
    "scheduler:ListSchedules",
)
#: How a function in a VPC reaches AWS. Nor these can be restricted.
_ASK_NETWORK = (
    "ec2:DescribeRouteTables",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeVpcEndpoints",
)
_NO_RESOURCE = (
    "Lists and metrics, which AWS can't restrict to a resource; nothing of a message is in them."
)


class OnCallPolicies(Construct):
    """Managed policies ``RedriveViewer`` and ``RedriveOperator`` for people to have; nobody has them yet.

    Whoever changes also looks, and so needs both. A policy holds three queues: the fourth begins a second
    pair, ``RedriveViewer2`` and ``RedriveOperator2``.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, redrivers: Sequence[SmartRedriver]
    ) -> None:
        super().__init__(scope, construct_id)
        for index, some in enumerate(_shares(redrivers)):
            suffix = str(index + 1) if index else ""
            viewer = self._policy(f"RedriveViewer{suffix}", "Looks", _viewing(self, some))
            self._policy(f"RedriveOperator{suffix}", "Changes", _operating(self, some))
            acknowledged = cdk.Acknowledgment(
                id="AwsSolutions-IAM5[Resource::*]", reason=_NO_RESOURCE
            )
            cdk.Validations.of(viewer).acknowledge(acknowledged)

    def _policy(
        self, name: str, does: str, statements: Iterator[iam.PolicyStatement]
    ) -> iam.ManagedPolicy:
        policy = iam.ManagedPolicy(
            self,
            name,
            description=f"{does}: the redrive command of the smart re-driver",
            statements=list(statements),
        )
        cdk.CfnOutput(cdk.Stack.of(self), f"{name}PolicyArn", value=policy.managed_policy_arn)
        return policy


def _shares(redrivers: Sequence[SmartRedriver]) -> Iterator[list[SmartRedriver]]:
    """As many as fit into a policy; each three targets count like one queue more."""
    share: list[SmartRedriver] = []
    room = _QUEUES_PER_POLICY
    for one in redrivers:
        needed = max(1, -(-len(one.filling.targets) // _TARGETS_PER_QUEUE))
        if share and needed > room:
            yield share
            share, room = [], _QUEUES_PER_POLICY
        share.append(one)
        room -= needed
    if share:
        yield share


def _viewing(scope: Construct, redrivers: Sequence[SmartRedriver]) -> Iterator[iam.PolicyStatement]:
    yield _allow(["cloudformation:DescribeStacks"], [cdk.Stack.of(scope).stack_id])
    yield _allow(_ASK_AROUND, ["*"])
    if sources := _source_arns(redrivers):
        yield _allow(_MEASURE, sources)
    for calls, places in asked_of_targets(one.filling for one in redrivers):
        yield _allow(calls, places)
    yield _allow(_LOOK, _letter_arns(redrivers) + _outcome_arns(redrivers))
    dead_letter_arns = _unique(one.dead_letter_queue.queue_arn for one in redrivers)
    yield _allow(["sqs:ListMessageMoveTasks"], dead_letter_arns)  # a dry run stands aside, too
    yield _allow([*_READ_TABLE, *_CHECK_TABLE], _table_arns(redrivers))
    functions = [one.function for one in redrivers]
    yield _allow(["lambda:GetFunctionConfiguration"], [one.function_arn for one in functions])
    yield _allow(["logs:FilterLogEvents"], [one.log_group.log_group_arn for one in functions])
    roles = [one.role.role_arn for one in functions if one.role]
    yield _allow(["iam:SimulatePrincipalPolicy"], roles)
    topics = [topic for one in redrivers for topic in (one.topics.warning, one.topics.paging)]
    yield _allow(["sns:GetTopicAttributes"], _unique(topic.topic_arn for topic in topics))
    if topic_keys := _key_arns(topic.master_key for topic in topics):
        yield _allow(["kms:GetKeyPolicy"], topic_keys)
    looked_at = [*_letters(redrivers), *(one.outcome_queue for one in redrivers)]
    letters = _key_arns(queue.encryption_master_key for queue in looked_at)
    yield from _through(scope, "sqs", DECRYPT, letters)
    yield from _through(scope, "dynamodb", DECRYPT, _table_keys(redrivers))
    yield from _through(scope, "lambda", DECRYPT, _environment_keys(redrivers))
    keys = _key_arns(queue.encryption_master_key for queue in _queues(redrivers))
    targets = _key_arns(key for one in redrivers for key in one.target_keys)
    if described := _unique(iter([*letters, *keys, *targets, *_table_keys(redrivers)])):
        yield _allow(["kms:DescribeKey"], described)
    if widgets := [one.widget.function.function_arn for one in redrivers if one.widget]:
        yield _allow(["lambda:InvokeFunction"], widgets)
    if any(one.is_in_vpc for one in redrivers):
        yield _allow(_ASK_NETWORK, ["*"])


def _operating(
    scope: Construct, redrivers: Sequence[SmartRedriver]
) -> Iterator[iam.PolicyStatement]:
    yield _allow(["cloudformation:DescribeStacks"], [cdk.Stack.of(scope).stack_id])
    if sources := _source_arns(redrivers):
        yield _allow([*_MEASURE, "sqs:SendMessage"], sources)
    for calls, places in delivered_to_targets(one.filling for one in redrivers):
        yield _allow(calls, places)
    yield _allow([*_LOOK, "sqs:DeleteMessage"], _letter_arns(redrivers))
    lots = _unique(one.parking_lot.queue_arn for one in redrivers)
    yield _allow(["sqs:SendMessage"], lots)
    yield _allow([*_READ_TABLE, *_WRITE_TABLE], _table_arns(redrivers))
    functions = [one.function.function_arn for one in redrivers]
    yield _allow(["lambda:GetFunctionConfiguration", "lambda:InvokeFunction"], functions)
    keys = _key_arns(queue.encryption_master_key for queue in _queues(redrivers))
    yield from _through(scope, "sqs", ENCRYPT, keys)
    for use in together(use for one in redrivers for use in one.target_key_uses()):
        yield use.statement(scope)
    yield from _through(scope, "dynamodb", KEEP_ITEMS, _table_keys(redrivers))
    yield from _through(scope, "lambda", DECRYPT, _environment_keys(redrivers))


def _allow(actions: Sequence[str], resources: Sequence[str]) -> iam.PolicyStatement:
    return iam.PolicyStatement(actions=sorted(actions), resources=list(resources))


def _through(
    scope: Construct, service: str, actions: Sequence[str], keys: Sequence[str]
) -> Iterator[iam.PolicyStatement]:
    """What is done with keys through one service and no other way; nothing without keys."""
    if keys:
        via = {"kms:ViaService": via_service(scope, service)}
        yield iam.PolicyStatement(
            actions=sorted(actions), resources=list(keys), conditions={"StringEquals": via}
        )


def _table_keys(redrivers: Sequence[SmartRedriver]) -> list[str]:
    return _key_arns(one.table.encryption_key for one in redrivers)


def _environment_keys(redrivers: Sequence[SmartRedriver]) -> list[str]:
    return _key_arns(one.encryption_key for one in redrivers)


def _letters(redrivers: Sequence[SmartRedriver]) -> list[sqs.IQueue]:
    return [queue for one in redrivers for queue in (one.dead_letter_queue, one.parking_lot)]


def _queues(redrivers: Sequence[SmartRedriver]) -> list[sqs.IQueue]:
    return [queue for one in redrivers for queue in one.source_queues] + _letters(redrivers)


def _source_arns(redrivers: Sequence[SmartRedriver]) -> list[str]:
    return _unique(queue.queue_arn for one in redrivers for queue in one.source_queues)


def _letter_arns(redrivers: Sequence[SmartRedriver]) -> list[str]:
    return _unique(queue.queue_arn for queue in _letters(redrivers))


def _outcome_arns(redrivers: Sequence[SmartRedriver]) -> list[str]:
    return [one.outcome_queue.queue_arn for one in redrivers]


def _table_arns(redrivers: Sequence[SmartRedriver]) -> list[str]:
    return _unique(one.table.table_arn for one in redrivers)


def _key_arns(keys: Iterator[kms.IKey | None]) -> list[str]:
    return _unique(key.key_arn for key in keys if key)


def _unique(values: Iterator[str]) -> list[str]:
    return list(dict.fromkeys(values))
