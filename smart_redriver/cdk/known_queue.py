"""What an app knows of a queue that it makes itself. Of an imported one it knows the ARN; `redrive doctor` looks at the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_sqs as sqs

#: Seconds that SQS keeps a message where nothing is said.
#: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-sqs-queue.html
_RETENTION = 345_600


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownQueue:
    """`retention` is in seconds, and None where only a deployment knows it."""

    retention: int | None
    has_redrive_policy: bool
    dead_letter_arn: str | None


def known(queue: sqs.IQueue) -> KnownQueue | None:
    """None for a queue that the app does not make."""
    if not cdk.Resource.is_owned_resource(queue):
        return None
    resource = cast("sqs.CfnQueue", queue.node.default_child)
    fails_to = queue.dead_letter_queue if isinstance(queue, sqs.Queue) else None
    return KnownQueue(
        retention=_seconds(resource.message_retention_period),
        has_redrive_policy=resource.redrive_policy is not None,
        dead_letter_arn=fails_to.queue.queue_arn if fails_to else None,
    )


def _seconds(given: float | None) -> int | None:
    if given is None:
        return _RETENTION
    return None if cdk.Token.is_unresolved(given) else int(given)
