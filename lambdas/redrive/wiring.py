"""Puts a pass's tools together: the adapters over given clients, for one deployment."""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Sequence
from datetime import datetime
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from redrive.aws.books import CloudWatchClient, SourceBooks
from redrive.aws.dead_letters import DeadLetters, ParkingLot
from redrive.aws.outcome_queue import OutcomeQueue
from redrive.aws.sources import SqsSource
from redrive.aws.sqs import SqsClient, SqsQueue
from redrive.aws.state_table import DynamoDbClient, StateStore
from redrive.core.letter import Letter
from redrive.deployment import Deployment
from redrive.errors import CallFailed
from redrive.passes.ports import Journal, Source, Tools, Witness
from redrive.settings import Settings
from redrive.targets import SERVED, Origin

if TYPE_CHECKING:
    from redrive.aws.targets import Reach

if TYPE_CHECKING:
    from redrive.postgres.database import Database

#: Rounds at once on Postgres: each has a connection, and a database has some hundred for all who use it.
WORKERS_ON_POSTGRES = 8


def make_tools(
    deployment: Deployment,
    *,
    sqs: SqsClient,
    dynamodb: DynamoDbClient,
    cloudwatch: CloudWatchClient,
    journal: Journal,
    clock: Callable[[], datetime],
    rng: Random,
    owner: str,
    workers: int = 1,
    pause: Callable[[float], None] = time.sleep,
    reach: Reach | None = None,
    database: Database | None = None,
) -> Tools:
    """The tools of one pass, see `Tools`.

    Args:
        pause: waits before DynamoDB is asked again.
        reach: how targets are reached, where an origin other than SQS has them.
        database: has a worker queue.

    """
    memory = StateStore(
        dynamodb, deployment.table_name, deployment.queue_name, pause=pause, roll=rng.random
    )
    if database is not None:
        from redrive.postgres.tools import parts_of

        parts = parts_of(database, deployment.queue_name, memory, clock)
        return Tools(**parts, journal=journal, clock=clock, rng=rng, owner=owner, workers=workers)
    sources = sources_of(deployment, sqs, reach)
    return Tools(
        dead_letters=dead_letters_of(deployment, sqs),
        parking_lot=parking_lot_of(deployment, sqs),
        sources=sources,
        memory=memory,
        witness=_witness_of(deployment, sources, cloudwatch),
        journal=journal,
        clock=clock,
        rng=rng,
        owner=owner,
        workers=workers,
        reports=reports_of(deployment, sqs),
    )


def reach_of(deployment: Deployment, settings: Settings) -> Reach | None:
    """How targets are reached, no faster than the settings allow; None where letters go back to queues alone."""
    if not SERVED[deployment.origin]:
        return None
    from redrive.aws.pace import Pace
    from redrive.aws.targets import Reach

    return Reach(pace=Pace(settings.max_rate, clock=time.monotonic, pause=time.sleep))


def open_database(deployment: Deployment) -> Database | None:
    """The database of a worker queue, of which nothing is asked yet; None where the DLQ is SQS's."""
    if deployment.database is None:
        return None
    from redrive.aws.clients import client
    from redrive.postgres.credentials import open_database as opened

    return opened(deployment.database, client)


def tell_growth(
    database: Database | None, deployment: Deployment, tools: Tools, kept: Container[str]
) -> None:
    """Write how fast a table of letters grows to the log, as a metric; a count that fails is told, too."""
    if database is None:
        return
    from redrive.postgres.growth import added_lately, emit_growth

    try:
        added = added_lately(database, tools.clock())
    except CallFailed as failed:
        tools.journal("call.failed", call=failed.call, code=failed.code, detail=failed.detail)
    else:
        emit_growth(added, deployment.queue_name, kept)


def reports_of(deployment: Deployment, sqs: SqsClient) -> OutcomeQueue | None:
    """What consumers report to; None where they have nowhere to."""
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
    """The source queues that share the DLQ, or its targets; the first goes by the deployment's own name for it."""
    if SERVED[deployment.origin]:
        from redrive.aws.targets import Reach, target_source

        by = reach or Reach()
        return tuple(
            target_source(one, deployment.origin, by, deployment.private_hosts, deployment.dlq_url)
            for one in deployment.targets
        )
    return tuple(
        SqsSource(SqsQueue(sqs, url), name)
        for url, name in zip(deployment.source_urls, deployment.source_names, strict=True)
    )


def _recogniser_of(deployment: Deployment) -> Callable[[Letter], Letter] | None:
    """What tells which target a letter is of; SQS says it of a source queue's letters itself."""
    if not SERVED[deployment.origin]:
        return None
    from redrive.core.origins import recognise

    return partial(recognise, origin=deployment.origin, targets=deployment.targets)


def _witness_of(
    deployment: Deployment, sources: Sequence[Source], cloudwatch: CloudWatchClient
) -> Witness:
    """Who knows what became of letters; of a target whose answer is the outcome nobody is asked."""
    if deployment.origin is Origin.LAMBDA:
        from redrive.aws.function_books import FunctionBooks

        functions = {one.name: one for one in sources}
        return FunctionBooks(
            cloudwatch, lambda name: functions[name].time_to_fail(functions[name].facts(), 1)
        )
    return SourceBooks(cloudwatch)
