"""The parts of people's policies that are the same wherever letters are."""

from collections.abc import Iterator, Sequence

from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from smart_redriver.cdk.key_use import via_service

READ_TABLE = ("dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Scan")
CHECK_TABLE = ("dynamodb:DescribeTable", "dynamodb:DescribeTimeToLive")
WRITE_TABLE = (
    "dynamodb:PutItem",
    "dynamodb:UpdateItem",
    "dynamodb:DeleteItem",
    "dynamodb:BatchWriteItem",
)
#: How a function in a VPC reaches AWS. Nor these can be restricted.
ASK_NETWORK = (
    "ec2:DescribeRouteTables",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeVpcEndpoints",
)


def allow(actions: Sequence[str], resources: Sequence[str]) -> iam.PolicyStatement:
    return iam.PolicyStatement(actions=sorted(actions), resources=list(resources))


def through(
    scope: Construct, service: str, actions: Sequence[str], keys: Sequence[str]
) -> Iterator[iam.PolicyStatement]:
    """What is done with keys through one service and no other way; nothing without keys."""
    if keys:
        via = {"kms:ViaService": via_service(scope, service)}
        yield iam.PolicyStatement(
            actions=sorted(actions), resources=list(keys), conditions={"StringEquals": via}
        )


def key_arns(keys: Iterator[kms.IKey | None]) -> list[str]:
    return unique(key.key_arn for key in keys if key)


def unique(values: Iterator[str]) -> list[str]:
    return list(dict.fromkeys(values))
