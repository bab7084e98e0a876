"""What letters of other origins than SQS go back to: one `TargetSource` for each target that is listed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from typing import Any, Protocol

from redrive.aws.clients import OnFirstUse, target_client
from redrive.aws.function_facts import FunctionFacts
from redrive.aws.pace import Pace
from redrive.aws.target_calls import (
    FunctionTarget,
    QueueTarget,
    StateMachineTarget,
    StreamTarget,
    TopicTarget,
)
from redrive.aws.web_target import WebTarget
from redrive.core.letter import Trail
from redrive.core.outgoing import BYTES_PER_CALL, Outgoing, Sent
from redrive.core.queue_facts import QueueFacts
from redrive.targets import Origin, Target, TargetKind


class Delivery(Protocol):
    """Gives letters to a target. Each is in the answer: accepted, bounced, or with a fault."""

    def deliver(self, outgoing: Sequence[Outgoing]) -> Sent: ...


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


class TargetSource:
    """A target as a source of letters. Its name is what circuit and ledger call it.

    Acceptance is the outcome, but for a function whose own failed invocations the letters are: these come back.
    `function` tells how long such a function takes to fail. `pace` spreads what is given.
    """

    carries_trails = False
    longest_delay = timedelta()

    def __init__(
        self,
        target: Target,
        delivery: Delivery,
        function: FunctionFacts | None = None,
        pace: Pace | None = None,
    ) -> None:
        self._target = target
        self._delivery = delivery
        self._function = function
        self._pace = pace
        self.name = target.name
        self.settles_at_once = function is None

    def facts(self) -> QueueFacts:
        """A target as a queue that is always empty. Asks Lambda about a function whose letters come back, and nobody else.

        The largest message is the largest letter: what is too large for a target is seen when it is given.
        """
        return QueueFacts(
            arn=self._target.place,
            visible=0,
            in_flight=0,
            delayed=0,
            visibility_timeout=self._function.timeout() if self._function else timedelta(),
            retention=timedelta(),
            max_message_size=BYTES_PER_CALL,
            max_receive_count=self._function.tries() if self._function else 1,
        )

    def deliver(self, outgoing: Sequence[Outgoing]) -> Sent:
        """Give letters to the target. Each is in the answer: accepted, bounced, or with a fault."""
        if self._pace is not None:
            for _ in outgoing:
                self._pace.wait()
        return self._delivery.deliver(outgoing)

    def time_to_fail(self, facts: QueueFacts, max_receive_count_otherwise: int) -> timedelta:  # noqa: ARG002
        """From an invocation to the letter that is left of it, at the longest, for a function that just fails."""
        return self._function.time_to_fail() if self._function else timedelta()

    def owns(self, source_arn: str | None, trail: Trail | None) -> bool:
        """Whether a letter is of this target: what was recognised says so, else where it was sent to."""
        if source_arn is not None:
            return source_arn == self._target.place
        return trail is not None and trail.queue == self.name


def target_source(
    target: Target, origin: Origin, reach: Reach, private_hosts: Collection[str] = ()
) -> TargetSource:
    """The source for one target of a DLQ that `origin` fills. Asks nobody."""
    if target.kind is TargetKind.WEB:
        return TargetSource(target, reach.web(target, private_hosts), pace=reach.pace)
    client = reach.clients(_SERVICES[target.kind], target.place.split(":")[3])
    made: dict[TargetKind, Callable[[], Delivery]] = {
        TargetKind.QUEUE: lambda: QueueTarget(client, target, origin),
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
