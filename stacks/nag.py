"""Which findings of checkers stand, and why: cdk-nag's, which fail a synth, and those of a reviewer's checkov and cfn-lint.

The latter are in the templates' metadata, where both look for them: whoever runs them on ``cdk.out`` sees the reasons.
"""

from collections.abc import Mapping, Sequence
from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from cdk_nag import AwsSolutionsChecks, ServerlessChecks
from constructs import IConstruct

from smart_redriver.cdk import OnCallPolicies, PostgresRedriver, SmartRedriver, Topics
from smart_redriver.cdk.dashboard_widget import DashboardWidget
from smart_redriver.cdk.queues import NewQueues
from smart_redriver.cdk.safeguards import Safeguards
from stacks.sample_consumer import SampleConsumer

#: Where checkov looks, in the metadata of a resource.
_CHECKOV = "checkov"

_UNTRACED = (
    "One function and its log tell all of a pass or a batch; the letters keep their own traces."
)
_NEXT_TICK = "The next tick is the retry: a pass re-reads everything, so a lost tick loses nothing."
_NEVER_ASYNCHRONOUS = "Invoked only by its event source mapping, never asynchronously."
_WATCHED = "Invoked by a dashboard that waits for its answer, never asynchronously."
_LOOKED_AT = "It runs while somebody looks at the dashboard; reserved_concurrency reserves."

_WITHOUT_KEY = "{} encrypts it with a key that AWS owns; encryption_key_arn names another."
_WITHOUT_VPC = "It calls AWS alone, and nothing can call in; vpc_id puts it into a VPC."
_UNRESERVED = (
    "Reserving takes from all other functions of the account, and a pass holds a lease against a "
    "second one; reserved_concurrency reserves."
)
_POLLED = "Polled by its event source mapping, which begins with five at once; fewer are throttled."
#: What the CDK writes, whatever it is told: Join for Sub, and each dependency twice.
_STYLE_OF_THE_CDK = ["I1022", "W3005"]

_ANY_DATABASE = "As this one role of a database; database_resource_id narrows it to one database."
_CONNECTING = (
    "Only in a VPC: network interfaces that do not exist yet, for Lambda alone. The function's own "
    "code is denied them."
)
_UNRESTRICTED = f"cloudwatch:GetMetricData, which AWS can't restrict to a resource. {_CONNECTING}"


def add_checks(app: cdk.App) -> None:
    """Check the app at synth, which fails on any finding that is not acknowledged."""
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app), ServerlessChecks(app))


def acknowledge_style(stack: cdk.Stack) -> None:
    """Accept in a template what cfn-lint finds in each one that the CDK writes."""
    stack.add_metadata("cfn-lint", {"config": {"ignore_checks": _STYLE_OF_THE_CDK}})


def acknowledge_queues(queues: NewQueues) -> None:
    """Accept that a dead-letter queue has no dead-letter queue of its own."""
    _acknowledge(
        queues.dead_letter_queue,
        {
            "Serverless-SQSRedrivePolicy": "A dead-letter queue itself; with a redrive policy, "
            "each of the re-driver's receives would count against the letter."
        },
    )
    for queue in (queues.source_queue, queues.dead_letter_queue):
        _accept_sqs_key(queue)


def acknowledge_redriver(redriver: SmartRedriver, safeguards: Safeguards) -> None:
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
    for queue in last_stations:
        _accept_sqs_key(queue)
    _accept_function(redriver.function, safeguards)
    _skip(redriver.function, {"CKV_AWS_116": _NEXT_TICK})
    if not safeguards.reserved_concurrency:
        _skip(redriver.function, {"CKV_AWS_115": _UNRESERVED})
    if redriver.widget:
        _acknowledge_widget(redriver.widget, safeguards)
    _accept_schedule(redriver, redriver.function)


def acknowledge_jobs(redriver: PostgresRedriver, safeguards: Safeguards) -> None:
    """The same of a worker queue's, whose function is in the database's network."""
    reasons = {
        "AwsSolutions-IAM5[Resource::*]": _CONNECTING,
        "Serverless-LambdaDLQ": _NEXT_TICK,
        "Serverless-LambdaAsyncFailureDestination": _NEXT_TICK,
        "Serverless-LambdaTracing": _UNTRACED,
    }
    reasons |= _any_database(redriver)
    _acknowledge(redriver, reasons)
    _accept_function(redriver.function, safeguards)
    _skip(redriver.function, {"CKV_AWS_116": _NEXT_TICK})
    if not safeguards.reserved_concurrency:
        _skip(redriver.function, {"CKV_AWS_115": _UNRESERVED})
    _accept_schedule(redriver, redriver.function)


def acknowledge_people(oncall: OnCallPolicies, jobs: Sequence[PostgresRedriver]) -> None:
    """Accept of people's policies what is accepted of the functions'."""
    for redriver in jobs:
        for policy in oncall.policies:
            _acknowledge(policy, _any_database(redriver))


def _any_database(redriver: PostgresRedriver) -> dict[str, str]:
    if not redriver.may_connect_anywhere:
        return {}
    return {f"AwsSolutions-IAM5[Resource::{redriver.credentials[1]}]": _ANY_DATABASE}


def _acknowledge_widget(widget: DashboardWidget, safeguards: Safeguards) -> None:
    """Accept that what a person waits for is never retried."""
    _acknowledge(
        widget,
        {
            "AwsSolutions-IAM5[Resource::*]": _CONNECTING,
            "Serverless-LambdaDLQ": _WATCHED,
            "Serverless-LambdaAsyncFailureDestination": _WATCHED,
            "Serverless-LambdaTracing": _UNTRACED,
        },
    )
    _accept_function(widget.function, safeguards)
    _skip(widget.function, {"CKV_AWS_116": _WATCHED})
    if not safeguards.reserved_concurrency:
        _skip(widget.function, {"CKV_AWS_115": _LOOKED_AT})


def acknowledge_sample_consumer(consumer: SampleConsumer, safeguards: Safeguards) -> None:
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
    _accept_function(consumer.function, safeguards)
    _skip(consumer.function, {"CKV_AWS_115": _POLLED, "CKV_AWS_116": _NEVER_ASYNCHRONOUS})
    for table in (consumer.control_table, consumer.idempotency_table):
        _skip(table, {"CKV_AWS_165": "An example's, gone with its stack: nothing to restore."})


def acknowledge_topics(topics: Topics) -> None:
    """Accept that a page which SNS could not deliver for six hours is dropped."""
    _acknowledge(
        topics,
        {
            "Serverless-SNSRedrivePolicy": "SNS itself tries an address outside of AWS for six "
            "hours; a queue of pages that nobody got would be read by nobody."
        },
    )


def _accept_sqs_key(queue: sqs.IQueue) -> None:
    """Of a queue of the stack's own, which is encrypted in any case."""
    if queue.encryption_master_key is None:
        _skip(queue, {"CKV_AWS_27": _WITHOUT_KEY.format("SQS")})


def _accept_function(function: lambda_.Function, safeguards: Safeguards) -> None:
    """Of a function: what `safeguards` could have it otherwise, and do not."""
    if not safeguards.encryption_key_arn:
        _skip(function, {"CKV_AWS_173": _WITHOUT_KEY.format("Lambda")})
        _skip(function.log_group, {"CKV_AWS_158": _WITHOUT_KEY.format("CloudWatch")})
    if not safeguards.vpc_id:
        _skip(function, {"CKV_AWS_117": _WITHOUT_VPC})
    elif function.role:
        _skip(function.role.node.find_child("DefaultPolicy"), {"CKV_AWS_111": _CONNECTING})


def _skip(construct: IConstruct, reasons: Mapping[str, str]) -> None:
    """Have checkov skip rules for a construct's resource, beside those that it skips already."""
    resource = cast("cdk.CfnResource", construct.node.default_child)
    before = resource.get_metadata(_CHECKOV) or {"skip": []}
    added = [{"id": rule, "comment": reason} for rule, reason in reasons.items()]
    resource.add_metadata(_CHECKOV, {"skip": [*before["skip"], *added]})


def _accept_schedule(redriver: IConstruct, function: lambda_.Function) -> None:
    """The CDK keeps the schedules' role at the top of the stack, for schedules to share."""
    _acknowledge(
        cdk.Stack.of(redriver),
        {
            f"AwsSolutions-IAM5[Resource::<{_logical_id(function)}.Arn>:*]": "The CDK's own grant to the "
            "schedule: this one function's versions and aliases, of which there are none."
        },
    )


def _acknowledge(scope: IConstruct, reasons: Mapping[str, str]) -> None:
    for finding, reason in reasons.items():
        cdk.Validations.of(scope).acknowledge(cdk.Acknowledgment(id=finding, reason=reason))


def _logical_id(function: lambda_.Function) -> str:
    resource = cast("cdk.CfnElement", function.node.default_child)
    return str(cdk.Stack.of(function).resolve(resource.logical_id))
