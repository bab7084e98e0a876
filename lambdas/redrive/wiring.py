"""Puts a pass's tools together: the adapters over given clients, for one deployment."""

from __future__ import annotations

import time
from collections.abc import Callable, Container
from datetime import datetime
from random import Random
from typing import TYPE_CHECKING

from redrive.aws.books import CloudWatchClient, SourceBooks
from redrive.aws.dead_letters import DeadLetters, ParkingLot
from redrive.aws.outcome_queue import OutcomeQueue
from redrive.aws.sources import SqsSource
from redrive.aws.sqs import SqsClient, SqsQueue
from redrive.aws.state_table import DynamoDbClient, StateStore
from redrive.errors import CallFailed
from redrive.passes.ports import Journal, Tools
from redrive.settings import Deployment

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
    database: Database | None = None,
) -> Tools:
    """The tools of one pass, see `Tools`; `pause` waits before DynamoDB is asked again, `database` has a worker queue."""
    memory = StateStore(
        dynamodb, deployment.table_name, deployment.queue_name, pause=pause, roll=rng.random
    )
    if database is not None:
        from redrive.postgres.tools import parts_of

        parts = parts_of(database, deployment.queue_name, memory, clock)
        return Tools(**parts, journal=journal, clock=clock, rng=rng, owner=owner, workers=workers)
    return Tools(
        dead_letters=dead_letters_of(deployment, sqs),
        parking_lot=parking_lot_of(deployment, sqs),
        sources=sources_of(deployment, sqs),
        memory=memory,
        witness=SourceBooks(cloudwatch),
        journal=journal,
        clock=clock,
        rng=rng,
        owner=owner,
        workers=workers,
        reports=reports_of(deployment, sqs),
    )


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
    return DeadLetters(SqsQueue(sqs, deployment.dlq_url), frozenset(deployment.source_names))


def parking_lot_of(deployment: Deployment, sqs: SqsClient) -> ParkingLot:
    """The parking lot."""
    return ParkingLot(SqsQueue(sqs, deployment.parking_lot_url), frozenset(deployment.source_names))


def sources_of(deployment: Deployment, sqs: SqsClient) -> tuple[SqsSource, ...]:
    """The source queues that share the DLQ; the first goes by the deployment's own name for it."""
    return tuple(
        SqsSource(SqsQueue(sqs, url), name)
        for url, name in zip(deployment.source_urls, deployment.source_names, strict=True)
    )
