"""What letters go back to, as metrics and alarms go by it: a name of our own, and what AWS measures of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from aws_cdk import aws_sqs as sqs

from redrive.targets import Origin
from smart_redriver.cdk.filling import Filling


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """`name` is what our own metrics are told under.

    Attributes:
        is_queue: SQS measures a queue of this name, whose failed messages fill the DLQ.
        function: Lambda measures the function of this name, whose failed invocations fill it.

    """

    name: str
    is_queue: bool = False
    function: str | None = None


def watched_sources(queues: Iterable[sqs.IQueue]) -> list[Watched]:
    """Source queues."""
    return [Watched(name=queue.queue_name, is_queue=True) for queue in queues]


def watched_targets(filling: Filling) -> list[Watched]:
    """Targets. What SNS, EventBridge and Scheduler failed to deliver, no metric of a target tells of."""
    is_of_lambda = filling.origin is Origin.LAMBDA
    return [
        Watched(name=one.name, function=one.place.split(":")[6] if is_of_lambda else None)
        for one in filling.targets
    ]
