"""The Lambda shell of the re-driver: environment and clients at cold start, then one pass per invocation.

The event is ignored: it says that it is time, and the pass looks for itself.
"""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from redrive.aws import clients
from redrive.aws.collector import set_up_collector
from redrive.aws.metrics import emit, kept_metrics
from redrive.aws.sqs import Queues
from redrive.aws.state_table import StateStore
from redrive.aws.traffic import LiveTraffic
from redrive.environment import read_environment
from redrive.passes.redrive_pass import STOPPING_TIME, run_pass
from redrive.passes.tools import Tools

logger = Logger(service="smart-redriver")

settings, deployment = read_environment(os.environ)
queues = Queues(clients.sqs_client(), deployment)
store = StateStore(clients.dynamodb_client(), deployment.table_name, deployment.queue_name)
live_traffic = LiveTraffic(clients.OnFirstUse(clients.cloudwatch_client))
kept = kept_metrics(os.environ)
set_up_collector()


@logger.inject_lambda_context
def lambda_handler(_event: object, context: LambdaContext) -> dict[str, Any]:
    """Run one pass and return its report as a JSON object."""
    remaining = timedelta(milliseconds=context.get_remaining_time_in_millis())
    tools = Tools(
        queues=queues,
        store=store,
        live_traffic=live_traffic,
        journal=_log,
        clock=_now,
        rng=Random(),
        owner=context.aws_request_id,
        workers=clients.WORKERS,
    )
    report = run_pass(
        tools, deployment.queue_name, settings, deadline=_now() + remaining - STOPPING_TIME
    )
    emit(report, kept)
    return report.to_json()


def _now() -> datetime:
    return datetime.fromtimestamp(time.time(), UTC)


def _log(event: str, /, **fields: Any) -> None:
    logger.info(event, **fields)
