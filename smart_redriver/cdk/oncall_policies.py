"""What the people who run `redrive` may do: one policy to look, one to change, and no action more than that."""

from collections.abc import Iterator, Sequence

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from smart_redriver.cdk.jobs_policies import operating_jobs, viewing_jobs
from smart_redriver.cdk.key_use import DECRYPT, ENCRYPT, KEEP_ITEMS, together
from smart_redriver.cdk.policy_parts import (
    ASK_NETWORK,
    CHECK_TABLE,
    READ_TABLE,
    WRITE_TABLE,
    allow,
    key_arns,
    through,
    unique,
)
from smart_redriver.cdk.postgres_redriver import PostgresRedriver
from smart_redriver.cdk.redriver import SmartRedriver
from smart_redriver.cdk.target_access import (
    asked_of_targets,
    delivered_to_targets,
)

#: A managed policy has 6,144 characters at most, and a queue's four ARNs can have 117 each.
#: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
_QUEUES_PER_POLICY = 3
_TARGETS_PER_QUEUE = 3
_JOBS_PER_POLICY = 4

_MEASURE = ("sqs:GetQueueAttributes",)
#: Looking at a letter is receiving it and letting it go; so is what a dry run does to consumers' reports.
_LOOK = (*_MEASURE, "sqs:ReceiveMessage", "sqs:ChangeMessageVisibility")
#: Calls that AWS can't restrict to a resource, or that ask where a resource is.
_ASK_AROUND = (
    "cloudwatch:DescribeAlarms",
    "cloudwatch:GetMetricData",
    "lambda:ListEventSourceMappings",
    "scheduler:ListSchedules",
)
_NO_RESOURCE = (
    "Lists and metrics, which AWS can't restrict to a resource; nothing of a message is in them."
)


class OnCallPolicies(Construct):
    """Managed policies ``RedriveViewer`` and ``RedriveOperator`` for people to have; nobody has them yet.

    Whoever changes also looks, and so needs both. A policy holds three queues: the fourth begins a second
    pair, ``RedriveViewer2`` and ``RedriveOperator2``. Worker queues in Postgres have pairs of their own for each four,
    ``RedriveViewerJobs`` and ``RedriveOperatorJobs``.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        redrivers: Sequence[SmartRedriver],
        jobs: Sequence[PostgresRedriver] = (),
    ) -> None:
        super().__init__(scope, construct_id)
        self.policies: list[iam.ManagedPolicy] = []
        for index, some in enumerate(_shares(redrivers)):
            self._pair("", index, _viewing(self, some), _operating(self, some))
        for index in range(0, len(jobs), _JOBS_PER_POLICY):
            few = jobs[index : index + _JOBS_PER_POLICY]
            number = index // _JOBS_PER_POLICY
            self._pair("Jobs", number, viewing_jobs(self, few), operating_jobs(self, few))

    def _pair(
        self,
        of: str,
        index: int,
        viewing: Iterator[iam.PolicyStatement],
        operating: Iterator[iam.PolicyStatement],
    ) -> None:
        suffix = of + (str(index + 1) if index else "")
        viewer = self._policy(f"RedriveViewer{suffix}", "Looks", viewing)
        operator = self._policy(f"RedriveOperator{suffix}", "Changes", operating)
        acknowledged = cdk.Acknowledgment(id="AwsSolutions-IAM5[Resource::*]", reason=_NO_RESOURCE)
        cdk.Validations.of(viewer).acknowledge(acknowledged)
        self.policies += [viewer, operator]

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
    yield allow(["cloudformation:DescribeStacks"], [cdk.Stack.of(scope).stack_id])
    yield allow(_ASK_AROUND, ["*"])
    if sources := _source_arns(redrivers):
        yield allow(_MEASURE, sources)
    for calls, places in asked_of_targets(one.filling for one in redrivers):
        yield allow(calls, places)
    yield allow(_LOOK, _letter_arns(redrivers) + _outcome_arns(redrivers))
    dead_letter_arns = unique(one.dead_letter_queue.queue_arn for one in redrivers)
    yield allow(["sqs:ListMessageMoveTasks"], dead_letter_arns)  # a dry run stands aside, too
    yield allow([*READ_TABLE, *CHECK_TABLE], _table_arns(redrivers))
    functions = [one.function for one in redrivers]
    yield allow(["lambda:GetFunctionConfiguration"], [one.function_arn for one in functions])
    yield allow(["logs:FilterLogEvents"], [one.log_group.log_group_arn for one in functions])
    roles = [one.role.role_arn for one in functions if one.role]
    yield allow(["iam:SimulatePrincipalPolicy"], roles)
    topics = [topic for one in redrivers for topic in (one.topics.warning, one.topics.paging)]
    yield allow(["sns:GetTopicAttributes"], unique(topic.topic_arn for topic in topics))
    if topic_keys := key_arns(topic.master_key for topic in topics):
        yield allow(["kms:GetKeyPolicy"], topic_keys)
    looked_at = [*_letters(redrivers), *(one.outcome_queue for one in redrivers)]
    letters = key_arns(queue.encryption_master_key for queue in looked_at)
    yield from through(scope, "sqs", DECRYPT, letters)
    yield from through(scope, "dynamodb", DECRYPT, _table_keys(redrivers))
    yield from through(scope, "lambda", DECRYPT, _environment_keys(redrivers))
    keys = key_arns(queue.encryption_master_key for queue in _queues(redrivers))
    targets = key_arns(key for one in redrivers for key in one.target_keys)
    if described := unique(iter([*letters, *keys, *targets, *_table_keys(redrivers)])):
        yield allow(["kms:DescribeKey"], described)
    if widgets := [one.widget.function.function_arn for one in redrivers if one.widget]:
        yield allow(["lambda:InvokeFunction"], widgets)
    if any(one.is_in_vpc for one in redrivers):
        yield allow(ASK_NETWORK, ["*"])


def _operating(
    scope: Construct, redrivers: Sequence[SmartRedriver]
) -> Iterator[iam.PolicyStatement]:
    yield allow(["cloudformation:DescribeStacks"], [cdk.Stack.of(scope).stack_id])
    if sources := _source_arns(redrivers):
        yield allow([*_MEASURE, "sqs:SendMessage"], sources)
    for calls, places in delivered_to_targets(one.filling for one in redrivers):
        yield allow(calls, places)
    yield allow([*_LOOK, "sqs:DeleteMessage"], _letter_arns(redrivers))
    lots = unique(one.parking_lot.queue_arn for one in redrivers)
    yield allow(["sqs:SendMessage"], lots)
    yield allow([*READ_TABLE, *WRITE_TABLE], _table_arns(redrivers))
    functions = [one.function.function_arn for one in redrivers]
    yield allow(["lambda:GetFunctionConfiguration", "lambda:InvokeFunction"], functions)
    keys = key_arns(queue.encryption_master_key for queue in _queues(redrivers))
    yield from through(scope, "sqs", ENCRYPT, keys)
    for use in together(use for one in redrivers for use in one.target_key_uses()):
        yield use.statement(scope)
    yield from through(scope, "dynamodb", KEEP_ITEMS, _table_keys(redrivers))
    yield from through(scope, "lambda", DECRYPT, _environment_keys(redrivers))


def _table_keys(redrivers: Sequence[SmartRedriver]) -> list[str]:
    return key_arns(one.table.encryption_key for one in redrivers)


def _environment_keys(redrivers: Sequence[SmartRedriver]) -> list[str]:
    return key_arns(one.encryption_key for one in redrivers)


def _letters(redrivers: Sequence[SmartRedriver]) -> list[sqs.IQueue]:
    return [queue for one in redrivers for queue in (one.dead_letter_queue, one.parking_lot)]


def _queues(redrivers: Sequence[SmartRedriver]) -> list[sqs.IQueue]:
    return [queue for one in redrivers for queue in one.source_queues] + _letters(redrivers)


def _source_arns(redrivers: Sequence[SmartRedriver]) -> list[str]:
    return unique(queue.queue_arn for one in redrivers for queue in one.source_queues)


def _letter_arns(redrivers: Sequence[SmartRedriver]) -> list[str]:
    return unique(queue.queue_arn for queue in _letters(redrivers))


def _outcome_arns(redrivers: Sequence[SmartRedriver]) -> list[str]:
    return [one.outcome_queue.queue_arn for one in redrivers]


def _table_arns(redrivers: Sequence[SmartRedriver]) -> list[str]:
    return unique(one.table.table_arn for one in redrivers)
