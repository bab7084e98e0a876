"""The Lambda shell of the re-driver: environment and clients at cold start, then one pass per invocation.

The event only says that it is time; the pass looks for itself. Every invocation gets a pass, with two exceptions: a
tick of the schedule when nothing is due, and an event about a recovery that no circuit waits for.
"""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from random import Random
from typing import Any
from uuid import uuid4

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from smart_redriver.engine.aws import clients
from smart_redriver.engine.aws.clients import RecoveryEvents
from smart_redriver.engine.aws.metrics import emit, kept_metrics
from smart_redriver.engine.config.deployment import read_environment
from smart_redriver.engine.config.recovery import Recovery
from smart_redriver.engine.passes.recovery import hear, tell
from smart_redriver.engine.passes.redrive_pass import STOPPING_TIME, Rhythm, run_invocation
from smart_redriver.engine.report import report_of_invocation
from smart_redriver.engine.wiring import connect, make_tools, set_up_collector

#: Events are names: without `json_deserializer`, Powertools would try to parse each as JSON.
logger = Logger(service="smart-redriver", json_deserializer=str)

#: The event of the schedule's ticks. No other event has this content.
TICK = {"scheduled": True}

settings, deployment = read_environment(os.environ)
dynamodb = clients.dynamodb_client()
connection = connect(deployment, settings)
neighbours = RecoveryEvents(clients.OnFirstUse(partial(clients.client, "events")))
kept = kept_metrics(os.environ)
rhythm = Rhythm()
set_up_collector()


@logger.inject_lambda_context
def lambda_handler(event: object, context: LambdaContext) -> dict[str, Any]:
    """Run one pass and return its report as a JSON object. For a tick that is not due, say when the next look is."""
    if event == TICK and not rhythm.is_due(_now()):
        return {"outcome": "NOT_DUE", "next_look": f"{rhythm.next_look:%Y-%m-%dT%H:%M:%SZ}"}
    remaining = timedelta(milliseconds=context.get_remaining_time_in_millis())
    tools = make_tools(
        connection,
        deployment,
        dynamodb=dynamodb,
        journal=_log,
        clock=_now,
        rng=Random(),
        # Lambda may run one event twice at a time, under one request id.
        # https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
        owner=f"{context.aws_request_id}/{uuid4()}",
        workers=connection.workers,
    )
    recovery = Recovery.read(event)
    if recovery is not None and not hear(recovery, tools, settings):
        return {"outcome": "NOT_DUE"}
    deadline = _now() + remaining - STOPPING_TIME
    reports = []
    for report in run_invocation(tools, settings, deadline=deadline, pause=time.sleep):
        rhythm.looked(report, _now())
        tell(report, tools, settings, neighbours)
        emit(report, kept, deployment.called)
        connection.after_pass(tools, kept)
        reports.append(report)
    return report_of_invocation(reports).to_json()


def _now() -> datetime:
    return datetime.fromtimestamp(time.time(), UTC)


def _log(event: str, /, **fields: Any) -> None:
    logger.info(event, **fields)
