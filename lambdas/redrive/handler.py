"""The Lambda shell of the re-driver: environment and clients at cold start, then one pass per invocation.

The event says that it is time, and the pass looks for itself. Only the schedule's own ticks may find that nothing is
due; whoever else invokes the function gets a pass.
"""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from uuid import uuid4

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from redrive.aws import clients
from redrive.aws.collector import set_up_collector
from redrive.aws.metrics import emit, kept_metrics
from redrive.core.report import visit_of
from redrive.environment import read_environment
from redrive.passes.redrive_pass import STOPPING_TIME, run_visit
from redrive.passes.rhythm import Rhythm
from redrive.wiring import (
    WORKERS_ON_POSTGRES,
    make_tools,
    open_database,
    reach_of,
    tell_growth,
)

logger = Logger(service="smart-redriver")

#: What the schedule's ticks carry, and no other event.
TICK = {"scheduled": True}

settings, deployment = read_environment(os.environ)
sqs, dynamodb = clients.sqs_client(), clients.dynamodb_client()
cloudwatch = clients.OnFirstUse(clients.cloudwatch_client)
reach = reach_of(deployment, settings)
kept = kept_metrics(os.environ)
rhythm = Rhythm()
set_up_collector()
database = open_database(deployment)


@logger.inject_lambda_context
def lambda_handler(event: object, context: LambdaContext) -> dict[str, Any]:
    """Run one pass and return its report as a JSON object; a tick that is not due says when the next look is."""
    if event == TICK and not rhythm.is_due(_now()):
        return {"outcome": "NOT_DUE", "next_look": f"{rhythm.next_look:%Y-%m-%dT%H:%M:%SZ}"}
    remaining = timedelta(milliseconds=context.get_remaining_time_in_millis())
    tools = make_tools(
        deployment,
        sqs=sqs,
        dynamodb=dynamodb,
        cloudwatch=cloudwatch,
        journal=_log,
        clock=_now,
        rng=Random(),
        # Lambda may run one event twice at a time, under one request id.
        # https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
        owner=f"{context.aws_request_id}/{uuid4()}",
        workers=WORKERS_ON_POSTGRES if database else clients.WORKERS,
        reach=reach,
        database=database,
    )
    deadline = _now() + remaining - STOPPING_TIME
    reports = []
    for report in run_visit(tools, settings, deadline=deadline, pause=time.sleep):
        rhythm.looked(report, _now())
        emit(report, kept)
        tell_growth(database, deployment, tools, kept)
        reports.append(report)
    return visit_of(reports).to_json()


def _now() -> datetime:
    return datetime.fromtimestamp(time.time(), UTC)


def _log(event: str, /, **fields: Any) -> None:
    logger.info(event, **fields)
