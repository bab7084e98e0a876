"""cdk-nag: which rules the templates are checked against, and why some findings stand."""

from collections.abc import Mapping
from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_
from cdk_nag import AwsSolutionsChecks, ServerlessChecks
from constructs import IConstruct

from smart_redriver.cdk import SmartRedriver, Topics
from smart_redriver.cdk.queues import NewQueues
from stacks.sample_consumer import SampleConsumer

_UNTRACED = (
    "One function and its log tell all of a pass or a batch; the letters keep their own traces."
)
_NEXT_TICK = "The next tick is the retry: a pass re-reads everything, so a lost tick loses nothing."
_NEVER_ASYNCHRONOUS = "Invoked only by its event source mapping, never asynchronously."


_CONNECTING = (
    "Only in a VPC: network interfaces that do not exist yet, for Lambda alone. The function's own "
    "code is denied them."
)
_UNRESTRICTED = f"cloudwatch:GetMetricData, which AWS can't restrict to a resource. {_CONNECTING}"


def add_checks(app: cdk.App) -> None:
    """Check the app at synth, which fails on any finding that is not acknowledged."""
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app), ServerlessChecks(app))


def acknowledge_queues(queues: NewQueues) -> None:
    """Accept that a dead-letter queue has no dead-letter queue of its own."""
    _acknowledge(
        queues.dead_letter_queue,
        {
            "Serverless-SQSRedrivePolicy": "A dead-letter queue itself; with a redrive policy, "
            "each of the re-driver's receives would count against the letter."
        },
    )


def acknowledge_redriver(redriver: SmartRedriver) -> None:
    """Accept the wildcards that can't be narrowed, and that the last stations lead nowhere."""
    last_stations = {
        redriver.parking_lot: "The end of the line: nothing consumes it, its letters wait for a "
        "person.",
        redriver.outcome_queue: "Hints about messages, none of which is in it: a report that can't "
        "be read is told by the pass and deleted.",
    }
    for queue, reason in last_stations.items():
        _acknowledge(queue, {"AwsSolutions-SQS3": reason, "Serverless-SQSRedrivePolicy": reason})
    _acknowledge(
        redriver,
        {
            "AwsSolutions-IAM5[Resource::*]": _UNRESTRICTED,
            "Serverless-LambdaDLQ": _NEXT_TICK,
            "Serverless-LambdaAsyncFailureDestination": _NEXT_TICK,
            "Serverless-LambdaTracing": _UNTRACED,
        },
    )
    function = _logical_id(redriver.function)
    # The CDK keeps the schedules' role at the top of the stack, for schedules to share.
    _acknowledge(
        cdk.Stack.of(redriver),
        {
            f"AwsSolutions-IAM5[Resource::<{function}.Arn>:*]": "The CDK's own grant to the "
            "schedule: this one function's versions and aliases, of which there are none."
        },
    )


def acknowledge_sample_consumer(consumer: SampleConsumer) -> None:
    """Accept that the example's failures end in the dead-letter queue, and nowhere else."""
    _acknowledge(
        consumer,
        {
            "AwsSolutions-IAM5[Resource::*]": _CONNECTING,
            "Serverless-LambdaDLQ": _NEVER_ASYNCHRONOUS,
            "Serverless-LambdaAsyncFailureDestination": _NEVER_ASYNCHRONOUS,
            "Serverless-LambdaEventSourceMappingDestination": "Not for SQS sources: the source "
            "queue's redrive policy takes the failures.",
            "Serverless-LambdaTracing": _UNTRACED,
        },
    )


def acknowledge_topics(topics: Topics) -> None:
    """Accept that a page which SNS could not deliver for six hours is dropped."""
    _acknowledge(
        topics,
        {
            "Serverless-SNSRedrivePolicy": "SNS itself tries an address outside of AWS for six "
            "hours; a queue of pages that nobody got would be read by nobody."
        },
    )


def _acknowledge(scope: IConstruct, reasons: Mapping[str, str]) -> None:
    for finding, reason in reasons.items():
        cdk.Validations.of(scope).acknowledge(cdk.Acknowledgment(id=finding, reason=reason))


def _logical_id(function: lambda_.Function) -> str:
    resource = cast("cdk.CfnElement", function.node.default_child)
    return str(cdk.Stack.of(function).resolve(resource.logical_id))
