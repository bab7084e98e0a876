"""Accepted findings of checkers, with reasons: cdk-nag's, which make a synth fail, and those of a reviewer's checkov.

Each construct accepts its own findings, so that the reasons go with it into any app. Those for checkov are in the
metadata of the resources.
"""

from collections.abc import Mapping
from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import IConstruct

from smart_redriver.cdk.safeguards import Safeguards

#: The key in a resource's metadata that checkov reads.
_CHECKOV = "checkov"

UNTRACED = (
    "One function and its log tell all of a pass or a batch; the letters keep their own traces."
)
_NEXT_TICK = "The next tick is the retry: a pass re-reads everything, so a lost tick loses nothing."
_WATCHED = "Invoked by a dashboard that waits for its answer, never asynchronously."
_LOOKED_AT = "It runs only while people look at the dashboard."
_UNRESERVED = (
    "Reserving takes from all other functions of the account, and a pass holds a lease against a "
    "second one; reserved_concurrency reserves."
)
_WITHOUT_KEY = "{} encrypts it with a key that AWS owns; encryption_key_arn names another."
_WITHOUT_VPC = "It calls AWS alone, and nothing can call in; vpc_id puts it into a VPC."
CONNECTING = (
    "Only in a VPC: network interfaces that do not exist yet, for Lambda alone. The function's own "
    "code is denied them."
)
#: The only action of a pass that can't be restricted to a resource.
UNRESTRICTED = f"cloudwatch:GetMetricData, which AWS can't restrict to a resource. {CONNECTING}"


def accept_parking_lot(queue: sqs.IQueue) -> None:
    """Acknowledge findings about a parking lot that is made here."""
    _accept_last_station(
        queue,
        "The end of the line: nothing consumes it, its letters wait for a person.",
    )


def accept_outcome_queue(queue: sqs.IQueue) -> None:
    """Acknowledge findings about the queue that consumers report to."""
    _accept_last_station(
        queue,
        "Hints about messages, none of which is in it: a report that can't be read is told by the "
        "pass and deleted.",
    )


def _accept_last_station(queue: sqs.IQueue, reason: str) -> None:
    acknowledge(queue, {"AwsSolutions-SQS3": reason, "Serverless-SQSRedrivePolicy": reason})
    accept_sqs_key(queue)


def accept_passes(
    scope: IConstruct, function: lambda_.Function, safeguards: Safeguards, unrestricted: str
) -> None:
    """Acknowledge findings about a re-driver and its role's wildcards; ``unrestricted`` gives the reason for them."""
    acknowledge(
        scope,
        {
            "AwsSolutions-IAM5[Resource::*]": unrestricted,
            "Serverless-LambdaDLQ": _NEXT_TICK,
            "Serverless-LambdaAsyncFailureDestination": _NEXT_TICK,
            "Serverless-LambdaTracing": UNTRACED,
        },
    )
    accept_function(function, safeguards)
    skip(function, {"CKV_AWS_116": _NEXT_TICK})
    if not safeguards.reserved_concurrency:
        skip(function, {"CKV_AWS_115": _UNRESERVED})


def accept_widget(scope: IConstruct, function: lambda_.Function, safeguards: Safeguards) -> None:
    """Acknowledge findings about the dashboard's function: a person waits for its answer, so it is never retried."""
    acknowledge(
        scope,
        {
            "AwsSolutions-IAM5[Resource::*]": CONNECTING,
            "Serverless-LambdaDLQ": _WATCHED,
            "Serverless-LambdaAsyncFailureDestination": _WATCHED,
            "Serverless-LambdaTracing": UNTRACED,
        },
    )
    accept_function(function, safeguards)
    skip(function, {"CKV_AWS_116": _WATCHED})
    skip(function, {"CKV_AWS_115": _LOOKED_AT})


def accept_anywhere(scope: IConstruct, resource: str) -> None:
    """Acknowledge the right to connect to every database with such a role, if no database is named."""
    reason = "As this one role of a database; database_resource_id narrows it to one database."
    acknowledge(scope, {f"AwsSolutions-IAM5[Resource::{resource}]": reason})


def accept_topics(topics: IConstruct) -> None:
    """Acknowledge findings about topics: SNS drops a page that it can't deliver for six hours."""
    acknowledge(
        topics,
        {
            "Serverless-SNSRedrivePolicy": "SNS itself tries an address outside of AWS for six "
            "hours; a queue of undelivered pages would have no reader."
        },
    )


def accept_sqs_key(queue: sqs.IQueue) -> None:
    """Acknowledge findings about the key of a queue that is made here. The queue is encrypted in any case."""
    if queue.encryption_master_key is None:
        skip(queue, {"CKV_AWS_27": _WITHOUT_KEY.format("SQS")})


def accept_function(function: lambda_.Function, safeguards: Safeguards) -> None:
    """Acknowledge findings about a function that `safeguards` could avoid but don't."""
    if not safeguards.encryption_key_arn:
        skip(function, {"CKV_AWS_173": _WITHOUT_KEY.format("Lambda")})
        skip(function.log_group, {"CKV_AWS_158": _WITHOUT_KEY.format("CloudWatch")})
    if not safeguards.vpc_id:
        skip(function, {"CKV_AWS_117": _WITHOUT_VPC})
    elif function.role:
        skip(function.role.node.find_child("DefaultPolicy"), {"CKV_AWS_111": CONNECTING})


def skip(construct: IConstruct, reasons: Mapping[str, str]) -> None:
    """Make checkov skip these rules for a construct's resource, in addition to those that it skips already."""
    resource = cast("cdk.CfnResource", construct.node.default_child)
    before = resource.get_metadata(_CHECKOV) or {"skip": []}
    added = [{"id": rule, "comment": reason} for rule, reason in reasons.items()]
    resource.add_metadata(_CHECKOV, {"skip": [*before["skip"], *added]})


def acknowledge(scope: IConstruct, reasons: Mapping[str, str]) -> None:
    """Accept findings of cdk-nag, by their ids, for everything in ``scope``."""
    for finding, reason in reasons.items():
        cdk.Validations.of(scope).acknowledge(cdk.Acknowledgment(id=finding, reason=reason))
