"""A target of a DLQ that SQS does not fill, as the source that a pass sends letters back to.

`Pace` spreads deliveries that a pass makes itself, because no queue can delay them. `target_source` makes the source
for a listed target.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cache
from threading import Lock
from typing import Any, Protocol
from urllib.parse import urlsplit

from smart_redriver.engine.aws.clients import OnFirstUse, target_client
from smart_redriver.engine.config.targets import Origin, Target, TargetKind
from smart_redriver.engine.errors import TRANSIENT_FAULTS, CallFailed
from smart_redriver.engine.messages.letter import RedriveMetadata
from smart_redriver.engine.messages.outgoing import BYTES_PER_CALL, Outgoing, Sent
from smart_redriver.engine.messages.queue_facts import QueueFacts
from smart_redriver.engine.targets.functions import FunctionFacts
from smart_redriver.engine.targets.target_calls import (
    FunctionTarget,
    QueueTarget,
    StateMachineTarget,
    StreamTarget,
    TopicTarget,
)
from smart_redriver.engine.targets.web_target import WebTarget


class Pace:
    """A limit of `rate` deliveries a second, over all threads; 0 means no limit.

    A token bucket of one: the first delivery goes at once, and each further one no sooner than its share of a second
    later. `clock` returns seconds, `pause` waits for some.
    """

    def __init__(
        self, rate: float, *, clock: Callable[[], float], pause: Callable[[float], None]
    ) -> None:
        self._apart = 1 / rate if rate else 0.0
        self._clock = clock
        self._pause = pause
        self._next = 0.0
        self._one_at_a_time = Lock()

    def wait(self) -> None:
        """Return when the next delivery may be made."""
        with self._one_at_a_time:
            now = self._clock()
            at = max(now, self._next)
            self._next = at + self._apart
        if at > now:
            self._pause(at - now)


class Delivery(Protocol):
    """Gives letters to a target. The answer includes each: accepted, bounced, or with a fault."""

    def deliver(self, outgoing: Sequence[Outgoing]) -> Sent: ...


class TargetSource:
    """A target as a source of letters. Circuit and ledger use its name.

    Acceptance is the outcome, except for a function whose own failed invocations are the letters: these come back.
    `function` knows how long such a function takes to fail. `pace` spreads the deliveries.
    """

    carries_metadata = False
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

    @property
    def settles_at_once(self) -> bool:
        """Whether no accepted letter comes back."""
        return self._function is None

    def facts(self) -> QueueFacts:
        """The facts of an always empty queue. Asks only Lambda, and only about a function whose letters come back.

        The largest message is the largest letter: a letter that is too large for the target is found at its delivery.
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
        """Give letters to the target. The answer includes each: accepted, bounced, or with a fault."""
        if self._pace is not None:
            for _ in outgoing:
                self._pace.wait()
        return self._delivery.deliver(outgoing)

    def time_to_fail(self, facts: QueueFacts, max_receive_count_otherwise: int) -> timedelta:  # noqa: ARG002
        """Return the longest time from an invocation to the letter that it leaves, for a function that just fails."""
        return self._function.time_to_fail() if self._function else timedelta()

    def owns(self, source_arn: str | None, metadata: RedriveMetadata | None) -> bool:
        """Whether a letter is from this target: by its recognised source, or else by where it was sent."""
        if source_arn is not None:
            return source_arn == self._target.place
        return metadata is not None and metadata.queue == self.name


class QueueSource(TargetSource):
    """A target queue. If its own failed messages go to this very DLQ, they come back, as a source queue's do.

    Then acceptance is no outcome: otherwise, messages that its consumer fails would go round forever. Copies are
    recognised by their MessageId, which SQS keeps when it moves them.
    """

    def __init__(self, target: Target, queue: QueueTarget, dlq_arn: str, pace: Pace | None) -> None:
        super().__init__(target, queue, pace=pace)
        self._queue = queue
        self._dlq_arn = dlq_arn
        self._comes_back: bool | None = None

    @property
    def settles_at_once(self) -> bool:
        """Whether its failed messages go elsewhere. Raises CallFailed if that is not known yet and can't be asked."""
        if self._comes_back is None:
            self.facts()
        return not self._comes_back

    def facts(self) -> QueueFacts:
        """The queue's facts if its messages come back, else those of any target. Raises CallFailed if AWS fails."""
        asked = self._asked()
        self._comes_back = asked is not None and asked.dead_letter_arn == self._dlq_arn
        if asked is None or not self._comes_back:
            return super().facts()
        return replace(asked, max_message_size=BYTES_PER_CALL)

    def _asked(self) -> QueueFacts | None:
        """Return the queue's facts; None if it can't be asked: its answer to a letter shows whether it accepts any."""
        try:
            return self._queue.facts()
        except CallFailed as failed:
            if failed.code in TRANSIENT_FAULTS:
                raise
            return None

    def time_to_fail(self, facts: QueueFacts, max_receive_count_otherwise: int) -> timedelta:
        """Return the time from a message's first receive to its move to the DLQ, for a consumer that just fails."""
        return facts.visibility_timeout * (facts.max_receive_count or max_receive_count_otherwise)


def arn_beside(queue_arn: str, url: str) -> str | None:
    """The ARN of the queue with this URL; None if it is in another account or Region, where no DLQ of it can be.

    A host that is not AWS's does not show its Region.
    """
    place, _, _ = queue_arn.rpartition(":")
    *_, region, account = place.split(":")
    *_, its_account, name = url.rsplit("/", 2) if url else ("", "")
    host = urlsplit(url).hostname or ""
    is_here = region in host.split(".") or "amazonaws" not in host
    return f"{place}:{name}" if its_account == account and is_here else None


#: Returns the boto3 client of a service in a Region: SNS, for example, delivers to other Regions, too.
Clients = Callable[[str, str], Any]


def clients_on_first_use() -> Clients:
    """Clients set up for a pass, each made on its first use."""

    @cache
    def client(service: str, region: str) -> Any:
        return OnFirstUse(lambda: target_client(service, region))

    return client


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """Access to targets: clients, web connections, and pace."""

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
    """The source for one target of a DLQ that `origin` fills. Makes no call."""
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
