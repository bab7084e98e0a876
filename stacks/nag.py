"""Checks of the app at synth, and which findings stand in what this repository makes beside the constructs.

The constructs' own are in `smart_redriver.cdk.acknowledged`.
"""

import aws_cdk as cdk
from cdk_nag import AwsSolutionsChecks, ServerlessChecks

from smart_redriver.cdk.acknowledged import (
    CONNECTING,
    UNTRACED,
    accept_function,
    accept_sqs_key,
    acknowledge,
    skip,
)
from smart_redriver.cdk.queues import NewQueues
from smart_redriver.cdk.safeguards import Safeguards
from stacks.sample_consumer import SampleConsumer

_NEVER_ASYNCHRONOUS = "Invoked only by its event source mapping, never asynchronously."
_POLLED = "Polled by its event source mapping, which begins with five at once; fewer are throttled."
#: What the CDK writes, whatever it is told: Join for Sub, and each dependency twice.
_STYLE_OF_THE_CDK = ["I1022", "W3005"]


def add_checks(app: cdk.App) -> None:
    """Check the app at synth, which fails on any finding that is not acknowledged."""
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app), ServerlessChecks(app))


def acknowledge_style(stack: cdk.Stack) -> None:
    """Accept in a template what cfn-lint finds in each one that the CDK writes."""
    stack.add_metadata("cfn-lint", {"config": {"ignore_checks": _STYLE_OF_THE_CDK}})


def acknowledge_queues(queues: NewQueues) -> None:
    """Accept that a dead-letter queue has no dead-letter queue of its own."""
    acknowledge(
        queues.dead_letter_queue,
        {
            "Serverless-SQSRedrivePolicy": "A dead-letter queue itself; with a redrive policy, "
            "each of the re-driver's receives would count against the letter."
        },
    )
    for queue in (queues.source_queue, queues.dead_letter_queue):
        accept_sqs_key(queue)


def acknowledge_sample_consumer(consumer: SampleConsumer, safeguards: Safeguards) -> None:
    """Accept that the example's failures end in the dead-letter queue, and nowhere else."""
    acknowledge(
        consumer,
        {
            "AwsSolutions-IAM5[Resource::*]": CONNECTING,
            "Serverless-LambdaDLQ": _NEVER_ASYNCHRONOUS,
            "Serverless-LambdaAsyncFailureDestination": _NEVER_ASYNCHRONOUS,
            "Serverless-LambdaEventSourceMappingDestination": "Not for SQS sources: the source "
            "queue's redrive policy takes the failures.",
            "Serverless-LambdaTracing": UNTRACED,
        },
    )
    accept_function(consumer.function, safeguards)
    skip(consumer.function, {"CKV_AWS_115": _POLLED, "CKV_AWS_116": _NEVER_ASYNCHRONOUS})
    for table in (consumer.control_table, consumer.idempotency_table):
        skip(table, {"CKV_AWS_165": "An example's, gone with its stack: nothing to restore."})
