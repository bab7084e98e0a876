"""The permitted uses of a KMS key, each through one service only.

With a grant without ``kms:ViaService``, a caller could have the key decrypt any ciphertext it gets hold of. With the
condition, only that service can use the key, for a call that the caller may make.
https://docs.aws.amazon.com/kms/latest/developerguide/conditions-kms.html#conditions-kms-via-service
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

#: How SQS uses a queue's key for receivers, and for senders.
#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-key-management.html
DECRYPT = ("kms:Decrypt",)
ENCRYPT = ("kms:Decrypt", "kms:GenerateDataKey")
#: How DynamoDB uses a table's key for callers that read and write items: everything that AWS lists as the minimum,
#: except `kms:CreateGrant`, which only the maker of the table needs.
#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/encryption.usagenotes.html
KEEP_ITEMS = (
    "kms:Decrypt",
    "kms:DescribeKey",
    "kms:Encrypt",
    "kms:GenerateDataKey",
    "kms:ReEncryptFrom",
    "kms:ReEncryptTo",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyUse:
    """One key, one service, and what it may do with the key. `region` is the key's, if that is not the stack's."""

    key: kms.IKey
    service: str
    actions: tuple[str, ...]
    region: str | None = None

    def statement(self, scope: Construct) -> iam.PolicyStatement:
        """Return the statement for the policy of a user of the key."""
        via = {"kms:ViaService": self.via(scope)}
        return iam.PolicyStatement(
            actions=list(self.actions),
            resources=[self.key.key_arn],
            conditions={"StringEquals": via},
        )

    def via(self, scope: Construct) -> str:
        """KMS's name for the service in the key's Region."""
        return via_service(scope, self.service, self.region)


def via_service(scope: Construct, service: str, region: str | None = None) -> str:
    """KMS's name for a service in a Region. Without one, it is the Region of the stack around ``scope``."""
    return f"{service}.{region or cdk.Stack.of(scope).region}.amazonaws.com"


def together(uses: Iterable[KeyUse]) -> Iterator[KeyUse]:
    """Yield each key and service once, with all its actions."""
    found: dict[tuple[str, str, str | None], KeyUse] = {}
    for use in uses:
        place = (use.key.key_arn, use.service, use.region)
        before = found[place].actions if place in found else ()
        actions = tuple(sorted({*before, *use.actions}))
        found[place] = replace(use, actions=actions)
    yield from found.values()


READ_TABLE = ("dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Scan")
CHECK_TABLE = ("dynamodb:DescribeTable", "dynamodb:DescribeTimeToLive")
WRITE_TABLE = (
    "dynamodb:PutItem",
    "dynamodb:UpdateItem",
    "dynamodb:DeleteItem",
    "dynamodb:BatchWriteItem",
)
#: Calls that show how a function in a VPC reaches AWS. These can't be restricted either.
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
    """Statements that allow the use of keys through one service only; none without keys."""
    if keys:
        via = {"kms:ViaService": via_service(scope, service)}
        yield iam.PolicyStatement(
            actions=sorted(actions), resources=list(keys), conditions={"StringEquals": via}
        )


def key_arns(keys: Iterator[kms.IKey | None]) -> list[str]:
    return unique(key.key_arn for key in keys if key)


def unique(values: Iterator[str]) -> list[str]:
    return list(dict.fromkeys(values))
