"""What the function calls on the targets of a DLQ that SQS does not fill."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from redrive.aws.target_source import arn_beside
from redrive.deployment import Deployment
from redrive.targets import Origin, Target, TargetKind

_DELIVER: Mapping[TargetKind, tuple[str, ...]] = {
    TargetKind.QUEUE: ("sqs:GetQueueUrl", "sqs:SendMessage"),
    TargetKind.FUNCTION: ("lambda:InvokeFunction",),
    TargetKind.DELIVERY_STREAM: ("firehose:PutRecord",),
    TargetKind.STATE_MACHINE: ("states:StartExecution",),
    TargetKind.TOPIC: ("sns:Publish",),
}
_TIMING = ("lambda:GetFunctionConfiguration", "lambda:GetFunctionEventInvokeConfig")
#: Whether a queue's own failed messages come to the DLQ, which is of its account and Region then.
_ASK_QUEUE = ("sqs:GetQueueAttributes",)
#: By the last word of the name that the service's VPC endpoint has.
ENDPOINTS = {
    TargetKind.FUNCTION: "lambda",
    TargetKind.DELIVERY_STREAM: "kinesis-firehose",
    TargetKind.STATE_MACHINE: "states",
    TargetKind.TOPIC: "sns",
}


def calls_of(deployment: Deployment) -> Iterator[tuple[Target, tuple[str, ...]]]:
    """Each target in AWS, with the actions on it that the function's role must have."""
    for target in deployment.targets:
        if calls := _DELIVER.get(target.kind):
            if deployment.origin is Origin.LAMBDA:
                calls += _TIMING
            if target.kind is TargetKind.QUEUE and arn_beside(target.place, deployment.dlq_url):
                calls += _ASK_QUEUE
            yield target, calls


def endpoints_of(deployment: Deployment) -> list[str]:
    """The services that targets are reached by, beside those of every pass."""
    kinds = {one.kind for one in deployment.targets}
    return [service for kind, service in ENDPOINTS.items() if kind in kinds]
