"""What letters of other origins than SQS go back to: one `TargetSource` for each target that is listed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol, Self

from redrive.aws.clients import OnFirstUse, sqs_client, target_client
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetClients:
    """What targets are reached by: boto3 clients, each made when a target of its kind is first given a letter."""

    sqs: Any
    lambdas: Any
    firehose: Any
    states: Any
    sns: Any
    web: Callable[[Target, Collection[str]], Delivery] = WebTarget

    @classmethod
    def on_first_use(cls) -> Self:
        """Clients set up for a pass."""
        return cls(
            sqs=OnFirstUse(sqs_client),
            lambdas=OnFirstUse(lambda: target_client("lambda")),
            firehose=OnFirstUse(lambda: target_client("firehose")),
            states=OnFirstUse(lambda: target_client("stepfunctions")),
            sns=OnFirstUse(lambda: target_client("sns")),
        )


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
    target: Target,
    origin: Origin,
    clients: TargetClients,
    private_hosts: Collection[str] = (),
    pace: Pace | None = None,
) -> TargetSource:
    """The source for one target of a DLQ that `origin` fills. Asks nobody."""
    made: dict[TargetKind, Callable[[], Delivery]] = {
        TargetKind.QUEUE: lambda: QueueTarget(clients.sqs, target, origin),
        TargetKind.FUNCTION: lambda: FunctionTarget(clients.lambdas, target, origin),
        TargetKind.DELIVERY_STREAM: lambda: StreamTarget(clients.firehose, target),
        TargetKind.STATE_MACHINE: lambda: StateMachineTarget(clients.states, target, origin),
        TargetKind.TOPIC: lambda: TopicTarget(clients.sns, target, origin),
        TargetKind.WEB: lambda: clients.web(target, private_hosts),
    }
    comes_back = origin is Origin.LAMBDA
    function = FunctionFacts(clients.lambdas, target.place) if comes_back else None
    return TargetSource(target, made[target.kind](), function, pace)
