"""What people may do for worker queues in Postgres: what is AWS's of it. The database's own part is its role's rights."""

from collections.abc import Iterator, Sequence

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from smart_redriver.cdk.key_use import DECRYPT, KEEP_ITEMS
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

_ASK_AROUND = (
    "cloudwatch:DescribeAlarms",
    "cloudwatch:GetMetricData",
    "scheduler:ListSchedules",
)


def viewing_jobs(
    scope: Construct, redrivers: Sequence[PostgresRedriver]
) -> Iterator[iam.PolicyStatement]:
    """To look at letters is to connect as the re-driver's role, which may also move them: the database knows no less."""
    functions = [one.function for one in redrivers]
    yield allow([*_ASK_AROUND, *ASK_NETWORK], ["*"])
    yield from _both(scope, redrivers)
    yield allow(CHECK_TABLE, unique(one.table.table_arn for one in redrivers))
    yield allow(["logs:FilterLogEvents"], [one.log_group.log_group_arn for one in functions])
    roles = [one.role.role_arn for one in functions if one.role]
    yield allow(["iam:SimulatePrincipalPolicy"], roles)
    topics = [topic for one in redrivers for topic in (one.topics.warning, one.topics.paging)]
    yield allow(["sns:GetTopicAttributes"], unique(topic.topic_arn for topic in topics))
    if topic_keys := key_arns(topic.master_key for topic in topics):
        yield allow(["kms:GetKeyPolicy"], topic_keys)
    tables = key_arns(one.table.encryption_key for one in redrivers)
    yield from through(scope, "dynamodb", DECRYPT, tables)
    if tables:
        yield allow(["kms:DescribeKey"], tables)


def operating_jobs(
    scope: Construct, redrivers: Sequence[PostgresRedriver]
) -> Iterator[iam.PolicyStatement]:
    """To write the ledger and the audit trail, and to start passes."""
    yield from _both(scope, redrivers)
    yield allow(WRITE_TABLE, unique(one.table.table_arn for one in redrivers))
    yield allow(["lambda:InvokeFunction"], [one.function.function_arn for one in redrivers])
    tables = key_arns(one.table.encryption_key for one in redrivers)
    yield from through(scope, "dynamodb", KEEP_ITEMS, tables)


def _both(scope: Construct, redrivers: Sequence[PostgresRedriver]) -> Iterator[iam.PolicyStatement]:
    yield allow(["cloudformation:DescribeStacks"], [cdk.Stack.of(scope).stack_id])
    yield allow(READ_TABLE, unique(one.table.table_arn for one in redrivers))
    functions = [one.function.function_arn for one in redrivers]
    yield allow(["lambda:GetFunctionConfiguration"], functions)
    for action in unique(one.credentials[0] for one in redrivers):
        places = (one.credentials[1] for one in redrivers if one.credentials[0] == action)
        yield allow([action], unique(places))
    keys = key_arns(one.encryption_key for one in redrivers)
    yield from through(scope, "lambda", DECRYPT, keys)
