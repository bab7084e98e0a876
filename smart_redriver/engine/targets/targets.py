"""Makes the targets of a DLQ that SQS does not fill: one `TargetSource` for each that is listed."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from smart_redriver.engine.aws.clients import OnFirstUse, target_client
from smart_redriver.engine.config.targets import Origin, Target, TargetKind
from smart_redriver.engine.targets.functions import FunctionFacts
from smart_redriver.engine.targets.target_calls import (
    FunctionTarget,
    QueueTarget,
    StateMachineTarget,
    StreamTarget,
    TopicTarget,
)
from smart_redriver.engine.targets.target_source import (
    Delivery,
    Pace,
    QueueSource,
    TargetSource,
    arn_beside,
)
from smart_redriver.engine.targets.web_target import WebTarget

#: Gives the boto3 client of a service in a region: SNS, for one, delivers to other regions, too.
Clients = Callable[[str, str], Any]


def clients_on_first_use() -> Clients:
    """Clients set up for a pass, each made when it is first asked something."""

    @cache
    def client(service: str, region: str) -> Any:
        return OnFirstUse(lambda: target_client(service, region))

    return client


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How targets are reached: by which clients, by whose way into the web, and at which pace."""

    clients: Clients = field(default_factory=clients_on_first_use)
    web: Callable[[Target, Collection[str]], Delivery] = WebTarget
    pace: Pace | None = None


def target_source(
    target: Target,
    origin: Origin,
    reach: Reach,
    private_hosts: Collection[str] = (),
    dlq_url: str = "",
) -> TargetSource:
    """The source for one target of a DLQ that `origin` fills. Asks nobody."""
    if target.kind is TargetKind.WEB:
        return TargetSource(target, reach.web(target, private_hosts), pace=reach.pace)
    client = reach.clients(_SERVICES[target.kind], target.place.split(":")[3])
    if target.kind is TargetKind.QUEUE:
        queue = QueueTarget(client, target, origin)
        dlq_arn = arn_beside(target.place, dlq_url)
        if dlq_arn is None:
            return TargetSource(target, queue, pace=reach.pace)
        return QueueSource(target, queue, dlq_arn, reach.pace)
    made: dict[TargetKind, Callable[[], Delivery]] = {
        TargetKind.FUNCTION: lambda: FunctionTarget(client, target, origin),
        TargetKind.DELIVERY_STREAM: lambda: StreamTarget(client, target),
        TargetKind.STATE_MACHINE: lambda: StateMachineTarget(client, target, origin),
        TargetKind.TOPIC: lambda: TopicTarget(client, target, origin),
    }
    comes_back = origin is Origin.LAMBDA
    function = FunctionFacts(client, target.place) if comes_back else None
    return TargetSource(target, made[target.kind](), function, reach.pace)


#: boto3's names.
_SERVICES = {
    TargetKind.QUEUE: "sqs",
    TargetKind.FUNCTION: "lambda",
    TargetKind.DELIVERY_STREAM: "firehose",
    TargetKind.STATE_MACHINE: "stepfunctions",
    TargetKind.TOPIC: "sns",
}
