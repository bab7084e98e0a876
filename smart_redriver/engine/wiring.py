"""Assembles a pass's tools: the adapters over given clients, for one deployment."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Container, Sequence
from datetime import datetime
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Protocol, TypedDict

from smart_redriver.engine.aws.queue_metrics import CloudWatchClient, SqsMetricsReader
from smart_redriver.engine.aws.queues import DeadLetters, OutcomeQueue, ParkingLot, SqsSource
from smart_redriver.engine.aws.sqs import SqsClient, SqsQueue
from smart_redriver.engine.aws.state_table import DynamoDbClient, StateStore
from smart_redriver.engine.config.backends import BACKENDS
from smart_redriver.engine.config.deployment import Deployment
from smart_redriver.engine.config.settings import Settings
from smart_redriver.engine.config.targets import SERVED, Origin, is_fifo
from smart_redriver.engine.messages.letter import Letter
from smart_redriver.engine.passes.ports import DeadLetters as DeadLettersPort
from smart_redriver.engine.passes.ports import (
    Journal,
    Memory,
    NotedMemory,
    QueueMetricsReader,
    Reports,
    Source,
    Tools,
)
from smart_redriver.engine.passes.ports import ParkingLot as ParkingLotPort

if TYPE_CHECKING:
    from smart_redriver.engine.targets.target_source import Reach


class Parts(TypedDict):
    """The parts of `Tools` that depend on the kind of queue."""

    dead_letters: DeadLettersPort
    parking_lot: ParkingLotPort
    sources: tuple[Source, ...]
    memory: Memory
    metrics_reader: QueueMetricsReader
    reports: Reports | None


class Connection(Protocol):
    """The queue of one deployment, for the process's lifetime. It makes no call before a pass needs one.

    `workers`: rounds that a pass may have under way at once.
    """

    @property
    def workers(self) -> int: ...
    def parts(self, memory: NotedMemory, clock: Callable[[], datetime]) -> Parts:
        """Return the parts for one pass; `memory` is the state table's."""
        ...

    def after_pass(self, tools: Tools, kept: Container[str]) -> None:
        """Write further metrics to the log; `kept` is as in `emit`. A failed call is logged in the journal."""
        ...

    def close(self) -> None:
        """Close what is open."""
        ...


def connect(deployment: Deployment, settings: Settings) -> Connection:
    """The queue that a function's environment names."""
    made: Connection = BACKENDS[deployment.origin].load("connection")(deployment, settings)
    return made


def make_tools(
    connection: Connection,
    deployment: Deployment,
    *,
    dynamodb: DynamoDbClient,
    journal: Journal,
    clock: Callable[[], datetime],
    rng: Random,
    owner: str,
    workers: int = 1,
    pause: Callable[[float], None] = time.sleep,
) -> Tools:
    """The tools of one pass, see `Tools`. `pause` waits before DynamoDB is asked again."""
    memory = StateStore(
        dynamodb,
        deployment.table_name,
        deployment.queue_name,
        names_within=deployment.names_within,
        letters_within=deployment.letters_within,
        pause=pause,
        roll=rng.random,
    )
    parts = connection.parts(memory, clock)
    return Tools(**parts, journal=journal, clock=clock, rng=rng, owner=owner, workers=workers)


class Queues:
    """SQS queues. `reach`: how targets are reached, for an origin other than SQS."""

    def __init__(
        self,
        deployment: Deployment,
        *,
        sqs: SqsClient,
        cloudwatch: CloudWatchClient,
        reach: Reach | None = None,
        workers: int = 1,
    ) -> None:
        self.workers = workers
        self._deployment = deployment
        self._sqs = sqs
        self._cloudwatch = cloudwatch
        self._reach = reach

    def parts(self, memory: Memory, clock: Callable[[], datetime]) -> Parts:  # noqa: ARG002
        """Adapters over the clients."""
        deployment, sqs = self._deployment, self._sqs
        sources = sources_of(deployment, sqs, self._reach)
        return {
            "dead_letters": dead_letters_of(deployment, sqs),
            "parking_lot": parking_lot_of(deployment, sqs),
            "sources": sources,
            "memory": memory,
            "metrics_reader": _metrics_reader_of(deployment, sources, self._cloudwatch),
            "reports": reports_of(deployment, sqs),
        }

    def after_pass(self, tools: Tools, kept: Container[str]) -> None:
        """Do nothing: a pass's report has all metrics."""

    def close(self) -> None:
        """Do nothing: clients close themselves."""


def connect_queues(deployment: Deployment, settings: Settings) -> Queues:
    """SQS queues with the function's own clients; targets are reached no faster than the settings allow."""
    from smart_redriver.engine.aws import clients

    reach = None
    if SERVED[deployment.origin]:
        from smart_redriver.engine.targets.target_source import Pace, Reach

        reach = Reach(pace=Pace(settings.max_rate, clock=time.monotonic, pause=time.sleep))
    return Queues(
        deployment,
        sqs=clients.sqs_client(),
        cloudwatch=clients.OnFirstUse(clients.cloudwatch_client),
        reach=reach,
        workers=clients.WORKERS,
    )


def reports_of(deployment: Deployment, sqs: SqsClient) -> OutcomeQueue | None:
    """The queue that consumers report to; None if there is none."""
    url = deployment.outcome_queue_url
    return OutcomeQueue(SqsQueue(sqs, url)) if url else None


def dead_letters_of(deployment: Deployment, sqs: SqsClient) -> DeadLetters:
    """The DLQ."""
    return DeadLetters(
        SqsQueue(sqs, deployment.dlq_url),
        frozenset(deployment.source_names),
        _recogniser_of(deployment),
    )


def parking_lot_of(deployment: Deployment, sqs: SqsClient) -> ParkingLot:
    """The parking lot."""
    return ParkingLot(
        SqsQueue(sqs, deployment.parking_lot_url),
        frozenset(deployment.source_names),
        _recogniser_of(deployment),
    )


def sources_of(
    deployment: Deployment,
    sqs: SqsClient,
    reach: Reach | None = None,
) -> tuple[Source, ...]:
    """The source queues that share the DLQ, or its targets; the first has the deployment's own name for it."""
    if SERVED[deployment.origin]:
        from smart_redriver.engine.targets.target_source import Reach, target_source

        by = reach or Reach()
        return tuple(
            target_source(one, deployment.origin, by, deployment.private_hosts, deployment.dlq_url)
            for one in deployment.targets
        )
    dlq_name = SqsQueue(sqs, deployment.dlq_url).name
    return tuple(
        SqsSource(SqsQueue(sqs, url), name, dlq_name)
        for url, name in zip(deployment.source_urls, deployment.source_names, strict=True)
    )


def _recogniser_of(deployment: Deployment) -> Callable[[Letter], Letter] | None:
    """Finds a letter's target; for a source queue's letters, SQS itself names it."""
    if not SERVED[deployment.origin]:
        return None
    from smart_redriver.engine.messages.origins import recognise

    return partial(recognise, origin=deployment.origin, targets=deployment.targets)


def _metrics_reader_of(
    deployment: Deployment, sources: Sequence[Source], cloudwatch: CloudWatchClient
) -> QueueMetricsReader:
    """The reader of the metrics that show letters' outcomes. Targets whose answer is the outcome need none."""
    if deployment.origin is Origin.LAMBDA:
        from smart_redriver.engine.targets.functions import FunctionMetricsReader

        functions = {one.name: one for one in sources}
        return FunctionMetricsReader(
            cloudwatch, lambda name: functions[name].time_to_fail(functions[name].facts(), 1)
        )
    standard = [one.name for one in sources if not is_fifo(one.name)]
    return SqsMetricsReader(cloudwatch, standard=standard)


#: New objects between two garbage collections; Python's 700 are a handful of letters, each parsed into a hundred
#: objects.
NEW_OBJECTS = 20_000


def set_up_collector() -> None:
    """Collect garbage rarely, and never among imported objects. To be called once, after the imports.

    A pass makes hardly any cycles, so there is little to collect; collecting took a tenth of its processor time.
    https://docs.python.org/3/library/gc.html#gc.freeze
    """
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, 20, 20)
