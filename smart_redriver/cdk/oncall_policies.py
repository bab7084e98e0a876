"""Policies for people who run `redrive`: to see the state of queues, to read letters, and to change things, no more."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeVar

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from smart_redriver.cdk.acknowledged import accept_anywhere
from smart_redriver.cdk.arguments import check_lists
from smart_redriver.cdk.backend import OtherRedriver, PeoplesRights
from smart_redriver.cdk.key_use import (
    ASK_NETWORK,
    CHECK_TABLE,
    DECRYPT,
    ENCRYPT,
    KEEP_ITEMS,
    READ_TABLE,
    WRITE_TABLE,
    allow,
    key_arns,
    through,
    together,
    unique,
)
from smart_redriver.cdk.redriver import SmartRedriver
from smart_redriver.cdk.target_access import (
    asked_of_targets,
    delivered_to_targets,
)
from smart_redriver.cdk.topics import Topics

#: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
_LONGEST_POLICY = 6_144
#: The longest ARN of a resource that the deployment makes, such as a queue: a name has at most 80 characters.
_LONGEST_MADE_ARN = "x" * 120
#: Region, account and the like, which are parts of an ARN.
_LONGEST_PART = "x" * 20
_TOKEN = re.compile(r"\$\{Token\[(AWS\.(?:Partition|Region|AccountId|URLSuffix)\b)?[^]]*\]\}")

_MEASURE = ("sqs:GetQueueAttributes",)
#: To look at a letter is to receive and release it. A dry run does the same to consumers' reports.
_LOOK = (*_MEASURE, "sqs:ReceiveMessage", "sqs:ChangeMessageVisibility")
#: Calls that can't be restricted to a resource, or that ask where a resource is.
_ASK_AROUND = (
    "cloudwatch:DescribeAlarms",
    "cloudwatch:GetMetricData",
    "lambda:ListEventSourceMappings",
    "scheduler:ListSchedules",
)
#: The same for queues outside SQS, whose function has no event source mapping.
_ASK_AROUND_OUTSIDE = tuple(one for one in _ASK_AROUND if not one.startswith("lambda:"))
_NO_RESOURCE = (
    "Lists and metrics, which AWS can't restrict to a resource; nothing of a message is in them."
)


T = TypeVar("T")
Statements = Callable[[Sequence[T]], Iterator[iam.PolicyStatement]]
Rights = Callable[[Construct, Sequence[T]], Iterator[iam.PolicyStatement]]


class OnCallPolicies(Construct):
    """Managed policies for people: ``RedriveObserver``, ``RedriveViewer`` and ``RedriveOperator``. Nobody has them yet.

    An observer sees status, causes and history, but no letter. A person who changes something also looks, and therefore
    needs both of the others. A policy holds as many queues as fit. The next one begins a second set, ``RedriveViewer2``
    and so on. Queues outside SQS have pairs of their own, such as ``RedriveViewerJobs`` and ``RedriveOperatorJobs``.
    ``team`` begins the names, if one team should see only its own queues.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        redrivers: Sequence[SmartRedriver | OtherRedriver],
        team: str = "",
    ) -> None:
        super().__init__(scope, construct_id)
        check_lists(redrivers=redrivers)
        self.policies: list[iam.ManagedPolicy] = []
        self._team = team
        self._for_sqs([one for one in redrivers if isinstance(one, SmartRedriver)])
        self._for_others([one for one in redrivers if not isinstance(one, SmartRedriver)])

    def _for_sqs(self, own: Sequence[SmartRedriver]) -> None:
        for index, some in enumerate(_shares(own, _makers(self, _viewing, _operating))):
            self._observer(index, _observing(self, some))
            self._pair("", index, _viewing(self, some), _operating(self, some))

    def _for_others(self, others: Sequence[OtherRedriver]) -> None:
        for rights in dict.fromkeys(one.rights for one in others):
            alike = [one for one in others if one.rights is rights]
            viewing, operating = _elsewhere(rights)
            for index, few in enumerate(_shares(alike, _makers(self, viewing, operating))):
                self._pair(rights.suffix, index, viewing(self, few), operating(self, few))
        for one in others:
            if one.anywhere:
                accept_anywhere(self, one.anywhere)

    def _observer(self, index: int, observing: Iterator[iam.PolicyStatement]) -> None:
        suffix = str(index + 1) if index else ""
        self._looking(f"RedriveObserver{suffix}", "Observes", observing)

    def _looking(self, name: str, does: str, statements: Iterator[iam.PolicyStatement]) -> None:
        policy = self._policy(name, does, statements)
        acknowledged = cdk.Acknowledgment(id="AwsSolutions-IAM5[Resource::*]", reason=_NO_RESOURCE)
        cdk.Validations.of(policy).acknowledge(acknowledged)

    def _pair(
        self,
        of: str,
        index: int,
        viewing: Iterator[iam.PolicyStatement],
        operating: Iterator[iam.PolicyStatement],
    ) -> None:
        suffix = of + (str(index + 1) if index else "")
        self._looking(f"RedriveViewer{suffix}", "Looks", viewing)
        self._policy(f"RedriveOperator{suffix}", "Changes", operating)

    def _policy(
        self, name: str, does: str, statements: Iterator[iam.PolicyStatement]
    ) -> iam.ManagedPolicy:
        policy = iam.ManagedPolicy(
            self,
            name,
            description=f"{does}: the redrive command of the smart re-driver",
            statements=list(statements),
        )
        output = f"{self._team}{name}PolicyArn"
        cdk.CfnOutput(cdk.Stack.of(self), output, value=policy.managed_policy_arn)
        self.policies.append(policy)
        return policy


def _shares(redrivers: Sequence[T], makers: Sequence[Statements[T]]) -> Iterator[list[T]]:
    """Yield the re-drivers of each policy: as many as fit, with these statements."""
    share: list[T] = []
    for one in redrivers:
        most = max(_characters(make([*share, one])) for make in makers)
        if share and most > _LONGEST_POLICY:
            yield share
            share = []
        share.append(one)
    if share:
        yield share


def _makers(scope: Construct, *makers: Rights[T]) -> list[Statements[T]]:
    """Makers of a viewer's and an operator's statements. An observer has fewer than a viewer."""
    return [partial(one, scope) for one in makers]


def _characters(statements: Iterable[iam.PolicyStatement]) -> int:
    """The length of a policy, with the longest value that the deployment can put in place of each token."""
    listed = [one.to_statement_json() for one in statements]
    policy = json.dumps({"Version": "2012-10-17", "Statement": listed}, separators=(",", ":"))
    return len(_TOKEN.sub(lambda token: _LONGEST_PART if token[1] else _LONGEST_MADE_ARN, policy))


def _observing(
    scope: Construct, redrivers: Sequence[SmartRedriver]
) -> Iterator[iam.PolicyStatement]:
    """Statements to read counts, circuits, causes and history. The ledger quotes errors, but no bodies."""
    yield allow(["cloudformation:DescribeStacks"], [cdk.Stack.of(scope).stack_id])
    yield allow(_ASK_AROUND, ["*"])
    places = _source_arns(redrivers) + _letter_arns(redrivers) + _outcome_arns(redrivers)
    yield allow(_MEASURE, places)
    yield allow(READ_TABLE, _table_arns(redrivers))
    functions = [one.function for one in redrivers]
    yield allow(["lambda:GetFunctionConfiguration"], [one.function_arn for one in functions])
    yield allow(["logs:FilterLogEvents"], [one.log_group.log_group_arn for one in functions])
    yield from through(scope, "dynamodb", DECRYPT, _table_keys(redrivers))
    yield from through(scope, "lambda", DECRYPT, _environment_keys(redrivers))


def _viewing(scope: Construct, redrivers: Sequence[SmartRedriver]) -> Iterator[iam.PolicyStatement]:
    yield allow(["cloudformation:DescribeStacks"], [cdk.Stack.of(scope).stack_id])
    yield allow(_ASK_AROUND, ["*"])
    if sources := _source_arns(redrivers):
        yield allow(_MEASURE, sources)
    for calls, places in asked_of_targets(one.origin_config for one in redrivers):
        yield allow(calls, places)
    yield allow(_LOOK, _letter_arns(redrivers) + _outcome_arns(redrivers))
    dead_letter_arns = unique(one.dead_letter_queue.queue_arn for one in redrivers)
    yield allow(["sqs:ListMessageMoveTasks"], dead_letter_arns)  # a dry run stands aside, too
    yield allow([*READ_TABLE, *CHECK_TABLE], _table_arns(redrivers))
    yield from _viewing_functions(redrivers)
    yield from _viewing_keys(scope, redrivers)
    if widgets := [one.widget.function.function_arn for one in redrivers if one.widget]:
        yield allow(["lambda:InvokeFunction"], widgets)
    if any(one.is_in_vpc for one in redrivers):
        yield allow(ASK_NETWORK, ["*"])


def _viewing_functions(redrivers: Sequence[SmartRedriver]) -> Iterator[iam.PolicyStatement]:
    functions = [one.function for one in redrivers]
    yield allow(["lambda:GetFunctionConfiguration"], [one.function_arn for one in functions])
    yield allow(["logs:FilterLogEvents"], [one.log_group.log_group_arn for one in functions])
    roles = [one.role.role_arn for one in functions if one.role]
    yield allow(["iam:SimulatePrincipalPolicy"], roles)


def _viewing_keys(
    scope: Construct, redrivers: Sequence[SmartRedriver]
) -> Iterator[iam.PolicyStatement]:
    """Statements for topics and keys: who gets alarms, what has to be decrypted, and whether keys are enabled."""
    yield from _viewing_topics(one.topics for one in redrivers)
    looked_at = [*_letters(redrivers), *(one.outcome_queue for one in redrivers)]
    letters = key_arns(queue.encryption_master_key for queue in looked_at)
    yield from through(scope, "sqs", DECRYPT, letters)
    yield from through(scope, "dynamodb", DECRYPT, _table_keys(redrivers))
    yield from through(scope, "lambda", DECRYPT, _environment_keys(redrivers))
    keys = key_arns(queue.encryption_master_key for queue in _queues(redrivers))
    targets = key_arns(key for one in redrivers for key in one.target_keys)
    if described := unique(iter([*letters, *keys, *targets, *_table_keys(redrivers)])):
        yield allow(["kms:DescribeKey"], described)


def _viewing_topics(topics: Iterable[Topics | None]) -> Iterator[iam.PolicyStatement]:
    told = [topic for one in topics if one for topic in (one.warning, one.paging)]
    if told:
        yield allow(["sns:GetTopicAttributes"], unique(topic.topic_arn for topic in told))
    if topic_keys := key_arns(topic.master_key for topic in told):
        yield allow(["kms:GetKeyPolicy"], topic_keys)


def _operating(
    scope: Construct, redrivers: Sequence[SmartRedriver]
) -> Iterator[iam.PolicyStatement]:
    yield allow(["cloudformation:DescribeStacks"], [cdk.Stack.of(scope).stack_id])
    if sources := _source_arns(redrivers):
        yield allow([*_MEASURE, "sqs:SendMessage"], sources)
    for calls, places in delivered_to_targets(one.origin_config for one in redrivers):
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


def _elsewhere(rights: PeoplesRights) -> tuple[Rights[OtherRedriver], Rights[OtherRedriver]]:
    """Return the rights to look at and to change letters outside SQS."""

    def viewing(
        scope: Construct, redrivers: Sequence[OtherRedriver]
    ) -> Iterator[iam.PolicyStatement]:
        yield allow([*_ASK_AROUND_OUTSIDE, *ASK_NETWORK], ["*"])
        yield from _both(scope, redrivers)
        yield from rights.viewing(scope, redrivers)
        yield allow(CHECK_TABLE, unique(one.table.table_arn for one in redrivers))
        yield from _telling(redrivers)
        tables = key_arns(one.table.encryption_key for one in redrivers)
        yield from through(scope, "dynamodb", DECRYPT, tables)
        if tables:
            yield allow(["kms:DescribeKey"], tables)

    def operating(
        scope: Construct, redrivers: Sequence[OtherRedriver]
    ) -> Iterator[iam.PolicyStatement]:
        yield from _both(scope, redrivers)
        yield from rights.operating(scope, redrivers)
        yield allow(WRITE_TABLE, unique(one.table.table_arn for one in redrivers))
        yield allow(["lambda:InvokeFunction"], [one.function.function_arn for one in redrivers])
        tables = key_arns(one.table.encryption_key for one in redrivers)
        yield from through(scope, "dynamodb", KEEP_ITEMS, tables)

    return viewing, operating


def _both(scope: Construct, redrivers: Sequence[OtherRedriver]) -> Iterator[iam.PolicyStatement]:
    yield allow(["cloudformation:DescribeStacks"], [cdk.Stack.of(scope).stack_id])
    yield allow(READ_TABLE, unique(one.table.table_arn for one in redrivers))
    functions = [one.function.function_arn for one in redrivers]
    yield allow(["lambda:GetFunctionConfiguration"], functions)
    keys = key_arns(one.encryption_key for one in redrivers)
    yield from through(scope, "lambda", DECRYPT, keys)


def _telling(redrivers: Sequence[OtherRedriver]) -> Iterator[iam.PolicyStatement]:
    """Allow people to read functions' logs and rights, and the recipients of alarms."""
    functions = [one.function for one in redrivers]
    yield allow(["logs:FilterLogEvents"], [one.log_group.log_group_arn for one in functions])
    roles = [one.role.role_arn for one in functions if one.role]
    yield allow(["iam:SimulatePrincipalPolicy"], roles)
    topics = [topic for one in redrivers for topic in (one.topics.warning, one.topics.paging)]
    yield allow(["sns:GetTopicAttributes"], unique(topic.topic_arn for topic in topics))
    if topic_keys := key_arns(topic.master_key for topic in topics):
        yield allow(["kms:GetKeyPolicy"], topic_keys)


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
